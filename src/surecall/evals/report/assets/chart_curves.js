// Curves: how long trials take, and how consistent they are.

const DASHES = [null, "6 3", "2 3", "8 3 2 3"];

function curveLook(place) {
  return { css: `c${place % 7}`, dash: DASHES[Math.floor(place / 7) % DASHES.length] };
}

function curveLegend(series) {
  return longLegend(
    series.map((one, i) => {
      const { css, dash } = curveLook(i);
      return {
        sign: swatch(
          s(
            "line",
            { x1: 0, x2: 22, y1: 7, y2: 7, class: `curve ${css}`, "stroke-dasharray": dash },
          ),
        ),
        text: one.simulated ? `${one.label} (${one.simulated})` : one.label,
        href: one.href(),
      };
    }),
  );
}

function shareAxis(left, right, top, bottom) {
  const y = (share) => bottom - share * (bottom - top);
  return [0, 0.25, 0.5, 0.75, 1].map((share) => [
    s("line", { x1: left, x2: right, y1: y(share), y2: y(share), class: "grid" }),
    s(
      "text",
      { x: left - 6, y: y(share) + 4, class: "tick", "text-anchor": "end" },
      `${100 * share} %`,
    ),
  ]);
}

// Latency

function drawLatency(rows) {
  const title = "How long trials take";
  const series = seriesOf(rows).map((one) => ({ ...one, steps: survivalSteps(one.rows) }));
  if (!series.length) return figure("latency", title, "", nothing("No trials match."));
  const [left, right, top, bottom] = [52, WIDTH - 24, 10, 240];
  const times = series.flatMap((one) => one.steps.map((step) => Math.max(1, step.ms)));
  const low = Math.floor(Math.log10(smallest(times)) * 2) / 2;
  const high = Math.max(low + 1, Math.ceil(Math.log10(largest(times)) * 2) / 2);
  const x = (ms) => left + ((Math.log10(Math.max(1, ms)) - low) / (high - low)) * (right - left);
  const y = (share) => bottom - share * (bottom - top);
  const ticks = [
    1,
    10,
    100,
    1000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
  ].flatMap((power) => [power, 3 * power]).filter((ms) => x(ms) >= left - 1 && x(ms) <= right + 1);
  const stopped = series.reduce(
    (sum, one) => sum + one.steps.filter((step) => step.censored).length,
    0,
  );
  const drawn = series.map((one, i) => latencyCurve(one, curveLook(i), x, y, right));
  return figure(
    "latency",
    title,
    `Share of trials that ended within a time, on a logarithmic axis (Kaplan–Meier). ` +
      (
        stopped ? `A cross is a trial that was stopped by a timeout: its true time is longer (${plural(stopped, "trial")}). ` : "No trial was stopped by a timeout. "
      ) +
      `n = ${count(times.length)}.${shownNote()}`,
    [
      curveLegend(series),
      drawing(
        WIDTH,
        bottom + 22,
        "Share of trials that ended within a time, by model",
        shareAxis(left, right, top, bottom),
        ticks.map(
          (ms) => [
            s("line", { x1: x(ms), x2: x(ms), y1: top, y2: bottom, class: "grid" }),
            s(
              "text",
              { x: x(ms), y: bottom + 16, class: "tick", "text-anchor": "middle" },
              shortTime(ms),
            ),
          ],
        ),
        drawn,
      ),
    ],
    makeTable(
      "Times by model",
      [
        { title: "Model" },
        { title: "Trials", numeric: true },
        { title: "Stopped", numeric: true },
        { title: "p50", numeric: true },
        { title: "p95", numeric: true },
        { title: "p99", numeric: true },
      ],
      series.map((one) => [
        link(one.href(), {}, one.simulated ? `${one.label} (${one.simulated})` : one.label),
        count(one.steps.length),
        count(one.steps.filter((step) => step.censored).length),
        ...[0.5, 0.95, 0.99].map((share) => duration(quantile(one.steps, share))),
      ]),
    ),
  );
}

function latencyCurve(one, { css, dash }, x, y, right) {
  let path = "";
  let done = 0;
  for (const step of one.steps) {
    if (step.censored) continue;
    path += path ? `H${x(step.ms).toFixed(1)}` : `M${x(step.ms).toFixed(1)} ${y(0).toFixed(1)}`;
    path += `V${y(step.done).toFixed(1)}`;
    done = step.done;
  }
  if (path && done < 1) path += `H${right}`;
  const crosses = groupBy(one.steps.filter((step) => step.censored), (step) => step.ms);
  return mark(
    one.href(),
    `${one.label}: half ended within ${duration(quantile(one.steps, 0.5))}`,
    path ? s("path", { d: path, class: `curve ${css}`, "stroke-dasharray": dash }) : null,
    [...crosses.values()].map(([step]) => {
      const [cx, cy] = [x(step.ms), y(step.done)];
      return s("path", { d: `M${cx - 4} ${cy - 4}l8 8m0 -8l-8 8`, class: `cross ${css}` });
    }),
  );
}

function shortTime(ms) {
  return ms < 1000 ? `${ms} ms` : `${count(ms / 1000)} s`;
}

// Consistency

function drawConsistency(rows) {
  const title = "Right every time";
  const series = seriesOf(rows)
    .map((one) => ({ ...one, curve: passCurve(one.rows) }))
    .filter((one) => one.curve.length > 1);
  if (!series.length) return figure(
    "consistency",
    title,
    "",
    nothing("Every case was tried once, so nothing is known about repeats."),
  );
  const [left, right, top, bottom] = [52, WIDTH - 24, 10, 240];
  const most = Math.max(...series.map((one) => one.curve.length));
  const x = (k) => left + ((k - 1) / (most - 1)) * (right - left);
  const y = (share) => bottom - share * (bottom - top);
  const ticks = Array.from({ length: most }, (_, i) => i + 1).filter(
    (k) => most <= 20 || k === 1 || k % 10 === 0,
  );
  const drawn = series.map((one, i) => {
    const { css, dash } = curveLook(i);
    const path = one.curve.map(
      ({ every }, j) => `${j ? "L" : "M"}${x(j + 1).toFixed(1)} ${y(every).toFixed(1)}`,
    ).join("");
    return mark(
      one.href(),
      `${one.label}: all of ${one.curve.length} right in ${percent(one.curve.at(-1).every)}`,
      s("path", { d: path, class: `curve ${css}`, "stroke-dasharray": dash }),
      one.curve.map(
        ({ every }, j) => s("circle", { cx: x(j + 1), cy: y(every), r: 2.5, class: css }),
      ),
    );
  });
  return figure(
    "consistency",
    title,
    `pass^k: the chance that k trials of a case all pass ${verdictWords()}, estimated without bias and averaged over cases.${shownNote()}`,
    [
      curveLegend(series),
      drawing(
        WIDTH,
        bottom + 34,
        "Chance that all of k trials pass, by model",
        shareAxis(left, right, top, bottom),
        ticks.map(
          (k) => s("text", { x: x(k), y: bottom + 16, class: "tick", "text-anchor": "middle" }, k),
        ),
        s(
          "text",
          { x: (left + right) / 2, y: bottom + 31, class: "tick", "text-anchor": "middle" },
          "k trials",
        ),
        drawn,
      ),
    ],
    makeTable(
      "pass^k by model",
      [
        { title: "Model" },
        { title: "Cases", numeric: true },
        ...ticks.slice(0, 12).map((k) => ({ title: `k = ${k}`, numeric: true })),
      ],
      series.map((one) => [
        link(one.href(), {}, one.simulated ? `${one.label} (${one.simulated})` : one.label),
        count(one.curve[0].items),
        ...ticks.slice(0, 12).map(
          (k) => (one.curve[k - 1] ? percent(one.curve[k - 1].every) : "–"),
        ),
      ]),
    ),
  );
}

function passCurve(rows) {
  const shapes = [
    ...groupBy(rows, (trial) => `${trial.cell.place}/${trial.case}`).values(),
  ].map((members) => [members.length, members.filter(passes).length]);
  const most = Math.min(100, largest(shapes.map(([n]) => n)));
  return Array.from({ length: most }, (_, i) => {
    const tried = shapes.filter(([n]) => n > i);
    const sum = tried.reduce((total, [n, right]) => total + passHatK(n, right, i + 1), 0);
    return { every: sum / tried.length, items: tried.length };
  });
}
