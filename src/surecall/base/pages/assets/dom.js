// Building pages: text always goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...flatten(children));
  return node;
}

function flatten(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

function replace(node, ...children) {
  node.replaceChildren(...flatten(children));
}

// Characters that cannot be seen, or that turn the text around them.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function seen(text) {
  const whole = String(text);
  const parts = [];
  let at = 0;
  for (const found of whole.matchAll(UNSEEN)) {
    const name = `U+${found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    parts.push(whole.slice(at, found.index), h("span", { class: "unseen" }, name));
    at = found.index + 1;
  }
  parts.push(whole.slice(at));
  return parts.filter((part) => part !== "");
}

// A name that somebody else chose: isolated from the direction of the text around it.
function name(text) {
  return h("bdi", {}, seen(text).flatMap((part) => (typeof part === "string" ? breakable(part) : [part])));
}

// A line may break behind the joints of a long name.
function breakable(text) {
  return text.split(/(?<=[_/:.-])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));
}

function code(text) {
  return h("code", {}, name(text));
}

function block(text, label) {
  return h("pre", { class: "box", tabindex: "0", role: "region", "aria-label": label }, seen(text));
}

// A value as people read it: text as it is, all else as JSON.
function inline(value) {
  return typeof value === "string" ? value : JSON.stringify(value) ?? "nothing";
}

function link(href, attributes, ...children) {
  return h("a", { href, ...attributes }, ...children);
}

function button(label, act, attributes = {}) {
  return h("button", { type: "button", ...attributes, on: { click: act } }, label);
}

function copyButton(label, text) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      say("Copied.");
    } catch {
      say("The browser did not allow copying.");
    }
  };
  return button([icon("copy"), label], copy, { class: "quiet" });
}

function say(text) {
  const live = document.getElementById("say");
  live.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (live.textContent = ""), 6000);
}

// head: texts, or [text, class]; rows: arrays of cells, each a node, a text or [class, ...children]
function table(caption, className, head, rows) {
  const classOf = (i) => (Array.isArray(head[i]) ? head[i][1] : null);
  const title = (i) => (Array.isArray(head[i]) ? head[i][0] : head[i]);
  return h(
    "table",
    // A plain table scrolls sideways on a narrow screen, also with keys.
    { class: className, role: "table", tabindex: className === "plain" ? "0" : null },
    h("caption", { class: "hidden" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head.map(
      (_, i) => h("th", { scope: "col", role: "columnheader", class: classOf(i) }, title(i)),
    ))),
    h("tbody", { role: "rowgroup" }, rows.map((row) => h("tr", { role: "row", ...row.attributes }, row.cells.map((cell, i) => h(
      i ? "td" : "th",
      { class: classOf(i), scope: i ? null : "row", role: i ? "cell" : "rowheader", "data-label": title(i) || null },
      cell,
    ))))),
  );
}

function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([key, ...value]) => [h("dt", {}, key), h("dd", {}, ...value)]));
}
