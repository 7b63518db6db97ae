// Approvals: what waits for a yes or no, the soonest to end first, and the one that is looked at.

const HURRY_S = 300;
const DECIDED_WORDS = new Map([
  ["approved", ["ok", "ok", "approved"]],
  ["edited", ["changed", "changed", "approved with edits"]],
  ["denied", ["stop", "stop", "denied"]],
  ["expired", ["quiet", "skip", "ran out of time"]],
]);

function approvalsPage(id) {
  let chosen = id; // It stays while somebody reads, also when it is decided elsewhere.
  let parts = null;
  let last = null;
  const page = {
    title: "Approvals",
    everyMs: 2000,
    hints: [["j k", "next, previous"], ["a", "approve"], ["e", "edit"], ["x", "deny, with a reason"], ["?", "all keys"]],
    load: async () => {
      const list = await ask("/ui/data/approvals");
      chosen ??= list.waiting[0]?.id;
      return { list, one: chosen ? await ask(`/ui/data/approvals/${encodeURIComponent(chosen)}`) : null };
    },
    // Only what has changed is drawn anew, so that nobody loses what they are typing.
    draw: ({ list, one }) => {
      last = { list, one };
      showWaiting(list.waiting.length);
      document.title = `${approvalsTitle(list)} · surecall gateway`;
      if (list.state !== "open") return noStore(list);
      const isNew = !parts?.box.isConnected;
      if (isNew) parts = newParts();
      drawPart(parts.title, [list.waiting.map((row) => row.subject)], () => h("h1", {}, approvalsTitle(list)));
      drawPart(parts.queue, [list.waiting, one?.id], () => drawQueue(list.waiting, one, waitingLine));
      drawPart(parts.decided, [list.decided, list.counts, one?.id], () => drawDecided(list, one));
      drawPart(parts.one, [one && { ...one, now: 0 }, list.waiting.map((row) => row.id), session.may_act], () => (one ? drawApproval(one, list) : nothingWaits()));
      drawClocks(parts.box, list.now);
      return isNew ? [parts.head, parts.box] : null;
    },
    // The same once more, after a choice on the page.
    redraw: () => {
      parts.one.drawnFrom = "";
      keepPlace(parts.box, () => page.draw(last));
    },
  };
  return page;
}

function newParts() {
  const title = h("div", { class: "grow" });
  const queue = h("nav", { "aria-label": "Waiting" });
  const one = h("section", { "aria-label": "The one that is looked at" });
  const decided = h("nav", { "aria-label": "Decided" });
  return {
    title, queue, one, decided,
    head: h("div", { class: "titleline" }, title, h("p", { class: "right k3" }, "Nothing runs until you decide. What is not decided in time is refused.")),
    box: h("div", { class: "appr" }, queue, one, decided),
  };
}

function drawPart(node, facts, draw) {
  const key = JSON.stringify(facts);
  if (node.drawnFrom === key) return;
  node.drawnFrom = key;
  replace(node, draw());
}

function approvalsTitle(list) {
  if (list.state !== "open") return "No store of approvals is open";
  const calls = list.waiting.filter((row) => row.subject === "call").length;
  const proposals = list.waiting.length - calls;
  if (!list.waiting.length) return "Nothing waits for you";
  const what = [calls ? countOf(calls, "call") : "", proposals ? countOf(proposals, "proposal") : ""].filter(Boolean).join(" and ");
  return `${list.is_cut ? "More than " : ""}${what} ${list.waiting.length === 1 ? "waits" : "wait"} for your yes or no`;
}

function noStore(list) {
  return [
    h("h1", {}, approvalsTitle(list)),
    h("div", { class: "empty" },
      list.state === "missing"
        ? h("p", {}, "There is no file ", code(list.place), " yet. Your application makes it when it opens its store.")
        : h("p", {}, "Name the store that your application gives to its runs, and start the gateway again:"),
      list.state === "missing" ? null : [
        block("surecall serve --approvals .surecall/approvals.db", "On the command line"),
        h("p", {}, "or in the file of settings"),
        block('[approvals]\nstore = ".surecall/approvals.db"', "In the file of settings"),
        h("p", { class: "k3" }, "It is a file, or the address of a PostgreSQL server."),
      ],
    ),
  ];
}

function nothingWaits() {
  return h("p", { class: "k3" }, "When a call needs an approval, or facts are proposed, it is shown here.");
}

function drawQueue(rows, one, lineOf) {
  return rows.length ? h("ul", { class: "queue" }, rows.map((row) => queueItem(row, one, lineOf(row)))) : null;
}

function drawDecided(list, one) {
  if (!list.decided.length) return null;
  const counts = [...DECIDED_WORDS].filter(([outcome]) => list.counts[outcome]).map(([outcome, [, , word]]) => `${whole(list.counts[outcome])} ${word}`);
  return [
    h("h2", {}, "Decided last"),
    drawQueue(list.decided, one, decidedLine),
    h("p", { class: "caption" }, `Lately: ${counts.join(", ")}.`),
  ];
}

function queueItem(row, one, line) {
  return h("li", { "data-row": row.id }, link(`/ui/approvals/${encodeURIComponent(row.id)}`, { id: `q-${row.id}`, "aria-current": row.id === one?.id ? "true" : null },
    h("b", {}, approvalTitle(row)),
    h("span", { class: "preview mono" }, seen(row.preview)),
    h("span", { class: "ends" }, line),
  ));
}

function approvalTitle(row) {
  return row.subject === "facts" ? ["Change ", countOf(row.size, "fact"), " of ", name(row.name)] : ["Run ", name(row.name)];
}

function waitingLine(row) {
  return [h("span", { "data-since": row.created_at }), h("span", { "data-until": row.expires_at })];
}

function decidedLine(row) {
  const [tone, shape, word] = DECIDED_WORDS.get(row.outcome) ?? ["quiet", "skip", row.outcome];
  return [mark(tone, shape, word), row.decided_by ? h("span", {}, name(row.decided_by)) : null];
}

// Times are counted from the clock of the gateway, which decides about them.
function drawClocks(box, now) {
  for (const node of box.querySelectorAll("[data-since]")) node.textContent = `${ago(now - Number(node.dataset.since))} ago`;
  for (const node of box.querySelectorAll("[data-until]")) {
    const left = Number(node.dataset.until) - now;
    const text = left > 0 ? `ends in ${ago(left)}` : "has ended";
    replace(node, left > HURRY_S ? text : mark("caution", "warn", text));
  }
}
