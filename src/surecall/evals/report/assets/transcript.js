// One run, turn by turn; in each call the lane of what was changed.

function transcriptView(trial, body) {
  if (!body) return [
    h(
      "p",
      { class: "notice" },
      "The transcript of this trial is not in this file: it was written without it. What was counted is below.",
    ),
    callFacts(trial),
  ];
  return [
    requestView(body.request),
    body.transcript.map((turn) => turnView(trial, turn)),
    h("h2", {}, "What was left behind"),
    h(
      "div",
      { class: "pair" },
      h("div", {}, h("h3", {}, "State"), block(written(body.state), "State")),
      h(
        "div",
        {},
        h("h3", {}, "Answer"),
        trial.text ? block(trial.text, "Answer") : nothing(
          trial.code ? `None: ${trial.code}.` : "An empty text.",
        ),
      ),
    ),
    foldable("What was in force, and where each value came from", false, configView(body.config)),
  ];
}

function requestView(request) {
  const tools = request.tools ?? [];
  return h(
    "section",
    { class: "turn asked" },
    h("h2", {}, "What was asked"),
    request.system ? [h("h3", {}, "System"), block(request.system, "System text")] : null,
    (request.messages ?? []).map(
      (message) => [
        h("h3", {}, message.role ?? "message"),
        block(written(message.content ?? message), "Message"),
      ],
    ),
    tools.length ? foldable(
      `${plural(tools.length, "tool")}: ${tools.map((tool) => tool.name).join(", ")}`,
      false,
      block(written(tools), "Tools"),
    ) : null,
  );
}

function turnView(trial, turn) {
  const path = ["trial", String(trial.index), "turn", String(turn.turn)];
  const results = [...(turn.results ?? [])];
  const text = replyText(turn.raw);
  return h(
    "section",
    {
      class: "turn",
      id: `turn-${turn.turn}`,
      tabindex: "-1",
      "data-stop": true,
      "data-path": path.join("/"),
      "aria-label": `Turn ${turn.turn}`,
    },
    h(
      "div",
      { class: "turn-head" },
      h("h2", {}, link(linkTo(path), { class: "quiet" }, `Turn ${turn.turn}`)),
      h("span", { class: "muted" }, turnWords(turn)),
      copyLink(path),
    ),
    (turn.failures ?? []).map(
      (failure) => h(
        "p",
        { class: "trouble" },
        badge("fail", "✗ request failed"),
        " ",
        code(failure.code ?? ""),
        ` ${failure.status ?? ""} `,
        h("bdi", {}, failure.message ?? ""),
      ),
    ),
    text ? block(text, "Reply") : null,
    (turn.defects ?? []).map(
      (defect) => h(
        "p",
        { class: "defect" },
        badge("plain", "defect"),
        " ",
        code(defect.code),
        " ",
        h("bdi", {}, defect.message ?? ""),
        defect.place ? [" at ", code(defect.place)] : null,
      ),
    ),
    turn.receipts?.length ? [
      h("h3", {}, "Changed outside the calls"),
      h("ol", { class: "lane" }, turn.receipts.map(receiptStep)),
    ] : null,
    (turn.calls ?? []).map((call, i) => callView(path, call, i, takeResult(results, call))),
    (turn.ignored ?? []).map(
      (call) => h(
        "p",
        { class: "muted" },
        badge("plain", "ignored call"),
        " ",
        code(call.name ?? ""),
        " ",
        code(inline(call.raw)),
      ),
    ),
    results.map((result) => h("ol", { class: "lane" }, resultStep(result))),
    turn.raw === undefined ? null : foldable(
      "Reply as it arrived",
      false,
      block(written(turn.raw), "Reply as it arrived"),
    ),
  );
}

function turnWords(turn) {
  return [
    turn.finish_reason ? `finish ${turn.finish_reason}` : null,
    turn.mode && turn.mode !== "native" ? turn.mode : null,
    turn.forced_tool ? `asked for ${turn.forced_tool}` : null,
    turn.elapsed_ms === undefined ? null : duration(turn.elapsed_ms),
    turn.attempts ? plural(turn.attempts, "attempt") : null,
    turn.answered_by ? `by ${turn.answered_by}` : null,
    turn.usage ? `${count(turn.usage.input_tokens ?? 0)} + ${count(turn.usage.output_tokens ?? 0)} tokens` : null,
  ]
    .filter(Boolean)
    .join(" · ");
}

// The words of a reply, in whichever wire format it came.
function replyText(raw) {
  if (!raw || typeof raw !== "object") return typeof raw === "string" ? raw : "";
  const parts = Array.isArray(raw.content) ? raw.content : Array.isArray(raw.parts) ? raw.parts : Array.isArray(raw.output) ? raw.output.flatMap(
    (item) => item?.content ?? [],
  ) : null;
  if (parts) return parts.map(
    (part) => (typeof part === "string" ? part : part?.text),
  ).filter((text) => typeof text === "string").join("\n");
  return typeof raw.content === "string" ? raw.content : "";
}

function takeResult(results, call) {
  const at = results.findIndex((result) => result.call_id === call.id);
  return at < 0 ? null : results.splice(at, 1)[0];
}

// The lane: received, each change, final form, result

function callView(turnPath, call, place, result) {
  const path = [...turnPath, "call", String(place)];
  const receipts = call.receipts ?? [];
  const lossy = receipts.filter((receipt) => receipt.lossless === false).length;
  const words = receipts.length ? `${plural(receipts.length, "change")}, ${lossy ? `${lossy} lossy` : "all lossless"}` : "nothing changed";
  return h(
    "article",
    {
      class: "call",
      id: path.slice(2).join("-"),
      tabindex: "-1",
      "data-stop": true,
      "data-path": path.join("/"),
      "aria-label": `Call of ${call.name ?? ""}`,
    },
    h(
      "div",
      { class: "turn-head" },
      h(
        "h3",
        {},
        link(linkTo(path), { class: "quiet" }, "Call of ", h("bdi", {}, call.name ?? "")),
      ),
      h("span", { class: "muted" }, words),
      copyLink(path),
    ),
    h(
      "ol",
      { class: "lane" },
      step(
        "received",
        "Received",
        [
          badge("plain", call.format ?? "tool_calls"),
          call.arguments_bytes === undefined ? null : ` ${bytes(call.arguments_bytes)}`,
        ],
        block(written(call.raw), "Arguments as they arrived"),
      ),
      receipts.map(receiptStep),
      step(
        "final",
        "Final form",
        [call.state && call.state !== "whole" ? badge("fail", call.state) : null],
        call.arguments === undefined || call.arguments === null ? nothing("The arguments could not be read.") : block(
          `${call.name} ${written(call.arguments)}`,
          "Final form",
        ),
        errorList(call.errors),
      ),
      result ? resultStep(result) : step(
        "result none",
        "Result",
        [],
        nothing("No result was kept."),
      ),
    ),
  );
}

function step(kind, title, notes, ...content) {
  return h(
    "li",
    { class: kind },
    h("div", { class: "step-head" }, h("strong", {}, title), " ", notes),
    ...content,
  );
}

function receiptStep(receipt) {
  const lossless = receipt.lossless !== false;
  return h(
    "li",
    { class: lossless ? "receipt" : "receipt lossy" },
    h(
      "div",
      { class: "step-head" },
      h("strong", {}, code(receipt.rule ?? "")),
      " at ",
      code(receipt.place ?? ""),
      " ",
      lossless ? badge("pass", "lossless") : badge("fail", "lossy"),
    ),
    h(
      "div",
      { class: "change" },
      h(
        "div",
        {},
        h("span", { class: "muted" }, "before"),
        block(inline(receipt.before), "Before"),
      ),
      h("span", { class: "arrow", "aria-hidden": "true" }, "→"),
      h("div", {}, h("span", { class: "muted" }, "after"), block(inline(receipt.after), "After")),
    ),
    receipt.why ? h("p", { class: "muted" }, h("bdi", {}, receipt.why)) : null,
  );
}

function resultStep(result) {
  return step(
    result.ok ? "result" : "result bad",
    "Result",
    [
      result.ok ? badge("pass", "✓ ok") : badge("fail", "✗ not ok"),
      " ",
      badge("plain", result.executed ? "ran" : "did not run"),
      result.replaced ? [" ", badge("plain", "replaced because of a limit")] : null,
      result.elapsed_ms === undefined ? null : ` ${duration(result.elapsed_ms)}`,
    ],
    errorList(result.envelope?.errors),
    result.text ? block(prettyJson(result.text), "Result as the model read it") : null,
    result.envelope ? foldable(
      "Envelope",
      false,
      block(written(result.envelope), "Envelope"),
    ) : null,
  );
}

function errorList(errors) {
  if (!errors?.length) return null;
  return h(
    "ul",
    { class: "errors" },
    errors.map(
      (error) => h(
        "li",
        {},
        code(error.code ?? ""),
        " ",
        error.path ? [code(error.path), " "] : null,
        h("bdi", {}, error.message ?? ""),
        error.hint ? h("span", { class: "muted" }, " ", h("bdi", {}, error.hint)) : null,
      ),
    ),
  );
}

function prettyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function configView(config) {
  const table = (title, values, origins) => {
    const from = new Map(Object.entries(origins ?? {}));
    return values ? [
      h("h3", {}, title),
      makeTable(
        title,
        [{ title: "Name" }, { title: "Value" }, { title: "From" }],
        Object.entries(values).map(
          ([name, value]) => [name, code(inline(value)), String(from.get(name) ?? "")],
        ),
      ),
    ] : null;
  };
  const { options, origins, capabilities, capability_origins, ...rest } = config;
  return [
    block(written(rest), "Strategy"),
    table("Options", options, origins),
    table("Capabilities", capabilities, capability_origins),
  ];
}

// Without a transcript: what was counted of each call

function callFacts(trial) {
  if (!trial.calls.length) return nothing("No call was made.");
  const yes = (value) => (value === null ? "–" : value ? "yes" : "no");
  return makeTable(
    "Calls",
    [
      { title: "Call" },
      { title: "Turn", numeric: true },
      { title: "Format" },
      { title: "Bytes", numeric: true },
      { title: "Fitted as it arrived" },
      { title: "Fitted after" },
      { title: "As expected" },
      { title: "Ran" },
      { title: "Ok" },
      { title: "Rules" },
      { title: "Errors" },
    ],
    trial.calls.map(
      (call) => [
        h("bdi", {}, call.name),
        call.turn,
        call.format,
        count(call.bytes),
        yes(call.validBefore),
        yes(call.validAfter),
        yes(call.exact),
        yes(call.executed),
        yes(call.ok),
        call.rules.join(", "),
        [...call.errorCodes, ...call.errorKinds].join(", "),
      ],
    ),
  );
}
