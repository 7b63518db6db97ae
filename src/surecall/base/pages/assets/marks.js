// Marks: each meaning has a shape, a colour and a word, and the colour is never alone.

const ICONS = new Map([
  ["ok", ["M3 8.5 6.5 12 13 4.5"]],
  ["stop", ["M4 4l8 8M12 4l-8 8"]],
  ["changed", ["M8 2 14 8 8 14 2 8z", "full"]],
  ["again", ["M13 8a5 5 0 1 1-1.6-3.7M13 2.2v3h-3"]],
  ["half", ["M8 3a5 5 0 1 0 0 10 5 5 0 0 0 0-10M8 3v10"]],
  ["in", ["M8 2v8M4.5 7 8 10.5 11.5 7M3 13.5h10"]],
  ["out", ["M8 10.5v-8M4.5 6 8 2.5 11.5 6M3 13.5h10"]],
  ["run", ["M5 3.5v9l7.5-4.5z", "full"]],
  ["copy", ["M5.5 5.5h8v8h-8zM3 10.5V2.5h8"]],
  ["save", ["M3 3h10v10.5l-5-3-5 3z"]],
  ["warn", ["M8 2.2l6.5 11.3h-13zM8 6.5v3.2M8 11.6v.2"]],
  ["eye", ["M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 6.5v3"]],
  ["skip", ["M4 8h8"]],
  ["pen", ["M3 13l.7-3L10.8 2.9l2.3 2.3L6 12.3z"]],
  ["theme", ["M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 2.5v11M10.5 4v8M12.5 6v4"]],
]);

function icon(kind) {
  const [path, full] = ICONS.get(kind);
  return s(
    "svg",
    { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    s("path", { d: path, class: full ? "full" : null }),
  );
}

function mark(tone, shape, ...words) {
  return h("span", { class: `mark ${tone}` }, icon(shape), ...words);
}

// What became of a request.
const OUTCOMES = new Map([
  ["clean", { word: "clean", tone: "quiet", shape: "ok", fill: "f-clean" }],
  ["repaired", { word: "repaired", tone: "changed", shape: "changed", fill: "f-changed" }],
  ["reasked", { word: "re-asked", tone: "caution", shape: "again", fill: "f-caution" }],
  ["unrepaired", { word: "unrepaired", tone: "stop", shape: "again", fill: "f-unrepaired" }],
  ["refused", { word: "refused", tone: "stop", shape: "stop", fill: "f-stop" }],
  ["failed", { word: "no reply", tone: "stop", shape: "warn", fill: "f-up" }],
  ["relayed", { word: "passed on", tone: "quiet", shape: "skip", fill: "f-quiet" }],
]);

function outcomeMark(outcome) {
  const found = OUTCOMES.get(outcome);
  return found ? mark(found.tone, found.shape, found.word) : mark("quiet", "skip", outcome);
}

function notice(tone, ...children) {
  return h("p", { class: `notice ${tone}` }, icon("warn"), h("span", {}, ...children));
}
