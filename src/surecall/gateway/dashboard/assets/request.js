// One request, from what came to what went out.

const FORMATS = new Map([
  ["chat_completions", "chat completions"],
  ["responses", "responses"],
  ["messages", "messages"],
  ["gemini", "Gemini"],
]);
const PATHS = new Map([
  ["chat_completions", "/v1/chat/completions"],
  ["responses", "/v1/responses"],
  ["messages", "/v1/messages"],
]);
const STEP_WORDS = new Map([
  ["repair", "Repair the reply"],
  ["coerce", "Fit arguments to their schema"],
  ["reask", "Ask again with the exact errors"],
  ["force", "Ask for the tool by name"],
  ["taught", "Teach a text format"],
]);

function requestPage(id) {
  return {
    title: "Request",
    everyMs: 0,
    load: () => ask(`/ui/data/requests/${encodeURIComponent(id)}`),
    draw: drawRequest,
  };
}

function drawRequest(data) {
  document.title = `${data.outcome} ${data.id.slice(-6)} · surecall gateway`;
  return [
    h("p", { class: "crumbs" }, link("/ui", {}, "Overview"), " › ", link(remembered().from, { id: "up" }, "Requests"), " › ", code(data.id)),
    h("div", { class: "titleline" }, h("h1", {}, requestTitle(data)), requestActs(data)),
    h("p", { class: "kicker" },
      timeNode(data.time, { withSeconds: true }),
      h("span", {}, name(data.model || "no model"), data.upstream ? [" via ", name(data.upstream)] : ""),
      h("span", {}, `${FORMATS.get(data.client_protocol) ?? data.client_protocol}${data.stream ? ", streamed" : ""}`),
      h("span", {}, countOf(data.upstream_requests, "upstream request")),
      data.key_id ? h("span", {}, "key ", code(data.key_id)) : null,
    ),
    h("p", { id: "acted", class: "acted", role: "status" }),
    h("div", { class: "split" }, drawLane(data), drawAside(data)),
  ];
}

function requestTitle(data) {
  const got = data.calls ? `the client got ${countOf(data.calls, "valid call")}` : "the client got text";
  const times = data.steps === 1 ? "once" : data.steps === 2 ? "twice" : `${data.steps} times`;
  const reason = data.codes[0] ?? data.error_code;
  if (data.client_closed) return "The client left before its answer was complete";
  if (data.outcome === "clean") return data.calls ? `Clean: ${got}` : "Clean: text without a call";
  if (data.outcome === "repaired") return `Repaired: ${got}`;
  if (data.outcome === "reasked") return `Re-asked${data.steps ? ` ${times}` : ""}${data.changes.length ? ", then repaired" : ""}: ${got}`;
  if (data.outcome === "unrepaired") return [data.calls ? `Unrepaired: the client got ${countOf(data.calls, "call")}` : "Unrepaired: the client got text", reason ? [", ", code(reason)] : ""];
  if (data.outcome === "refused") return ["Refused: nothing was run", reason ? [", ", code(reason)] : ""];
  if (data.outcome === "failed") return ["No reply", reason ? [": ", code(reason)] : ""];
  return "Passed on untouched";
}

function requestActs(data) {
  return h("div", { class: "right acts" },
    PATHS.has(data.client_protocol) && data.request_body !== null ? copyButton("Copy as curl", () => curlOf(data)) : null,
    button([icon("run"), "Send again"], (event) => sendAgain(event, data), { id: "replay", disabled: !!data.no_replay || !session.may_act, title: data.no_replay || (session.may_act ? null : "Only a key with the role admin may") }),
    button([icon("save"), "Save as eval case"], () => openCase(data), { id: "save-case", class: "main", disabled: !!data.no_case, title: data.no_case || null }),
    data.no_case || data.no_replay ? h("p", { class: "caption" }, [...new Set([data.no_replay, data.no_case].filter(Boolean))].join(" ")) : null,
  );
}

function curlOf(data) {
  const quoted = data.request_body.replaceAll("'", "'\\''");
  return `curl ${location.origin}${PATHS.get(data.client_protocol)} -H 'content-type: application/json' -H "authorization: Bearer $API_KEY" -d '${quoted}'`;
}

async function sendAgain(event, data) {
  const pressed = event.currentTarget;
  const acted = document.getElementById("acted");
  pressed.disabled = true;
  replace(acted, "Sending …");
  try {
    const sent = await act(`/ui/data/requests/${encodeURIComponent(data.id)}/replay`);
    replace(acted, mark("ok", "ok", "Sent. "), `The client would have got ${sent.status}. `, link(`/ui/requests/${encodeURIComponent(sent.id)}`, { id: "sent" }, "Show what became of it"), sent.was_masked ? " Secrets had been removed from it, so it is not the same to the letter." : "");
  } catch (error) {
    replace(acted, mark("stop", "stop", "Not sent. "), error.message);
  }
  pressed.disabled = false;
}

function openCase(data) {
  const help = document.getElementById("help");
  const expected = data.expected_calls;
  const field = h("textarea", { id: "calls", rows: 10, spellcheck: "false", class: "mono" });
  field.value = JSON.stringify(expected ?? [], null, 2);
  const problem = h("p", { class: "problem", role: "alert" });
  const download = link("#", { class: "button main", id: "download", download: `case-${data.id}.json` }, "Save");
  download.addEventListener("click", (event) => {
    try {
      const calls = JSON.stringify(JSON.parse(field.value));
      download.href = `/ui/data/requests/${encodeURIComponent(data.id)}/case?${new URLSearchParams({ calls })}`;
      problem.textContent = "";
    } catch {
      event.preventDefault();
      problem.textContent = "The expected calls are not JSON.";
    }
  });
  replace(
    help,
    h("h2", { id: "help-title" }, "Save as eval case"),
    h("p", {}, expected === null ? "The reply was not kept. Which calls are right? An empty list means that none may be made." : "These calls were delivered. Change them if others are right; an empty list means that none may be made."),
    h("label", { for: "calls" }, "Expected calls"),
    field,
    problem,
    h("p", { class: "caption" }, "Run it with ", code(`surecall eval --suite custom:case-${data.id}.json`)),
    h("div", { class: "acts" }, download, button("Close", () => help.close())),
  );
  help.showModal();
}

function drawLane(data) {
  const cameFrom = [size(data.request_bytes), data.request_body === null ? "body not kept" : ""].filter(Boolean).join(", ");
  const came = [`${countOf(data.upstream_requests, "reply", "replies")} in ${duration(data.upstream_ms)}`, data.completion_tokens ? `${whole(data.completion_tokens)} tokens` : ""].filter(Boolean).join(", ");
  const isWrong = data.defects.length > 0 || data.parse_error !== null;
  return h("ol", { class: "lane" },
    stage("", "in", "What the client sent", cameFrom, data.request_body === null ? null : h("details", {}, h("summary", {}, "Show the request"), bodyBlock(data.request_body, "The request"))),
    data.outcome === "relayed"
      ? stage("", "skip", "Not looked at", "", h("p", {}, "The client asked for that, or it is not a request to a model."))
      : [
          stage(isWrong ? "caution" : "ok", "eye", "What came back", came,
            data.parse_error ? [
              h("p", {}, `Read as ${data.parse_error.mode}: `, seen(data.parse_error.error)),
              data.parse_error.snippet ? block(data.parse_error.snippet, "The start of what could not be read") : null,
            ] : null,
            data.defects.length ? h("ul", { class: "defects" }, data.defects.map((defect) => h("li", {}, h("code", {}, defect.code), h("span", {}, seen(defect.message)), defect.place ? h("span", { class: "where" }, name(defect.place)) : null))) : null,
            isWrong ? null : h("p", {}, data.outcome === "failed" ? "Nothing that could be read." : data.changes.length ? "It was usable only with the changes below." : "Nothing was wrong with it."),
          ),
          data.changes.length
            ? stage("changed", "changed", "What surecall changed", countOf(data.changes.length, "receipt"), receiptRows(data.changes))
            : stage("quiet", "skip", "Changed nothing", ""),
        ],
    stage(data.outcome === "refused" || data.outcome === "failed" ? "stop" : "ok", "out", "What the client got", [`status ${data.status}`, data.calls ? countOf(data.calls, "call") : "", size(data.reply_bytes)].filter(Boolean).join(", "),
      data.error_code ? h("p", {}, "It was told ", code(data.error_code), ".") : null,
      data.reply_body === null
        ? h("p", { class: "k3" }, data.keeps_bodies && data.stream ? "Bodies of streams are not kept." : "The body was not kept.")
        : bodyBlock(data.reply_body, "The reply"),
      h("p", { class: "k3" }, "Header: ", h("code", {}, `x-surecall-outcome: ${data.outcome}; x-surecall-receipts: ${data.changes.length}`)),
    ),
  );
}

function drawAside(data) {
  const total = data.upstream_ms + data.added_ms;
  const { steps_taken: steps, attempts } = data;
  const like = data.like;
  return h("aside", { class: "aside" },
    h("section", {}, h("h2", {}, "Timing"), waterfall([
      { label: "upstream", ms: data.upstream_ms, fill: data.outcome === "reasked" ? "f-caution" : "f-up" },
      { label: "surecall", ms: data.added_ms, fill: "f-changed" },
    ], total), h("p", { class: "caption" },
      `surecall took ${duration(data.added_ms)} of it. `,
      data.first_byte_ms === null ? "" : `The first byte left after ${duration(data.first_byte_ms)}. `,
      data.outcome === "reasked" ? "Amber: the upstream was asked more than once. " : "",
      total && data.added_ms / total < 0.01 ? `Steps under 1${THIN}% are drawn 3 px wide.` : "",
    )),
    h("section", {}, h("h2", {}, "What was tried"), steps.length || attempts.length || data.retries ? h("ul", { class: "tried" },
      attempts.map((item) => h("li", {}, icon(item.outcome === "answered" ? "ok" : "stop"), h("span", {}, name(item.upstream), " ", name(item.model),
        h("small", {}, item.outcome, item.error ? [" with ", code(item.error)] : "", item.ms ? ` after ${duration(item.ms)}` : "")))),
      steps.map((step) => {
        const helped = step.outcome === "rescued";
        return h("li", {}, icon(helped ? "ok" : "stop"), h("span", { class: helped ? "" : "k2" }, STEP_WORDS.get(step.name) ?? name(step.name),
          h("small", {}, helped ? "this gave what was delivered" : seen(step.outcome), step.requests ? `, ${countOf(step.requests, "request")}` : "")));
      }),
      data.retries ? h("li", {}, icon("again"), h("span", {}, `Sent again ${countOf(data.retries, "time")}`, h("small", {}, "before a byte of an answer came"))) : null,
    ) : h("p", { class: "k3" }, "Nothing was needed.")),
    h("section", {}, h("h2", {}, "Asked how"), facts([
      ["asked for", name(data.model_asked || "–")],
      ["answered by", name(data.model_answered || "–")],
      ["tools", data.strategy ? code(data.strategy) : "–"],
      ["formats", `${FORMATS.get(data.client_protocol) ?? "–"} → ${FORMATS.get(data.upstream_protocol) ?? "–"}`],
      ["tokens", data.prompt_tokens || data.completion_tokens ? `${whole(data.prompt_tokens)} in${data.cached_tokens ? ` (${whole(data.cached_tokens)} from a cache)` : ""}, ${whole(data.completion_tokens)} out` : "not reported"],
      data.cost ? ["cost", money(data.cost)] : null,
      data.probe ? ["probe", data.probe.ok ? "answered" : [code(data.probe.error ?? "failed")]] : null,
    ])),
    like ? h("section", {}, h("h2", {}, "Like this one"), h("p", {}, `${countOf(like.others, "other")} in the hour before with `, code(like.code), like.upstream ? [" from ", name(like.upstream)] : "", ". ", like.others ? link(`/ui/requests?${new URLSearchParams({ since: like.since.toFixed(0), until: String(Math.ceil(like.until)), code: like.code, ...(like.upstream ? { upstream: like.upstream } : {}) })}`, {}, "Show them") : "")) : null,
    h("section", {}, h("h2", {}, "Kept for"), h("p", {}, data.max_age_days === null ? "As long as there is room" : `${data.max_age_days} days`, data.keeps_bodies ? ", with bodies; keys are removed from them." : ", without bodies.")),
  );
}
