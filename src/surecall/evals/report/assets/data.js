// The embedded columns as objects; surecall/evals/report/columns.py writes them.

const source = JSON.parse(document.getElementById("data").textContent);
const run = source.run;
const KNOWN_STRATEGIES = ["raw", "naive", "baseline", "production", "gated", "guided"];

const textAt = (place) => (place < 0 ? null : source.texts[place]);
const textsAt = (places) => places.map(textAt);

const cells = source.cells.map((parts, place) => {
  const [model, profile, strategy, fallback, suite, scenario] = textsAt(parts);
  return { place, model, profile, strategy, fallback, suite, scenario };
});
const failures = source.failures.map((parts) => {
  const [layer, code, detail] = textsAt(parts);
  return { layer, code, detail };
});
const trials = readTrials(source.trials);
readCalls(source.calls);

const keptBodies = new Set(source.bodies.kept);
const trialAt = new Map(trials.map((trial) => [trial.index, trial]));
const axes = {
  model: distinct((cell) => cell.model),
  profile: distinct((cell) => cell.profile),
  strategy: inOrder(distinct((cell) => cell.strategy)),
  fallback: distinct((cell) => cell.fallback),
  suite: distinct((cell) => cell.suite),
  scenario: distinct((cell) => cell.scenario),
};
markContenders();
markConsistency("strictOk", "strictFlaky");
markConsistency("originalOk", "originalFlaky");

function readTrials(columns) {
  return columns.index.map((index, i) => {
    const flags = columns.flags[i];
    const trial = {
      index,
      cell: cells[columns.cell[i]],
      case: textAt(columns.case[i]),
      trial: columns.trial[i],
      seed: columns.seed[i],
      simulated: Boolean(flags & 1),
      control: Boolean(flags & 2),
      originalOk: Boolean(flags & 4),
      strictOk: Boolean(flags & 8),
      cutByLimit: Boolean(flags & 16),
      censored: Boolean(flags & 32),
      outcome: textAt(columns.outcome[i]),
      failure: columns.failure[i] < 0 ? null : failures[columns.failure[i]],
      code: textAt(columns.code[i]),
      category: textAt(columns.category[i]),
      error: textAt(columns.error[i]),
      status: columns.status[i],
      originalReasons: readReasons(columns.original_reasons[i]),
      strictReasons: readReasons(columns.strict_reasons[i]),
      // State, process and answer, each its reasons; null for what was not judged.
      parts: columns.parts[i]?.map((found) => found && readReasons(found)) ?? null,
      ms: columns.elapsed_ms[i],
      turns: columns.turns[i],
      requests: columns.requests[i],
      inputTokens: columns.input_tokens[i],
      outputTokens: columns.output_tokens[i],
      cost: columns.cost_usd[i],
      rules: textsAt(columns.rules[i]),
      savedBy: textsAt(columns.saved_by[i]),
      fabrications: columns.fabrications[i],
      escalations: columns.escalations[i],
      text: textAt(columns.text[i]) ?? "",
      calls: [],
    };
    // The endpoint failed: the trial is neither right nor wrong, and in no rate.
    trial.isError = trial.outcome === "error";
    trial.cell.control = trial.control;
    return trial;
  });
}

function readReasons(parts) {
  const reasons = [];
  for (let i = 0; i < parts.length; i += 2) {
    reasons.push({ code: textAt(parts[i]), message: textAt(parts[i + 1]) ?? "" });
  }
  return reasons;
}

function readCalls(columns) {
  columns.place.forEach((place, i) => {
    const flags = columns.flags[i];
    trials[place].calls.push({
      turn: columns.turn[i],
      name: textAt(columns.name[i]),
      format: textAt(columns.format[i]),
      state: textAt(columns.state[i]),
      structured: Boolean(flags & 1),
      validBefore: Boolean(flags & 2),
      validAfter: Boolean(flags & 4),
      changed: Boolean(flags & 8),
      executed: Boolean(flags & 16),
      ok: Boolean(flags & 32),
      lossy: Boolean(flags & 64),
      exact: columns.exact[i] < 0 ? null : columns.exact[i] === 1,
      rules: textsAt(columns.rules[i]),
      errorCodes: textsAt(columns.error_codes[i]),
      errorKinds: textsAt(columns.error_kinds[i]),
      bytes: columns.arguments_bytes[i],
    });
  });
}

function distinct(pick) {
  return [...new Set(cells.map(pick))];
}

// Known ones in their order, then the others as they came.
function inOrder(strategies) {
  const known = KNOWN_STRATEGIES.filter((name) => strategies.includes(name));
  return [...known, ...strategies.filter((name) => !known.includes(name))];
}

// A contender is a model with its profile and fallback.
function markContenders() {
  const known = new Map();
  for (const cell of cells) {
    const names = [cell.model];
    if (axes.profile.length > 1 || cell.profile !== "default") names.push(cell.profile);
    if (axes.fallback.length > 1) names.push(cell.fallback);
    const label = names.join(" · ");
    if (!known.has(label)) {
      known.set(label, {
        label,
        model: cell.model,
        profile: cell.profile,
        fallback: cell.fallback,
      });
    }
    cell.contender = known.get(label);
  }
}

// Whether repeated trials of a case agree.
function markConsistency(verdict, field) {
  const groups = groupBy(trials, (trial) => `${trial.cell.place}/${trial.case}`);
  for (const members of groups.values()) {
    const judged = members.filter((trial) => !trial.isError);
    const right = judged.filter((trial) => trial[verdict]).length;
    const word =
      judged.length < 2
        ? "once"
        : right === judged.length
          ? "always"
          : right
            ? "sometimes"
            : "never";
    for (const trial of members) trial[field] = word;
  }
}

function groupBy(items, key) {
  const groups = new Map();
  for (const item of items) {
    const name = key(item);
    const found = groups.get(name);
    if (found) found.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}

function tally(items, key) {
  const counts = new Map();
  for (const item of items) {
    const name = key(item);
    if (name !== null && name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
