// Charts draw shapes only; their words and figures are HTML beside them.

const READ = ["clean", "repaired", "reasked", "unrepaired", "refused"];
const WRONG = ["refused", "unrepaired", "reasked", "repaired"];
const MIN_REPLIES = 30;
const LIMIT = 0.1;

// One bar of 100 %: always in the same order, and never without what is there.
function outcomeBand(outcomes, label) {
  const total = READ.reduce((sum, key) => sum + (outcomes[key] ?? 0), 0);
  if (!total) return h("span", { class: "few" }, "–");
  const shares = READ.map((key) => ({ key, share: (outcomes[key] ?? 0) / total })).filter(({ share }) => share > 0);
  const least = 0.006;
  const spread = shares.reduce((sum, { share }) => sum + Math.max(share, least), 0);
  let at = 0;
  return s("svg", { class: "band", role: "img", "aria-label": label ?? bandText(outcomes, total) }, shares.map(({ key, share }) => {
    const width = (Math.max(share, least) / spread) * 100;
    const drawn = s("rect", { class: OUTCOMES.get(key).fill, x: `${at}%`, width: `${Math.max(0.2, width - 0.12)}%`, height: "100%" });
    at += width;
    return drawn;
  }));
}

function bandText(outcomes, total) {
  return READ.filter((key) => outcomes[key]).map((key) => `${percent(outcomes[key] / total)} ${OUTCOMES.get(key).word}`).join(", ");
}

// The point, its interval, on a scale from 0 to `top`.
function intervalBar(share, top = 1) {
  const x = (value) => `${Math.min(100, (value / top) * 100)}%`;
  return s("svg", { class: "interval", "aria-hidden": "true" },
    s("rect", { class: "f-quiet", y: 3, width: "100%", height: 2 }),
    s("line", { class: "whisker", x1: x(share.low), x2: x(share.high), y1: 4, y2: 4 }),
    s("circle", { class: "point", cx: x(share.value), cy: 4, r: 4 }),
  );
}

function shareText(share, { withCount = false } = {}) {
  if (!share.n) return h("span", { class: "few" }, "–");
  if (share.n < MIN_REPLIES) return h("span", { class: "few" }, `${whole(share.of)} of ${whole(share.n)}`);
  return [h("b", {}, percent(share.value)), " ", h("small", {}, interval(share), withCount ? ` of ${whole(share.n)}` : "")];
}

function isHot(share) {
  return share.n >= MIN_REPLIES && share.low > LIMIT;
}

function niceTop(value) {
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1];
  return steps.find((step) => value <= step) ?? 1;
}

function axis(data) {
  const count = 6;
  const at = (part) => data.since + part * (data.until - data.since);
  const text = (seconds) => (data.range === "7d" ? day(seconds).slice(5) : clock(seconds));
  return h("div", { class: "x", "aria-hidden": "true" }, Array.from({ length: count + 1 }, (_, i) => h("span", {}, text(at(i / count)))));
}

function grid(lines) {
  return Array.from({ length: lines }, (_, i) => s("line", { class: "grid", x1: 0, x2: "100%", y1: `${(i / lines) * 100}%`, y2: `${(i / lines) * 100}%` }));
}

function slotName(data) {
  return data.range === "1h" ? "minute" : data.range === "24h" ? "half hour" : "3 hours";
}

// Two panels over one time: the share that was not clean, on its own scale, and the volume.
function timeChart(data) {
  const slots = data.slots.map((slot) => ({ ...slot, replies: READ.reduce((sum, key) => sum + slot[key], 0) }));
  const width = 100 / slots.length;
  const wrong = slots.map((slot) => (slot.replies ? WRONG.reduce((sum, key) => sum + slot[key], 0) / slot.replies : 0));
  const top = niceTop(Math.max(0.05, ...wrong));
  const most = Math.max(1, ...slots.map((slot) => slot.replies));
  const worst = wrong.indexOf(Math.max(...wrong));
  const per = slotName(data);
  const bar = (x, from, height, fill) => s("rect", { class: fill, x: `${x + width * 0.06}%`, width: `${width * 0.88}%`, y: `${100 - from - height}%`, height: `${height}%` });
  const shares = slots.flatMap((slot, i) => {
    let from = 0;
    return WRONG.filter((key) => slot[key]).map((key) => {
      const height = (slot[key] / slot.replies / top) * 100;
      const drawn = bar(i * width, from, height, OUTCOMES.get(key).fill);
      from += height;
      return drawn;
    });
  });
  const ticks = [1, 0.75, 0.5, 0.25, 0].map((part, i) => h("span", {}, `${+(top * part * 100).toFixed(2)}${i ? "" : `${THIN}%`}`));
  const highest = Math.max(...wrong) ? `; highest at ${clock(data.since + worst * data.slot_s)} with ${percent(wrong[worst])}` : "";
  return h("section", { class: "plot", "aria-label": "Outcomes over time" },
    h("p", { class: "t" }, `Share of replies that were not clean, by ${per}`),
    h("div", { class: "y", "aria-hidden": "true" }, ticks),
    s("svg", { role: "img", "aria-label": `Share of refused, unrepaired, re-asked and repaired replies by ${per}${highest}` }, grid(4), shares),
    h("p", { class: "t" }, `Replies by ${per}`),
    h("div", { class: "y", "aria-hidden": "true" }, h("span", {}, whole(most)), h("span", {}, "0")),
    s("svg", { class: "short", role: "img", "aria-label": `Replies by ${per}, at most ${whole(most)}` }, grid(1), slots.map(
      (slot, i) => (slot.replies ? bar(i * width, 0, (slot.replies / most) * 100, "f-clean") : null),
    )),
    axis(data),
  );
}

// Lines over time with their bands: groups of slots, so that each has enough replies.
function parseChart(data) {
  const group = Math.max(1, Math.round(data.slots.length / 12));
  const points = [];
  for (let i = 0; i < data.slots.length; i += group) {
    const part = data.slots.slice(i, i + group);
    const sum = (key) => part.reduce((all, slot) => all + slot[key], 0);
    const n = READ.reduce((all, key) => all + sum(key), 0);
    points.push({ n, received: wilson(sum("unparsed"), n), after: wilson(sum("unparsed_after"), n) });
  }
  const top = niceTop(Math.max(0.02, ...points.filter(({ n }) => n).map(({ received }) => received.value * 1.3)));
  const x = (i) => ((i + 0.5) / points.length) * 100;
  const y = (value) => 100 - Math.min(1, value / top) * 100;
  const line = (key) => points.map((point, i) => (point.n ? `${x(i).toFixed(2)},${y(point[key].value).toFixed(2)}` : null)).filter(Boolean).join(" ");
  const band = (key) => {
    const there = points.map((point, i) => ({ ...point[key], n: point.n, i })).filter(({ n }) => n);
    const over = there.map(({ high, i }) => `${x(i).toFixed(2)},${y(high).toFixed(2)}`);
    const under = there.map(({ low, i }) => `${x(i).toFixed(2)},${y(low).toFixed(2)}`).reverse();
    return [...over, ...under].join(" ");
  };
  return h("div", { class: "plot" },
    h("p", { class: "t" }),
    h("div", { class: "y", "aria-hidden": "true" }, h("span", {}, `${+(top * 100).toFixed(2)}${THIN}%`), h("span", {}, `${+(top * 50).toFixed(2)}`), h("span", {}, "0")),
    s("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img", "aria-label": "Share of replies whose calls do not parse, over time" },
      s("path", { class: "grid still", d: "M0 0H100M0 50H100" }),
      s("polygon", { class: "area stop", points: band("received") }),
      s("polyline", { class: "line stop", points: line("received") }),
      s("polygon", { class: "area changed", points: band("after") }),
      s("polyline", { class: "line changed", points: line("after") }),
    ),
    axis(data),
  );
}

function wilson(of, n) {
  if (!n) return { of, n, value: 0, low: 0, high: 1 };
  const z2 = 1.959964 ** 2;
  const p = of / n;
  const middle = (p + z2 / (2 * n)) / (1 + z2 / n);
  const half = (Math.sqrt(z2) * Math.sqrt((p * (1 - p)) / n + z2 / (4 * n * n))) / (1 + z2 / n);
  return { of, n, value: p, low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

// From p50 to p95 on one logarithmic axis from 0.1 ms to 100 s.
function timeBars(pair) {
  const x = (ms) => Math.min(100, Math.max(0, ((Math.log10(Math.max(ms, 0.1)) + 1) / 6) * 100));
  const bar = (found, fill) => {
    if (!found) return null;
    const from = x(found.p50);
    return s("rect", { class: fill, x: `${from}%`, width: `${Math.max(1.2, x(found.p95) - from)}%`, y: "32%", height: "36%", rx: 2 });
  };
  return s("svg", { class: "spans", role: "img", "aria-label": `added ${duration(pair.added_ms?.p50)} to ${duration(pair.added_ms?.p95)}, upstream ${duration(pair.upstream_ms?.p50)} to ${duration(pair.upstream_ms?.p95)}` },
    [0, 1, 2, 3, 4, 5, 6].map((step) => s("line", { class: "grid", x1: `${(step / 6) * 100}%`, x2: `${(step / 6) * 100}%`, y1: 0, y2: "100%" })),
    bar(pair.added_ms, "f-changed"),
    bar(pair.upstream_ms, "f-up"),
  );
}
