// "What we changed": the way of one reply, stage after stage, with a receipt for every change.

const MAX_VALUE_CHARS = 240;
const ONE_WORD = /^[^\s{}[\],:]{1,60}$/;

function stage(tone, shape, title, note, ...children) {
  return h("li", { class: `stage ${tone}` }, icon(shape), h("h3", {}, title, note ? h("small", {}, note) : null), ...children);
}

function receiptRows(changes) {
  return h("ul", { class: "receipts" }, changes.map((change) => h("li", {},
    h("code", { class: "rule" }, name(change.rule)),
    h("span", { class: "where" }, change.place === "" ? "whole" : name(change.place)),
    h("span", { class: "values" }, difference(change.before, change.after), change.why ? [" ", h("span", { class: "k3" }, seen(change.why))] : null),
    h("span", { class: "loss" }, change.lossless !== false ? "lossless" : mark("caution", "warn", "can lose")),
  )));
}

// Only the part that differs is marked; removed is struck through, added is bold.
function difference(before, after) {
  const isSame = typeof before === typeof after;
  const shown = (value) => (value === null || value === undefined ? "" : isSame ? inline(value) : JSON.stringify(value));
  const a = shown(before);
  const b = shown(after);
  if (!a && !b) return h("span", { class: "k3" }, "nothing shown");
  if (!a) return [h("span", { class: "k3" }, "none → "), added(b)];
  if (!b) return [removed(a), h("span", { class: "k3" }, " → none")];
  if (ONE_WORD.test(a) && ONE_WORD.test(b)) return [removed(a), h("span", { class: "k3" }, " → "), added(b)];
  const [start, end] = commonEnds(a, b);
  const head = shorten(a.slice(0, start), true);
  const tail = shorten(end ? a.slice(-end) : "", false);
  const middle = (text) => text.slice(start, text.length - end);
  return [
    h("span", { class: "mono" }, seen(head), middle(a) ? removed(middle(a)) : null, seen(tail)),
    h("span", { class: "k3" }, " → "),
    h("span", { class: "mono" }, seen(head), middle(b) ? added(middle(b)) : null, seen(tail)),
  ];
}

// How many characters two texts have in common at their start and at their end.
function commonEnds(a, b) {
  const room = Math.min(a.length, b.length);
  const isHalf = (text, at) => /[\udc00-\udfff]/.test(text[at] ?? "");
  let start = 0;
  while (start < room && a[start] === b[start]) start += 1;
  if (isHalf(a, start) || isHalf(b, start)) start -= 1;
  let end = 0;
  while (end < room - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  if (end && (isHalf(a, a.length - end) || isHalf(b, b.length - end))) end -= 1;
  return [Math.max(0, start), end];
}

function shorten(text, fromEnd) {
  const room = 24;
  if (text.length <= room) return text;
  return fromEnd ? `…${text.slice(-room)}` : `${text.slice(0, room)}…`;
}

function removed(text) {
  return h("del", { class: "mono" }, h("span", { class: "hidden" }, "removed "), long(text));
}

function added(text) {
  return h("ins", { class: "mono" }, h("span", { class: "hidden" }, "added "), long(text));
}

function long(text) {
  if (text.length <= MAX_VALUE_CHARS) return seen(text);
  const rest = h("span", {}, seen(text.slice(0, MAX_VALUE_CHARS)), "… ");
  const all = button(`show all ${whole(text.length)}`, () => replace(rest, seen(text)), { class: "quiet" });
  rest.append(all);
  return rest;
}

// JSON is shown with its structure, anything else as it is.
function bodyBlock(text, label) {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // It was cut, or it is not JSON.
  }
  return block(shown, label);
}

function waterfall(rows, total) {
  const width = (ms) => (total ? (ms / total) * 100 : 0);
  let at = 0;
  return h("ul", { class: "waterfall" }, rows.map(({ label, ms, fill }) => {
    const x = width(at);
    at += ms;
    const drawn = width(ms);
    return h("li", {}, h("span", {}, label), s("svg", { "aria-hidden": "true" },
      s("rect", { class: "track", y: 5, width: "100%", height: 2 }),
      drawn < 1
        ? s("rect", { class: fill, x: `${Math.min(x, 98.5)}%`, width: 3, height: 12 })
        : s("rect", { class: fill, x: `${x}%`, width: `${drawn}%`, height: 12 }),
    ), h("span", { class: "num" }, duration(ms, { fine: true })));
  }), h("li", { class: "sum" }, h("span", {}, "in all"), h("span"), h("span", { class: "num" }, duration(total, { fine: true }))));
}
