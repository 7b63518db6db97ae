// The page of one trial: what happened, what went wrong, and the way there.

const PART_NAMES = ["State", "Process", "Answer"];
const CHANGED_ELSEWHERE = new Set(["CHANGED_ELSEWHERE", "CHANGE_TRIED_ELSEWHERE"]);

function trialPage(parts) {
  const trial = trialAt.get(Number(parts[0]));
  if (!trial || !/^\d+$/.test(parts[0])) return lostPage("This trial is not in the report.");
  const body = h("div", { id: "transcript", "aria-busy": "true" }, h("p", { class: "k3" }, "Unpacking the transcript …"));
  const aside = h("aside", { class: "aside" }, asideParts(trial, null));
  showTranscript(trial, body, aside);
  const { cell } = trial;
  return [
    crumbs([link(linkTo(cellPath(cell)), {}, name(`${cell.contender.label} · ${cell.scenario}`)), `trial ${trial.index}`]),
    h("div", { class: "titleline" },
      h("h1", {}, `Trial ${trial.index}: `, sayTrial(trial)), verdictMark(trial, trial.isError ? "error" : trial.strictOk ? "right" : "wrong"),
      h("div", { class: "right acts" }, neighbours(trial), copyLink(["trial", String(trial.index)]))),
    trial.fabrications ? notice("stop", `${countOf(trial.fabrications, "call")} ran with something the model did not send.`) : null,
    verdicts(trial),
    h("div", { class: "split" }, body, aside),
  ];
}

// What happened, made from the parts of the verdict.
function sayTrial(trial) {
  if (trial.isError) return ["the endpoint failed", trial.code ? [", ", code(trial.code)] : ""];
  if (trial.cutByLimit) return "did not finish, cut by its limit";
  if (trial.code && !trial.strictOk) return ["did not finish, ", code(trial.code)];
  const [state_, process, answer] = trial.parts ?? [null, null, null];
  if (state_?.some((one) => CHANGED_ELSEWHERE.has(one.code))) return "changed something else";
  if (state_?.length) return "did not do the work";
  if (process?.length) return state_ && trial.calls.length ? "left the right state, but not as asked" : "did not do what was asked";
  if (answer?.length) return "did the work, gave the wrong answer";
  if (trial.strictOk) return "did what was asked";
  return ["wrong, ", code(failureCodes(trial)[0] ?? trial.strictReasons[0]?.code ?? "UNEXPLAINED")];
}

async function showTranscript(trial, place, aside) {
  let view;
  try {
    const body = await loadBody(trial.index);
    view = transcriptView(trial, body);
    replace(aside, asideParts(trial, body));
  } catch (error) {
    const old = typeof DecompressionStream === "undefined";
    view = [
      notice("", old ? "This browser is too old to unpack the transcript." : `This transcript cannot be read: ${error.message}`),
      callFacts(trial),
    ];
  }
  replace(place, view);
  place.removeAttribute("aria-busy");
  if (!place.isConnected) return;
  if (wantedScroll !== null) scrollTo(0, wantedScroll);
  else showTarget();
}

// Bring the turn or call of the address into view.
function showTarget() {
  const [page, , ...rest] = state.path;
  if (page !== "trial" || !rest.length) return;
  const target = document.getElementById(rest.join("-"));
  if (!target) {
    say("This turn or call is not in the transcript.");
    return;
  }
  for (const old of document.querySelectorAll(".target")) old.classList.remove("target");
  target.classList.add("target");
  target.focus({ preventScroll: true });
  target.scrollIntoView({ block: "start" });
}

function neighbours(trial) {
  const rows = sorted(chosen.rows);
  const at = rows.indexOf(trial);
  const to = (one, id, label, text) => (one
    ? link(linkTo(["trial", String(one.index)]), { id, class: "button", "aria-label": label }, text)
    : null);
  return h("nav", { class: "neighbours", "aria-label": "Trials before and after" },
    h("span", { class: "k3" }, at < 0 ? "not among the filtered trials" : `${whole(at + 1)} of ${whole(rows.length)}`),
    to(at > 0 ? rows[at - 1] : null, "previous", "Previous trial", "←"),
    to(at >= 0 ? rows[at + 1] : null, "next", "Next trial", "→"));
}

// The verdict, always in the same order; runs of before have two verdicts and no parts.
function verdicts(trial) {
  if (trial.isError) return notice("", "An error of the endpoint says nothing about the model: this trial is in no rate. ", code(trial.error ?? trial.code ?? ""));
  const panels = trial.parts
    ? trial.parts.map((reasons, i) => verdictPanel(PART_NAMES[i], reasons))
    : [
        verdictPanel("Strict", trial.strictOk ? [] : trial.strictReasons.length ? trial.strictReasons : [{ code: trial.failure?.code ?? "UNEXPLAINED", message: "" }]),
        verdictPanel("Original", trial.originalOk ? [] : trial.originalReasons.length ? trial.originalReasons : [{ code: trial.failure?.code ?? "UNEXPLAINED", message: "" }]),
      ];
  return h("div", { class: "verdict", role: "group", "aria-label": "Verdict" }, panels);
}

function verdictPanel(title, reasons) {
  const judged = reasons === null ? mark("quiet", "skip", "not checked") : reasons.length ? mark("stop", "stop", "wrong") : mark("ok", "ok", "right");
  return h("div", { class: reasons?.length ? "no" : null },
    h("h2", {}, title, judged),
    reasons?.length ? h("ul", {}, reasons.map((one) => h("li", {}, code(one.code), " ", h("bdi", {}, seen(one.message))))) : null);
}

// Beside the transcript

function asideParts(trial, body) {
  const { cell } = trial;
  const aside = (title, ...children) => h("section", {}, h("h2", {}, title), ...children);
  return [
    aside("This trial", facts([
      ["Model", name(cell.model), trial.simulated ? ", simulated" : ""],
      ["Scenario", name(cell.scenario), trial.control ? ", a control" : ""],
      trial.case ? ["Case", name(trial.case)] : null,
      ["Strategy", name(cell.strategy)],
      ["Profile", name(cell.profile)],
      ["Fallback", name(cell.fallback)],
      ["Repeat", `${trial.trial}, seed ${trial.seed}`],
      ["Outcome", facetWord("outcome", trial.outcome)],
      trial.failure ? ["Failure", code(trial.failure.code), ` (${trial.failure.layer}`, trial.failure.detail ? [": ", name(trial.failure.detail)] : "", ")"] : null,
      trial.error ? ["Error", h("bdi", {}, seen(trial.error)), trial.status ? ` (status ${trial.status})` : ""] : null,
      ["Time", trial.censored ? `stopped after ${duration(trial.ms)}` : duration(trial.ms, { fine: true }), `, ${countOf(trial.requests, "request")}`],
      ["Tokens", `${whole(trial.inputTokens)} in, ${whole(trial.outputTokens)} out`],
      trial.cost === null ? null : ["Cost", `$${trial.cost.toFixed(4)}`],
      trial.escalations ? ["Escalations", whole(trial.escalations)] : null,
      trial.rules.length ? ["Rules", trial.rules.map((rule) => [code(rule), " "])] : null,
    ])),
    repeats(trial, aside),
    timing(trial, body, aside),
    underRaw(trial, aside),
    trial.parts ? aside("Under the original verdict", h("p", {}, trial.originalOk ? mark("ok", "ok", "right") : mark("stop", "stop", "wrong"), " ",
      h("bdi", {}, seen(trial.originalReasons.map((one) => one.message || one.code).join("; "))))) : null,
  ];
}

function repeats(trial, aside) {
  const rows = trials.filter((one) => one.cell === trial.cell && one.case === trial.case);
  if (rows.length < 2) return null;
  const judged = rows.filter((one) => !one.isError);
  return aside(`Its ${rows.length} repeats`,
    h("div", { class: "reps", role: "group", "aria-label": "Repeats" }, rows.map((one) => link(
      linkTo(["trial", String(one.index)]),
      { class: `cell ${one.isError ? "none" : one.strictOk ? "h0" : "h4"}`, "aria-current": one === trial ? "page" : null, "aria-label": `repeat ${one.trial}, ${one.isError ? "endpoint error" : one.strictOk ? "right" : "wrong"}` },
      one.strictOk || one.isError ? String(one.trial) : "✕"))),
    h("p", { class: "caption" }, `Right in ${judged.filter((one) => one.strictOk).length} of ${judged.length}.`));
}

function timing(trial, body, aside) {
  const turns = (body?.transcript ?? []).filter((turn) => turn.elapsed_ms > 0);
  if (!turns.length) return null;
  const steps = turns.flatMap((turn) => {
    const tools = (turn.results ?? []).reduce((sum, result) => sum + (result.elapsed_ms ?? 0), 0);
    const rows = [{ label: `turn ${turn.turn + 1}`, ms: turn.elapsed_ms, fill: turn.attempts > 1 || turn.forced_tool ? "f-caution" : "f-up" }];
    return tools > 0 ? [...rows, { label: "tools", ms: tools, fill: "f-ok" }] : rows;
  });
  const known = steps.reduce((sum, step) => sum + step.ms, 0);
  const rest = Math.max(0, trial.ms - known);
  const all = [...steps, { label: "surecall", ms: rest, fill: "f-changed" }];
  return aside("Where the time went", waterfall(all, known + rest),
    h("p", { class: "caption" }, "Grey: the model. Amber: asked again. Blue: tools. Teal: surecall and the harness. Steps under 1 % are 3 px wide."));
}

// The same repeat without help is the shortest proof of what surecall does.
function underRaw(trial, aside) {
  if (trial.cell.strategy === "raw") return null;
  const same = trials.find((one) => one.cell.strategy === "raw" && one.cell.contender === trial.cell.contender
    && one.cell.suite === trial.cell.suite && one.cell.scenario === trial.cell.scenario && one.case === trial.case && one.trial === trial.trial);
  if (!same) return null;
  return aside("Without surecall",
    h("p", {}, "With ", h("b", {}, "raw"), ", the same repeat ", same.isError ? "met an endpoint error." : same.strictOk ? "is right too." : ["ends in ", code(failureCodes(same)[0] ?? same.failure?.code ?? "UNEXPLAINED"), "."]),
    h("p", {}, link(linkTo(["trial", String(same.index)]), {}, `Open trial ${same.index} (raw)`)));
}
