// Where one is, and how one gets elsewhere.

function findPage() {
  const path = location.pathname.replace(/\/$/, "");
  if (path === "/ui/requests") return requestsPage();
  if (path === "/ui/models") return modelsPage();
  if (path === "/ui/approvals") return approvalsPage();
  const waiting = /^\/ui\/approvals\/([^/]+)$/.exec(path);
  if (waiting) return approvalsPage(decodeURIComponent(waiting[1]));
  const found = /^\/ui\/requests\/([^/]+)$/.exec(path);
  return found ? requestPage(decodeURIComponent(found[1])) : overviewPage();
}

async function route() {
  await showPage(findPage());
}

function go(address) {
  history.pushState(null, "", address);
  return route();
}

function follow(event) {
  const anchor = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!anchor || anchor.hasAttribute("download") || event.defaultPrevented) return;
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  if (anchor.id === "skip") {
    event.preventDefault();
    document.getElementById("main").focus();
    return;
  }
  const url = new URL(anchor.href, location.href);
  if (url.origin !== location.origin || !/^\/ui(\/|$)/.test(url.pathname)) return;
  event.preventDefault();
  go(url.pathname + url.search).then(() => scrollTo(0, 0));
}

// Next and previous: rows of a list, or on the page of a request, the requests of the last list.
function step(by) {
  if (moveRow(by)) return true;
  const { ids } = remembered();
  const at = ids.indexOf(decodeURIComponent(location.pathname.split("/").pop()));
  const next = at < 0 ? undefined : ids[at + by];
  if (next) go(`/ui/requests/${encodeURIComponent(next)}`);
  return Boolean(next);
}

function press(id) {
  const found = document.getElementById(id);
  if (!found || found.disabled) return false;
  found.click();
  return true;
}

function listKeys() {
  PAGES.forEach((page, i) => onKey([String(i + 1)], page.title, () => go(page.path)));
  onKey(["/"], "go to the filter", () => {
    const field = document.getElementById("f-model");
    if (field) field.focus();
    else go("/ui/requests").then(() => document.getElementById("f-model")?.focus());
  });
  onKey(["j"], "next row or request", () => step(1));
  onKey(["k"], "previous row or request", () => step(-1));
  onKey(["Enter"], "open", (event) => {
    const row = event.target instanceof Element ? event.target.closest("[data-row]") : null;
    if (!row || event.target instanceof HTMLAnchorElement || event.target instanceof HTMLButtonElement) return false;
    row.querySelector("a")?.click();
    return true;
  });
  onKey(["u"], "up", () => go(location.pathname.startsWith("/ui/requests/") ? remembered().from : location.pathname.startsWith("/ui/approvals/") ? "/ui/approvals" : "/ui"));
  onKey([" "], "pause, go on", () => live.page?.everyMs ? togglePause() : false);
  onKey(["s"], "save as eval case", () => document.getElementById("save-case")?.click());
  onKey(["a"], "approve", () => press("approve"));
  onKey(["e"], "edit before approving", () => press("edit"));
  onKey(["x"], "deny, with a reason", () => press("deny") || document.getElementById("reason")?.focus());
  // Beside the keys that decide, a slip of the finger should not look like a decision.
  onKey(["d"], "dark or light", () => (document.querySelector(".decide") ? false : switchLook()));
  onKey(["?"], "all keys", () => showKeys());
}

async function begin() {
  showLook();
  listKeys();
  listenToKeys();
  document.addEventListener("click", follow);
  addEventListener("popstate", () => route());
  setInterval(drawLive, 1000);
  try {
    await loadSession();
  } catch (error) {
    session = { needs_key: false, may_look: true, may_act: false, csrf: "", upstreams: [], models: [], keys: [] };
  }
  if (session.needs_key && !session.may_look) {
    live.page = { title: "Sign in", everyMs: 0 };
    drawFrame();
    drawSignIn(document.getElementById("main"), "");
    return;
  }
  await route();
}

begin();
