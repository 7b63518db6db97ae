// What is known about models at upstreams, since when, and asking again.

function modelsPage() {
  return { title: "Models", everyMs: 15_000, load: () => ask("/ui/data/models"), draw: drawModels };
}

function drawModels(data) {
  const failing = data.upstreams.filter((upstream) => upstream.is_failing);
  const known = data.upstreams.flatMap((upstream) => upstream.models);
  const probed = known.filter((model) => model.facts.length);
  return [
    h("h1", {}, failing.length
      ? [name(failing[0].name), " only fails at the moment"]
      : known.length ? `${whole(probed.length)} of ${countOf(known.length, "model")} ${known.length === 1 ? "has" : "have"} been asked what they can do` : "No model was asked yet"),
    h("p", { class: "sub" }, "What the settings declare wins over a probe, a probe over the catalog. Facts of a probe are believed until the date beside them."),
    data.problem ? notice("", seen(data.problem)) : null,
    h("p", { id: "acted", class: "acted", role: "status" }),
    data.routes.map(drawRoute),
    data.upstreams.map((upstream) => drawUpstream(upstream, data.now)),
  ];
}

// Where a route by evidence sends requests, and what would change that.
function drawRoute(route) {
  const leader = route.targets.find((target) => target.leads);
  const top = niceTop(Math.max(LIMIT * 2, ...route.targets.filter(({ n }) => n >= MIN_REPLIES).map(({ broken }) => broken.high)));
  const rows = route.targets.map((target) => ({ cells: [
    name(target.upstream), name(target.model), whole(target.n),
    target.n < MIN_REPLIES ? h("span", { class: "few" }, "too few to rate") : h("div", { class: "rate" }, h("span", {}, percent(target.broken.value)), intervalBar(target.broken, top)),
    percent(target.share),
    target.leads ? mark("ok", "ok", "leads") : "",
  ] }));
  return h("section", { class: "block" },
    h("div", { class: "head" }, h("h2", {}, "Route ", name(route.name), " by evidence")),
    h("p", { class: "k2" }, leader
      ? [name(leader.upstream), " leads: of its latest replies with tools ", h("b", {}, percent(leader.broken.value)), leader.broken.low > 0 ? ` were broken. Another takes over when its rate is below ${percent(leader.broken.low)} beyond chance.` : " were broken. None can be better beyond chance."]
      : `By weight, until every target has had ${whole(route.min_requests)} requests with tools.`),
    table(`Targets of the route ${route.name}`, "pairs", [["Upstream", "who"], ["Model", "where"], ["Replies", "num"], ["Broken", "ratecell"], ["Of all requests", "num"], ["", "what"]], rows),
    h("p", { class: "caption" }, `Broken: the replies with calls that surecall had to change, ask for again or refuse, or that failed; the latest count most. 95${THIN}% intervals. ${percent(route.trying)} of the requests try the targets that do not lead. Each worker measures for itself, from its start on.`),
  );
}

function drawUpstream(upstream, now) {
  return h("section", { class: "block" },
    h("div", { class: "head" },
      h("h2", {}, name(upstream.name)),
      h("p", {}, code(upstream.address), " ", FORMATS.get(upstream.protocol) ?? upstream.protocol, ", ", `${whole(upstream.in_flight)} under way`),
      upstream.is_failing ? mark("stop", "stop", "only fails at the moment") : upstream.is_ready ? null : mark("caution", "half", "loading"),
    ),
    upstream.no_probe ? h("p", { class: "k2" }, `Not probed: ${upstream.no_probe}`) : null,
    upstream.models.length ? table(`Models at ${upstream.name}`, "probes", [["Model", "who"], ["Tools", "where"], ["What a probe found", "what"], ["Asked", "num"], ["", "num side"]],
      upstream.models.map((model) => ({ attributes: { "data-row": `${upstream.name}/${model.name}` }, cells: modelCells(upstream, model, now) })),
    ) : h("p", { class: "k3" }, "No model of it was asked within a day."),
  );
}

function modelCells(upstream, model, now) {
  const asked = Math.max(0, ...model.facts.map((fact) => fact.asked_at));
  const ends = Math.min(...model.facts.map((fact) => fact.expires_at));
  return [
    name(model.name),
    model.strategy ? code(model.strategy) : h("span", { class: "k3" }, "–"),
    model.facts.length ? factList(model.facts, now) : model.probe_ok === false ? mark("stop", "stop", seen(model.probe_error || "failed")) : h("span", { class: "k3" }, "nothing yet"),
    asked ? [h("time", { datetime: new Date(asked * 1000).toISOString(), title: new Date(asked * 1000).toISOString() }, day(asked)), h("small", { class: "line" }, ends <= now ? "no longer believed" : `until ${day(ends)}`)] : "never",
    probeButton(upstream, model),
  ];
}

function factList(facts, now) {
  const shown = facts.map((fact) => h("li", { class: fact.expires_at <= now ? "old" : null, title: fact.evidence || null },
    fact.value === true ? icon("ok") : fact.value === false ? icon("stop") : icon("skip"),
    h("span", {}, h("code", {}, name(fact.field)), fact.value === true ? "" : fact.value === false ? " no" : [" ", name(inline(fact.value))]),
  ));
  return h("ul", { class: "facts-found" }, shown);
}

function probeButton(upstream, model) {
  const isIdle = !upstream.no_probe && session.may_act && !model.is_probed_now;
  const title = upstream.no_probe || (session.may_act ? "Sends a few requests to the upstream" : "Only a key with the role admin may");
  return button(model.is_probed_now ? "Asking …" : model.facts.length ? "Ask again" : "Ask", (event) => askAgain(event, upstream.name, model.name), { disabled: !isIdle, title, id: `probe-${upstream.name}-${model.name}`, "aria-label": `Ask ${upstream.name} again what ${model.name} can do` });
}

async function askAgain(event, upstream, model) {
  event.currentTarget.disabled = true;
  replace(event.currentTarget, "Asking …");
  let said;
  try {
    const found = await act("/ui/data/models/probe", { upstream, model });
    said = found.error
      ? [mark("stop", "stop", "It did not answer. "), code(found.error.code), " ", seen(found.error.message)]
      : [mark("ok", "ok", "Asked. "), name(model), `: ${countOf(found.found, "fact")} with ${countOf(found.requests, "request")}.`];
  } catch (error) {
    said = [mark("stop", "stop", "Not asked. "), error.message];
  }
  await refresh();
  replace(document.getElementById("acted"), said);
}
