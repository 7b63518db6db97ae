// Around every page: where one can go, whether figures are fresh, and signing in.

const PAGES = [
  { path: "/ui", title: "Overview" },
  { path: "/ui/requests", title: "Requests" },
  { path: "/ui/approvals", title: "Approvals" },
  { path: "/ui/models", title: "Models" },
];
const STALE_MS = 60_000;
const SLOWEST_MS = 60_000;

const live = { page: null, timer: 0, paused: false, pausedAt: 0, loadedAt: 0, failures: 0, turn: 0 };

function drawFrame() {
  const here = location.pathname.replace(/\/$/, "");
  const isHere = (page) => (page.path === "/ui" ? here === "/ui" : here.startsWith(page.path));
  replace(
    document.getElementById("top"),
    link("/ui", { class: "brand" }, "surecall"),
    h("span", { class: "place" }, "Gateway ", h("span", { class: "mono" }, location.host)),
    h("nav", { class: "tabs", "aria-label": "Pages" }, PAGES.map(
      (page) => link(page.path, { "aria-current": isHere(page) ? "page" : null }, page.title, page.path === "/ui/approvals" ? h("span", { class: "count", id: "waiting-count" }) : null),
    )),
    h("span", { class: "live", id: "live" }),
    button("Pause", togglePause, { class: "bare", id: "pause", "aria-pressed": "false", title: "Pause or go on (space)" }),
    session?.needs_key && session.key
      ? button("Sign out", signOut, { class: "bare", title: `Signed in with the key ${session.key}` })
      : null,
    lookButton(),
  );
  replace(
    document.getElementById("foot"),
    h("span", {}, session?.needs_key && session.key ? ["Key ", code(session.key), session.may_act ? " may act" : " may look"] : "Times are those of this browser."),
    h("span", { class: "keyhints" }, (live.page?.hints ?? [["/", "filter"], ["j k", "rows"], [`1–${PAGES.length}`, "pages"], ["d", "dark or light"], ["?", "all keys"]]).map(
      ([key, what]) => h("span", {}, h("kbd", {}, key), " ", what),
    )),
  );
  showWaiting(session?.waiting ?? 0);
  drawLive();
}

// How many approvals wait, beside the name of their page.
function showWaiting(count) {
  const node = document.getElementById("waiting-count");
  if (session) session.waiting = count;
  node.textContent = count ? whole(count) : "";
  node.hidden = !count;
}

function drawLive() {
  const node = document.getElementById("live");
  const pause = document.getElementById("pause");
  if (!node || !live.page) return;
  const every = live.page.everyMs;
  pause.hidden = !every;
  pause.textContent = live.paused ? "Go on" : "Pause";
  pause.setAttribute("aria-pressed", String(live.paused));
  const age = (Date.now() - live.loadedAt) / 1000;
  const isStale = live.failures > 0 && live.loadedAt > 0 && Date.now() - live.loadedAt > STALE_MS;
  document.getElementById("main").classList.toggle("stale", isStale);
  node.className = `live ${live.failures ? "lost" : live.paused ? "still" : every ? "" : "none"}`;
  const again = node.querySelector("button") ?? button("Try now", () => refresh(), { class: "quiet", id: "try-now" });
  const isFocused = again === document.activeElement;
  if (live.failures) replace(node, h("i"), live.loadedAt ? `No news for ${ago(age)}` : "No connection", " ", again);
  else if (live.paused) replace(node, h("i"), `Paused since ${clock(live.pausedAt)}`);
  else if (every) replace(node, h("i"), live.loadedAt ? `Live, ${ago(age)} ago` : "Loading");
  else replace(node);
  if (isFocused) again.focus();
}

// Show a page: load what it needs, draw it, and load again every so often while somebody looks.
async function showPage(page) {
  live.page = page;
  live.loadedAt = 0;
  live.failures = 0;
  live.turn += 1;
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  document.title = `${page.title} · surecall gateway`;
  drawFrame();
  replace(main, page.wait?.() ?? waiting(page.title));
  await refresh();
}

async function refresh() {
  clearTimeout(live.timer);
  const { page, turn } = live;
  const main = document.getElementById("main");
  try {
    const data = await page.load();
    if (turn !== live.turn) return;
    live.loadedAt = Date.now();
    live.failures = 0;
    keepPlace(main, () => {
      const drawn = page.draw(data);
      if (drawn !== null) replace(main, drawn);
    });
  } catch (error) {
    if (turn !== live.turn) return;
    if (error instanceof ServerError && (error.status === 401 || error.status === 403)) {
      await loadSession().catch(() => null);
      if (session?.needs_key && !session.may_look) {
        drawSignIn(main, error.status === 403 ? error.message : "");
        return;
      }
    }
    live.failures += 1;
    if (!live.loadedAt) replace(main, failure(error));
  }
  main.removeAttribute("aria-busy");
  drawLive();
  plan();
}

function plan() {
  clearTimeout(live.timer);
  const every = live.page?.everyMs;
  const wait = live.failures ? Math.min(SLOWEST_MS, 2000 * 2 ** live.failures) : every;
  if (wait && !document.hidden && (!live.paused || live.failures)) live.timer = setTimeout(refresh, wait);
}

// New figures replace old ones in place: the focus and the fields that are being filled stay.
function keepPlace(main, draw) {
  const focused = document.activeElement;
  const id = main.contains(focused) ? focused.id : "";
  const value = id && "value" in focused ? focused.value : null;
  draw();
  if (!id) return;
  const again = document.getElementById(id);
  if (!again) return;
  if (value !== null && again.value !== value && again.tagName === "INPUT") again.value = value;
  again.focus({ preventScroll: true });
}

function togglePause() {
  live.paused = !live.paused;
  live.pausedAt = Date.now() / 1000;
  drawLive();
  if (live.paused) clearTimeout(live.timer);
  else refresh();
}

function waiting(title) {
  return [
    h("h1", {}, title),
    h("div", { class: "waiting", role: "status" }, h("span", { class: "hidden" }, "Loading"), [100, 88, 94].map(
      (width) => s("svg", { "aria-hidden": "true" }, s("rect", { class: "f-quiet", width: `${width}%`, height: 12, rx: 2 })),
    )),
  ];
}

function failure(error) {
  const isMissing = error instanceof ServerError && error.status === 404;
  return [
    h("h1", {}, isMissing ? "There is nothing here" : "This cannot be shown"),
    notice("stop", error.message, error.hint ? ` ${error.hint}` : ""),
    h("p", {}, link("/ui", {}, "Overview"), " · ", link("/ui/requests", {}, "Requests")),
  ];
}

function drawSignIn(main, why) {
  clearTimeout(live.timer);
  const field = h("input", { type: "password", id: "key", name: "key", autocomplete: "current-password", required: true, spellcheck: "false" });
  const problem = h("p", { class: "problem", role: "alert" }, why);
  const enter = async (event) => {
    event.preventDefault();
    try {
      await act("/ui/data/session", { key: field.value });
      await loadSession();
      await route();
    } catch (error) {
      problem.textContent = error.message;
      field.select();
    }
  };
  replace(
    main,
    h("h1", {}, "Sign in to look at this gateway"),
    h("form", { class: "signin", on: { submit: enter } },
      h("label", { for: "key" }, "A key of this gateway with the role ", code("read-only"), " or ", code("admin")),
      h("div", { class: "row" }, field, h("button", { type: "submit", class: "main" }, "Sign in")),
      problem,
      h("p", { class: "caption" }, "The browser gets a cookie for 12 hours in its place; the key itself is not kept."),
    ),
  );
  main.removeAttribute("aria-busy");
  field.focus();
}

async function signOut() {
  await act("/ui/data/session/end").catch(() => null);
  await loadSession();
  await route();
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(live.timer);
  else if (live.page?.everyMs && !live.paused) refresh();
});

// An amount in the currency of the prices, which only the settings know.
function money(amount) {
  return Number(amount.toPrecision(4)).toLocaleString("en-US", { maximumFractionDigits: 6 });
}
