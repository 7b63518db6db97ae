// Building the page: text always goes in as text, never as markup.

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
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

function replace(node, ...children) {
  node.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined),
  );
}

// Characters that cannot be seen, or that turn the text around them.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function seen(text) {
  const parts = [];
  let at = 0;
  for (const found of String(text).matchAll(UNSEEN)) {
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    parts.push(
      text.slice(at, found.index),
      h("span", { class: "unseen", title: `U+${code}` }, `U+${code}`),
    );
    at = found.index + 1;
  }
  parts.push(String(text).slice(at));
  return parts.filter((part) => part !== "");
}

function code(text) {
  return h("code", {}, seen(text));
}

function block(text, label) {
  return h("pre", { tabindex: "0", role: "region", "aria-label": label }, seen(text));
}

// A value as people read it: text as it is, all else as JSON.
function written(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
}

function inline(value) {
  return typeof value === "string" ? value : JSON.stringify(value) ?? "";
}

function badge(kind, text, title) {
  return h("span", { class: `badge ${kind}`, title }, text);
}

function verdictBadge(ok) {
  return ok ? badge("pass", "✓ pass") : badge("fail", "✗ fail");
}

function modelName(model) {
  const note = simulatedModels.get(model);
  return [h("bdi", {}, breakable(model)), note ? [" ", badge("sim", note)] : null];
}

function contenderName(contender) {
  return [
    h("bdi", {}, breakable(contender.label)),
    contender.simulated ? [" ", badge("sim", contender.simulated)] : null,
  ];
}

// A line may break behind the joints of a long name.
function breakable(name) {
  return name.split(/(?<=[_/:-])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));
}

function link(href, attributes, ...children) {
  return h("a", { href, ...attributes }, ...children);
}

function copyButton(label, text) {
  const copy = async (event) => {
    const value = text();
    try {
      await navigator.clipboard.writeText(value);
      say("Copied.");
    } catch {
      say(`Copy this: ${value}`);
    }
    event.target.focus();
  };
  return h("button", { type: "button", class: "small copy", on: { click: copy } }, label);
}

function copyLink(path) {
  return copyButton("copy link", () => location.href.replace(/#.*$/, "") + linkTo(path));
}

function say(text) {
  const live = document.getElementById("live");
  live.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (live.textContent = ""), 4000);
}

// columns: [{title, numeric}], rows: arrays of text or nodes
function makeTable(caption, columns, rows) {
  const cell = (value, i) => h(
    i ? "td" : "th",
    { class: columns[i].numeric ? "number" : null, scope: i ? null : "row" },
    value,
  );
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "data" },
      h("caption", { class: "hidden" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map(
            ({ title, numeric }) => h(
              "th",
              { scope: "col", class: numeric ? "number" : null },
              title,
            ),
          ),
        ),
      ),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell)))),
    ),
  );
}

function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs.filter(Boolean).map(
      ([name, ...value]) => h("div", {}, h("dt", {}, name), h("dd", {}, ...value)),
    ),
  );
}

function foldable(summary, open, ...children) {
  return h("details", { open }, h("summary", {}, summary), ...children);
}
