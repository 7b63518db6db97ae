// Trials as a table, and the page of one cell.

const ROWS_AT_ONCE = 200;

const TRIAL_COLUMNS = [
  {
    name: "index",
    title: "#",
    numeric: true,
    value: (trial) => trial.index,
    cell: (trial) => link(
      linkTo(["trial", String(trial.index)]),
      { "data-stop": true, "data-key": `trial-${trial.index}` },
      String(trial.index),
    ),
  },
  {
    name: "model",
    title: "Model",
    value: (trial) => trial.cell.model,
    cell: (trial) => modelName(trial.cell.model),
  },
  {
    name: "profile",
    title: "Profile",
    value: (trial) => trial.cell.profile,
    when: () => axes.profile.length > 1,
  },
  { name: "strategy", title: "Strategy", value: (trial) => trial.cell.strategy },
  {
    name: "fallback",
    title: "Fallback",
    value: (trial) => trial.cell.fallback,
    when: () => axes.fallback.length > 1,
  },
  {
    name: "scenario",
    title: "Scenario",
    value: (trial) => trial.cell.scenario,
    cell: (trial) => [
      link(linkTo(cellPath(trial.cell)), {}, h("bdi", {}, trial.cell.scenario)),
      trial.control ? [" ", badge("plain", "control")] : null,
    ],
  },
  {
    name: "case",
    title: "Case",
    value: (trial) => trial.case,
    when: () => trials.some((trial) => trial.case),
  },
  { name: "trial", title: "Trial", numeric: true, value: (trial) => trial.trial },
  {
    name: "verdict",
    title: "Verdict",
    value: (trial) => Number(passes(trial)),
    cell: (trial) => verdictBadge(passes(trial)),
  },
  {
    name: "failure",
    title: "Failure",
    value: (trial) => failureCodes(trial)[0] ?? "",
    cell: (trial) => failureCodes(trial).map(code),
  },
  {
    name: "flaky",
    title: "In repeats",
    value: consistency,
    cell: (trial) => repeatBadge(consistency(trial)),
  },
  { name: "calls", title: "Calls", numeric: true, value: (trial) => trial.calls.length },
  { name: "turns", title: "Turns", numeric: true, value: (trial) => trial.turns },
  {
    name: "tokens",
    title: "Tokens",
    numeric: true,
    value: (trial) => trial.inputTokens + trial.outputTokens,
    cell: (trial) => count(trial.inputTokens + trial.outputTokens),
  },
  {
    name: "time",
    title: "Time",
    numeric: true,
    value: (trial) => trial.ms,
    cell: (trial) => [
      duration(trial.ms),
      trial.censored ? [
        " ",
        badge("plain", "stopped", "Stopped by a timeout: the true time is longer"),
      ] : null,
    ],
  },
];

function repeatBadge(word) {
  return badge(word === "sometimes" ? "flaky" : "plain", facetWord("flaky", word));
}

function trialsPage() {
  return [h("h1", {}, "Trials ", copyLink(["trials"])), trialTable(sorted(chosen.rows), "Trials")];
}

function sorted(rows) {
  const down = state.sort.startsWith("-");
  const column = TRIAL_COLUMNS.find(({ name }) => name === state.sort.replace("-", ""));
  if (!column) return rows;
  const keyed = rows.map((trial) => [column.value(trial), trial]);
  keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
  return keyed.map(([, trial]) => trial);
}

function trialTable(rows, caption) {
  if (!rows.length) return nothing("No trials match. Take back a filter.");
  const columns = TRIAL_COLUMNS.filter(({ when }) => !when || when());
  const body = h("tbody", {});
  const more = h(
    "button",
    { type: "button", class: "more no-print", on: { click: () => addRows() } },
  );
  const addRows = () => {
    const at = body.children.length;
    body.append(...rows.slice(at, at + ROWS_AT_ONCE).map((trial) => trialRow(trial, columns)));
    const left = rows.length - body.children.length;
    more.textContent = `Show ${count(Math.min(left, ROWS_AT_ONCE))} more of ${count(left)}`;
    more.hidden = left === 0;
  };
  addRows();
  return [
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "data trials" },
        h("caption", { class: "hidden" }, caption),
        h("thead", {}, h("tr", {}, columns.map(sortHead))),
        body,
      ),
    ),
    more,
  ];
}

function sortHead(column) {
  const now = state.sort === column.name ? "ascending" : state.sort === `-${column.name}` ? "descending" : null;
  const next = now === "ascending" ? `-${column.name}` : column.name;
  return h(
    "th",
    { scope: "col", "aria-sort": now, class: column.numeric ? "number" : null },
    h(
      "button",
      {
        type: "button",
        class: "sort",
        "data-key": `sort-${column.name}`,
        on: { click: () => go(linkTo(state.path, { sort: next })) },
      },
      column.title,
      h(
        "span",
        { "aria-hidden": "true" },
        now === "ascending" ? " ▲" : now === "descending" ? " ▼" : "",
      ),
    ),
  );
}

function trialRow(trial, columns) {
  const open = (event) => {
    if (!event.target.closest("a, button") && !String(getSelection())) go(linkTo(["trial", String(trial.index)]));
  };
  return h(
    "tr",
    { class: passes(trial) ? null : "failed", on: { click: open } },
    columns.map(
      ({ numeric, cell, value }) => h(
        "td",
        { class: numeric ? "number" : null },
        cell ? cell(trial) : h("bdi", {}, String(value(trial))),
      ),
    ),
  );
}

// One cell

function cellPage(parts) {
  const cell = cells.find((one) => cellPath(one).slice(1).every((part, i) => part === parts[i]));
  if (!cell) return lostPage("This cell is not in the report.");
  const rows = trials.filter((trial) => trial.cell === cell);
  const judged = rows.filter((trial) => !isError(trial));
  const strict = rateOf(judged.filter((trial) => trial.strictOk).length, judged.length);
  const original = rateOf(judged.filter((trial) => trial.originalOk).length, judged.length);
  const failed = [...tally(rows.flatMap(failureCodes), (name) => name)].sort((a, b) => b[1] - a[1]);
  return [
    crumbs([cell.scenario]),
    h(
      "h1",
      {},
      contenderName(cell.contender),
      " · ",
      h("bdi", {}, cell.scenario),
      " · ",
      h("bdi", {}, cell.strategy),
      " ",
      copyLink(cellPath(cell)),
    ),
    facts([
      ["Strictly right", `${rateWords(strict)}${strict.thin ? "; too few trials to call" : ""}`],
      ["Right by the original rule", rateWords(original)],
      ["Suite", cell.suite],
      ["Profile", cell.profile],
      ["Fallback", cell.fallback],
      failed.length ? [
        "Failures",
        failed.map(
          ([name, n]) => [
            link(
              linkTo(
                ["trials"],
                {
                  filters: filtersWith(
                    { failure: name, model: cell.model, scenario: cell.scenario },
                  ),
                },
              ),
              {},
              name,
            ),
            ` ${n}  `,
          ],
        ),
      ] : null,
    ]),
    siblings(cell),
    h("h2", {}, "Trials"),
    trialTable(sorted(rows), "Trials of the cell"),
  ];
}

function siblings(cell) {
  const others = cells.filter(
    (one) => one.contender === cell.contender && one.suite === cell.suite && one.scenario === cell.scenario,
  );
  if (others.length < 2) return null;
  return h(
    "nav",
    { class: "siblings", "aria-label": "The same with other strategies" },
    others.map((one) => {
      const rate = rateOfRows(trials.filter((trial) => trial.cell === one));
      return link(
        linkTo(cellPath(one)),
        { "aria-current": one === cell ? "page" : null },
        h("span", {}, one.strategy),
        h(
          "span",
          { class: `rate r${rateStep(rate)}${rate.thin ? " thin" : ""}` },
          h("span", {}, `${rate.k}/${rate.n}`),
        ),
      );
    }),
  );
}

function crumbs(names) {
  return h(
    "nav",
    { class: "crumbs", "aria-label": "Where this is" },
    link(linkTo([]), {}, "Overview"),
    " › ",
    names.flatMap((name, i) => [i ? " › " : null, name]),
  );
}

function lostPage(text) {
  return [
    h("h1", {}, "Nothing here"),
    h("p", {}, text, " ", link("#/", {}, "Go to the overview.")),
  ];
}
