// Proposed facts: one a row, as they are now and as proposed; only the part that differs is marked.

const NUMBER = /^-?[\d.eE+-]+$/;

function drawFacts(one, draft) {
  const { rows, problem, etag, proposed_on: proposedOn, all } = one.facts;
  if (problem) return [notice("stop", "What would change cannot be shown: ", seen(problem)), block(one.payload, "The proposal")];
  const isOpen = one.status === "pending";
  const conflicts = rows.filter((row) => row.is_conflict).length;
  return [
    isOpen && conflicts ? notice("",
      h("b", {}, "The facts changed after this was proposed."), " It was made on ", code(proposedOn), "; now it is ", code(etag), ". ",
      `${conflicts} of ${countOf(rows.length, "fact")} ${conflicts === 1 ? "was" : "were"} changed by both; the present value is kept unless you choose otherwise.`,
    ) : null,
    h("table", { class: "diff", role: "table" },
      h("caption", { class: "hidden" }, "Facts now and as proposed"),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
        ["Fact", `Now, ${etag}`, "", "Proposed"].map((title, i) => h("th", { scope: "col", role: "columnheader", class: ["path", null, "arrow", null][i] }, title)),
      )),
      h("tbody", { role: "rowgroup" }, rows.map((row, i) => factRow(one, row, i, draft, isOpen))),
    ),
    h("details", { class: "talk" }, h("summary", {}, "Show all facts as they are now"), block(all, "All facts")),
  ];
}

function factRow(one, row, i, draft, isOpen) {
  const isConflict = row.is_conflict && isOpen;
  const [before, after] = isConflict ? [plainValue(row.before), plainValue(row.after)] : markDifference(row.before, row.after);
  return h("tr", { role: "row", class: isConflict ? "conflict" : null },
    h("th", { scope: "row", role: "rowheader", class: "path" }, code(row.path), row.reason ? h("span", { class: "note" }, seen(row.reason)) : null),
    h("td", { role: "cell", "data-label": "now" }, before, isConflict ? h("span", { class: "note" }, sinceThen(row)) : null),
    h("td", { role: "cell", class: "arrow", "aria-hidden": "true" }, "→"),
    h("td", { role: "cell", "data-label": "proposed" }, after, isOpen && session.may_act && (row.is_conflict || draft.isEditing) ? chooser(one, row, i, draft) : null),
  );
}

function sinceThen(row) {
  const then = row.then === null ? "Not there when proposed" : [h("span", { class: "mono" }, seen(row.then)), " when proposed"];
  return row.changed_at ? [then, "; changed by ", name(row.changed_by), " at ", timeNode(row.changed_at)] : then;
}

function choiceOf(row, draft) {
  return draft.choices.get(row.path) ?? (row.is_conflict ? "keep" : "take");
}

function chooser(one, row, i, draft) {
  const field = h("input", { id: `value-${i}`, class: "mono", "aria-label": `Value for ${row.path}, as JSON`, spellcheck: "false", autocomplete: "off" });
  field.value = draft.values.get(row.path) ?? row.after;
  field.hidden = choiceOf(row, draft) !== "other";
  field.addEventListener("input", () => draft.values.set(row.path, field.value));
  const words = [["keep", row.before === null ? "leave out" : "keep"], ["take", "take"], ["other", "other …"]];
  const buttons = words.map(([how, word]) => button(word, () => {
    draft.choices.set(row.path, how);
    field.hidden = how !== "other";
    buttons.forEach((node, at) => node.setAttribute("aria-pressed", String(words[at][0] === how)));
    labelApprove(one, draft);
    if (how === "other") field.focus();
  }, { id: `${how}-${i}`, "aria-pressed": String(choiceOf(row, draft) === how) }));
  return [h("span", { class: "seg", role: "group", "aria-label": `Value for ${row.path}` }, buttons), field];
}

function factsBody(one, draft) {
  const chosen = one.facts.rows.filter((row) => choiceOf(row, draft) !== "keep");
  const edited = Object.fromEntries(chosen.filter((row) => choiceOf(row, draft) === "other").map((row) => [row.path, draft.values.get(row.path) ?? row.after]));
  return { seen: one.facts.etag, edited, ...(chosen.length < one.facts.rows.length ? { take: chosen.map((row) => row.path) } : {}) };
}

// Both values as JSON text, whole: a person decides by what they see.
function markDifference(before, after) {
  const mono = (...children) => h("span", { class: "mono value" }, children);
  if (before === null) return [plainValue(null), mono(marked("ins", after))];
  if (before === after) return [mono(seen(before)), mono(seen(after), " ", h("span", { class: "k3" }, "already so"))];
  if (NUMBER.test(before) && NUMBER.test(after)) return [mono(marked("del", before)), mono(marked("ins", after))];
  const [start, end] = wholeWords(before, after, ...commonEnds(before, after));
  const cell = (tag, text) => mono(seen(text.slice(0, start)), marked(tag, text.slice(start, text.length - end)), seen(text.slice(text.length - end)));
  return [cell("del", before), cell("ins", after)];
}

function plainValue(text) {
  return text === null ? h("span", { class: "k3" }, "not there") : h("span", { class: "mono value" }, seen(text));
}

// The same ends, without the halves of words.
function wholeWords(a, b, start, end) {
  const isInside = (text, at) => /[\p{L}\p{N}]/u.test(text[at - 1] ?? "") && /[\p{L}\p{N}]/u.test(text[at] ?? "");
  while (start && (isInside(a, start) || isInside(b, start))) start -= 1;
  while (end && (isInside(a, a.length - end) || isInside(b, b.length - end))) end -= 1;
  return [start, end];
}

function marked(tag, text) {
  return text ? h(tag, {}, h("span", { class: "hidden" }, tag === "del" ? "removed " : "added "), seen(text)) : null;
}
