// Single keys: they do nothing inside fields or with Ctrl, Alt and Meta, and can be switched off.

const KEYS_OFF = "surecall-keys-off";
const keyActs = new Map();

// names: keys as the browser names them; label: what the list that `?` opens says
function onKey(names, label, act) {
  for (const key of names) keyActs.set(key, { label, act, names });
}

function areKeysOff() {
  try {
    return localStorage.getItem(KEYS_OFF) === "1";
  } catch {
    return false;
  }
}

function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.closest("input, textarea, select") !== null);
}

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    if (event.key === "Escape" && isTyping(event.target)) {
      event.target.blur();
      return;
    }
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    if (areKeysOff() && event.key !== "?") return;
    const found = keyActs.get(event.key);
    if (!found || (event.key === " " && event.target instanceof HTMLButtonElement)) return;
    if (found.act(event) !== false) event.preventDefault();
  });
}

function showKeys() {
  const help = document.getElementById("help");
  const listed = [...new Map([...keyActs.values()].map((found) => [found.label, found])).values()];
  const shown = (key) => (key === " " ? "space" : key);
  const box = h("input", { type: "checkbox", id: "keys-off", checked: areKeysOff() });
  box.addEventListener("change", () => {
    try {
      localStorage.setItem(KEYS_OFF, box.checked ? "1" : "0");
    } catch {
      say("The browser keeps no choices.");
    }
  });
  replace(
    help,
    h("h2", { id: "help-title" }, "Keys"),
    h("dl", { class: "keylist" }, listed.map((found) => [
      h("dt", {}, found.names.map((key) => h("kbd", {}, shown(key)))),
      h("dd", {}, found.label),
    ])),
    h("p", {}, h("label", { for: "keys-off" }, box, " Do nothing on single keys")),
    button("Close", () => help.close()),
  );
  help.showModal();
}

// Move the focus through rows that have `data-row`.
function moveRow(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return false;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 && by > 0 ? 0 : at + by))];
  (next.querySelector("a, button") ?? next).focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}
