// Addresses, keys and the frame around every page.

const KEYS = [
  ["j, k", "next and previous chart, trial, turn or call"],
  ["Enter", "open what is marked"],
  ["← ↑ → ↓", "walk through the heat map; on a trial: previous and next"],
  ["/", "search"],
  ["o, t", "overview, table of trials"],
  ["u", "up: from a trial to its cell, from a cell to the overview"],
  ["d", "dark or light"],
  ["?", "this list"],
];

const main = document.getElementById("main");
const scrolls = new Map();
let shownPath = null;
let shownHash = location.hash;
let clicked = false;
let wantedScroll = null; // where the page was when it was left

// At once, not when the browser tells of the change: the next key may come before that.
function go(hash) {
  clicked = true;
  location.hash = hash;
  render();
}

// Change the address without a step in the history.
function rewrite(hash) {
  history.replaceState(null, "", hash);
  shownHash = location.hash;
}

function render() {
  if (shownHash !== location.hash) scrolls.set(shownHash, scrollY);
  shownHash = location.hash;
  state = parseAddress(location.hash);
  choose();
  const key = document.activeElement?.dataset?.key;
  const path = state.path.join("/");
  const [page = "", ...rest] = state.path;
  drawNavigation(page);
  replace(main, pageOf(page, rest));
  const again = key && [
    ...document.querySelectorAll("[data-key]"),
  ].find((node) => node.dataset.key === key);
  if (again) again.focus({ preventScroll: true });
  settleScroll(path, page, rest);
  shownPath = path;
  clicked = false;
}

function pageOf(page, rest) {
  if (page === "" || page === "chart") return withFacets(overviewPage());
  if (page === "trials") return withFacets(trialsPage());
  if (page === "cell") return cellPage(rest);
  if (page === "trial") return trialPage(rest);
  return lostPage("This address leads nowhere.");
}

function withFacets(content) {
  return h("div", { class: "with-facets" }, facetPanel(), h("div", { class: "content" }, content));
}

function settleScroll(path, page, rest) {
  wantedScroll = clicked ? null : (scrolls.get(location.hash) ?? null);
  if (page === "chart" && path !== shownPath) {
    const chart = document.getElementById(`chart-${rest[0]}`);
    chart?.focus({ preventScroll: true });
    chart?.scrollIntoView({ block: "start" });
  } else if (wantedScroll !== null) {
    scrollTo(0, wantedScroll);
  } else if (path !== shownPath && shownPath !== null) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

// The frame

function drawFrame() {
  const search = h(
    "input",
    {
      type: "search",
      id: "search",
      placeholder: "Search trials",
      "aria-label": "Search trials",
      autocomplete: "off",
      spellcheck: "false",
      on: { input: () => later(runSearch) },
    },
  );
  const kind = h(
    "select",
    {
      id: "kind",
      "aria-label": "Verdict",
      on: { change: (event) => go(linkTo(state.path, { kind: event.target.value })) },
    },
    h("option", { value: "strict" }, "strict verdict"),
    h("option", { value: "original" }, "original verdict"),
  );
  replace(
    document.getElementById("top"),
    h(
      "div",
      { class: "bar" },
      h("a", { class: "brand", href: "#/" }, "surecall"),
      h("span", { class: "run-id" }, run.id),
      h("nav", { id: "pages", "aria-label": "Pages" }),
      search,
      kind,
      h("button", { type: "button", id: "theme", on: { click: toggleTheme } }),
      h(
        "button",
        {
          type: "button",
          id: "keys",
          "aria-label": "Keys",
          title: "Keys (?)",
          on: { click: showHelp },
        },
        "?",
      ),
    ),
    h("div", { class: "about" }, runHeader()),
    h("div", { id: "chips", class: "chips" }),
  );
  replace(
    document.getElementById("help"),
    h("h2", { id: "help-title" }, "Keys"),
    facts(KEYS.map(([keys, words]) => [h("kbd", {}, keys), words])),
    h("form", { method: "dialog" }, h("button", { id: "close-help" }, "Close")),
  );
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
}

function drawNavigation(page) {
  const item = (path, names, text) => link(
    linkTo(path),
    { "aria-current": names.includes(page) ? "page" : null },
    text,
  );
  replace(
    document.getElementById("pages"),
    item([], ["", "chart"], "Overview"),
    item(["trials"], ["trials"], `Trials ${count(chosen.rows.length)}`),
  );
  replace(document.getElementById("chips"), chips());
  document.querySelector(".about").hidden = !["", "chart"].includes(page);
  document.getElementById("kind").value = state.kind;
  const search = document.getElementById("search");
  if (document.activeElement !== search) search.value = state.q;
}

function later(act) {
  clearTimeout(later.timer);
  later.timer = setTimeout(act, 120);
}

function runSearch() {
  rewrite(linkTo(listPath(), { q: document.getElementById("search").value.trim() }));
  render();
}

// Light and dark

function isDark() {
  const chosenTheme = document.documentElement.dataset.theme;
  return chosenTheme ? chosenTheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = isDark() ? "Light" : "Dark";
}

function toggleTheme() {
  const theme = isDark() ? "light" : "dark";
  setTheme(theme);
  try {
    localStorage.setItem("surecall-theme", theme);
  } catch {
    // A browser may refuse to keep it; then it holds until the page is closed.
  }
}

function keptTheme() {
  try {
    const theme = localStorage.getItem("surecall-theme");
    return ["light", "dark"].includes(theme) ? theme : null;
  } catch {
    return null;
  }
}

// Keys

function showHelp() {
  document.getElementById("help").showModal();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
  const inField = event.target.closest("input:not([type=checkbox]), select, textarea");
  if (inField) {
    if (event.key === "Escape") inField.blur();
    return;
  }
  const act = {
    "/": () => document.getElementById("search").focus(),
    "?": showHelp,
    j: () => walk(1),
    k: () => walk(-1),
    o: () => go(linkTo([])),
    t: () => go(linkTo(["trials"])),
    u: goUp,
    d: toggleTheme,
    ArrowLeft: () => stepTo("previous", event),
    ArrowRight: () => stepTo("next", event),
  }[event.key];
  if (!act || act() === false) return;
  event.preventDefault();
}

function stepTo(id, event) {
  const to = document.getElementById(id);
  if (!to || event.target.closest("pre, .scroll")) return false;
  go(to.getAttribute("href"));
}

function goUp() {
  const trial = state.path[0] === "trial" ? trialAt.get(Number(state.path[1])) : null;
  go(linkTo(trial ? cellPath(trial.cell) : []));
}

function walk(by) {
  const stops = [...main.querySelectorAll("[data-stop], figure.chart")];
  if (!stops.length) return;
  const now = stops.indexOf(document.activeElement.closest("[data-stop], figure.chart"));
  const next = stops[
    now < 0 ? (by > 0 ? 0 : stops.length - 1) : Math.max(0, Math.min(stops.length - 1, now + by))
  ];
  next.focus({ preventScroll: true });
  const large = next.matches("section, article, figure");
  next.scrollIntoView({ block: large ? "start" : "nearest" });
  if (next.dataset.path) rewrite(linkTo(next.dataset.path.split("/")));
}

history.scrollRestoration = "manual";
drawFrame();
setTheme(keptTheme());
document.addEventListener(
  "click",
  (event) => (clicked ||= Boolean(event.target.closest("a"))),
  true,
);
document.addEventListener("keydown", pressed);
addEventListener("hashchange", () => location.hash !== shownHash && render());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(null));
render();
