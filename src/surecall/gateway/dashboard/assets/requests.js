// The list of requests: what is looked for is in the address, so that every list can be linked to.

const FIELDS = ["range", "since", "until", "model", "upstream", "outcome", "code", "status", "key"];
const LIST_KEY = "surecall-list";
const STATUSES = ["200", "4xx", "400", "401", "404", "422", "429", "5xx", "502", "503"];

function requestsPage() {
  const query = new URLSearchParams(location.search);
  const wanted = new Map(FIELDS.filter((field) => query.get(field)).map((field) => [field, query.get(field)]));
  const before = query.get("before");
  const asked = new URLSearchParams([...wanted, ...(before ? [["before", before]] : [])]);
  return {
    title: "Requests",
    everyMs: before ? 0 : 5000,
    load: () => ask(`/ui/data/requests?${asked}`),
    draw: (data) => drawRequests(data, wanted, before),
  };
}

function drawRequests(data, wanted, before) {
  remember(data.rows.map((row) => row.id));
  const shown = data.rows.length;
  return [
    h("h1", {}, requestsTitle(data.total, wanted)),
    filterForm(wanted),
    shown ? requestTable("Requests", data.rows, { wide: true }) : nothingFits(wanted),
    h("nav", { class: "paging", "aria-label": "Pages of the list" },
      before ? link(listAddress(wanted), {}, "Newest") : null,
      data.next ? link(`${listAddress(wanted)}${wanted.size ? "&" : "?"}before=${encodeURIComponent(data.next)}`, { id: "older", rel: "next" }, "Older") : null,
      h("span", { class: "k3" }, shown ? `${whole(shown)} of ${whole(data.total)} shown` : ""),
    ),
  ];
}

function requestsTitle(total, wanted) {
  const range = RANGES.find(({ name }) => name === wanted.get("range"));
  const outcome = wanted.get("outcome");
  const word = outcome === "not-clean" ? "not clean" : OUTCOMES.get(outcome)?.word;
  const since = wanted.get("since") ? ` between ${moment(Number(wanted.get("since")))} and ${wanted.get("until") ? moment(Number(wanted.get("until"))) : "now"}` : "";
  return [
    h("b", {}, whole(total)), total === 1 ? " request" : " requests",
    word ? [" ", total === 1 ? "was " : "were ", word] : "",
    range ? ` in ${range.last}` : since,
    wanted.get("code") ? [" with ", code(wanted.get("code"))] : "",
    wanted.get("model") ? [" for ", name(wanted.get("model"))] : "",
    wanted.get("upstream") ? [" via ", name(wanted.get("upstream"))] : "",
  ];
}

function listAddress(wanted) {
  return wanted.size ? `/ui/requests?${new URLSearchParams([...wanted])}` : "/ui/requests";
}

function filterForm(wanted) {
  const change = (event) => {
    event?.preventDefault();
    const next = new Map();
    for (const field of FIELDS) {
      const node = document.getElementById(`f-${field}`);
      const value = node ? node.value.trim() : wanted.get(field);
      if (value) next.set(field, value);
    }
    if (next.get("range")) for (const field of ["since", "until"]) next.delete(field);
    go(listAddress(next));
  };
  const box = (field, label, node) => h("label", { for: `f-${field}` }, h("span", {}, label), node);
  const select = (field, label, options) => {
    const value = wanted.get(field) ?? "";
    const all = options.some(([option]) => option === value) || !value ? options : [...options, [value, value]];
    return box(field, label, h("select", { id: `f-${field}`, on: { change } }, all.map(
      ([option, word]) => h("option", { value: option, selected: option === value }, word),
    )));
  };
  const text = (field, label, options = []) => box(field, label, [
    h("input", { id: `f-${field}`, value: wanted.get(field) ?? "", list: options.length ? `l-${field}` : null, autocomplete: "off", spellcheck: "false", size: 14, on: { change } }),
    options.length ? h("datalist", { id: `l-${field}` }, options.map((option) => h("option", { value: option }))) : null,
  ]);
  const any = ["", "any"];
  return h("form", { class: "filters", role: "search", "aria-label": "Filter requests", on: { submit: change } },
    text("model", "Model", session.models ?? []),
    select("range", "Time", [["", wanted.get("since") ? "chosen" : "all"], ...RANGES.map((range) => [range.name, range.word])]),
    select("upstream", "Upstream", [any, ...(session.upstreams ?? []).map((upstream) => [upstream, upstream])]),
    select("outcome", "Outcome", [any, ["not-clean", "not clean"], ...[...OUTCOMES].map(([outcome, { word }]) => [outcome, word])]),
    text("code", "Code"),
    select("status", "Status", [any, ...STATUSES.map((status) => [status, status])]),
    session.keys?.length ? select("key", "Key", [any, ...session.keys.map((key) => [key, key])]) : null,
    wanted.size ? link("/ui/requests", { class: "chip" }, "Take all filters off") : null,
  );
}

function nothingFits(wanted) {
  return h("div", { class: "empty" },
    h("p", {}, h("b", {}, "Nothing fits.")),
    wanted.size ? h("p", {}, "Take off: ", [...wanted].map(([field, value], i) => {
      const less = new Map(wanted);
      less.delete(field);
      return [i ? ", " : "", link(listAddress(less), {}, `${field} `, name(value))];
    })) : h("p", {}, "No request has come through yet."),
  );
}

// The ids of the list that was shown last, so that j and k can walk on from a request.
function remember(ids) {
  try {
    sessionStorage.setItem(LIST_KEY, JSON.stringify({ ids, from: location.pathname + location.search }));
  } catch {
    // Then j and k do not lead on from a request.
  }
}

function remembered() {
  try {
    const found = JSON.parse(sessionStorage.getItem(LIST_KEY) ?? "null");
    return Array.isArray(found?.ids) ? found : { ids: [], from: "/ui/requests" };
  } catch {
    return { ids: [], from: "/ui/requests" };
  }
}

function requestTable(caption, rows, { wide = false } = {}) {
  const head = [["Time", "when"], ["Outcome", "how"], ["What", "what"], ...(wide ? [["Status", "num"], ["Upstream", "num"], ["Added", "num"]] : []), ["", "num side"]];
  return table(caption, `list ${wide ? "wide" : ""}`, head, rows.map((row) => ({
    attributes: { "data-row": row.id },
    cells: [
      timeNode(row.time, { withSeconds: true }),
      outcomeMark(row.outcome),
      [
        link(`/ui/requests/${encodeURIComponent(row.id)}`, { class: "plain", id: `r-${row.id}` }, describe(row)), " ",
        h("span", { class: "k3" }, name(row.model || "no model"), row.upstream ? [" via ", name(row.upstream)] : ""),
      ],
      ...(wide ? [String(row.status), duration(row.upstream_ms), duration(row.added_ms)] : []),
      effort(row),
    ],
  })));
}

function effort(row) {
  const parts = [];
  if (row.receipts) parts.push(countOf(row.receipts, "receipt"));
  if (row.steps) parts.push(countOf(row.steps, "step"));
  if (row.retries) parts.push(countOf(row.retries, "retry", "retries"));
  return parts.join(", ");
}

// What happened in a few words: codes and rules stay as they are written.
function describe(row) {
  const list = (items) => items.slice(0, 3).map((item, i) => [i ? ", " : "", code(item)]);
  const more = (items) => (items.length > 3 ? ` and ${items.length - 3} more` : "");
  if (row.client_closed) return "The client left";
  if (row.outcome === "failed") return row.error_code ? code(row.error_code) : "No reply";
  if (row.outcome === "unrepaired") return row.codes.length ? [list(row.codes), "; not repaired"] : "Not repaired";
  if (row.outcome === "refused") return row.codes.length ? [list(row.codes), more(row.codes)] : code(row.error_code || "REFUSED");
  if (row.outcome === "reasked") return row.codes.length ? [list(row.codes), "; asked again"] : "Asked again";
  if (row.outcome === "repaired") return row.rules.length ? [list(row.rules), more(row.rules)] : "Repaired";
  if (row.outcome === "relayed") return "Passed on untouched";
  return row.calls ? countOf(row.calls, "call") : "Text, no call";
}
