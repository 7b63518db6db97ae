// Statistics: the same formulas as surecall.evals.stats, so that filters can be applied here.

const Z = 1.959963984540054;
const TOO_WIDE = 0.4; // an interval wider than this says neither good nor bad

function wilson(k, n) {
  if (!n) return [0, 1];
  const shrunk = n + Z * Z;
  const centre = (k + (Z * Z) / 2) / shrunk;
  const half = (Z * Math.sqrt((k * (n - k)) / n + (Z * Z) / 4)) / shrunk;
  return [k === 0 ? 0 : Math.max(0, centre - half), k === n ? 1 : Math.min(1, centre + half)];
}

function rateOf(k, n) {
  const [low, high] = wilson(k, n);
  return { k, n, low, high, value: n ? k / n : null, thin: high - low > TOO_WIDE };
}

// How two verdicts on the same trials agree.
function pairedDifference(both, onlyA, onlyB, neither) {
  const n = both + onlyA + onlyB + neither;
  if (!n) return null;
  const kA = both + onlyA;
  const kB = both + onlyB;
  const [a, b] = [kA / n, kB / n];
  const [lowA, highA] = wilson(kA, n);
  const [lowB, highB] = wilson(kB, n);
  const r = pairCorrelation(both, onlyA, onlyB, neither);
  const below = (b - lowB) ** 2 - 2 * r * (b - lowB) * (highA - a) + (highA - a) ** 2;
  const above = (highB - b) ** 2 - 2 * r * (highB - b) * (a - lowA) + (a - lowA) ** 2;
  return {
    n,
    onlyA,
    onlyB,
    difference: b - a,
    low: Math.max(-1, b - a - Math.sqrt(Math.max(0, below))),
    high: Math.min(1, b - a + Math.sqrt(Math.max(0, above))),
    p: mcnemar(onlyA, onlyB),
  };
}

function pairCorrelation(both, onlyA, onlyB, neither) {
  const n = both + onlyA + onlyB + neither;
  const kA = both + onlyA;
  const kB = both + onlyB;
  const scale = Math.sqrt(kA * (n - kA) * kB * (n - kB));
  if (!scale) return 0;
  let product = both * neither - onlyA * onlyB;
  if (product > 0) product = Math.max(product - n / 2, 0);
  return product / scale;
}

// Exact and two-sided: each pair that differs is a fair coin.
function mcnemar(onlyA, onlyB) {
  const n = onlyA + onlyB;
  let term = -n * Math.LN2;
  let sum = 0;
  for (let i = 0; i <= Math.min(onlyA, onlyB); i++) {
    sum += Math.exp(term);
    term += Math.log(n - i) - Math.log(i + 1);
  }
  return Math.min(1, 2 * sum);
}

// The chance that all of k trials are right, of n with c right.
function passHatK(n, c, k) {
  let chance = 1;
  for (let i = 0; i < k; i++) chance *= Math.max(0, c - i) / (n - i);
  return chance;
}

// Kaplan-Meier: a run that was stopped would have taken longer, nobody knows how long.
function survivalSteps(runs) {
  const sorted = [...runs].sort((a, b) => a.ms - b.ms || a.censored - b.censored);
  let surviving = 1;
  let remaining = sorted.length;
  const steps = [];
  for (const { ms, censored } of sorted) {
    if (!censored) surviving *= 1 - 1 / remaining;
    remaining -= 1;
    steps.push({ ms, censored, done: 1 - surviving });
  }
  return steps;
}

function quantile(steps, share) {
  const found = steps.find((step) => !step.censored && step.done >= share - 1e-9);
  return found ? found.ms : null;
}

// Not Math.min(...values): that many arguments are too many.
function smallest(values) {
  return values.reduce((a, b) => Math.min(a, b), Infinity);
}

function largest(values) {
  return values.reduce((a, b) => Math.max(a, b), -Infinity);
}

// Words for figures

function hundredths(value) {
  const text = (100 * value).toFixed(1);
  return text.endsWith(".0") ? text.slice(0, -2) : text;
}

function percent(value) {
  return value === null ? "–" : `${hundredths(value)} %`;
}

function interval(rate) {
  return `${hundredths(rate.low)}–${hundredths(rate.high)} %`;
}

function points(value) {
  return `${value < 0 ? "−" : "+"}${hundredths(Math.abs(value))}`;
}

function pValue(p) {
  return p < 0.001 ? "p < 0.001" : `p = ${p.toFixed(3)}`;
}

function duration(ms) {
  if (ms === null) return "over the limit";
  if (ms < 1000) return ms > 0 && ms < 0.5 ? "< 1 ms" : `${Math.round(ms)} ms`;
  const s = ms / 1000;
  return `${s < 10 ? s.toFixed(2) : s < 100 ? s.toFixed(1) : Math.round(s)} s`;
}

function within(ms) {
  return ms === null ? "fewer than 95 % finished within the limit" : `95 % within ${duration(ms)}`;
}

function count(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function plural(n, word) {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

function bytes(n) {
  return `${count(n)} ${n === 1 ? "byte" : "bytes"}`;
}

function moment(seconds) {
  if (!seconds) return "";
  return `${new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
