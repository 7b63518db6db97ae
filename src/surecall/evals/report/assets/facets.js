// Filters beside the page: each choice with the number of trials it would leave.

// Maps, not objects: a value may be called `constructor`, and a tool `once`.
const FACET_WORDS = new Map([
  ["flaky", new Map([["once", "tried once"]])],
  ["outcome", new Map([["abstained", "made no call"], ["broke", "no call ran"], ["error", "the endpoint failed"]])],
]);
const FACET_ORDERS = new Map([
  ["verdict", ["pass", "fail"]],
  ["flaky", ["always", "sometimes", "never", "once"]],
  ["outcome", ["called", "abstained", "broke", "error"]],
  ...Object.entries(axes),
]);

const OPEN_FACETS = ["verdict", "failure", "model", "scenario", "strategy", "flaky"];
const openedFacets = new Map(); // those that were opened or closed by hand

function facetWord(facet, value) {
  return FACET_WORDS.get(facet)?.get(value) ?? value;
}

function facetPanel() {
  const lists = FACETS.map(facetList).filter(Boolean);
  return h(
    "aside",
    { class: "facets no-print", "aria-label": "Filters" },
    h("h2", { class: "hidden" }, "Filters"),
    lists,
  );
}

function facetList(facet) {
  const counts = chosen.counts.get(facet.name);
  const wanted = state.filters.get(facet.name) ?? new Set();
  const values = facetValues(facet, counts, wanted);
  if (values.length < 2 && !wanted.size) return null;
  const wide = matchMedia("(min-width: 60rem)").matches;
  const open = wanted.size > 0 || (wide && OPEN_FACETS.includes(facet.name));
  return h(
    "details",
    { open: openedFacets.get(facet.name) ?? open },
    h(
      "summary",
      {
        on: {
          click: (event) => openedFacets.set(facet.name, !event.currentTarget.parentNode.open),
        },
      },
      facet.title,
      wanted.size ? ` (${wanted.size})` : "",
    ),
    h(
      "ul",
      {},
      values.map((value) => facetChoice(facet, value, counts.get(value) ?? 0, wanted.has(value))),
    ),
  );
}

function facetValues(facet, counts, wanted) {
  const known = FACET_ORDERS.get(facet.name);
  const there = [...new Set([...wanted, ...counts.keys()])];
  if (known) return known.filter((value) => there.includes(value)).concat(
    there.filter((value) => !known.includes(value)),
  );
  return there.sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0) || (a < b ? -1 : 1));
}

function facetChoice(facet, value, n, checked) {
  const box = h("input", {
    type: "checkbox",
    "data-key": `${facet.name}=${value}`,
    on: { change: () => go(linkTo(listPath(), { filters: toggled(facet.name, value) })) },
  });
  box.checked = checked;
  const name = facet.name === "model" ? modelName(value) : h(
    "bdi",
    {},
    breakable(facetWord(facet.name, value)),
  );
  return h(
    "li",
    {},
    h("label", {}, box, h("span", { class: "name" }, name), h("span", { class: "n" }, count(n))),
  );
}

// The choices in force, each with a way to take it back.
function chips() {
  const found = [...state.filters].flatMap(([name, values]) =>
    [...values].map(
      (value) => chip(
        `${FACETS.find((facet) => facet.name === name).title}: ${facetWord(name, value)}`,
        { filters: toggled(name, value) },
      ),
    ),
  );
  if (state.q) found.push(chip(`Text: ${state.q}`, { q: "" }));
  const few = chosen.rows.length < trials.length;
  return [
    h(
      "span",
      { class: "shown", id: "shown" },
      few ? `${count(chosen.rows.length)} of ${plural(trials.length, "trial")}` : plural(
        trials.length,
        "trial",
      ),
    ),
    found,
    found.length ? link(
      linkTo(listPath(), { filters: new Map(), q: "" }),
      { class: "clear" },
      "clear filters",
    ) : null,
  ];
}

function chip(text, changes) {
  return link(
    linkTo(listPath(), changes),
    { class: "chip", title: "Take this filter back" },
    h("bdi", {}, text),
    h("span", { "aria-hidden": "true" }, " ×"),
    h("span", { class: "hidden" }, ", take back"),
  );
}

// Filters lead to a page that has filters.
function listPath() {
  return ["", "chart", "trials"].includes(state.path[0] ?? "") ? state.path : ["trials"];
}
