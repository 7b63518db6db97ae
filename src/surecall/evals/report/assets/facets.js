// Filters beside the page: each choice with the number of trials it would leave.

// Maps, not objects: a value may be called `constructor`, and a tool `once`.
const FACET_WORDS = new Map([
  ["flaky", new Map([["once", "tried once"]])],
  ["outcome", new Map([["abstained", "made no call"], ["broke", "no call ran"], ["refused", "request refused"], ["error", "endpoint error"]])],
  ["verdict", new Map([["error", "endpoint error"]])],
]);
const FACET_ORDERS = new Map([
  ["verdict", ["right", "wrong", "error"]],
  ["flaky", ["always", "sometimes", "never", "once"]],
  ["outcome", ["called", "abstained", "broke", "refused", "error"]],
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
    { class: "facets", "aria-label": "Filters" },
    h("h2", { class: "hidden" }, "Filters"),
    lists,
  );
}

function facetList(facet) {
  const counts = chosen.counts.get(facet.name);
  const wanted = state.filters.get(facet.name) ?? new Set();
  const values = facetValues(facet, counts, wanted);
  if (values.length < 2 && !wanted.size) return null;
  const wide = matchMedia("(min-width: 901px)").matches;
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
  return h(
    "li",
    {},
    h("label", {}, box, h("span", { class: "name" }, name(facetWord(facet.name, value))), h("span", { class: "k3" }, whole(n))),
  );
}

// The choices in force, each with a way to take it back.
function chips() {
  const found = [...state.filters].flatMap(([facet, values]) => [...values].map((value) => chip(
    `${FACETS.find((one) => one.name === facet).title}: ${facetWord(facet, value)}`,
    { filters: toggled(facet, value) },
  )));
  if (state.q) found.push(chip(`Text: ${state.q}`, { q: "" }));
  const few = chosen.rows.length < trials.length;
  return h(
    "div",
    { class: "chips", id: "chips" },
    h("span", { class: "k3", id: "shown" }, few ? `${whole(chosen.rows.length)} of ${countOf(trials.length, "trial")}` : countOf(trials.length, "trial")),
    found,
    found.length ? link(linkTo(listPath(), { filters: new Map(), q: "" }), { class: "clear" }, "clear filters") : null,
  );
}

function chip(text, changes) {
  return link(
    linkTo(listPath(), changes),
    { class: "chip", title: "Take this filter back" },
    h("bdi", {}, seen(text)),
    h("span", { "aria-hidden": "true" }, " ×"),
    h("span", { class: "hidden" }, ", take back"),
  );
}

// Filters lead to the page that has filters.
function listPath() {
  return ["trials"];
}
