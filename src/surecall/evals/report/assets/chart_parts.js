// What charts have in common.

const WIDTH = 600;
const MAX_LABEL = 30;
const MARKS = ["ring", "diamond", "disc", "square", "triangle"];

function figure(id, title, caption, chart, table) {
  return h(
    "figure",
    { id: `chart-${id}`, class: "chart", tabindex: "-1", "aria-labelledby": `title-${id}` },
    h(
      "div",
      { class: "figure-head" },
      h("h2", { id: `title-${id}` }, link(linkTo(["chart", id]), { class: "quiet" }, title)),
      copyLink(["chart", id]),
    ),
    chart,
    h("figcaption", {}, caption),
    table ? foldable("Table", false, table) : null,
  );
}

function nothing(text) {
  return h("p", { class: "empty" }, text);
}

function drawing(width, height, label, ...children) {
  return h(
    "div",
    { class: "scroll" },
    s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
      ...children,
    ),
  );
}

// Only the table behind a chart is walked through by keyboard, so marks are no stops.
function mark(href, title, ...shapes) {
  return s("a", { href, tabindex: "-1", class: "mark" }, s("title", {}, title), ...shapes);
}

function clipped(text, max = MAX_LABEL) {
  return text.length > max ? `${text.slice(0, max - 1)}…` : text;
}

function labelWidth(labels) {
  return Math.min(
    250,
    12 + 6.9 * Math.max(4, ...labels.map((label) => Math.min(label.length, MAX_LABEL + 11))),
  );
}

function seriesLabel(one) {
  return clipped(one.label) + (one.simulated ? ` ${one.simulated}` : "");
}

function rowLabel(one, x, y) {
  return s(
    "text",
    { x, y, class: "label", "text-anchor": "end" },
    s("title", {}, one.label),
    clipped(one.label),
    one.simulated ? s("tspan", { class: "sim", dx: 5 }, one.simulated) : null,
  );
}

function percentAxis(left, right, top, bottom, label, most = 1) {
  const at = (share) => left + (share / most) * (right - left);
  return [
    [0, 0.25, 0.5, 0.75, 1].map((part) => part * most).map((share) => [
      s("line", { x1: at(share), x2: at(share), y1: top, y2: bottom, class: "grid" }),
      s(
        "text",
        { x: at(share), y: bottom + 14, class: "tick", "text-anchor": "middle" },
        percent(share),
      ),
    ]),
    label ? s(
      "text",
      { x: (left + right) / 2, y: bottom + 29, class: "tick", "text-anchor": "middle" },
      label,
    ) : null,
  ];
}

function shape(kind, x, y, css, size = 4.5) {
  const attributes = { class: css };
  if (kind === "square") return s(
    "rect",
    {
      x: x - size + 0.5,
      y: y - size + 0.5,
      width: 2 * size - 1,
      height: 2 * size - 1,
      ...attributes,
    },
  );
  if (kind === "diamond") return s(
    "path",
    {
      d: `M${x} ${y - size - 1}l${size + 1} ${size + 1}l${-size - 1} ${size + 1}l${-size - 1} ${-size - 1}z`,
      ...attributes,
    },
  );
  if (kind === "triangle") return s(
    "path",
    { d: `M${x} ${y - size}l${size} ${2 * size}h${-2 * size}z`, ...attributes },
  );
  return s(
    "circle",
    { cx: x, cy: y, r: size, ...attributes, class: kind === "ring" ? `${css} hollow` : css },
  );
}

function strategyLook(strategy) {
  const place = axes.strategy.indexOf(strategy);
  const known = KNOWN_STRATEGIES.indexOf(strategy);
  const look = known >= 0 ? known : 4 + (place % 4);
  return { kind: MARKS[known >= 0 ? known : 4], css: `c${look}` };
}

function legend(entries) {
  return h(
    "ul",
    { class: "legend" },
    entries.map(({ sign, text, href, title }) =>
      h("li", { title }, sign, " ", href ? link(href, {}, text) : h("span", {}, text)),
    ),
  );
}

function swatch(draw) {
  return s(
    "svg",
    { class: "swatch", viewBox: "0 0 22 14", width: 22, height: 14, "aria-hidden": "true" },
    draw,
  );
}

// A long legend is folded; names also show when a mark is pointed at.
function longLegend(entries) {
  return entries.length > 10 ? foldable(
    `Legend: ${count(entries.length)} lines`,
    false,
    legend(entries),
  ) : legend(entries);
}

function strategyLegend(strategies) {
  return legend(
    strategies.map((strategy) => {
      const { kind, css } = strategyLook(strategy);
      return { sign: swatch(shape(kind, 11, 7, css)), text: strategy };
    }),
  );
}

// One line of a chart for each contender and shown strategy.
function seriesOf(rows) {
  const strategies = shownStrategies();
  const groups = groupBy(
    rows.filter((trial) => strategies.includes(trial.cell.strategy)),
    (trial) => `${trial.cell.contender.label}\n${trial.cell.strategy}`,
  );
  return [...groups.values()].map((members) => {
    const { contender, strategy } = members[0].cell;
    return {
      contender,
      strategy,
      rows: members,
      simulated: contender.simulated,
      label: strategies.length > 1 ? `${contender.label} · ${strategy}` : contender.label,
      href: (more = {}) => linkTo(
        ["trials"],
        { filters: contenderFilter(contender, { strategy, ...more }) },
      ),
    };
  });
}

function rateOfRows(rows) {
  return rateOf(rows.filter(passes).length, rows.length);
}

function rateWords(rate) {
  return `${rate.k} of ${rate.n}, ${percent(rate.value)}, 95 % interval ${interval(rate)}`;
}

function simulatedNote(rows) {
  const n = rows.filter((trial) => trial.simulated).length;
  if (!n) return null;
  return n === rows.length ? "simulated" : `${count(n)} of ${count(rows.length)} simulated`;
}

function shownNote() {
  const strategies = shownStrategies();
  return axes.strategy.length > 1 ? ` Strategy shown: ${strategies.join(", ")}.` : "";
}

function verdictWords() {
  return state.kind === "original" ? "the original, loose verdict" : "the strict verdict";
}
