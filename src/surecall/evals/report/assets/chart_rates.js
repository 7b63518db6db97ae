// Charts of rates: heat map, intervals, and what strategies do.

// 0 never, 1–5 between, 6 always
function rateStep(rate) {
  if (rate.value === 1) return 6;
  return rate.value === 0 ? 0 : [0.25, 0.5, 0.75, 0.9, 1].findIndex((edge) => rate.value <= edge) + 1;
}

function drawHeatMap(rows) {
  const strategies = shownStrategies();
  const shown = rows.filter((trial) => strategies.includes(trial.cell.strategy));
  if (!shown.length) return figure("heat", "Models and scenarios", "", nothing("No trials match."));
  const byCell = groupBy(shown, (trial) => trial.cell);
  const columns = heatColumns([...byCell.keys()]);
  const lines = heatLines(shown);
  const head = [
    h("th", { scope: "col", class: "corner" }, "Model"),
    columns.map(({ cell, first }) =>
      h(
        "th",
        { scope: "col", class: cell.control && first ? "control first" : cell.control ? "control" : null },
        axes.suite.length > 1 ? h("small", {}, cell.suite) : null,
        h("span", {}, breakable(cell.scenario)),
        cell.control ? h("small", {}, "control") : null,
      ),
    ),
    h("th", { scope: "col", class: "all" }, "all tool scenarios"),
  ];
  const body = lines.map(({ contender, members }, y) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, contenderName(contender)),
      columns.map(({ key, cell, first }, x) =>
        h(
          "td",
          { class: cell.control && first ? "first" : null },
          strategies.map((strategy) => heatCell(byCell, contender, strategy, key, x, y)),
        ),
      ),
      h("td", { class: "all" }, strategies.map((strategy) => heatTotal(members, contender, strategy))),
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

function heatCell(byCell, contender, strategy, key, x, y) {
  const found = [...byCell].find(
    ([cell]) => cell.contender === contender && cell.strategy === strategy && `${cell.suite}\n${cell.scenario}` === key,
  );
  if (!found) return h("span", { class: "rate none" }, "–");
  const [cell, members] = found;
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
              { class: "pick", "aria-current": (name === "all" ? state.show === "all" : state.show !== "all" && strategies.includes(name)) ? "true" : null },
              name,
            ),
          ),
        )
      : null,
    h(
      "div",
      { role: "group", "aria-label": "Order of models" },
      "Order: ",
      link(linkTo(state.path, { order: "" }), { class: "pick", "aria-current": rate ? null : "true" }, "as run"),
      link(linkTo(state.path, { order: "rate" }), { class: "pick", "aria-current": rate ? "true" : null }, "best first"),
    ),
  );
}

function heatLegend() {
  const steps = ["none", "to 25 %", "to 50 %", "to 75 %", "to 90 %", "below 100 %", "all"];
  return h(
    "ul",
    { class: "legend" },
    steps.map((text, step) => h("li", {}, h("span", { class: `rate r${step} sample` }, h("span", {})), " ", text)),
    h("li", {}, h("span", { class: "rate r3 thin sample" }, h("span", {})), " too few to call"),
  );
}

function heatTable(byCell) {
  return makeTable(
    "Trials that pass, by cell",
    [{ title: "Model" }, { title: "Strategy" }, { title: "Scenario" }, { title: "Passed", numeric: true }, { title: "Rate", numeric: true }, { title: "95 % interval", numeric: true }],
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
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
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

// Intervals

function drawForest(rows) {
  const lines = [...groupBy(rows, (trial) => trial.cell.contender)].map(([contender, members]) => {
    const rates = axes.strategy
      .map((strategy) => ({ strategy, rate: rateOfRows(members.filter((trial) => trial.cell.strategy === strategy)) }))
      .filter(({ rate }) => rate.n);
    return { ...contender, contender, rates, best: rates.at(-1).rate.value };
  });
  if (!lines.length) return figure("intervals", "Rates with their intervals", "", nothing("No trials match."));
  lines.sort((a, b) => b.best - a.best);
  const left = labelWidth(lines.map(seriesLabel));
  const right = WIDTH - 62;
  const at = (share) => left + 10 + share * (right - left - 10);
  let y = 8;
  const drawn = lines.map((line) => {
    const top = y;
    const whiskers = line.rates.map(({ strategy, rate }) => {
      y += 15;
      return whisker(line, strategy, rate, at, y - 3, right);
    });
    y += 8;
    return [rowLabel(line, left, (top + y) / 2 + 1), whiskers];
  });
  const chart = drawing(WIDTH, y + 34, "Rates with 95 % Wilson intervals, by model and strategy", percentAxis(left + 10, right, 4, y, "trials that pass"), drawn);
  return figure(
    "intervals",
    "Rates with their intervals",
    `Trials of tool scenarios that pass ${verdictWords()}; whiskers are 95 % Wilson intervals. Where they overlap widely, the trials cannot tell the two apart.`,
    [axes.strategy.length > 1 ? strategyLegend(axes.strategy) : null, chart],
    makeTable(
      "Rates with 95 % Wilson intervals",
      [{ title: "Model" }, { title: "Strategy" }, { title: "Passed", numeric: true }, { title: "Rate", numeric: true }, { title: "95 % interval", numeric: true }],
      lines.flatMap((line) =>
        line.rates.map(({ strategy, rate }) => [
          contenderName(line.contender),
          link(linkTo(["trials"], { filters: contenderFilter(line.contender, { strategy }) }), {}, strategy),
          `${rate.k}/${rate.n}`,
          percent(rate.value),
          interval(rate),
        ]),
      ),
    ),
  );
}

function whisker(line, strategy, rate, at, y, right) {
  const { kind, css } = strategyLook(strategy);
  const href = linkTo(["trials"], { filters: contenderFilter(line.contender, { strategy }) });
  return mark(
    href,
    `${line.label}, ${strategy}: ${rateWords(rate)}`,
    s("line", { x1: at(rate.low), x2: at(rate.high), y1: y, y2: y, class: `whisker ${css}` }),
    s("line", { x1: at(rate.low), x2: at(rate.low), y1: y - 3, y2: y + 3, class: `whisker ${css}` }),
    s("line", { x1: at(rate.high), x2: at(rate.high), y1: y - 3, y2: y + 3, class: `whisker ${css}` }),
    shape(kind, at(rate.value), y, css),
    s("text", { x: right + 10, y: y + 4, class: "tick" }, `${rate.k}/${rate.n}`),
  );
}

// What the strategies do

function drawDumbbells(rows) {
  const known = KNOWN_STRATEGIES.filter((name) => axes.strategy.includes(name));
  const steps = (known.length > 1 ? known : axes.strategy.slice(0, 2)).filter(
    (name) => rows.some((trial) => trial.cell.strategy === name),
  );
  const title = "What the strategies do";
  if (steps.length < 2) return figure("strategies", title, "", nothing("Only one strategy is here, so there is nothing to compare."));
  const lines = [...groupBy(rows, (trial) => trial.cell.contender)].map(([contender, members]) => dumbbell(contender, members, steps)).filter((line) => line.dots.length > 1);
  lines.sort((a, b) => (b.gain?.difference ?? -2) - (a.gain?.difference ?? -2));
  const left = labelWidth(lines.map(seriesLabel));
  const right = WIDTH - 190;
  const at = (share) => left + 10 + share * (right - left - 10);
  const bottom = 8 + 26 * lines.length;
  const drawn = lines.map((line, i) => {
    const y = 21 + 26 * i;
    return [
      rowLabel(line, left, y + 4),
      line.dots.slice(1).map((dot, j) => s("line", { x1: at(line.dots[j].rate.value), x2: at(dot.rate.value), y1: y, y2: y, class: "bar-line" })),
      line.dots.map(({ strategy, rate }) => {
        const { kind, css } = strategyLook(strategy);
        const href = linkTo(["trials"], { filters: contenderFilter(line.contender, { strategy }) });
        return mark(href, `${line.label}, ${strategy}: ${rateWords(rate)}`, shape(kind, at(rate.value), y, css, 5.5));
      }),
      line.gain ? s("text", { x: right + 12, y: y + 4, class: "tick" }, `${points(line.gain.difference)} points, ${pValue(line.gain.p)}`) : null,
    ];
  });
  return figure(
    "strategies",
    title,
    `Rate of each strategy, sorted by gain from ${steps[0]} to ${steps.at(-1)}. The gain is paired: the same case and trial with both strategies; p is the exact two-sided McNemar test.`,
    [strategyLegend(steps), drawing(WIDTH, bottom + 34, "Rate of each strategy, by model", percentAxis(left + 10, right, 4, bottom, "trials that pass"), drawn)],
    makeTable(
      "Gain by strategy",
      [{ title: "Model" }, ...steps.map((name) => ({ title: name, numeric: true })), { title: "Gain", numeric: true }, { title: "95 % interval", numeric: true }, { title: "Pairs", numeric: true }, { title: "Newly right : newly wrong", numeric: true }, { title: "McNemar", numeric: true }],
      lines.map((line) => [
        contenderName(line.contender),
        ...steps.map((name) => {
          const rate = line.dots.find((dot) => dot.strategy === name)?.rate;
          return rate ? `${rate.k}/${rate.n} (${percent(rate.value)})` : "–";
        }),
        ...(line.gain
          ? [points(line.gain.difference), `${points(line.gain.low)} to ${points(line.gain.high)}`, count(line.gain.n), `${line.gain.onlyB} : ${line.gain.onlyA}`, pValue(line.gain.p)]
          : ["–", "–", "0", "–", "–"]),
      ]),
    ),
  );
}

function dumbbell(contender, members, steps) {
  const sides = steps.map((strategy) => members.filter((trial) => trial.cell.strategy === strategy));
  return {
    ...contender,
    contender,
    dots: steps.map((strategy, i) => ({ strategy, rate: rateOfRows(sides[i]) })).filter(({ rate }) => rate.n),
    gain: pairUp(sides[0], sides.at(-1)),
  };
}

function pairUp(of_a, of_b) {
  const key = (trial) => [trial.cell.profile, trial.cell.fallback, trial.cell.suite, trial.cell.scenario, trial.case, trial.trial].join("\n");
  const others = new Map(of_b.map((trial) => [key(trial), trial]));
  const counts = [0, 0, 0, 0];
  for (const a of of_a) {
    const b = others.get(key(a));
    if (b) counts[(passes(a) ? 0 : 2) + (passes(b) ? 0 : 1)] += 1;
  }
  const [both, onlyA, onlyB, neither] = counts;
  return pairedDifference(both, onlyA, onlyB, neither);
}
