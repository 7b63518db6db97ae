// The page of one trial.

function trialPage(parts) {
  const trial = trialAt.get(Number(parts[0]));
  if (!trial || !/^\d+$/.test(parts[0])) return lostPage("This trial is not in the report.");
  const body = h(
    "div",
    { id: "transcript", "aria-busy": "true" },
    nothing("Unpacking the transcript …"),
  );
  showTranscript(trial, body);
  return [
    crumbs(
      [
        link(
          linkTo(cellPath(trial.cell)),
          {},
          h(
            "bdi",
            {},
            `${trial.cell.contender.label} · ${trial.cell.scenario} · ${trial.cell.strategy}`,
          ),
        ),
        `trial ${trial.index}`,
      ],
    ),
    h(
      "h1",
      {},
      `Trial ${trial.index} `,
      verdictBadge(trial.strictOk),
      " ",
      copyLink(["trial", String(trial.index)]),
    ),
    neighbours(trial),
    verdicts(trial),
    trialFacts(trial),
    body,
  ];
}

async function showTranscript(trial, place) {
  let view;
  try {
    view = transcriptView(trial, await loadBody(trial.index));
  } catch (error) {
    const old = typeof DecompressionStream === "undefined";
    view = [
      h(
        "p",
        { class: "notice" },
        old ? "This browser is too old to unpack the transcript." : `The transcript cannot be shown: ${error.message}`,
      ),
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
  const to = (one, id, text) => (
    one ? link(
      linkTo(["trial", String(one.index)]),
      { id },
      text,
    ) : h("span", { class: "muted" }, text)
  );
  return h(
    "nav",
    { class: "neighbours no-print", "aria-label": "Trials before and after" },
    to(at > 0 ? rows[at - 1] : null, "previous", "← previous"),
    h(
      "span",
      { class: "muted" },
      at < 0 ? "not among the filtered trials" : `${count(at + 1)} of ${count(rows.length)}`,
    ),
    to(at >= 0 ? rows[at + 1] : null, "next", "next →"),
  );
}

// State, process and answer, and the rule of the original; runs of before have one strict verdict.
function verdicts(trial) {
  const one = (title, ok, reasons) => h(
    "div",
    { class: "verdict" },
    h("h2", {}, title, " ", verdictBadge(ok)),
    reasons.length ? h(
      "ul",
      {},
      reasons.map(({ code: name, message }) => h("li", {}, code(name), " ", h("bdi", {}, message))),
    ) : null,
  );
  const part = (title, reasons) => (reasons
    ? one(title, !reasons.length, reasons)
    : h("div", { class: "verdict" }, h("h2", {}, title, " ", badge("plain", "not judged"))));
  if (isError(trial)) {
    return h(
      "div",
      { class: "verdict" },
      h("h2", {}, "Not judged ", badge("plain", "error of the endpoint")),
    );
  }
  return h(
    "div",
    { class: "pair" },
    ...(trial.parts
      ? [
          part("State", trial.parts.state),
          part("Process", trial.parts.process),
          part("Answer", trial.parts.answer),
        ]
      : [one("Strict", trial.strictOk, trial.strictReasons)]),
    one("Original rule", trial.originalOk, trial.originalReasons),
  );
}

function trialFacts(trial) {
  const { cell } = trial;
  const failure = trial.failure;
  return facts([
    ["Model", modelName(cell.model)],
    [
      "Scenario",
      h("bdi", {}, cell.scenario),
      trial.case ? ` / ${trial.case}` : "",
      trial.control ? [" ", badge("plain", "control")] : null,
    ],
    ["Strategy", cell.strategy],
    ["Profile", cell.profile],
    ["Fallback", cell.fallback],
    ["Repetition", `${trial.trial}, seed ${trial.seed}`],
    ["In repeats", repeatBadge(consistency(trial))],
    ["Outcome", facetWord("outcome", trial.outcome)],
    failure ? [
      "Failure",
      code(failure.code),
      ` (${failure.layer}${failure.detail ? `: ${failure.detail}` : ""})`,
    ] : null,
    trial.error ? [
      "Error",
      h("bdi", {}, trial.error),
      trial.status ? ` (status ${trial.status})` : "",
    ] : null,
    trial.category ? ["Original category", trial.category] : null,
    ["Time", duration(trial.ms), trial.censored ? " (stopped by a timeout)" : ""],
    ["Turns, requests", `${trial.turns}, ${trial.requests}`],
    ["Tokens", `${count(trial.inputTokens)} in, ${count(trial.outputTokens)} out`],
    trial.cost === null ? null : ["Cost", `${trial.cost.toFixed(6)} USD`],
    trial.cutByLimit ? ["Cut", "a reply stopped at its token limit"] : null,
    trial.escalations ? ["Escalations", String(trial.escalations)] : null,
    trial.rules.length ? ["Rules", trial.rules.map((rule) => [code(rule), " "])] : null,
    trial.savedBy.length ? ["Rules used", trial.savedBy.map((rule) => [code(rule), " "])] : null,
    trial.fabrications ? ["Invented calls", badge("fail", String(trial.fabrications))] : null,
  ]);
}
