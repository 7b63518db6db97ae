"""What is tried for a call that cannot be used, in which order, and within which budget."""

import json
from typing import Any

import pytest

from surecall.base.errors import Code, ProviderConnectionError, ProviderStatusError
from surecall.exchange.policy import Delivered, Policy, Sent, Step
from surecall.models.profiles import Capabilities
from surecall.models.profiles.entries import SchemaField

from .scene import (
    ARGUMENTS,
    BAD,
    FORMATS,
    GOOD,
    Script,
    ask,
    calls_in,
    completion,
    seen,
    write_request,
)

RIGHT = [("save", ARGUMENTS)]
NAMED = Capabilities(tool_choices=("auto", "required", "named"))
CUT = completion(("call_1", "save", '{"title": "a"'), finish="length")
LIKELY = completion(("call_1", "save", ""))
TAUGHT = completion(content=f"```json\n{json.dumps({'name': 'save', 'arguments': ARGUMENTS})}\n```")


def names(delivered: Delivered) -> list[tuple[str, str]]:
    """Return the steps that were taken, with what came of each."""
    return [(step.name, step.outcome) for step in delivered.steps]


async def test_a_wrong_call_is_asked_for_again_with_its_errors() -> None:
    """The follow-up carries the model's own reply and the exact errors."""
    script = Script(BAD, GOOD)
    delivered = await ask(script)
    assert delivered.outcome == "reasked"
    assert calls_in("chat_completions", delivered) == RIGHT
    assert delivered.steps == (Step("reask", "ok", 1),)
    assert (delivered.upstream_requests, delivered.usage.total_tokens) == (2, 30)
    first, second = script.asked
    assert second["messages"][: len(first["messages"])] == first["messages"]
    said, result = second["messages"][len(first["messages"]) :]
    assert said["tool_calls"][0]["id"] == result["tool_call_id"] == "call_1"
    assert "/count" in result["content"]
    assert {**second, "messages": 0} == {**first, "messages": 0}
    assert delivered.parse_error is not None
    assert delivered.parse_error.error == Code.ARGUMENTS_INVALID


@pytest.mark.parametrize("name", FORMATS)
async def test_every_format_is_asked_again_and_refused(name: str) -> None:
    """When asking again does not help, the client reads why in its own format."""
    script = Script(BAD)
    delivered = await ask(script, client=name, policy=Policy(steps=("repair", "coerce", "reask")))
    assert (delivered.outcome, delivered.should_retry) == ("refused", False)
    assert delivered.status == 422
    assert delivered.error is not None
    assert delivered.error.code == Code.CALLS_REFUSED
    assert "count" in json.loads(delivered.body)["error"]["message"]
    assert len(script.asked) == 2


async def test_a_good_call_next_to_a_wrong_one_is_made_again() -> None:
    """No call of a reply is delivered without the others."""
    both = completion(("call_1", "ping", "{}"), ("call_2", "save", "{}"))
    script = Script(both, GOOD)
    delivered = await ask(script)
    assert calls_in("chat_completions", delivered) == RIGHT
    results = [item for item in script.asked[1]["messages"] if item["role"] == "tool"]
    assert ["another call" in item["content"] for item in results] == [True, False]


async def test_steps_follow_one_another() -> None:
    """A forced choice comes after the errors, the taught format last."""
    script = Script(BAD, BAD, BAD, TAUGHT)
    delivered = await ask(script, policy=Policy(max_requests=4), capabilities=NAMED)
    assert calls_in("chat_completions", delivered) == RIGHT
    assert names(delivered)[-3:] == [("reask", "failed"), ("force", "failed"), ("taught", "ok")]
    assert script.asked[2]["tool_choice"] == {"type": "function", "function": {"name": "save"}}
    assert "tools" not in script.asked[3]
    assert "# Tools" in script.asked[3]["messages"][0]["content"]


async def test_a_schema_is_used_where_no_choice_can_be_named() -> None:
    """The reply is held to the schema of the tool, and its object is read as the call."""
    held = completion(content=json.dumps({"name": "save", "arguments": ARGUMENTS}))
    script = Script(BAD, held)
    policy = Policy(steps=("repair", "coerce", "force"))
    capabilities = Capabilities(json_schema=True)
    delivered = await ask(script, policy=policy, capabilities=capabilities)
    assert calls_in("chat_completions", delivered) == RIGHT
    assert script.asked[1]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("field", "place"),
    [("structured_outputs", ["json"]), ("guided_json", []), ("json_schema", [])],
)
async def test_a_field_of_the_server_holds_the_arguments_of_the_tool_alone(
    field: SchemaField, place: list[str]
) -> None:
    """The tool is the one that the model had called; a refused field leads to the next step."""
    held = completion(content=json.dumps({"name": "save", "arguments": ARGUMENTS}))
    refused = ProviderStatusError(Code.BAD_REQUEST, f"unknown field {field}", status=400)
    policy = Policy(max_requests=4)
    for answers, count in (((BAD, BAD, held), 3), ((BAD, BAD, refused, TAUGHT), 4)):
        script = Script(*answers)
        delivered = await ask(script, policy=policy, capabilities=Capabilities(schema_field=field))
        assert calls_in("chat_completions", delivered) == RIGHT
        assert len(script.asked) == count
        schema = script.asked[2][field]
        for key in place:
            schema = schema[key]
        assert schema["properties"]["name"]["enum"] == ["save"]
        assert "response_format" not in script.asked[2]
        assert all(field not in script.asked[other] for other in (0, 1))


async def test_arguments_are_held_to_their_schema_where_the_endpoint_can() -> None:
    """The conversation stays as it was; only the tool is offered, and it is strict."""
    script = Script(BAD, BAD, GOOD)
    capabilities = Capabilities(strict_tools=True, tool_choices=("named",), json_schema=True)
    delivered = await ask(script, capabilities=capabilities)
    assert calls_in("chat_completions", delivered) == RIGHT
    first, again, held = script.asked
    assert held["messages"][: len(again["messages"])] == again["messages"]
    (tool,) = held["tools"]
    assert (tool["function"]["name"], tool["function"]["strict"]) == ("save", True)
    assert tool["function"]["parameters"]["additionalProperties"] is False
    assert held["tool_choice"] == {"type": "function", "function": {"name": "save"}}
    assert len(first["tools"]) == 2


async def test_a_client_of_the_older_field_has_its_tool_forced_there() -> None:
    """An endpoint refuses a choice of tools beside functions."""
    asked = json.loads(write_request("chat_completions", "m"))
    asked["functions"] = [tool["function"] for tool in asked.pop("tools")]
    script = Script(BAD, BAD, GOOD)
    capabilities = Capabilities(strict_tools=True, tool_choices=("named",))
    delivered = await ask(script, body=json.dumps(asked).encode(), capabilities=capabilities)
    assert names(delivered)[-2:] == [("reask", "failed"), ("force", "ok")]
    assert script.asked[2]["function_call"] == {"name": "save"}
    assert "tool_choice" not in script.asked[2]
    assert script.asked[2]["functions"] == asked["functions"]


async def test_the_budget_of_requests_is_kept() -> None:
    """Not more is asked than the policy says, and what was skipped is not counted."""
    script = Script(BAD)
    delivered = await ask(script, policy=Policy(max_requests=2), capabilities=NAMED)
    assert (delivered.outcome, len(script.asked)) == ("refused", 2)
    script = Script(BAD)
    assert (await ask(script, policy=Policy(max_requests=1))).outcome == "refused"
    assert len(script.asked) == 1


async def test_the_budgets_of_tokens_and_time_are_kept() -> None:
    """Tokens that are used up, or time that has passed, end the asking."""
    script = Script(BAD, GOOD)
    assert (await ask(script, policy=Policy(max_tokens=15))).outcome == "refused"
    assert len(script.asked) == 1
    times = iter(range(0, 10_000, 100))
    script = Script(BAD, GOOD)
    delivered = await ask(script, policy=Policy(max_seconds=50), clock=lambda: next(times))
    assert (delivered.outcome, len(script.asked)) == ("refused", 1)


async def test_steps_can_be_switched_off() -> None:
    """Without repair or coercion a call that needs it is asked for again."""
    loose = completion(("call_1", "save", json.dumps({**ARGUMENTS, "count": "3"})))
    fenced = completion(("call_1", "save", f"```json\n{json.dumps(ARGUMENTS)}\n```"))
    for reply, step in ((loose, "coerce"), (fenced, "repair")):
        assert (await ask(Script(reply))).outcome == "repaired"
        assert names(await ask(Script(reply))) == [(step, "ok")]
        steps: Any = tuple(name for name in Policy().steps if name != step)
        assert (await ask(Script(reply, GOOD), policy=Policy(steps=steps))).outcome == "reasked"


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        (Policy(), "reasked"),
        (Policy(likely_calls="deliver"), "repaired"),
        (Policy(likely_calls="leave"), "clean"),
        (Policy(likely_calls_by_tool={"save": "deliver"}), "repaired"),
        (Policy(likely_calls="deliver", likely_calls_by_tool={"save": "reask"}), "reasked"),
    ],
)
async def test_a_likely_call_is_treated_as_the_policy_says(policy: Policy, outcome: str) -> None:
    """By default it is asked for again; it can be delivered, or left as it arrived."""
    optional = json.loads(write_request("chat_completions", "m"))
    optional["tools"][0]["function"]["parameters"]["required"] = []
    body = json.dumps(optional).encode()
    delivered = await ask(Script(LIKELY, GOOD), policy=policy, body=body)
    assert delivered.outcome == outcome
    if policy.likely_calls == "leave":
        assert json.loads(delivered.body) == LIKELY


async def test_text_that_may_be_a_call_is_never_refused() -> None:
    """Where asking again does not help, the client gets the text as it is."""
    words = completion(content=f"save {json.dumps(ARGUMENTS)}")
    script = Script(words)
    delivered = await ask(script)
    assert (delivered.outcome, delivered.calls, len(script.asked)) == ("reasked", 0, 3)
    assert json.loads(delivered.body) == words
    delivered = await ask(Script(words, GOOD))
    assert calls_in("chat_completions", delivered) == RIGHT
    delivered = await ask(Script(words), policy=Policy(likely_calls="deliver"))
    assert (delivered.outcome, delivered.calls) == ("repaired", 1)


async def test_an_answer_to_our_own_question_is_not_delivered() -> None:
    """A model that makes no call when it is asked about one speaks of what no client knows."""
    words = completion(content=f"save {json.dumps(ARGUMENTS)}")
    script = Script(words, completion(content="The notice says that nothing was executed."), GOOD)
    delivered = await ask(script, capabilities=NAMED)
    assert (delivered.outcome, delivered.calls, len(script.asked)) == ("reasked", 0, 2)
    assert json.loads(delivered.body) == words
    assert names(delivered) == [("reask", "failed")]


async def test_a_cut_call_is_never_delivered() -> None:
    """Not even where the policy delivers what is likely."""
    delivered = await ask(Script(CUT), policy=Policy(likely_calls="deliver", steps=("repair",)))
    assert (delivered.outcome, delivered.calls) == ("refused", 0)
    assert (await ask(Script(CUT, GOOD))).outcome == "reasked"


async def test_errors_of_the_endpoint_are_passed_on() -> None:
    """In the same format as they are, in another one with status, message and header."""
    error = {"error": {"message": "Slow down.", "type": "rate_limit_error", "code": "x", "y": 1}}
    body = json.dumps(error).encode()
    script = Script(Sent(429, {"retry-after": "7"}, body))
    delivered = await ask(script)
    assert (delivered.status, delivered.body, delivered.outcome) == (429, body, "failed")
    assert delivered.headers["retry-after"] == "7"
    assert delivered.should_retry is True
    assert len(script.asked) == 1
    other = await ask(Script(Sent(429, {"retry-after": "7"}, body)), client="messages")
    assert other.status == 429
    assert "Slow down." in json.loads(other.body)["error"]["message"]
    assert json.loads(other.body)["error"]["type"] == "rate_limit_error"


async def test_a_connection_that_fails_is_an_error_of_the_client_format() -> None:
    """What whoever sends could not do is told, also in the middle of asking again."""
    lost = ProviderConnectionError(Code.CONNECTION_RESET, "The connection broke.", retryable=True)
    delivered = await ask(Script(lost), client="gemini")
    assert (delivered.status, delivered.outcome) == (503, "failed")
    assert json.loads(delivered.body)["error"]["status"] == "UNAVAILABLE"
    assert (await ask(Script(BAD, lost))).outcome == "refused"


async def test_an_empty_body_is_asked_for_once_more() -> None:
    """A body that is no reply at all is not the model's fault."""
    script = Script(b"", GOOD)
    delivered = await ask(script)
    assert delivered.outcome == "reasked"
    assert names(delivered) == [("retry", "ok")]
    assert (await ask(Script(b"", b""))).error.code == Code.UPSTREAM_EMPTY


async def test_tools_are_taught_where_no_endpoint_takes_them() -> None:
    """The endpoint says that it has none with tools, and is asked without."""
    error = b'{"error": {"message": "No endpoints found that support tool use."}}'
    script = Script(Sent(404, {}, error), TAUGHT)
    delivered = await ask(script)
    assert calls_in("chat_completions", delivered) == RIGHT
    assert names(delivered)[-1] == ("taught", "ok")


@pytest.mark.parametrize("client", FORMATS)
async def test_a_taught_route_reads_calls_in_text(client: str) -> None:
    """A model without tool use is taught, and the client gets a call in its own format."""
    script = Script(TAUGHT)
    delivered = await ask(script, client=client, strategy="taught")
    assert (calls_in(client, delivered), delivered.outcome) == (RIGHT, "clean")
    assert "tools" not in script.asked[0]


async def test_a_broken_block_of_a_taught_model_is_asked_for_again() -> None:
    """It reads why nothing was run."""
    script = Script(completion(content='```json\n{"arguments": {"title": 1}}\n```'), TAUGHT)
    delivered = await ask(script, strategy="taught")
    assert (calls_in("chat_completions", delivered), delivered.outcome) == (RIGHT, "reasked")
    assert "[tool not executed]" in script.asked[1]["messages"][-1]["content"]


async def test_every_one_of_several_choices_is_read() -> None:
    """One that needs repair gets it; one that cannot be used is asked for again."""
    body = json.dumps({**json.loads(write_request("chat_completions", "m")), "n": 2}).encode()
    loose = completion(("call_2", "save", f"```json\n{json.dumps(ARGUMENTS)}\n```"))
    both = {**GOOD, "choices": [GOOD["choices"][0], {**loose["choices"][0], "index": 1}]}
    delivered = await ask(Script(both), body=body)
    found = json.loads(delivered.body)["choices"]
    assert delivered.outcome == "repaired"
    assert found[0] == GOOD["choices"][0]
    call = found[1]["message"]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == ARGUMENTS
    wrong = {**GOOD, "choices": [GOOD["choices"][0], {**BAD["choices"][0], "index": 1}]}
    script = Script(wrong, loose)
    delivered = await ask(script, body=body)
    assert (delivered.outcome, delivered.calls) == ("reasked", 2)
    assert [choice["index"] for choice in json.loads(delivered.body)["choices"]] == [0, 1]
    assert "n" not in script.asked[1]
    delivered = await ask(Script(wrong, BAD), body=body)
    assert json.loads(delivered.body)["choices"] == GOOD["choices"]
    assert [item.rule for item in delivered.receipts] == ["drop_choice"]
    assert delivered.upstream_requests == 2
    neither = {**BAD, "choices": [BAD["choices"][0], {**BAD["choices"][0], "index": 1}]}
    assert (await ask(Script(neither, BAD), body=body)).outcome == "refused"
    surplus = await ask(Script(wrong))
    assert json.loads(surplus.body)["choices"] == GOOD["choices"]
    assert [item.rule for item in surplus.receipts] == ["drop_choice"]
    refused = await ask(Script(GOOD), upstream="messages", body=body)
    assert (refused.status, "n" in json.loads(refused.body)["error"]["message"]) == (400, True)


async def test_other_kinds_of_tools_pass_or_are_refused_by_name() -> None:
    """In the same format their calls stay as they are; no other format can carry them."""
    asked = json.loads(write_request("chat_completions", "m"))
    asked["tools"].append({"type": "custom", "custom": {"name": "patch"}})
    body = json.dumps(asked).encode()
    custom = {"id": "x", "type": "custom", "custom": {"name": "patch", "input": "free { text"}}
    reply = completion(("call_1", "save", json.dumps({**ARGUMENTS, "count": "3"})))
    reply["choices"][0]["message"]["tool_calls"].append(custom)
    script = Script(reply)
    delivered = await ask(script, body=body)
    assert script.bodies[0] == body
    calls = json.loads(delivered.body)["choices"][0]["message"]["tool_calls"]
    assert calls[1] == custom
    assert json.loads(calls[0]["function"]["arguments"]) == ARGUMENTS
    refused = await ask(Script(reply), upstream="gemini", body=body)
    assert (refused.status, refused.outcome) == (400, "failed")
    assert "custom" in json.loads(refused.body)["error"]["message"]
    assert refused.upstream_requests == 0


async def test_one_call_is_delivered_where_the_client_takes_one() -> None:
    """The others are left out with a receipt that says that something is lost."""
    asked = {**json.loads(write_request("chat_completions", "m")), "parallel_tool_calls": False}
    two = completion(("call_1", "save", json.dumps(ARGUMENTS)), ("call_2", "ping", "{}"))
    delivered = await ask(Script(two), body=json.dumps(asked).encode())
    assert calls_in("chat_completions", delivered) == RIGHT
    assert [item.lossless for item in delivered.receipts] == [False]


async def test_unknown_fields_of_a_repaired_reply_stay() -> None:
    """Only the call is changed."""
    loose = completion(("call_1", "save", json.dumps({**ARGUMENTS, "count": "3"})))
    loose["x_field"] = {"a": 1}
    loose["choices"][0]["message"]["x_other"] = 2
    loose["choices"][0]["message"]["tool_calls"][0]["function"]["x_inner"] = 3
    delivered = await ask(Script(loose), policy=Policy(show_receipts=True))
    document = json.loads(delivered.body)
    report = document.pop("surecall")
    function = document["choices"][0]["message"]["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == ARGUMENTS
    function["arguments"] = loose["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
    assert document == loose
    assert report["receipts"][0]["rule"] == "parse_number_text"


async def test_a_client_of_the_older_field_gets_its_call_there() -> None:
    """Who offers functions looks for function_call."""
    asked = json.loads(write_request("chat_completions", "m"))
    asked["functions"] = [tool["function"] for tool in asked.pop("tools")]
    reply = completion(finish="function_call")
    written = json.dumps({**ARGUMENTS, "count": "3"})
    reply["choices"][0]["message"]["function_call"] = {"name": "save", "arguments": written}
    delivered = await ask(Script(reply), body=json.dumps(asked).encode())
    message = json.loads(delivered.body)["choices"][0]["message"]
    assert "tool_calls" not in message
    assert json.loads(message["function_call"]["arguments"]) == ARGUMENTS


async def test_losses_of_a_translation_are_named() -> None:
    """A field without a place is left out and named; an image or a format of the answer is not."""
    asked = {**json.loads(write_request("chat_completions", "m")), "logit_bias": {"1": 2}}
    reply = {
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
    }
    delivered = await ask(Script(reply), upstream="messages", body=json.dumps(asked).encode())
    assert seen("chat_completions", delivered).content == "Hello"
    assert [item.place for item in delivered.defects] == ["logit_bias"]
    audio = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
    asked["messages"][0]["content"] = [{"type": "text", "text": "x"}, audio]
    refused = await ask(Script(reply), upstream="messages", body=json.dumps(asked).encode())
    assert refused.status == 400
    assert "input_audio" in json.loads(refused.body)["error"]["message"]


async def test_words_do_not_stand_for_a_call_that_was_demanded() -> None:
    """Asked again, a model may answer in words; where a call is demanded it may not."""
    said = completion(content="I have saved it.")
    assert (await ask(Script(BAD, said))).outcome == "reasked"
    delivered = await ask(Script(BAD, BAD, said))
    assert delivered.outcome == "refused"
    assert names(delivered)[-1] == ("taught", "failed")


async def test_a_doubtful_call_that_comes_again_in_the_same_words_is_delivered() -> None:
    """A part that was lost would not be lost twice; another doubtful call is refused."""
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "function", "function": {"name": "run", "parameters": RUN}}],
    }
    doubtful = completion(("c1", "run", '{"command": "ls",}'))
    delivered = await ask(Script(doubtful), body=json.dumps(body).encode())
    assert (delivered.outcome, delivered.upstream_requests) == ("reasked", 2)
    assert calls_in("chat_completions", delivered) == [("run", {"command": "ls"})]
    others = [completion(("c1", "run", f'{{"command": "ls {n}",}}')) for n in range(3)]
    delivered = await ask(Script(*others), body=json.dumps(body).encode())
    assert delivered.outcome == "refused"


RUN = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
    "required": ["command"],
}
