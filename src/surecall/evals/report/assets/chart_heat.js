// The heat map: a table whose fields are coloured by their rate.

// 0 never, 1–5 between, 6 always
function rateStep(rate) {
  if (rate.value === 1) return 6;
  return rate.value === 0 ? 0 : [0.25, 0.5, 0.75, 0.9, 1].findIndex(
    (edge) => rate.value <= edge,
  ) + 1;
}

function drawHeatMap(rows) {
  const strategies = shownStrategies();
  const shown = rows.filter((trial) => strategies.includes(trial.cell.strategy));
  if (!shown.length) return figure("heat", "Models and scenarios", "", nothing("No trials match."));
  const byCell = groupBy(shown, (trial) => trial.cell);
  const found = new Map([...byCell].map(([cell, members]) => [heatKey(cell), { cell, members }]));
  const columns = heatColumns([...byCell.keys()]);
  const lines = heatLines(shown);
  const head = [
    h("th", { scope: "col", class: "corner" }, "Model"),
    strategies.length > 1 ? h("th", { scope: "col", class: "corner" }, "Strategy") : null,
    h("th", { scope: "col", class: "all" }, "all tool scenarios"),
    columns.map(({ cell, first }) =>
      h(
        "th",
        {
          scope: "col",
          class: cell.control && first ? "control first" : cell.control ? "control" : null,
        },
        axes.suite.length > 1 ? h("small", {}, cell.suite) : null,
        h("span", {}, breakable(cell.scenario)),
        cell.control ? h("small", {}, "control") : null,
      ),
    ),
  ];
  const body = lines.map(({ contender, members }, y) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, contenderName(contender)),
      strategies.length > 1 ? h(
        "td",
        {},
        strategies.map((strategy) => h("span", { class: "rate which" }, strategy)),
      ) : null,
      h(
        "td",
        { class: "all" },
        strategies.map((strategy) => heatTotal(members, contender, strategy)),
      ),
      columns.map(({ key, cell, first }, x) =>
        h(
          "td",
          { class: cell.control && first ? "first" : null },
          strategies.map(
            (strategy) => heatCell(found.get(`${contender.label}\n${strategy}\n${key}`), x, y),
          ),
        ),
      ),
    ),
  );
  const table = h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "heat", id: "heat", on: { keydown: walkHeat } },
      h("caption", { class: "hidden" }, "Trials that pass, by model and scenario"),
      h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, body),
    ),
  );
  return figure(
    "heat",
    "Models and scenarios",
    `Each field: trials that pass ${verdictWords()}, of all trials. Hatched: too few trials to call, ` +
      `the 95 % Wilson interval is wider than ${100 * TOO_WIDE} points.${shownNote()} ` +
      "Controls have no tools and are in no rate of tools. Click a field for its trials; arrow keys walk.",
    [heatControls(strategies), table, heatLegend()],
    heatTable(byCell),
  );
}

function heatColumns(found) {
  const keyOf = (cell) => `${cell.suite}\n${cell.scenario}`;
  const all = [...new Map(cells.map((cell) => [keyOf(cell), cell])).entries()];
  const there = new Set(found.map(keyOf));
  const kept = all.filter(([key]) => there.has(key)).map(([key, cell]) => ({ key, cell }));
  kept.sort((a, b) => Boolean(a.cell.control) - Boolean(b.cell.control));
  kept.forEach((column, i) => (column.first = column.cell.control && !kept[i - 1]?.cell.control));
  return kept;
}

function heatLines(shown) {
  const lines = [...groupBy(shown, (trial) => trial.cell.contender)].map(([contender, members]) => ({
    contender,
    members: members.filter((trial) => !trial.control),
  }));
  if (state.order === "rate") {
    lines.sort((a, b) => (rateOfRows(b.members).value ?? -1) - (rateOfRows(a.members).value ?? -1));
  }
  return lines;
}

function heatKey(cell) {
  return `${cell.contender.label}\n${cell.strategy}\n${cell.suite}\n${cell.scenario}`;
}

function heatCell(found, x, y) {
  if (!found) return h("span", { class: "rate none" }, "–");
  const { cell, members } = found;
  const { contender, strategy } = cell;
  const rate = rateOfRows(members);
  const words = `${contender.label}${contender.simulated ? ` (${contender.simulated})` : ""}, ${cell.scenario}, ${strategy}: ${rateWords(rate)}${rate.thin ? ", too few trials to call" : ""}`;
  return link(
    linkTo(cellPath(cell)),
    {
      class: `rate r${rateStep(rate)}${rate.thin ? " thin" : ""}`,
      title: words,
      "aria-label": words,
      "data-x": x,
      "data-y": y,
      tabindex: x || y ? "-1" : "0",
    },
    h("span", {}, `${rate.k}/${rate.n}`),
  );
}

function heatTotal(members, contender, strategy) {
  const rate = rateOfRows(members.filter((trial) => trial.cell.strategy === strategy));
  if (!rate.n) return h("span", { class: "rate none" }, "–");
  return link(
    linkTo(["trials"], { filters: contenderFilter(contender, { strategy }) }),
    { class: "total", title: rateWords(rate) },
    percent(rate.value),
    h("small", {}, ` ${rate.k}/${rate.n}`),
  );
}

function heatControls(strategies) {
  const rate = state.order === "rate";
  return h(
    "div",
    { class: "controls no-print" },
    axes.strategy.length > 1
      ? h(
          "div",
          { role: "group", "aria-label": "Strategy shown" },
          "Strategy shown: ",
          [...axes.strategy, "all"].map((name) =>
            link(
              linkTo(state.path, { show: name }),
              {
                class: "pick",
                "aria-current": (
                  name === "all" ? state.show === "all" : state.show !== "all" && strategies.includes(name)
                ) ? "true" : null,
              },
              name,
            ),
          ),
        )
      : null,
    h(
      "div",
      { role: "group", "aria-label": "Order of models" },
      "Order: ",
      link(
        linkTo(state.path, { order: "" }),
        { class: "pick", "aria-current": rate ? null : "true" },
        "as run",
      ),
      link(
        linkTo(state.path, { order: "rate" }),
        { class: "pick", "aria-current": rate ? "true" : null },
        "best first",
      ),
    ),
  );
}

function heatLegend() {
  const steps = ["none", "to 25 %", "to 50 %", "to 75 %", "to 90 %", "below 100 %", "all"];
  return h(
    "ul",
    { class: "legend" },
    steps.map(
      (text, step) => h(
        "li",
        {},
        h("span", { class: `rate r${step} sample` }, h("span", {})),
        " ",
        text,
      ),
    ),
    h("li", {}, h("span", { class: "rate r3 thin sample" }, h("span", {})), " too few to call"),
  );
}

function heatTable(byCell) {
  return makeTable(
    "Trials that pass, by cell",
    [
      { title: "Model" },
      { title: "Strategy" },
      { title: "Scenario" },
      { title: "Passed", numeric: true },
      { title: "Rate", numeric: true },
      { title: "95 % interval", numeric: true },
    ],
    [...byCell].map(([cell, members]) => {
      const rate = rateOfRows(members);
      return [
        contenderName(cell.contender),
        cell.strategy,
        link(linkTo(cellPath(cell)), {}, cell.scenario),
        `${rate.k}/${rate.n}`,
        percent(rate.value),
        `${interval(rate)}${rate.thin ? " (too few)" : ""}`,
      ];
    }),
  );
}

function walkHeat(event) {
  const step = {
    ArrowLeft: [-1, 0],
    ArrowRight: [1, 0],
    ArrowUp: [0, -1],
    ArrowDown: [0, 1],
  }[event.key];
  const from = event.target.closest("a[data-x]");
  if (!step || !from) return;
  event.preventDefault();
  let [x, y] = [Number(from.dataset.x), Number(from.dataset.y)];
  for (let i = 0; i < 1000; i++) {
    [x, y] = [x + step[0], y + step[1]];
    if (x < 0 || y < 0 || x > 999 || y > 999) return;
    const next = event.currentTarget.querySelector(`a[data-x="${x}"][data-y="${y}"]`);
    if (next) {
      from.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      return;
    }
  }
}
