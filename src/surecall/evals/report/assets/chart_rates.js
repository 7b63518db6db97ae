// Charts of rates: intervals, and what the strategies do.

function drawForest(rows) {
  const lines = [...groupBy(rows, (trial) => trial.cell.contender)].map(([contender, members]) => {
    const rates = axes.strategy
      .map(
        (strategy) => (
          {
            strategy,
            rate: rateOfRows(members.filter((trial) => trial.cell.strategy === strategy)),
          }
        ),
      )
      .filter(({ rate }) => rate.n);
    return { ...contender, contender, rates, best: rates.at(-1).rate.value };
  });
  if (!lines.length) return figure(
    "intervals",
    "Rates with their intervals",
    "",
    nothing("No trials match."),
  );
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
  const chart = drawing(
    WIDTH,
    y + 34,
    "Rates with 95 % Wilson intervals, by model and strategy",
    percentAxis(left + 10, right, 4, y, "trials that pass"),
    drawn,
  );
  return figure(
    "intervals",
    "Rates with their intervals",
    `Trials of tool scenarios that pass ${verdictWords()}; whiskers are 95 % Wilson intervals. Where they overlap widely, the trials cannot tell the two apart.`,
    [axes.strategy.length > 1 ? strategyLegend(axes.strategy) : null, chart],
    makeTable(
      "Rates with 95 % Wilson intervals",
      [
        { title: "Model" },
        { title: "Strategy" },
        { title: "Passed", numeric: true },
        { title: "Rate", numeric: true },
        { title: "95 % interval", numeric: true },
      ],
      lines.flatMap((line) =>
        line.rates.map(({ strategy, rate }) => [
          contenderName(line.contender),
          link(
            linkTo(["trials"], { filters: contenderFilter(line.contender, { strategy }) }),
            {},
            strategy,
          ),
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
    s(
      "line",
      { x1: at(rate.low), x2: at(rate.low), y1: y - 3, y2: y + 3, class: `whisker ${css}` },
    ),
    s(
      "line",
      { x1: at(rate.high), x2: at(rate.high), y1: y - 3, y2: y + 3, class: `whisker ${css}` },
    ),
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
  if (steps.length < 2) return figure(
    "strategies",
    title,
    "",
    nothing("Only one strategy is here, so there is nothing to compare."),
  );
  const lines = [...groupBy(rows, (trial) => trial.cell.contender)].map(
    ([contender, members]) => dumbbell(contender, members, steps),
  ).filter((line) => line.dots.length > 1);
  lines.sort((a, b) => (b.gain?.difference ?? -2) - (a.gain?.difference ?? -2));
  const left = labelWidth(lines.map(seriesLabel));
  const right = WIDTH - 190;
  const at = (share) => left + 10 + share * (right - left - 10);
  const bottom = 8 + 26 * lines.length;
  const drawn = lines.map((line, i) => {
    const y = 21 + 26 * i;
    return [
      rowLabel(line, left, y + 4),
      line.dots.slice(1).map(
        (dot, j) => s(
          "line",
          {
            x1: at(line.dots[j].rate.value),
            x2: at(dot.rate.value),
            y1: y,
            y2: y,
            class: "bar-line",
          },
        ),
      ),
      line.dots.map(({ strategy, rate }) => {
        const { kind, css } = strategyLook(strategy);
        const href = linkTo(["trials"], { filters: contenderFilter(line.contender, { strategy }) });
        return mark(
          href,
          `${line.label}, ${strategy}: ${rateWords(rate)}`,
          shape(kind, at(rate.value), y, css, 5.5),
        );
      }),
      line.gain ? s(
        "text",
        { x: right + 12, y: y + 4, class: "tick" },
        `${points(line.gain.difference)} points, ${pValue(line.gain.p)}`,
      ) : null,
    ];
  });
  return figure(
    "strategies",
    title,
    `Rate of each strategy, sorted by gain from ${steps[0]} to ${steps.at(-1)}. The gain is paired: the same case and trial with both strategies; p is the exact two-sided McNemar test.`,
    [
      strategyLegend(steps),
      drawing(
        WIDTH,
        bottom + 34,
        "Rate of each strategy, by model",
        percentAxis(left + 10, right, 4, bottom, "trials that pass"),
        drawn,
      ),
    ],
    makeTable(
      "Gain by strategy",
      [
        { title: "Model" },
        ...steps.map((name) => ({ title: name, numeric: true })),
        { title: "Gain", numeric: true },
        { title: "95 % interval", numeric: true },
        { title: "Pairs", numeric: true },
        { title: "Newly right : newly wrong", numeric: true },
        { title: "McNemar", numeric: true },
      ],
      lines.map((line) => [
        contenderName(line.contender),
        ...steps.map((name) => {
          const rate = line.dots.find((dot) => dot.strategy === name)?.rate;
          return rate ? `${rate.k}/${rate.n} (${percent(rate.value)})` : "–";
        }),
        ...(line.gain
          ? [
            points(line.gain.difference),
            `${points(line.gain.low)} to ${points(line.gain.high)}`,
            count(line.gain.n),
            `${line.gain.onlyB} : ${line.gain.onlyA}`,
            pValue(line.gain.p),
          ]
          : ["–", "–", "0", "–", "–"]),
      ]),
    ),
  );
}

function dumbbell(contender, members, steps) {
  const sides = steps.map(
    (strategy) => members.filter((trial) => trial.cell.strategy === strategy),
  );
  return {
    ...contender,
    contender,
    dots: steps.map(
      (strategy, i) => ({ strategy, rate: rateOfRows(sides[i]) }),
    ).filter(({ rate }) => rate.n),
    gain: pairUp(sides[0], sides.at(-1)),
  };
}

function pairUp(of_a, of_b) {
  const key = (trial) => [
    trial.cell.profile,
    trial.cell.fallback,
    trial.cell.suite,
    trial.cell.scenario,
    trial.case,
    trial.trial,
  ].join("\n");
  const others = new Map(of_b.map((trial) => [key(trial), trial]));
  const counts = [0, 0, 0, 0];
  for (const a of of_a) {
    const b = others.get(key(a));
    if (b) counts[(passes(a) ? 0 : 2) + (passes(b) ? 0 : 1)] += 1;
  }
  const [both, onlyA, onlyB, neither] = counts;
  return pairedDifference(both, onlyA, onlyB, neither);
}
