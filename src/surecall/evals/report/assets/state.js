// What is looked at is in the address: `#/trials?model=a&verdict=fail&sort=-time`.

const FACETS = [
  { name: "verdict", title: "Verdict", values: (trial) => [verdictOf(trial)] },
  { name: "failure", title: "Failure", values: (trial) => failureCodes(trial) },
  { name: "model", title: "Model", values: (trial) => [trial.cell.model] },
  { name: "scenario", title: "Scenario", values: (trial) => [trial.cell.scenario] },
  { name: "strategy", title: "Strategy", values: (trial) => [trial.cell.strategy] },
  { name: "flaky", title: "Right in repeats", values: (trial) => [consistency(trial)] },
  { name: "outcome", title: "Outcome", values: (trial) => [trial.outcome] },
  { name: "profile", title: "Profile", values: (trial) => [trial.cell.profile] },
  { name: "fallback", title: "Fallback", values: (trial) => [trial.cell.fallback] },
  { name: "suite", title: "Suite", values: (trial) => [trial.cell.suite] },
  { name: "rule", title: "Rule that changed something", values: (trial) => trial.rules },
  { name: "tool", title: "Tool called", values: (trial) => toolNames(trial) },
];

let state = parseAddress("");
let chosen = { rows: [], counts: new Map() };

function parseAddress(hash) {
  const [path, query = ""] = splitOnce(hash.replace(/^#/, ""), "?");
  const params = new URLSearchParams(query);
  const filters = new Map();
  for (const { name } of FACETS) {
    const values = params.getAll(name);
    if (values.length) filters.set(name, new Set(values));
  }
  return {
    path: path.split("/").filter(Boolean).map(decodePart),
    filters,
    q: params.get("q") ?? "",
    kind: params.get("kind") === "original" ? "original" : "strict",
    show: params.get("show") ?? "",
    sort: params.get("sort") ?? "",
  };
}

function splitOnce(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// Return the address of a path with what is set now, and some of it changed.
function linkTo(path, changes = {}) {
  const next = { ...state, ...changes };
  const params = new URLSearchParams();
  for (const [name, values] of next.filters) {
    for (const value of values) params.append(name, value);
  }
  for (const name of ["q", "show", "sort"]) if (next[name]) params.set(name, next[name]);
  if (next.kind === "original") params.set("kind", "original");
  const query = params.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

function cellPath(cell) {
  return [
    "cell",
    cell.model,
    cell.profile,
    cell.strategy,
    cell.fallback,
    cell.suite,
    cell.scenario,
  ];
}

function filtersWith(changes) {
  const filters = new Map(state.filters);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) filters.delete(name);
    else filters.set(name, new Set([value]));
  }
  return filters;
}

function toggled(name, value) {
  const filters = new Map(state.filters);
  const values = new Set(filters.get(name));
  if (!values.delete(value)) values.add(value);
  if (values.size) filters.set(name, values);
  else filters.delete(name);
  return filters;
}

// What the verdict in force says

function verdictOf(trial) {
  if (trial.isError) return "error";
  return passes(trial) ? "right" : "wrong";
}

function passes(trial) {
  return state.kind === "original" ? trial.originalOk : trial.strictOk;
}

function consistency(trial) {
  return state.kind === "original" ? trial.originalFlaky : trial.strictFlaky;
}

function failureCodes(trial) {
  if (passes(trial)) return [];
  return [trial.failure?.code ?? trial.originalReasons[0]?.code ?? "UNEXPLAINED"];
}

function toolNames(trial) {
  trial.tools ??= [...new Set(trial.calls.map((call) => call.name))];
  return trial.tools;
}

// Choose the trials that fit, and count what each further choice would leave.
function choose() {
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const counts = new Map(FACETS.map(({ name }) => [name, new Map()]));
  const rows = [];
  for (const trial of trials) {
    if (words.length && !matches(trial, words)) continue;
    let missed = null;
    let misses = 0;
    for (const facet of FACETS) {
      const wanted = state.filters.get(facet.name);
      if (!wanted || facet.values(trial).some((value) => wanted.has(value))) continue;
      missed = facet;
      misses += 1;
      if (misses > 1) break;
    }
    if (misses > 1) continue;
    if (!misses) rows.push(trial);
    for (const facet of missed ? [missed] : FACETS) {
      const found = counts.get(facet.name);
      for (const value of facet.values(trial)) found.set(value, (found.get(value) ?? 0) + 1);
    }
  }
  chosen = { rows, counts };
}

function matches(trial, words) {
  trial.hay ??= [
    `#${trial.index}`,
    ...Object.values(trial.cell).filter((part) => typeof part === "string"),
    trial.case,
    trial.failure?.code,
    trial.failure?.detail,
    trial.code,
    trial.category,
    trial.error,
    ...[...trial.strictReasons, ...trial.originalReasons].flatMap((one) => [one.code, one.message]),
    ...trial.rules,
    ...toolNames(trial),
    trial.simulated ? "simulated" : "",
    ...(trial.parts ?? []).flatMap((found) => found ?? []).flatMap((one) => [one.code, one.message]),
    trial.text,
  ]
    .join("\n")
    .toLowerCase();
  return words.every((word) => trial.hay.includes(word));
}
