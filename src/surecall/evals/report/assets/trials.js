// Trials as a table, and the page of one field of the map.

const ROWS_AT_ONCE = 200;

const TRIAL_COLUMNS = [
  {
    name: "index", title: "#", css: "num", value: (trial) => trial.index,
    cell: (trial) => link(linkTo(["trial", String(trial.index)]), { "data-key": `trial-${trial.index}` }, String(trial.index)),
  },
  { name: "verdict", title: "Verdict", css: "is", value: verdictOf, cell: (trial) => verdictMark(trial) },
  { name: "model", title: "Model", css: "who", value: (trial) => trial.cell.contender.label },
  { name: "strategy", title: "Strategy", value: (trial) => trial.cell.strategy },
  {
    name: "scenario", title: "Scenario", value: (trial) => trial.cell.scenario,
    cell: (trial) => [
      link(linkTo(cellPath(trial.cell)), {}, name(trial.cell.scenario)),
      trial.case ? h("small", {}, " ", name(trial.case)) : null,
    ],
  },
  { name: "failure", title: "Why", value: (trial) => failureCodes(trial)[0] ?? "", cell: (trial) => failureCodes(trial).map(code) },
  { name: "flaky", title: "In repeats", value: consistency, cell: (trial) => facetWord("flaky", consistency(trial)) },
  {
    name: "tokens", title: "Tokens", css: "num", value: (trial) => trial.inputTokens + trial.outputTokens,
    cell: (trial) => whole(trial.inputTokens + trial.outputTokens),
  },
  {
    name: "time", title: "Time", css: "num", value: (trial) => trial.ms,
    cell: (trial) => (trial.censored ? `>${THIN}${duration(trial.ms)}` : duration(trial.ms)),
  },
];

function verdictMark(trial, part = verdictOf(trial)) {
  if (part === "error") return mark("caution", "warn", "endpoint error");
  return part === "right" ? mark("ok", "ok", "right") : mark("stop", "stop", "wrong");
}

function trialsPage() {
  return h(
    "div",
    { class: "with-facets" },
    facetPanel(),
    h(
      "div",
      {},
      h("div", { class: "titleline" }, h("h1", {}, sayFound()), h("div", { class: "right" }, copyLink(["trials"]))),
      chips(),
      trialTable(sorted(chosen.rows), "Trials"),
    ),
  );
}

// The title is the finding: how many are right.
function sayFound() {
  const judged = chosen.rows.filter((trial) => !trial.isError);
  const right = judged.filter(passes).length;
  return `Trials: ${whole(right)} of ${whole(judged.length)} are right`;
}

function sorted(rows) {
  const down = state.sort.startsWith("-");
  const column = TRIAL_COLUMNS.find((one) => one.name === state.sort.replace("-", ""));
  if (!column) return rows;
  const keyed = rows.map((trial) => [column.value(trial), trial]);
  keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
  return keyed.map(([, trial]) => trial);
}

function trialTable(rows, caption) {
  if (!rows.length) return nothingFits();
  const body = h("tbody", { role: "rowgroup" });
  const more = button("", () => addRows(), { class: "more" });
  const addRows = () => {
    const at = body.children.length;
    body.append(...rows.slice(at, at + ROWS_AT_ONCE).map(trialRow));
    const left = rows.length - body.children.length;
    more.textContent = `Show ${whole(Math.min(left, ROWS_AT_ONCE))} more of ${whole(left)}`;
    more.hidden = left === 0;
  };
  addRows();
  return [
    h("table", { class: "trials", role: "table" },
      h("caption", { class: "hidden" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, TRIAL_COLUMNS.map(sortHead))),
      body),
    more,
  ];
}

// Which filter to take back, and how many trials that would give.
function nothingFits() {
  const without = [...state.filters.keys()].map((facet) => {
    const filters = new Map(state.filters);
    filters.delete(facet);
    const kept = state;
    state = { ...state, filters };
    choose();
    const n = chosen.rows.length;
    state = kept;
    return { facet, filters, n };
  });
  choose();
  return h("p", { class: "block k2" }, "No trials match. ", without.filter(({ n }) => n).map(({ facet, filters, n }) => [
    link(linkTo(["trials"], { filters }), {}, `Without ${facet}: ${whole(n)}`), " ",
  ]));
}

function sortHead(column) {
  const now = state.sort === column.name ? "ascending" : state.sort === `-${column.name}` ? "descending" : null;
  const next = now === "ascending" ? `-${column.name}` : column.name;
  return h("th", { scope: "col", role: "columnheader", "aria-sort": now, class: column.css },
    button([column.title, h("span", { "aria-hidden": "true" }, now === "ascending" ? " ▲" : now === "descending" ? " ▼" : "")],
      () => go(linkTo(state.path, { sort: next })), { class: "sort", "data-key": `sort-${column.name}` }));
}

function trialRow(trial) {
  const open = (event) => {
    if (!event.target.closest("a, button") && !String(getSelection())) go(linkTo(["trial", String(trial.index)]));
  };
  return h("tr", { role: "row", "data-row": true, class: verdictOf(trial) === "wrong" ? "wrong" : null, on: { click: open } },
    TRIAL_COLUMNS.map((column) => h("td", { role: "cell", class: column.css, "data-label": column.title },
      column.cell ? column.cell(trial) : name(String(column.value(trial))))));
}

// One field of the map

function cellPage(parts) {
  const cell = cells.find((one) => cellPath(one).slice(1).every((part, i) => part === parts[i]));
  if (!cell) return lostPage("This field is not in the report.");
  const rows = trials.filter((trial) => trial.cell === cell);
  const judged = rows.filter((trial) => !trial.isError);
  const right = judged.filter(passes).length;
  const failed = [...tally(judged.flatMap(failureCodes), (one) => one)].sort((a, b) => b[1] - a[1]);
  return [
    crumbs([name(cell.scenario)]),
    h("div", { class: "titleline" },
      h("h1", {}, name(cell.contender.label), ": ", `${right} of ${judged.length} right in `, name(cell.scenario)),
      h("div", { class: "right" }, copyLink(cellPath(cell)))),
    h("p", { class: "kicker" },
      h("span", {}, "suite ", name(cell.suite)), h("span", {}, "strategy ", name(cell.strategy)),
      h("span", {}, "profile ", name(cell.profile)), h("span", {}, "fallback ", name(cell.fallback)),
      cell.control ? h("span", {}, "control, in no rate") : null,
      rows.length > judged.length ? h("span", {}, `${countOf(rows.length - judged.length, "endpoint error")}, in no rate`) : null),
    failed.length ? h("p", { class: "block" }, "Wrong because of ", failed.map(([reason, n], i) => [
      i ? ", " : "",
      link(linkTo(["trials"], { filters: filtersWith({ failure: reason, model: cell.model, scenario: cell.scenario }) }), {}, code(reason)),
      ` (${n})`,
    ]), ".") : null,
    siblings(cell),
    h("div", { class: "block" }, trialTable(sorted(rows), "Trials of the field")),
  ];
}

function siblings(cell) {
  const others = cells.filter((one) => one.contender === cell.contender && one.suite === cell.suite && one.scenario === cell.scenario);
  if (others.length < 2) return null;
  return h("nav", { class: "seg block", "aria-label": "The same with other strategies" }, others.map((one) => {
    const rows = trials.filter((trial) => trial.cell === one && !trial.isError);
    return link(linkTo(cellPath(one)), { "aria-current": one === cell ? "page" : null }, name(one.strategy), ` ${rows.filter(passes).length} of ${rows.length}`);
  }));
}

function crumbs(parts) {
  return h("nav", { class: "crumbs", "aria-label": "Where this is" },
    link(linkTo([]), {}, "Answer"), parts.map((part) => [" › ", part]));
}

function lostPage(text) {
  return [h("h1", {}, "Nothing here"), h("p", { class: "block" }, text, " ", link("#/", {}, "Go to the answer."))];
}

function copyLink(path) {
  return copyButton("Copy link", () => location.href.replace(/#.*$/, "") + linkTo(path));
}
