// One approval: what will happen after a yes, and the decision about it.

const READY_REASONS = new Map([
  ["call", [["Not now", "Do not do this now. Go on without it."], ["Wrong values", "The arguments are wrong. Check them, and ask again."], ["Ask the user first", "Ask the user first."]]],
  ["facts", [["Facts have changed", "The facts have changed. Read them again and propose anew."], ["One change at a time", "Propose one change at a time."], ["Ask the user first", "Ask the user first."]]],
]);
const drafts = new Map();

// What somebody has begun to decide, until it is decided.
function draftOf(one) {
  const etag = one.facts?.etag ?? "";
  const found = drafts.get(one.id) ?? { reason: "", text: one.payload, isEditing: false, choices: new Map(), values: new Map(), etag };
  // A choice was made by what was seen: other facts ask for another choice.
  if (found.etag !== etag) found.choices.clear();
  found.etag = etag;
  drafts.set(one.id, found);
  return found;
}

function drawApproval(one, list) {
  const at = list.waiting.findIndex((row) => row.id === one.id);
  const isOpen = one.status === "pending";
  const draft = draftOf(one);
  return [
    h("div", { class: "head" },
      h("h2", { id: "chosen", tabindex: "-1" }, approvalTitle(one)),
      isOpen ? h("span", { class: "k3", "data-until": one.expires_at }) : null,
      at >= 0 ? h("span", { class: "right k3" }, `${at + 1} of ${list.waiting.length}`) : null,
    ),
    isOpen ? null : drawVerdict(one, list),
    facts(approvalFacts(one)),
    one.run?.doubt ? notice("", h("b", {}, "The call is only likely. "), seen(one.run.doubt)) : null,
    one.facts ? drawFacts(one, draft) : drawArguments(one, draft),
    one.run ? conversation(one.run.messages) : null,
    isOpen ? (session.may_act ? decideForm(one, draft) : h("p", { class: "k3 gap" }, "Only a key with the role ", code("admin"), " may decide.")) : null,
  ];
}

function approvalFacts(one) {
  const { run } = one;
  const how = run?.effect ? [", effect ", code(run.effect)] : "";
  const changes = run && !one.facts ? (run.receipts.length ? `; surecall made ${countOf(run.receipts.length, "change")}` : "; sent clean, no receipt") : "";
  return [
    one.run_id ? ["Asked by", run ? [name(run.model), ", "] : "", "run ", code(one.run_id), run ? `, turn ${run.turn}` : "", " ", h("span", { class: "k3", "data-since": one.created_at })] : ["Asked", h("span", { "data-since": one.created_at })],
    one.subject === "facts" ? ["Workspace", code(one.name)] : ["Call", code(one.name), one.call_id ? [" ", code(one.call_id)] : "", how, changes],
    run?.description && !one.facts ? ["It does", seen(run.description)] : null,
  ];
}

function drawArguments(one, draft) {
  const { receipts, received } = one.run ?? { receipts: [], received: "" };
  const isOpen = one.status === "pending";
  const field = h("textarea", { id: "arguments", class: "mono", rows: Math.min(20, one.payload.split("\n").length + 1), spellcheck: "false", "aria-label": "Arguments to run with, as JSON" });
  field.value = draft.text;
  field.addEventListener("input", () => {
    draft.text = field.value;
    labelApprove(one, draft);
  });
  return [
    receipts.length ? [
      h("h3", { class: "gap" }, "What surecall changed"),
      receiptRows(receipts),
      h("details", {}, h("summary", {}, "Show what the model sent"), block(received, "What the model sent")),
    ] : null,
    h("h3", { class: "gap" }, one.approved === null ? "Arguments" : "Arguments as they were asked for"),
    isOpen && draft.isEditing ? field : block(one.payload, "Arguments"),
    one.approved === null ? null : [h("h3", { class: "gap" }, "Arguments as approved"), block(one.approved, "Arguments as approved")],
  ];
}

function conversation(messages) {
  return h("details", { class: "talk" }, h("summary", {}, "Show the conversation"), h("ul", {}, messages.map((message) => h("li", {},
    h("b", {}, message.role), message.text ? h("pre", {}, seen(message.text)) : null,
    message.calls.map((call) => h("pre", {}, seen(call.name), " ", seen(call.text))),
  ))));
}

function drawVerdict(one, list) {
  const when = one.decided_at ? [" at ", timeNode(one.decided_at)] : "";
  const who = [" by ", h("b", {}, name(one.decided_by || "somebody")), when, "."];
  const isFacts = one.subject === "facts";
  const next = list.waiting.find((row) => row.id !== one.id);
  const said = {
    approved: () => [mark("ok", "ok", isFacts ? "Accepted" : "Approved"), who, isFacts ? " It holds once it is committed." : " It runs once, when the application resumes the run."],
    used: () => [mark("ok", "ok", isFacts ? "Accepted" : "Approved"), who, isFacts ? " It is committed." : " It was used: it cannot run again."],
    denied: () => [mark("stop", "stop", "Denied"), who, " Nothing was run. The model reads: ", h("q", {}, seen(one.reason))],
    expired: () => [mark("caution", "warn", "Out of time."), one.decided_by ? [" Approved", who, " It was not used by "] : " Nobody decided by ", timeNode(one.expires_at), ". Nothing was run."],
  }[one.status]();
  return h("div", { class: "verdict", role: "status" },
    h("p", {}, said),
    isFacts && one.status === "approved" && session.may_act && !one.facts.problem
      ? button("Commit", () => decide(one, "commit", { seen: one.facts.etag }), { id: "commit", class: "main" })
      : null,
    next ? link(`/ui/approvals/${encodeURIComponent(next.id)}`, { id: "next" }, "Next: ", approvalTitle(next)) : null,
    h("p", { class: "problem", id: "problem", role: "alert" }),
  );
}

function decideForm(one, draft) {
  const reason = h("textarea", { id: "reason", rows: 2, "aria-describedby": "reason-hint" });
  reason.value = draft.reason;
  const takeReason = () => {
    draft.reason = reason.value;
    document.getElementById("deny").disabled = !draft.reason.trim();
  };
  reason.addEventListener("input", takeReason);
  const ready = ([word, text]) => button(word, () => {
    reason.value = text;
    takeReason();
    reason.focus();
  }, { class: "quiet" });
  return h("form", { class: "decide", "aria-label": "Your decision", on: { submit: (event) => event.preventDefault() } },
    h("div", {},
      h("label", { for: "reason" }, "Reason"), reason,
      h("p", { class: "caption", id: "reason-hint" }, "Needed for a denial. The model reads it word for word, so say what to do instead."),
      h("div", { class: "reasons" }, READY_REASONS.get(one.subject).map(ready)),
      h("p", { class: "problem", id: "problem", role: "alert" }),
    ),
    h("div", { class: "deciding" },
      button([h("span", { id: "approve-word" }, approveWord(one, draft)), h("kbd", {}, "a")], () => approveIt(one, draft), { id: "approve", class: "main", disabled: !canApprove(one, draft) }),
      button([icon("pen"), draft.isEditing ? "Do not edit" : "Edit", h("kbd", {}, "e")], () => switchEditing(one, draft), { id: "edit", "aria-pressed": String(draft.isEditing), disabled: Boolean(one.facts?.problem) }),
      button(["Deny", h("kbd", {}, "x")], () => decide(one, "deny", { reason: draft.reason }), { id: "deny", disabled: !draft.reason.trim() }),
      h("small", {}, "Your yes holds for exactly the values shown. The model is told what you edited."),
    ),
  );
}

function countEdits(one, draft) {
  if (!one.facts) return draft.isEditing && draft.text.trim() !== one.payload ? 1 : 0;
  return one.facts.rows.filter((row) => choiceOf(row, draft) !== "take").length;
}

function approveWord(one, draft) {
  const edits = countEdits(one, draft);
  return edits ? `Approve with ${countOf(edits, "edit")}` : "Approve";
}

function canApprove(one, draft) {
  return !one.facts || (!one.facts.problem && one.facts.rows.some((row) => choiceOf(row, draft) !== "keep"));
}

function labelApprove(one, draft) {
  replace(document.getElementById("approve-word"), approveWord(one, draft));
  document.getElementById("approve").disabled = !canApprove(one, draft);
}

function switchEditing(one, draft) {
  draft.isEditing = !draft.isEditing;
  if (!draft.isEditing) {
    draft.text = one.payload;
    draft.choices.clear();
  }
  live.page.redraw();
  (document.getElementById("arguments") ?? document.getElementById("edit")).focus();
}

function approveIt(one, draft) {
  const body = one.facts ? factsBody(one, draft) : countEdits(one, draft) ? { arguments: draft.text } : {};
  if (one.run?.effect !== "external" || one.facts) return decide(one, "approve", body);
  const help = document.getElementById("help");
  replace(
    help,
    h("h2", { id: "help-title" }, "Run ", name(one.name), "? It cannot be taken back."),
    block(body.arguments ?? one.payload, "Arguments"),
    h("div", { class: "acts" },
      button("Run it", () => { help.close(); decide(one, "approve", body); }, { class: "main", id: "sure" }),
      button("Not yet", () => help.close()),
    ),
  );
  help.showModal();
}

async function decide(one, how, body) {
  for (const id of ["approve", "deny", "commit"]) document.getElementById(id)?.setAttribute("disabled", "");
  let problem = "";
  try {
    await act(`/ui/data/approvals/${encodeURIComponent(one.id)}/${how}`, body);
    drafts.delete(one.id);
    say({ approve: "Approved.", deny: "Denied.", commit: "Committed." }[how]);
  } catch (error) {
    problem = `${error.message}${error.hint ? ` ${error.hint}` : ""}`;
  }
  const { page } = live;
  await refresh();
  if (page !== live.page) return;
  page.redraw();
  replace(document.getElementById("problem"), seen(problem));
  const places = problem ? ["arguments", "chosen"] : ["commit", "next", "chosen"];
  places.map((id) => document.getElementById(id)).find(Boolean)?.focus();
}
