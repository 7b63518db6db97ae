// Addresses, keys and the frame around every page.

const answer = document.getElementById("answer");
const view = document.getElementById("view");
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
  const isAnswer = page === "" || page === "how";
  answer.hidden = !isAnswer;
  view.hidden = isAnswer;
  if (isAnswer) {
    replace(view);
    showAnswer();
  } else replace(view, pageOf(page, rest));
  drawNavigation(page);
  const again = key && [...document.querySelectorAll("[data-key]")].find((node) => node.dataset.key === key);
  if (again) again.focus({ preventScroll: true });
  settleScroll(path, page);
  shownPath = path;
  clicked = false;
}

function pageOf(page, rest) {
  if (page === "trials") return trialsPage();
  if (page === "cell") return cellPage(rest);
  if (page === "trial") return trialPage(rest);
  return lostPage("This address leads nowhere.");
}

function settleScroll(path, page) {
  wantedScroll = clicked ? null : (scrolls.get(location.hash) ?? null);
  if (page === "how") document.getElementById("how").scrollIntoView({ block: "start" });
  else if (wantedScroll !== null) scrollTo(0, wantedScroll);
  else if (path !== shownPath && shownPath !== null) {
    scrollTo(0, 0);
    if (document.activeElement?.id !== "search") main.focus({ preventScroll: true });
  }
}

// The answer is in the file for every strategy and verdict: one of them is shown.
function showAnswer() {
  const views = [...answer.querySelectorAll(".view")];
  const wanted = (strategy) => views.find((one) => one.dataset.strategy === strategy && one.dataset.judged === state.kind);
  const shown = wanted(state.show) ?? wanted(views[0]?.dataset.strategy);
  for (const one of views) one.hidden = one !== shown;
  for (const choice of shown?.querySelectorAll("[data-choice]") ?? []) {
    choice.setAttribute("href", linkTo([], { [choice.dataset.choice]: choice.dataset.value }));
  }
}

// The frame

function drawFrame() {
  const search = h("input", {
    type: "search", id: "search", placeholder: "Search trials  /", "aria-label": "Search trials", autocomplete: "off", spellcheck: "false",
    on: { input: () => later(runSearch) },
  });
  document.getElementById("top").append(search, lookButton(),
    button("?", showKeys, { class: "bare", id: "keys", "aria-label": "Keys", title: "Keys (?)" }));
  replace(document.getElementById("foot"), h("span", {}, name(`surecall ${run.package}`)), h("span", { class: "keyhints" },
    [["j k", "next, previous"], ["arrows", "walk the map"], ["t", "trials"], ["d", "dark or light"], ["?", "all keys"]].map(
      ([keys, words]) => h("span", {}, h("kbd", {}, keys), ` ${words}`))));
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
}

function drawNavigation(page) {
  const item = (path, names, ...text) => link(linkTo(path), { "aria-current": names.includes(page) ? "page" : null }, ...text);
  replace(document.getElementById("pages"),
    item([], ["", "how"], "Answer"),
    item(["trials"], ["trials", "trial", "cell"], "Trials ", h("span", { class: "count" }, whole(chosen.rows.length))));
  const search = document.getElementById("search");
  if (document.activeElement !== search) search.value = state.q;
}

function later(act) {
  clearTimeout(later.timer);
  later.timer = setTimeout(act, 120);
}

function runSearch() {
  const q = document.getElementById("search").value.trim();
  if (state.path[0] === "trials") rewrite(linkTo(["trials"], { q }));
  else location.hash = linkTo(["trials"], { q });
  render();
}

// Keys

function step(by) {
  if (state.path[0] === "trial") return stepTo(by > 0 ? "next" : "previous");
  if (state.path[0] === "trials" || state.path[0] === "cell") return moveRow(by);
  return walk([...answer.querySelectorAll(".view:not([hidden]) section, #how")], by);
}

function walk(stops, by) {
  if (!stops.length) return false;
  const now = stops.indexOf(stops.find((stop) => stop === document.activeElement));
  const next = stops[now < 0 ? (by > 0 ? 0 : stops.length - 1) : Math.max(0, Math.min(stops.length - 1, now + by))];
  if (!next.hasAttribute("tabindex")) next.setAttribute("tabindex", "-1");
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "start" });
  if (next.dataset.path) rewrite(linkTo(next.dataset.path.split("/")));
  return true;
}

function stepTo(id) {
  const to = document.getElementById(id);
  if (!to) return false;
  go(to.getAttribute("href"));
  return true;
}

function goUp() {
  const trial = state.path[0] === "trial" ? trialAt.get(Number(state.path[1])) : null;
  go(linkTo(trial ? cellPath(trial.cell) : []));
}

function walkMap(event) {
  const from = event.target.closest?.("a[data-x]");
  const steps = new Map([["ArrowLeft", [-1, 0]], ["ArrowRight", [1, 0]], ["ArrowUp", [0, -1]], ["ArrowDown", [0, 1]], ["Home", [-1000, 0]], ["End", [1000, 0]]]);
  const found = steps.get(event.key);
  if (!from || !found) return;
  event.preventDefault();
  const [dx, dy] = found;
  const fields = [...from.closest("[data-map]").querySelectorAll("a[data-x]")];
  const [x, y] = [Number(from.dataset.x), Number(from.dataset.y)];
  const ahead = fields
    .filter((one) => (dx ? Number(one.dataset.y) === y && (Number(one.dataset.x) - x) * dx > 0 : Number(one.dataset.x) === x && (Number(one.dataset.y) - y) * dy > 0))
    .sort((a, b) => Math.abs(a.dataset.x - x) + Math.abs(a.dataset.y - y) - Math.abs(b.dataset.x - x) - Math.abs(b.dataset.y - y));
  const next = Math.abs(dx) > 1 ? ahead.at(-1) : ahead[0];
  if (!next) return;
  from.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

onKey(["j"], "next part, row or trial", () => step(1));
onKey(["k"], "previous part, row or trial", () => step(-1));
onKey(["n"], "next turn or call", () => walk([...view.querySelectorAll("[data-turn]")], 1));
onKey(["p"], "previous turn or call", () => walk([...view.querySelectorAll("[data-turn]")], -1));
onKey(["o"], "answer", () => go(linkTo([])));
onKey(["t"], "trials", () => go(linkTo(["trials"])));
onKey(["u"], "up: from a trial to its field, from a field to the answer", goUp);
onKey(["/"], "search", () => document.getElementById("search").focus());
onKey(["c"], "copy the link to this page", () => [...view.querySelectorAll("button")].find((one) => one.textContent === "Copy link")?.click());
onKey(["d"], "dark or light", switchLook);
onKey(["?"], "this list", showKeys);

history.scrollRestoration = "manual";
showLook();
drawFrame();
document.addEventListener("click", (event) => (clicked ||= Boolean(event.target.closest("a"))), true);
answer.addEventListener("keydown", walkMap);
// A tooltip says what assistive technology reads; it is in the file once.
answer.addEventListener("pointerover", ({ target }) => target.matches?.("a.cell") && (target.title = target.ariaLabel));
listenToKeys();
addEventListener("hashchange", () => location.hash !== shownHash && render());
render();
