// Figures as people read them: two digits that count, a narrow space before the unit.

const THIN = "\u202f";
const MINUTE_S = 60;

function whole(count) {
  return Math.round(count).toLocaleString("en-US");
}

// 0.9332 is 93 %; below 10 % one decimal, below 1 % two, but never 0 for what is there.
function percent(share) {
  const points = share * 100;
  if (points === 0 || points === 100) return `${points}${THIN}%`;
  return `${pointsText(points)}${THIN}%`;
}

function pointsText(points) {
  if (points < 0.01) return "<0.01";
  if (points > 99.99) return ">99.99";
  if (points < 1 || points > 99.9) return points.toFixed(2);
  return points.toFixed(1);
}

function interval(share) {
  const low = share.low * 100;
  const high = share.high * 100;
  const digits = high < 10 ? 1 : 0;
  return `[${low.toFixed(digits)}–${high.toFixed(digits)}]`;
}

function countOf(count, one, many = `${one}s`) {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

function duration(ms, { fine = false } = {}) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 0.095) return ms === 0 ? `0${THIN}ms` : `${ms.toFixed(2)}${THIN}ms`;
  if (ms < 9.95) return `${ms.toFixed(1)}${THIN}ms`;
  if (ms < 999.5) return `${Math.round(ms)}${THIN}ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(fine ? 2 : 1)}${THIN}s`;
  return `${Math.round(ms / 1000)}${THIN}s`;
}

function size(bytes) {
  if (bytes < 10_000) return `${whole(bytes)} bytes`;
  return bytes < 10_000_000 ? `${whole(bytes / 1024)}${THIN}KiB` : `${whole(bytes / 1024 / 1024)}${THIN}MiB`;
}

function pad(number) {
  return String(number).padStart(2, "0");
}

function clock(seconds, { withSeconds = false } = {}) {
  const at = new Date(seconds * 1000);
  const text = `${pad(at.getHours())}:${pad(at.getMinutes())}`;
  return withSeconds ? `${text}:${pad(at.getSeconds())}` : text;
}

function day(seconds) {
  const at = new Date(seconds * 1000);
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

// The time of day, with the day where that is another one.
function moment(seconds, options) {
  const today = day(Date.now() / 1000) === day(seconds);
  return today ? clock(seconds, options) : `${day(seconds)} ${clock(seconds, options)}`;
}

function timeNode(seconds, options) {
  const iso = new Date(seconds * 1000).toISOString();
  return h("time", { datetime: iso, title: iso }, moment(seconds, options));
}

function ago(seconds) {
  if (seconds < 1.5 * MINUTE_S) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 90 * MINUTE_S) return `${Math.round(seconds / MINUTE_S)} min`;
  if (seconds < 36 * 60 * MINUTE_S) return `${Math.round(seconds / MINUTE_S / 60)} h`;
  return `${Math.round(seconds / MINUTE_S / 60 / 24)} days`;
}
