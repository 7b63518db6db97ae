// The first page: is anything wrong now, since when, and whose fault is it.

const RANGES = [
  { name: "1h", word: "1 hour", last: "the last hour" },
  { name: "24h", word: "24 hours", last: "the last 24 hours" },
  { name: "7d", word: "7 days", last: "the last 7 days" },
];
const MAX_PAIRS = 40;
const MAX_TURNS = 10;

let announced = "";

function overviewPage() {
  const wanted = new URLSearchParams(location.search).get("range");
  const range = RANGES.find(({ name }) => name === wanted) ?? RANGES[0];
  return {
    title: "Overview",
    everyMs: 5000,
    load: () => ask(`/ui/data/overview?range=${range.name}`),
    draw: (data) => drawOverview(data, range),
  };
}

function drawOverview(data, range) {
  if (!data.is_recorded) return drawNotRecorded();
  if (!data.has_any) return drawNothingYet(data);
  const finding = findFinding(data, range);
  announce(finding.spoken);
  return h("div", { class: "dash" },
    h("div", { class: "titleline" }, h("h1", {}, finding.title), h("div", { class: "right" }, chooseRange(range, "/ui"))),
    finding.lines.map((line) => h("p", { class: "sub" }, line)),
    drawTroubles(data),
    drawBand(data, range),
    drawObserved(data),
    timeChart(data),
    drawPairs(data),
    h("div", { class: "cols block" }, drawTurns(data), drawParsing(data)),
    drawSpent(data),
    h("div", { class: "cols block" }, drawTimes(data), drawRecent(data)),
  );
}

function chooseRange(range, path, more = {}) {
  return h("nav", { class: "seg", "aria-label": "Time" }, RANGES.map(({ name, word }) => link(
    `${path}?${new URLSearchParams({ ...more, range: name })}`,
    { "aria-current": name === range.name ? "true" : null },
    word,
  )));
}

// What is said first: what is wrong now, and otherwise how it went.
function findFinding(data, range) {
  const { total, changed, down } = data;
  const replies = READ.reduce((sum, key) => sum + total[key], 0);
  const lines = [];
  const went = replies
    ? [
        h("b", {}, percent(total.clean / replies)), ` of ${replies === 1 ? "1 reply was" : `${whole(replies)} replies were`} clean in ${range.last}; surecall set `,
        h("b", {}, percent((total.repaired + total.reasked) / replies)), " right, refused ", h("b", {}, percent(total.refused / replies)), " and delivered ", h("b", {}, percent(total.unrepaired / replies)), " unrepaired.",
      ]
    : [`No reply was read in ${range.last}.`];
  const who = changed && [name(changed.model), " via ", name(changed.upstream)];
  const begun = changed && [changed.code ? [", mostly ", code(changed.code)] : "", ". ", link(
    `/ui/requests?${new URLSearchParams({ since: changed.from.toFixed(0), until: changed.to.toFixed(0), model: changed.model, upstream: changed.upstream, outcome: "not-clean" })}`,
    {}, "Show these requests",
  )];
  let title = went;
  let spoken = "";
  if (down.length) {
    title = [name(down[0].upstream), " has not answered since ", h("b", {}, moment(down[0].since)), "."];
    spoken = `${down[0].upstream} does not answer.`;
    lines.push(went);
  } else if (changed && !changed.is_over) {
    title = ["Since ", h("b", {}, moment(changed.from)), " more is broken than usual: ", who, "."];
    lines.push([`${percent(changed.now)} of its replies are not clean, usually ${percent(changed.usual)}`, begun]);
    lines.push(went);
    spoken = `${changed.model} via ${changed.upstream} is broken more than usual.`;
  }
  if (changed && (changed.is_over || down.length)) {
    lines.push([`From ${moment(changed.from)} to ${moment(changed.to)} more was broken than usual: `, who, begun]);
  }
  if (!changed && !down.length && replies) lines.push(hotLine(data));
  return { title, lines, spoken };
}

function hotLine(data) {
  const hot = data.pairs.filter((pair) => isHot(pair.wrong));
  if (!hot.length) return "No model at any upstream is worse than in the 24 hours before.";
  const [worst] = hot.sort((a, b) => b.wrong.value - a.wrong.value);
  return ["No worse than in the 24 hours before, but ", name(worst.model), " via ", name(worst.upstream), ` is wrong in ${percent(worst.wrong.value)} of its replies.`];
}

// A new warning is read aloud; figures that change are not.
function announce(spoken) {
  if (spoken && spoken !== announced) say(spoken);
  announced = spoken;
}

function drawTroubles(data) {
  const { gateway, down } = data;
  return [
    down.map((item) => notice("stop", name(item.upstream), ` has failed ${countOf(item.failed, "time")} and answered nothing since ${moment(item.since)}`, item.code ? [", with ", code(item.code)] : "", ". Requests with a fallback go there. ", link(`/ui/requests?${new URLSearchParams({ upstream: item.upstream, outcome: "failed", range: "1h" })}`, {}, "Show failed requests"))),
    gateway.open_breakers.filter((upstream) => !down.some((item) => item.upstream === upstream)).map((upstream) => notice("stop", name(upstream), " only fails at the moment, and is left alone for two seconds at a time.")),
    gateway.store_away ? notice("", "The store cannot be used at the moment; records wait on disk. These figures leave them out.") : null,
  ];
}

function drawBand(data, range) {
  const { total, gateway } = data;
  const replies = READ.reduce((sum, key) => sum + total[key], 0);
  const listed = READ.map((key) => {
    const { word, tone, shape, fill } = OUTCOMES.get(key);
    const label = key === "clean"
      ? [s("svg", { class: "swatch", "aria-hidden": "true" }, s("rect", { class: fill, width: 11, height: 11 })), word]
      : mark(tone, shape, word);
    const href = `/ui/requests?${new URLSearchParams({ outcome: key, range: range.name })}`;
    return h("span", {}, link(href, { class: "plain" }, label), " ", h("b", {}, replies ? percent(total[key] / replies) : "–"), " ", h("small", {}, whole(total[key])));
  });
  const rest = [
    total.failed ? h("span", {}, link(`/ui/requests?${new URLSearchParams({ outcome: "failed", range: range.name })}`, { class: "plain" }, outcomeMark("failed")), " ", h("small", {}, whole(total.failed))) : null,
    total.relayed ? h("span", {}, mark("quiet", "skip", "passed on untouched"), " ", h("small", {}, whole(total.relayed))) : null,
    h("span", { class: "right" }, `${whole(gateway.in_flight)} under way`),
  ];
  return h("section", { class: "outcomes", "aria-label": `Outcomes of ${range.last}` },
    outcomeBand(total, `Outcomes: ${bandText(total, replies || 1) || "none"}`),
    h("div", { class: "legend" }, listed, rest),
  );
}

function drawPairs(data) {
  const top = niceTop(Math.max(LIMIT * 2, ...data.pairs.filter(({ wrong }) => wrong.n >= MIN_REPLIES).map(({ wrong }) => wrong.high)));
  const rows = data.pairs.slice(0, MAX_PAIRS).map((pair) => ({
    attributes: { class: isHot(pair.wrong) ? "hot" : null },
    cells: [
      link(`/ui/requests?${new URLSearchParams({ model: pair.model, upstream: pair.upstream, range: data.range })}`, { class: "plain" }, name(pair.model || "no model")),
      name(pair.upstream || "none"),
      whole(pair.counts.requests),
      outcomeBand(pair.outcomes),
      pair.wrong.n ? h("div", { class: "rate" }, h("span", {}, shareText(pair.wrong)), pair.wrong.n < MIN_REPLIES ? h("small", {}, "too few to rate") : intervalBar(pair.wrong, top)) : h("span", { class: "few" }, "–"),
      rateOf(pair.defects),
      rateOf(pair.receipts),
      rateOf(pair.unparsed),
      whole(pair.counts.retries),
      spread(pair.upstream_ms),
      spread(pair.added_ms),
    ],
  }));
  const left = data.pairs.length - MAX_PAIRS;
  return h("section", { class: "block" },
    h("div", { class: "head" }, h("h2", {}, "Defects by model and upstream")),
    table("Requests, outcomes, defects and times by model and upstream", "pairs", [
      ["Model", "who"], ["Upstream", "where"], ["Requests", "num"], ["Outcomes", "bandcell"], ["Not clean", "ratecell"],
      ["Defects", "num"], ["Receipts", "num"], ["Do not parse", "num"], ["Retries", "num"], ["Upstream p50 / p95", "num time"], ["Added p50 / p95", "num time"],
    ], rows),
    h("p", { class: "caption" }, `Not clean: replies that surecall had to change, ask for again or refuse, with 95${THIN}% interval. Red: the whole interval is above 10${THIN}%. No rate is shown for fewer than ${MIN_REPLIES} replies.`, left > 0 ? ` ${whole(left)} more are left out.` : ""),
  );
}

function rateOf(share) {
  if (!share.n) return "–";
  return share.n < MIN_REPLIES ? `${whole(share.of)} of ${whole(share.n)}` : percent(share.value);
}

function spread(found) {
  return found ? [duration(found.p50), " ", h("small", {}, `/ ${duration(found.p95)}`)] : "–";
}

function drawTurns(data) {
  const enough = data.turns.filter((turn) => turn.success.n >= MIN_REPLIES);
  const shown = (enough.length ? enough : data.turns).slice(0, MAX_TURNS);
  const left = data.turns.length - shown.length;
  const rows = shown.map((turn) => ({ cells: [
    name(turn.model || "no model"),
    [turn.prompt ? name(turn.prompt) : h("span", { class: "few" }, "none"), turn.strategy === "taught" ? h("small", {}, " taught") : null],
    turn.success.n < MIN_REPLIES ? h("span", { class: "few" }, `${whole(turn.success.of)} of ${whole(turn.success.n)}`) : h("div", { class: "rate" }, h("span", {}, shareText(turn.success, { withCount: true })), intervalBar(turn.success)),
    h("span", { class: "k3" }, rateOf(turn.without_help)),
    rateOf(turn.unparsed),
    whole(turn.asked_again),
  ] }));
  return h("section", {},
    h("div", { class: "head" }, h("h2", {}, "Turn success by model and prompt")),
    table("Share of turns with a usable reply, by model and prompt", "turns", [["Model", "who"], ["Prompt", "where"], ["Usable reply", "ratecell"], ["Without help", "num"], ["Do not parse", "num"], ["Asked again", "num"]], rows),
    h("p", { class: "caption" }, "A turn succeeds when the client gets a reply it can use. A prompt is named by the header ", code("x-surecall-prompt"), ", or by a hash of its system text and tools.", left ? ` ${countOf(left, "row")} with fewer turns ${left === 1 ? "is" : "are"} left out.` : ""),
  );
}

// What a gateway that only looks would have done, and what to switch on.
function drawObserved(data) {
  const { rows, said } = data.observed;
  if (!rows.length) return null;
  const top = niceTop(Math.max(LIMIT * 2, ...rows.filter(({ broken }) => broken.n >= MIN_REPLIES).map(({ broken }) => broken.high)));
  const cells = rows.slice(0, MAX_PAIRS).map((row) => ({ cells: [
    name(row.names[0] || "no model"),
    name(row.names[1] || "none"),
    whole(row.replies),
    row.replies < MIN_REPLIES ? h("span", { class: "few" }, `${whole(row.broken.of)} of ${whole(row.replies)}`) : h("div", { class: "rate" }, h("span", {}, shareText(row.broken)), intervalBar(row.broken, top)),
    whole(row.repaired), whole(row.reasked), whole(row.unusable),
  ] }));
  return h("section", { class: "block" },
    h("div", { class: "head" }, h("h2", {}, "Observed: passed on untouched")),
    said.map((line, at) => h("p", { class: at ? "sub" : "lead" }, line)),
    table("What would have been done for replies that were only observed", "pairs", [["Model", "who"], ["Upstream", "where"], ["Replies with tools", "num"], ["Broken", "ratecell"], ["Right after repair", "num"], ["To be asked again", "num"], ["Refused", "num"]], cells),
    h("p", { class: "caption" }, `With 95${THIN}% intervals. Every byte of these replies went to the client as the upstream sent it.`),
  );
}

// What keys with a limit in money have spent, from the records of this month.
function drawSpent(data) {
  if (!data.spent.length) return null;
  const rows = data.spent.map((row) => ({ cells: [name(row.key), money(row.spent), money(row.limit), percent(row.spent / row.limit)] }));
  return h("section", {},
    h("div", { class: "head" }, h("h2", {}, "Spent this month")),
    table("What keys have spent this month", "turns", [["Key", "who"], ["Spent", "num"], ["Limit", "num"], ["Share", "num"]], rows),
    h("p", { class: "caption" }, "In the currency of the prices, from the records that are kept; months begin at midnight UTC."),
  );
}

function drawParsing(data) {
  const { received, after } = data.parse;
  return h("section", {},
    h("div", { class: "head" }, h("h2", {}, "Calls that do not parse")),
    h("div", { class: "legend" },
      h("span", {}, mark("stop", "in", "as received"), " ", shareText(received)),
      h("span", {}, mark("changed", "changed", "after surecall"), " ", shareText(after)),
    ),
    parseChart(data),
    h("p", { class: "caption" }, `With 95${THIN}% bands. What does not parse after surecall was refused, or left to the check of a client that runs a loop; no call that was cut was delivered.`),
  );
}

function drawTimes(data) {
  const timed = data.pairs.filter((pair) => pair.upstream_ms);
  const enough = timed.filter((pair) => pair.upstream_ms.n >= MIN_REPLIES);
  const pairs = (enough.length ? enough : timed).slice(0, MAX_TURNS);
  const steps = ["0.1 ms", "", "10", "", "1 s", "", "100"];
  const rows = pairs.map((pair) => ({ cells: [
    [name(pair.model || "no model"), " ", h("small", {}, name(pair.upstream))],
    timeBars(pair),
    spread(pair.added_ms),
  ] }));
  const reasked = data.total.reasked;
  return h("section", {},
    h("div", { class: "head" }, h("h2", {}, "What surecall adds in time")),
    table("Time added by surecall beside the time of the upstream", "times", [["Model", "who"], [h("span", { class: "ticks", "aria-hidden": "true" }, steps.map((step) => h("span", {}, step))), "viz"], ["added p50 / p95", "num"]], rows),
    h("p", { class: "caption" }, "From p50 to p95, logarithmic: teal is surecall, grey the upstream. ", reasked ? `${countOf(reasked, "request was", "requests were")} asked again; the second reply counts as upstream.` : "Nothing was asked again."),
  );
}

function drawRecent(data) {
  return h("section", {},
    h("div", { class: "head" }, h("h2", {}, "Not clean, newest first"), data.not_clean ? link(`/ui/requests?${new URLSearchParams({ outcome: "not-clean", range: data.range })}`, { class: "right" }, `All ${whole(data.not_clean)}`) : null),
    data.recent.length ? requestTable("Requests that were not clean", data.recent) : h("p", { class: "k2" }, "Every reply was clean."),
  );
}

function drawNotRecorded() {
  return [
    h("h1", {}, "Requests are not recorded"),
    h("p", { class: "sub" }, "The gateway was started with ", code("--store off"), ", so there is nothing to show. ", link("/ui/models", {}, "Models"), " can be looked at."),
  ];
}

function drawNothingYet(data) {
  const parts = data.snippets.map(({ title, text }) => h("li", {},
    h("div", { class: "row" }, h("b", {}, title), copyButton("Copy", () => text)),
    block(text, title),
  ));
  return h("div", { class: "dash" },
    h("h1", {}, "No request has come through yet."),
    h("p", { class: "sub" }, "The gateway is up and waits at ", code(`${location.origin}/v1`), ". This page fills by itself with the first request."),
    h("div", { class: "empty" },
      h("p", {}, h("b", {}, "Point a client at the gateway."), " Only the address changes."),
      h("ul", {}, parts),
      h("p", {}, h("b", {}, "Or see it at work without a model."), " A provider that misbehaves on purpose: ", code("surecall faults serve"), "."),
      h("p", { class: "caption" }, "Upstreams: ", session.upstreams.map((upstream, i) => [i ? ", " : "", name(upstream)]), ". Nothing is sent anywhere but to them."),
    ),
  );
}
