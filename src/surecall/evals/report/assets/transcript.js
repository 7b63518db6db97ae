// One run, turn by turn; in each call the lane of what was changed.

const LONG_TEXT_LINES = 6;

function transcriptView(trial, body) {
  if (!body) return [
    notice("", "The transcript of this trial is not in this file: it was written without it. To have it: write the report with all bodies. What was counted is below."),
    callFacts(trial),
  ];
  const calls = body.transcript.reduce((sum, turn) => sum + (turn.calls?.length ?? 0), 0);
  return [
    givenView(body.request),
    part("Done by the model", `${countOf(body.transcript.length, "turn")}, ${countOf(calls, "call")}`),
    body.transcript.map((turn) => [
      turn.said?.length ? h("div", { class: "given" }, turn.said.map(givenMessage)) : null,
      turnView(trial, turn),
    ]),
    part("Left behind", "state and answer"),
    h("div", { class: "left" },
      h("h3", {}, "State"), block(written(body.state), "State"),
      h("h3", {}, "Answer"),
      trial.text ? block(trial.text, "Answer") : h("p", { class: "k3" }, trial.code ? ["None: ", code(trial.code), "."] : "An empty text.")),
    foldable("What was in force, and where each value came from", configView(body.config)),
  ];
}

function part(title, words) {
  return h("div", { class: "part" }, h("h2", {}, title), h("span", { class: "k3" }, words));
}

function written(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
}

function foldable(summary, ...children) {
  return h("details", { class: "fold" }, h("summary", {}, summary), ...children);
}

// What the scenario gave before the model's first turn, its earlier calls included

function givenView(request) {
  const tools = request.tools ?? [];
  const messages = request.messages ?? [];
  return [
    part("Given by the scenario", `${countOf(messages.length + (request.system ? 1 : 0), "message")}, ${countOf(tools.length, "tool")}`),
    h("div", { class: "given" },
      request.system ? message("system", longText(request.system, "System text")) : null,
      messages.map(givenMessage),
      tools.length ? message("tools", foldable(tools.map((tool) => tool.name).join(", "), block(written(tools), "Tools"))) : null),
  ];
}

function message(role, ...children) {
  return h("div", { class: "msg" }, h("span", { class: "role" }, name(role)), h("div", {}, ...children));
}

function givenMessage(one) {
  const role = one.role ?? "message";
  const calls = one.calls ?? one.tool_calls ?? [];
  if (role === "tool") return message("tool", toolText(written(one.content ?? "")));
  return message(role,
    one.content ? longText(written(one.content), "Message") : calls.length ? null : h("p", { class: "k3" }, "An empty message."),
    calls.map((call) => {
      const fn = call.function ?? call;
      return h("p", { class: "old" }, h("span", { class: "count" }, "call"), " ",
        h("span", { class: "mono" }, seen(`${fn.name ?? ""}(${inline(fn.raw ?? fn.arguments ?? "")})`)),
        call.state && call.state !== "whole" ? [" ", mark("stop", "stop", call.state)] : null);
    }));
}

// A result as it was given: refused ones say why.
function toolText(text) {
  let found = null;
  try {
    found = JSON.parse(text);
  } catch {
    // Not every tool answers in JSON.
  }
  const tone = found?.ok === false ? mark("stop", "stop", "refused") : found?.ok === true ? mark("ok", "ok", "ok") : null;
  return [tone ? h("p", {}, tone) : null, longText(text, "Result")];
}

function longText(text, label) {
  const lines = text.split("\n").length;
  if (lines <= LONG_TEXT_LINES && text.length <= 600) return h("pre", { "aria-label": label }, seen(text));
  return foldable([h("bdi", {}, seen(text.slice(0, 90))), " … ", h("span", { class: "k3" }, countOf(lines, "line"))], block(text, label));
}

// Done by the model

function turnView(trial, turn) {
  const path = ["trial", String(trial.index), "turn", String(turn.turn)];
  const results = [...(turn.results ?? [])];
  const text = replyText(turn.raw);
  const calls = turn.calls ?? [];
  return h(
    "article",
    { class: "turn", id: `turn-${turn.turn}`, tabindex: "-1", "data-turn": true, "data-path": path.join("/"), "aria-label": `Turn ${turn.turn + 1}` },
    h("header", {}, h("h3", {}, link(linkTo(path), { class: "plain" }, `Turn ${turn.turn + 1}`)), turnWords(turn).map((word) => h("span", {}, word)),
      h("span", {}, calls.length ? [countOf(calls.length, "call"), ": ", calls.map((call, i) => [i ? ", " : "", code(call.name ?? "")])] : "no call: the answer")),
    h("div", { class: "body" },
      (turn.failures ?? []).map((failure) => h("p", {}, mark("stop", "stop", "request failed"), " ", code(failure.code ?? ""), ` ${failure.status ?? ""} `, h("bdi", {}, seen(failure.message ?? "")))),
      text ? block(text, "Reply") : null,
      (turn.defects ?? []).map((defect) => h("p", {}, mark("caution", "warn", "defect"), " ", code(defect.code), " ", h("bdi", {}, seen(defect.message ?? "")), defect.place ? [" at ", code(defect.place)] : null)),
      turn.receipts?.length ? [h("h4", {}, "Changed outside the calls"), receiptRows(turn.receipts)] : null,
      calls.map((call, i) => callView(path, call, i, takeResult(results, call))),
      (turn.ignored ?? []).map((call) => h("p", { class: "k2" }, mark("quiet", "skip", "ignored call"), " ", code(call.name ?? ""), " ", h("span", { class: "mono" }, seen(inline(call.raw))))),
      results.length ? h("ol", { class: "lane" }, results.map((result) => resultStage(result))) : null,
      turn.raw === undefined ? null : foldable("Reply as it arrived", block(written(turn.raw), "Reply as it arrived"))),
  );
}

function turnWords(turn) {
  return [
    turn.elapsed_ms === undefined ? null : duration(turn.elapsed_ms, { fine: true }),
    turn.usage ? `${whole(turn.usage.input_tokens ?? 0)} + ${whole(turn.usage.output_tokens ?? 0)} tokens` : null,
    turn.finish_reason ? ["finish ", code(turn.finish_reason)] : null,
    turn.mode && turn.mode !== "native" ? name(turn.mode) : null,
    turn.forced_tool ? ["asked for ", code(turn.forced_tool)] : null,
    turn.attempts ? countOf(turn.attempts, "attempt") : null,
    turn.answered_by ? ["by ", name(turn.answered_by)] : null,
  ].filter(Boolean);
}

// The words of a reply, in whichever wire format it came.
function replyText(raw) {
  if (!raw || typeof raw !== "object") return typeof raw === "string" ? raw : "";
  const parts = Array.isArray(raw.content) ? raw.content
    : Array.isArray(raw.parts) ? raw.parts
    : Array.isArray(raw.output) ? raw.output.flatMap((item) => item?.content ?? []) : null;
  if (!parts) return typeof raw.content === "string" ? raw.content : "";
  return parts.map((one) => (typeof one === "string" ? one : one?.text)).filter((text) => typeof text === "string").join("\n");
}

function takeResult(results, call) {
  const at = results.findIndex((result) => result.call_id === call.id);
  return at < 0 ? null : results.splice(at, 1)[0];
}

// The lane: received, changed, validated, executed, result

function callView(turnPath, call, place, result) {
  const path = [...turnPath, "call", String(place)];
  const id = path.slice(2).join("-");
  const receipts = call.receipts ?? [];
  const lossy = receipts.filter((receipt) => receipt.lossless === false).length;
  const errors = call.errors ?? [];
  const unread = call.arguments === undefined || call.arguments === null;
  const isClean = !receipts.length && !errors.length && !unread;
  return h(
    "div",
    { class: "call", id, tabindex: "-1", "data-turn": true, "data-path": path.join("/"), role: "group", "aria-label": `Call of ${call.name ?? ""}` },
    h("div", { class: "callhead" }, h("h3", {}, link(linkTo(path), { class: "plain" }, "Call of ", name(call.name ?? ""))), copyLink(path)),
    stepStrip(call, receipts, errors, unread, result),
    h("ol", { class: "lane" },
      stage("", "in", "Received", [name(call.format ?? "tool_calls"), call.arguments_bytes === undefined ? "" : `, ${size(call.arguments_bytes)}`],
        block(written(call.raw), "Arguments as they arrived")),
      receipts.length
        ? stage("changed", "changed", "Changed", `${countOf(receipts.length, "receipt")}, ${lossy ? `${lossy} can lose meaning` : "none can lose meaning"}`, receiptRows(receipts))
        : stage("quiet", "skip", "Changed nothing", ""),
      isClean ? null : stage(errors.length || unread ? "stop" : "ok", errors.length || unread ? "stop" : "ok", "Validated", errors.length || unread ? "it does not fit" : "the form that ran",
        unread ? h("p", {}, "The arguments could not be read.") : block(`${call.name} ${written(call.arguments)}`, "Final form"),
        call.state && call.state !== "whole" ? h("p", {}, mark("stop", "stop", call.state)) : null,
        errorList(errors)),
      result ? resultStage(result) : stage("quiet", "skip", "No result was kept", "")),
  );
}

// A summary of the lane in one line.
function stepStrip(call, receipts, errors, unread, result) {
  const step = (tone, title, words) => h("li", { class: tone || null }, h("b", {}, title), " ", words);
  const bad = errors.length || unread;
  return h("ol", { class: "steps", "aria-label": "Steps of this call" },
    step("", "Received", call.arguments_bytes === undefined ? "" : size(call.arguments_bytes)),
    step(receipts.length ? "changed" : "", "Changed", receipts.length ? countOf(receipts.length, "receipt") : "nothing"),
    step(bad ? "stop" : "", "Validated", bad ? "does not fit" : "fits"),
    step(result && !result.executed ? "stop" : "", "Executed", result ? (result.executed ? duration(result.elapsed_ms) : "did not run") : "–"),
    step(result && !result.ok ? "stop" : "", "Result", result ? (result.ok ? "ok" : "not ok") : "–"));
}

function resultStage(result) {
  const ran = result.executed ? ["ran", result.elapsed_ms === undefined ? "" : `, ${duration(result.elapsed_ms)}`] : ["did not run"];
  return [
    stage(result.executed ? "ok" : "stop", "run", result.executed ? "Executed" : "Not executed", ran),
    stage(result.ok ? "ok" : "stop", "out", "Result", [result.ok ? "ok" : "not ok", result.replaced ? ", replaced because of a limit" : "", ", as the model read it"],
      errorList(result.envelope?.errors),
      result.text ? bodyBlock(result.text, "Result as the model read it") : null,
      result.envelope ? foldable("Envelope", block(written(result.envelope), "Envelope")) : null),
  ];
}

function errorList(errors) {
  if (!errors?.length) return null;
  return h("ul", { class: "errors" }, errors.map((error) => h("li", {},
    code(error.code ?? ""), " ", error.path ? [code(error.path), " "] : null,
    h("bdi", {}, seen(error.message ?? "")),
    error.hint ? h("span", { class: "k3" }, " ", h("bdi", {}, seen(error.hint))) : null)));
}

function configView(config) {
  const rows = (title, values, origins) => {
    const from = new Map(Object.entries(origins ?? {}));
    return values ? [h("h3", {}, title), table(title, "plain", ["Name", "Value", "From"],
      Object.entries(values).map(([key, value]) => ({ cells: [name(key), code(inline(value)), name(String(from.get(key) ?? ""))] })))] : null;
  };
  const { options, origins, capabilities, capability_origins, ...rest } = config;
  return [block(written(rest), "Strategy"), rows("Options", options, origins), rows("Capabilities", capabilities, capability_origins)];
}

// Without a transcript: what was counted of each call

function callFacts(trial) {
  if (!trial.calls.length) return h("p", { class: "k3" }, "No call was made.");
  const yes = (value) => (value === null ? "–" : value ? "yes" : "no");
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Calls" }, table(
    "Calls", "plain",
    ["Call", ["Turn", "num"], "Format", ["Bytes", "num"], "Fitted as it arrived", "Fitted after", "As expected", "Ran", "Ok", "Rules", "Errors"],
    trial.calls.map((call) => ({ cells: [
      name(call.name), whole(call.turn + 1), name(call.format), whole(call.bytes), yes(call.validBefore), yes(call.validAfter), yes(call.exact), yes(call.executed), yes(call.ok),
      name(call.rules.join(", ")), name([...call.errorCodes, ...call.errorKinds].join(", ")),
    ] })),
  ));
}
