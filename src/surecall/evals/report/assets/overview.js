// The first page: what ran, the figures that matter, and the charts.

const CHARTS = [
  drawHeatMap,
  drawFailures,
  drawForest,
  drawDumbbells,
  drawRecoveries,
  drawConsistency,
  drawLatency,
  drawSizes,
];

function overviewPage() {
  const judged = chosen.rows.filter((trial) => !isError(trial));
  const tools = judged.filter((trial) => !trial.control);
  return [
    h("h1", { class: "hidden" }, `Report of run ${run.id}`),
    tiles(),
    h(
      "div",
      { class: "charts" },
      CHARTS.map((draw) => draw(draw === drawHeatMap ? judged : tools)),
    ),
  ];
}

function tiles() {
  const strategies = shownStrategies();
  const made = chosen.rows.filter((trial) => strategies.includes(trial.cell.strategy));
  const shown = made.filter((trial) => !isError(trial));
  const errors = made.length - shown.length;
  const answered = shown.filter((trial) => !trial.control && trial.parts?.answer);
  const answers = rateOf(answered.filter((trial) => !trial.parts.answer.length).length, answered.length);
  const tools = shown.filter((trial) => !trial.control);
  const controls = shown.filter((trial) => trial.control);
  const strict = rateOf(tools.filter((trial) => trial.strictOk).length, tools.length);
  const original = rateOf(tools.filter((trial) => trial.originalOk).length, tools.length);
  const saved = tools.filter((trial) => trial.strictOk && trial.savedBy.length).length;
  const invented = chosen.rows.reduce((sum, trial) => sum + trial.fabrications, 0);
  const cases = [
    ...groupBy(tools, (trial) => `${trial.cell.place}/${trial.case}`).values(),
  ].map(([first]) => consistency(first));
  const repeats = tally(cases, (word) => word);
  const note = simulatedNote(tools);
  const steps = survivalSteps(tools);
  return h(
    "section",
    { class: "tiles", "aria-label": "Figures" },
    rateTile("Strictly right", strict, "did what was asked, the way it was asked", note),
    answers.n ? rateTile("Answers right", answers, "the final text, counted apart", note) : null,
    tile(
      "Errors of the endpoint",
      count(errors),
      "neither right nor wrong; in no rate",
      null,
      errors ? "bad" : "",
    ),
    rateTile(
      "Right by the original rule",
      original,
      "the loose assertion of the original experiment",
      note,
    ),
    tile(
      "Used a rule",
      `${count(saved)}`,
      `of ${plural(strict.k, "trial")} strictly right; what a rule saves, an ablation tells`,
      note,
    ),
    tile(
      "Cases in repeats",
      cases.length ? `${repeats.get("always") ?? 0} / ${repeats.get("sometimes") ?? 0} / ${repeats.get("never") ?? 0}` : "–",
      `always / sometimes / never right${repeats.get("once") ? `; ${repeats.get("once")} tried once` : ""}`,
      note,
    ),
    tile(
      "Invented calls",
      count(invented),
      "ran with something the model did not send; must be 0",
      null,
      invented ? "bad" : "",
    ),
    controls.length ? rateTile(
      "Controls",
      rateOfRows(controls),
      "scenarios without tools, in no other rate",
      simulatedNote(controls),
    ) : null,
    tools.length ? tile(
      "Half ended within",
      duration(quantile(steps, 0.5)),
      within(quantile(steps, 0.95)),
      note,
    ) : null,
    axes.strategy.length > 1 ? h(
      "p",
      { class: "tiles-note" },
      `Strategy shown: ${strategies.join(", ")}.`,
    ) : null,
  );
}

function rateTile(title, rate, words, note) {
  return tile(
    title,
    percent(rate.value),
    rate.n ? `${count(rate.k)} of ${count(rate.n)}, 95 % interval ${interval(rate)}; ${words}` : words,
    note,
  );
}

function tile(title, value, words, note, css = "") {
  return h(
    "div",
    { class: `tile ${css}` },
    h("h2", {}, title),
    h("p", { class: "value" }, value),
    h("p", { class: "words" }, words, note ? [" ", badge("sim", note)] : null),
  );
}

// What ran, on top of every page

function runHeader() {
  const models = axes.model.length;
  const begun = moment(run.created_at);
  const parts = [
    plural(trials.length, "trial"),
    plural(models, "model"),
    plural(axes.scenario.length, "scenario"),
    `${axes.strategy.length > 1 ? "strategies" : "strategy"} ${axes.strategy.join(", ")}`,
    begun ? `begun ${begun}` : null,
    run.ended_at ? `ended ${moment(run.ended_at)}` : null,
    run.package ? `surecall ${run.package}` : null,
  ];
  return [
    h("p", { class: "ran" }, parts.filter(Boolean).join(" · ")),
    run.command ? h(
      "p",
      { class: "command" },
      code(run.command),
      " ",
      copyButton("copy command", () => run.command),
    ) : null,
    notices(),
    foldable("About this run", false, aboutRun()),
  ];
}

function notices() {
  const simulated = axes.model.filter((model) => simulatedModels.get(model));
  const found = [];
  if (simulated.length) {
    found.push(
      simulated.length === axes.model.length
        ? "All results are simulated: they show what surecall does with known behaviour, not what a model does."
        : `Simulated: ${simulated.join(", ")}. These show what surecall does with known behaviour, not what a model does.`,
    );
  }
  if (axes.strategy.includes("guided")) found.push(
    "The strategy guided uses what an application would declare for each task: tools that must have succeeded, and tools that need others first. No other strategy does.",
  );
  if (run.done < run.units) found.push(
    `The run is not complete: ${count(run.done)} of ${count(run.units)} trials are done.`,
  );
  if (source.bodies.left_out) found.push(
    `${plural(source.bodies.left_out, "transcript")} found no room in this file.`,
  );
  return found.map((text) => h("p", { class: "notice" }, text));
}

function aboutRun() {
  const kept = {
    none: "none",
    failed: "failed trials, and one that passes of each case",
    all: "all",
  }[source.bodies.choice];
  return [
    facts([
      ["Run", run.id, " ", run.tags.map((tag) => badge("plain", tag))],
      ["Status", run.status],
      ["Engine", run.engine],
      ["Python", run.python || "–"],
      [
        "Suites",
        Object.entries(run.suites).map(([name, version]) => `${name} ${version}`).join(", ") || "–",
      ],
      ["Experiment", code(run.hash)],
      ["Transcripts in this file", `${count(keptBodies.size)} (${kept})`],
    ]),
    foldable(
      "What was asked for",
      false,
      block(written({ axes: run.axes, options: run.options }), "Axes and options"),
    ),
  ];
}
