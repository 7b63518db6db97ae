// Charts of counts: failures, recoveries and sizes of arguments.

const MAX_COLOURS = 7;

function drawFailures(rows) {
  const title = "Why trials fail";
  const series = seriesOf(rows);
  const all = series.flatMap((one) => one.rows);
  const failed = all.filter((trial) => !passes(trial));
  if (!failed.length) return figure(
    "failures",
    title,
    "",
    nothing(all.length ? "No trial failed." : "No trials match."),
  );
  const groups = [...groupBy(failed, (trial) => failureCodes(trial)[0])].sort(
    (a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1),
  );
  const named = groups.slice(0, MAX_COLOURS).map(([name]) => name);
  const looks = new Map(named.map((name, i) => [name, `c${i}`]));
  const lines = series.filter((one) => one.rows.some((trial) => !passes(trial)));
  const left = labelWidth(lines.map(seriesLabel));
  const right = WIDTH - 70;
  const bottom = 6 + 24 * lines.length;
  const shares = lines.map(
    (one) => one.rows.filter((trial) => !passes(trial)).length / one.rows.length,
  );
  const most = Math.min(1, Math.ceil(Math.max(...shares) * 5) / 5);
  const drawn = lines.map(
    (one, i) => stack(
      one,
      named,
      looks,
      (share) => left + 10 + (share / most) * (right - left - 10),
      10 + 24 * i,
    ),
  );
  const rest = groups.length - named.length;
  return figure(
    "failures",
    title,
    `Share of the trials of tool scenarios that fail ${verdictWords()}, by code; n = ${count(all.length)} trials, ${count(failed.length)} failed.${shownNote()}`,
    [
      legend([
        ...named.map(
          (name) => (
            {
              sign: swatch(
                s("rect", { x: 3, y: 1, width: 16, height: 12, class: looks.get(name) }),
              ),
              text: name,
              href: linkTo(["trials"], { filters: filtersWith({ failure: name }) }),
            }
          ),
        ),
        ...(
          rest ? [
            {
              sign: swatch(s("rect", { x: 3, y: 1, width: 16, height: 12, class: "c7" })),
              text: `${rest} more`,
            },
          ] : []
        ),
      ]),
      drawing(
        WIDTH,
        bottom + 34,
        "Failures by code and model",
        percentAxis(left + 10, right, 4, bottom, "trials that fail", most),
        drawn,
      ),
    ],
    failureTable(groups, all.length),
  );
}

function stack(one, named, looks, at, y) {
  const n = one.rows.length;
  const counts = tally(one.rows, (trial) => failureCodes(trial)[0]);
  const other = [...counts].filter(([name]) => !looks.has(name)).reduce((sum, [, k]) => sum + k, 0);
  const parts = [
    ...named.map((name) => [name, counts.get(name) ?? 0, looks.get(name)]),
    ["others", other, "c7"],
  ];
  let before = 0;
  const failed = parts.reduce((sum, [, k]) => sum + k, 0);
  const segments = parts
    .filter(([, k]) => k)
    .map(([name, k, css]) => {
      const x = at(before / n);
      before += k;
      const width = at(before / n) - x;
      const href = one.href(name === "others" ? { verdict: "fail" } : { failure: name });
      return mark(
        href,
        `${one.label}: ${name}, ${k} of ${n} trials`,
        s("rect", { x, y, width: Math.max(1, width - 1), height: 15, class: `segment ${css}` }),
      );
    });
  return [
    rowLabel(one, at(0) - 10, y + 12),
    segments,
    s("text", { x: at(failed / n) + 6, y: y + 12, class: "tick" }, `${failed}/${n}`),
  ];
}

function failureTable(groups, n) {
  const failed = groups.reduce((sum, [, members]) => sum + members.length, 0);
  return makeTable(
    "Failures by code",
    [
      { title: "Code" },
      { title: "Layer" },
      { title: "Trials", numeric: true },
      { title: "Of failures", numeric: true },
      { title: "Of all", numeric: true },
      { title: "Models", numeric: true },
      { title: "Example" },
      { title: "As filter" },
    ],
    groups.map(([name, members]) => [
      link(linkTo(["trials"], { filters: filtersWith({ failure: name }) }), {}, name),
      members[0].failure?.layer ?? "behaviour",
      count(members.length),
      percent(members.length / failed),
      percent(members.length / n),
      count(new Set(members.map((trial) => trial.cell.model)).size),
      link(linkTo(["trial", String(members[0].index)]), {}, `trial ${members[0].index}`),
      copyButton("copy as filter", () => `failure=${encodeURIComponent(name)}`),
    ]),
  );
}

// Recoveries

function drawRecoveries(rows) {
  const title = "Rules that right trials used";
  const shown = seriesOf(rows).flatMap((one) => one.rows);
  const right = shown.filter((trial) => trial.strictOk);
  const fired = tally(shown.flatMap((trial) => trial.rules), (rule) => rule);
  const saved = groupBy(
    right.flatMap((trial) => trial.savedBy.map((rule) => ({ rule, trial }))),
    ({ rule }) => rule,
  );
  const lines = [...saved].map(
    ([rule, found]) => (
      { rule, rate: rateOf(found.length, right.length), example: found[0].trial }
    ),
  ).sort((a, b) => b.rate.k - a.rate.k || (a.rule < b.rule ? -1 : 1));
  if (!lines.length) return figure(
    "recoveries",
    title,
    "",
    nothing("No trial that passes needed a rule."),
  );
  const left = labelWidth(lines.map(({ rule }) => rule));
  const end = WIDTH - 120;
  const most = Math.max(...lines.map(({ rate }) => rate.high));
  const at = (share) => left + 10 + (share / most) * (end - left - 10);
  const drawn = lines.map(({ rule, rate }, i) => {
    const y = 10 + 24 * i;
    return [
      s(
        "text",
        { x: left, y: y + 12, class: "label", "text-anchor": "end" },
        s("title", {}, rule),
        clipped(rule),
      ),
      mark(
        linkTo(["trials"], { filters: filtersWith({ rule, verdict: "pass" }) }),
        `${rule} was used by ${rateWords(rate)}`,
        s(
          "rect",
          {
            x: at(0),
            y,
            width: Math.max(1, at(rate.value) - at(0)),
            height: 15,
            class: "segment c2",
          },
        ),
        s(
          "line",
          { x1: at(rate.low), x2: at(rate.high), y1: y + 7.5, y2: y + 7.5, class: "whisker over" },
        ),
      ),
      s(
        "text",
        { x: end + 8, y: y + 12, class: "tick" },
        `${rate.k}/${rate.n} (${percent(rate.value)})`,
      ),
    ];
  });
  return figure(
    "recoveries",
    title,
    `Of the ${count(right.length)} trials of tool scenarios that are strictly right: those that could not have been without this rule, with 95 % Wilson intervals. A trial may need several.${shownNote()}`,
    drawing(WIDTH, 12 + 24 * lines.length, "Right trials that used each rule", drawn),
    makeTable(
      "Right trials that used each rule",
      [
        { title: "Rule" },
        { title: "Used", numeric: true },
        { title: "Share", numeric: true },
        { title: "95 % interval", numeric: true },
        { title: "Changed something in", numeric: true },
        { title: "Example" },
      ],
      lines.map(({ rule, rate, example }) => [
        link(linkTo(["trials"], { filters: filtersWith({ rule }) }), {}, rule),
        `${rate.k}/${rate.n}`,
        percent(rate.value),
        interval(rate),
        plural(fired.get(rule) ?? rate.k, "trial"),
        link(linkTo(["trial", String(example.index)]), {}, `trial ${example.index}`),
      ]),
    ),
  );
}

// Sizes of arguments

function drawSizes(rows) {
  const title = "How large arguments are";
  const calls = seriesOf(rows).flatMap(
    (one) => one.rows.flatMap((trial) => trial.calls.map((call) => ({ call, trial }))),
  );
  if (!calls.length) return figure("sizes", title, "", nothing("No calls were made."));
  const limits = limitsOf(calls);
  const sizes = calls.map(({ call }) => Math.max(1, call.bytes));
  const low = Math.floor(2 * Math.log2(smallest(sizes)));
  const high = Math.max(low + 4, Math.ceil(2 * Math.log2(largest(sizes) + 1)));
  const bins = Array.from(
    { length: high - low },
    (_, i) => (
      { from: 2 ** ((low + i) / 2), to: 2 ** ((low + i + 1) / 2), used: 0, tooLarge: 0, refused: 0 }
    ),
  );
  calls.forEach(({ call }, i) => {
    const bin = bins[Math.min(bins.length - 1, Math.floor(2 * Math.log2(sizes[i])) - low)];
    if (call.executed) bin.used += 1;
    else if (call.errorCodes.includes("ARGUMENTS_TOO_LARGE")) bin.tooLarge += 1;
    else bin.refused += 1;
  });
  const beyond = limits.filter((limit) => limit > 2 ** (high / 2));
  const words = limits.length
    ? `Limits in force: ${limits.map(bytes).join(" and ")}${beyond.length ? `; ${beyond.map(bytes).join(" and ")} ${beyond.length > 1 ? "lie" : "lies"} beyond the axis` : ""}.`
    : "The limit in force is not in this file.";
  return figure(
    "sizes",
    title,
    `Size of the arguments of ${plural(calls.length, "call")} as they arrived, on a logarithmic axis. ${words}${shownNote()}`,
    [
      legend([
        {
          sign: swatch(s("rect", { x: 3, y: 1, width: 16, height: 12, class: "c2" })),
          text: "ran",
        },
        {
          sign: swatch(s("rect", { x: 3, y: 1, width: 16, height: 12, class: "c1" })),
          text: "refused as too large",
        },
        {
          sign: swatch(s("rect", { x: 3, y: 1, width: 16, height: 12, class: "c7" })),
          text: "refused for another reason",
        },
      ]),
      histogram(bins, low, high, limits),
    ],
    makeTable(
      "Calls by size of arguments",
      [
        { title: "Bytes" },
        { title: "Ran", numeric: true },
        { title: "Too large", numeric: true },
        { title: "Refused otherwise", numeric: true },
      ],
      bins.filter((bin) => bin.used + bin.tooLarge + bin.refused).map(
        (bin) => [
          `${count(Math.ceil(bin.from))} to ${count(Math.ceil(bin.to) - 1)}`,
          count(bin.used),
          count(bin.tooLarge),
          count(bin.refused),
        ],
      ),
    ),
  );
}

function limitsOf(calls) {
  const known = new Map(source.limits);
  const found = new Set(
    calls.map(({ trial }) => known.get(trial.cell.scenario)).filter((limit) => limit !== undefined),
  );
  return [...found].sort((a, b) => a - b);
}

function histogram(bins, low, high, limits) {
  const [left, right, top, bottom] = [52, WIDTH - 16, 22, 200];
  const most = Math.max(...bins.map((bin) => bin.used + bin.tooLarge + bin.refused));
  const x = (size) => left + ((2 * Math.log2(size) - low) / (high - low)) * (right - left);
  const height = (n) => (n / most) * (bottom - top);
  const bars = bins.map((bin) => {
    let y = bottom;
    return [["used", "c2"], ["tooLarge", "c1"], ["refused", "c7"]].map(([field, css]) => {
      if (!bin[field]) return null;
      y -= height(bin[field]);
      return s(
        "rect",
        {
          x: x(bin.from) + 0.5,
          y,
          width: Math.max(1, x(bin.to) - x(bin.from) - 1),
          height: Math.max(1, height(bin[field]) - 0.5),
          class: `bin ${css}`,
        },
        s(
          "title",
          {},
          `${count(Math.ceil(bin.from))} to ${count(Math.ceil(bin.to) - 1)} bytes: ${bin[field]}`,
        ),
      );
    });
  });
  const ticks = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].flatMap((power) => [power, 3 * power]).filter(
    (size) => x(size) >= left - 1 && x(size) <= right + 1,
  );
  return drawing(
    WIDTH,
    bottom + 36,
    "Calls by size of arguments",
    s("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }),
    [0, 0.5, 1].map(
      (share) => s(
        "text",
        {
          x: left - 6,
          y: bottom - share * (bottom - top) + 4,
          class: "tick",
          "text-anchor": "end",
        },
        count(Math.round(share * most)),
      ),
    ),
    ticks.map(
      (size) => s(
        "text",
        { x: x(size), y: bottom + 15, class: "tick", "text-anchor": "middle" },
        count(size),
      ),
    ),
    s(
      "text",
      { x: (left + right) / 2, y: bottom + 31, class: "tick", "text-anchor": "middle" },
      "bytes",
    ),
    bars,
    limits
      .filter((limit) => x(limit) >= left && x(limit) <= right)
      .map((limit) => [
        s("line", { x1: x(limit), x2: x(limit), y1: top - 6, y2: bottom, class: "limit" }),
        s(
          "text",
          {
            x: x(limit),
            y: top - 9,
            class: "tick",
            "text-anchor": x(limit) > right - 60 ? "end" : "middle",
          },
          `limit ${bytes(limit)}`,
        ),
      ]),
  );
}
