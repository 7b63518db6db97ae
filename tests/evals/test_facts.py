"""What is read out of a trace: facts about calls, outcomes, rules and fabrications."""

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import (
    ConfigError,
    ProviderConnectionError,
    ProviderReplyError,
    ProviderStatusError,
    ProviderTimeoutError,
    RunLimitError,
    ToolUseError,
)
from surecall.base.records import Receipt
from surecall.evals.facts import RunFacts, collect_facts, list_error_kinds, strict_object
from surecall.evals.taxonomy import categorize, is_timeout
from surecall.loop import Session, Trace
from surecall.models.transport import ScriptedReply, ScriptedTransport, assistant, tool_call
from surecall.tools import ToolFailed

from .desk import PROMPT, Desk

GOOD = '{"text": "seven", "count": 7}'


async def trace_of(*replies: Any, **options: Any) -> Trace:
    """Run the desk with these replies and return the trace."""
    session = Session(
        model="m", tools=Desk().registry(), transport=ScriptedTransport(replies), **options
    )
    return (await session.run(PROMPT)).trace


async def facts_of(*replies: Any, **options: Any) -> RunFacts:
    """Run the desk with these replies and return the facts."""
    return collect_facts(await trace_of(*replies, **options))


# calls


@dataclass(frozen=True)
class Written:
    """A call as a model may write it, and what is to be said about it."""

    id: str
    reply: Any
    before: bool = False
    after: bool = True
    changed: bool = True
    structured: bool = True
    executed: bool = True
    kinds: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    format: str = "tool_calls"


def called(arguments: Any, name: str = "note") -> dict[str, Any]:
    """Return a reply with one call; arguments that are an object stay one."""
    call = tool_call(name, "{}")
    call["function"]["arguments"] = arguments
    return assistant(None, call)


WRITTEN = (
    Written("clean", called(GOOD), before=True, changed=False),
    Written("spaces", called(f"  {GOOD}\n"), before=True, changed=False),
    Written("object", called({"text": "seven", "count": 7}), before=True, changed=False),
    Written("fence", called(f"```json\n{GOOD}\n```"), needed=("strip_code_fence",)),
    Written(
        "number as text",
        called('{"text": "seven", "count": "7"}'),
        kinds=("type",),
        needed=("parse_number_text",),
    ),
    Written(
        "enum in capitals",
        called('{"text": "seven", "count": 7, "mood": "Calm"}'),
        kinds=("enum",),
        needed=("match_enum",),
    ),
    Written(
        "missing",
        called('{"text": "seven"}'),
        after=False,
        changed=False,
        executed=False,
        kinds=("missing",),
    ),
    Written(
        "unknown key and type",
        called('{"text": [], "count": 7, "size": 3}'),
        after=False,
        changed=False,
        executed=False,
        kinds=("type", "unknown_key"),
    ),
    Written("unreadable", called("{text:"), after=False, changed=False, executed=False),
    Written("blank", called("", "look"), after=False, executed=False, kinds=("missing",)),
    Written("unknown tool", called(GOOD, "paint"), after=False, changed=False, executed=False),
    Written("capitals", called(GOOD, "NOTE"), needed=("resolve_tool_name",)),
    Written(
        "text",
        f'<tool_call>{{"name": "note", "arguments": {GOOD}}}</tool_call>',
        structured=False,
        before=True,
        changed=False,
        needed=("read_call_from_text",),
        format="hermes",
    ),
    Written(
        "cut",
        ScriptedReply(message=called(GOOD), finish_reason="length"),
        after=False,
        changed=False,
        executed=False,
    ),
    Written(
        "duplicate key",
        called('{"text": "seven", "count": 7, "count": 8}'),
        after=False,
        changed=False,
        executed=False,
    ),
)


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.id)
async def test_a_call_is_counted_for_what_it_was(case: Written) -> None:
    """Validity before and after, changes, origin and kinds of errors are told apart."""
    facts = await facts_of(case.reply, "Done.", text_formats="all")
    (call,) = facts.calls
    assert (call.valid_before, call.valid_after) == (case.before, case.after)
    assert call.changed == case.changed
    assert call.structured == case.structured
    assert call.executed == case.executed
    assert call.error_kinds == case.kinds
    assert facts.needed == case.needed
    assert facts.fabrications == 0
    assert facts.outcome == ("called" if case.executed else "broke")
    if case.format == "tool_calls":
        assert call.format == case.format
    else:
        assert call.format != "tool_calls"


async def test_a_value_that_a_tool_does_not_know_is_an_error_of_its_own_kind() -> None:
    """The schema takes the name of any table; only the tool knows which there are."""

    def list_columns(table: str) -> str:
        raise ToolFailed("ARGUMENT_ERROR", f"there is no table {table!r}.")

    replies = [called('{"table": "customers"}', "list_columns"), "Done."]
    session = Session(
        model="m",
        tools=[list_columns],
        transport=ScriptedTransport(replies),
        tool_failure_policy="tolerated",
        tool_use_mode="relaxed",
    )
    (call,) = collect_facts((await session.run(PROMPT)).trace).calls
    assert (call.valid_before, call.ok, call.error_kinds) == (True, False, ("unknown_value",))


async def test_the_tags_transform_counts_as_recovery_from_text() -> None:
    """Its calls are read from text as all others are."""
    reply = f'<tool_call>{{"name": "note", "arguments": {GOOD}}}</tool_call>'
    facts = await facts_of(reply, "Done.", preset="content_tag_tool_call_fallback")
    (call,) = facts.calls
    assert (call.structured, call.format, call.valid_before) == (False, "tagged_json", True)
    assert facts.needed == ("read_call_from_text",)


async def test_transforms_that_only_move_a_call_save_nothing() -> None:
    """A lone call outside its list is read without the transform, too."""
    message = called(GOOD)
    message["tool_calls"] = message["tool_calls"][0]
    facts = await facts_of(message, "Done.", preset="default_tool_calling")
    assert facts.rules == ("assistant_tool_calls_object_to_array",)
    assert facts.needed == ()
    assert facts.calls[0].valid_before is True


async def test_blank_arguments_are_not_valid_as_they_arrived() -> None:
    """They leave the same receipt with and without the transform."""
    look = called("", "look")
    facts = await facts_of(look, "Done.", preset="default_tool_calling")
    (call,) = facts.calls
    assert call.valid_before is False
    assert call.rules == ("blank_to_empty_object",)


async def test_rules_about_ids_save_nothing() -> None:
    """A call without an id is otherwise clean."""
    reply = assistant(None, tool_call("note", GOOD, id=""))
    facts = await facts_of(reply, "Done.")
    assert facts.rules == ("assign_call_id",)
    assert facts.needed == ()
    assert facts.calls[0].valid_before is True


async def test_taught_prompting_is_named_as_what_made_a_call_possible() -> None:
    """A call in a fenced block that was asked for rests on having been asked for."""
    fenced = f'```json\n{{"name": "note", "arguments": {GOOD}}}\n```'
    facts = await facts_of(fenced, "Done.", tool_prompting="taught")
    assert "tool_prompting" in facts.needed
    assert facts.calls[0].structured is False


async def test_results_and_expectations_belong_to_their_calls() -> None:
    """The second call of a reply has its own result and its own expectation."""
    reply = assistant(
        None, tool_call("look", '{"place": "x"}', id="a"), tool_call("note", "{}", id="b")
    )
    trace = await trace_of(reply, "Done.")
    facts = collect_facts(trace, exact=(True,))
    assert [(call.name, call.ok, call.exact) for call in facts.calls] == [
        ("look", True, True),
        ("note", False, None),
    ]
    assert facts.calls[1].error_codes == ("ARGUMENTS_INVALID",)


# outcomes


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        pytest.param("I will not.", "abstained", id="words"),
        pytest.param(f'{{"name": "note", "arguments": {GOOD}}}', "broke", id="bare call"),
        pytest.param('```json\n{"name": "note", "arguments": {"te\n```', "broke", id="cut block"),
        pytest.param("Use `note` with care.", "abstained", id="quoted name"),
    ],
)
async def test_a_call_that_nobody_read_is_no_abstention(reply: str, outcome: str) -> None:
    """The three outcomes are called, abstained, and tried in vain."""
    facts = await facts_of(reply, text_formats="off")
    assert (facts.calls, facts.outcome) == ((), outcome)


async def test_a_call_without_tools_was_tried() -> None:
    """With tools disabled a call is ignored, and the run is not one of abstaining."""
    facts = await facts_of(assistant("Hm.", tool_call("note", GOOD)), tool_use_mode="disabled")
    assert facts.outcome == "broke"


async def test_requests_attempts_and_tokens_are_summed() -> None:
    """A failed request counts as one; retries of the transport are counted beside."""
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    trace = await trace_of(
        ScriptedReply(status=400, message="no tools"),
        ScriptedReply(message="Done.", usage=usage),
        fallback_retry_count=1,
    )
    resent = replace(trace, turns=(replace(trace.turns[0], attempts=3),))
    facts = collect_facts(resent, stages=["fallback_retry_count"])
    assert (facts.turns, facts.requests, facts.attempts) == (1, 2, 4)
    assert facts.usage.total_tokens == 12
    assert facts.rules == facts.needed == ("fallback_retry_count",)


async def test_a_reply_at_its_limit_is_noted() -> None:
    """Whether any reply was cut is a fact of the run."""
    facts = await facts_of(ScriptedReply(message="Do", finish_reason="length"))
    assert facts.cut is True
    assert (await facts_of("Done.")).cut is False


# fabrications


def with_call(trace: Trace, **changes: Any) -> Trace:
    """Return the trace with its first call changed behind its back."""
    turn = trace.turns[0]
    call = replace(turn.calls[0], **changes)
    return replace(trace, turns=(replace(turn, calls=(call,)), *trace.turns[1:]))


@dataclass(frozen=True)
class Forged:
    """A change that no honest reading makes."""

    id: str
    raw: str
    arguments: dict[str, Any]
    receipts: tuple[Receipt, ...] = ()
    fabrications: int = 1


SEVEN = {"text": "seven", "count": 7}
FORGED = (
    Forged("without a receipt", GOOD, {"text": "seven", "count": 8}),
    Forged("a field added", GOOD, {**SEVEN, "mood": "cross"}),
    Forged(
        "with a receipt that tells a lie",
        GOOD,
        {**SEVEN, "mood": "cross"},
        (Receipt("strip_code_fence", "", "", ""),),
    ),
    Forged("lossy", GOOD, SEVEN, (Receipt("quote_bare_words", "", "a", "a", lossless=False),)),
    Forged(
        "honest",
        '{"text": "seven", "count": "7"}',
        SEVEN,
        (Receipt("parse_number_text", "/count", "7", 7),),
        fabrications=0,
    ),
)


@pytest.mark.parametrize("case", FORGED, ids=lambda case: case.id)
async def test_what_the_model_did_not_send_is_a_fabrication(case: Forged) -> None:
    """Every call that ran must follow from what arrived."""
    trace = await trace_of(called(case.raw), "Done.")
    forged = with_call(trace, arguments=case.arguments, receipts=case.receipts)
    assert collect_facts(forged).fabrications == case.fabrications


async def test_a_call_that_did_not_run_is_no_fabrication() -> None:
    """Only what ran can have done harm."""
    trace = await trace_of(called("{}"), "Done.")
    assert collect_facts(with_call(trace, arguments=SEVEN)).fabrications == 0


async def test_a_reading_tool_may_run_on_a_lossy_reading_of_text() -> None:
    """Where text is read on purpose, a tool without effects is not a risk; one with effects is."""
    lossy = (Receipt("quote_bare_words", "text", "x", "x", lossless=False),)
    trace = await trace_of(called('{"place": "x"}', "look"), "Done.", text_formats="all")
    assert collect_facts(with_call(trace, receipts=lossy)).fabrications == 0
    trace = await trace_of(called('{"place": "x"}', "look"), "Done.", text_formats="off")
    assert collect_facts(with_call(trace, receipts=lossy)).fabrications == 1


def test_strict_objects_need_no_help() -> None:
    """Only an object, or the text of one without repeated keys, is taken."""
    assert strict_object({"a": 1}) == {"a": 1}
    assert strict_object('{"a": 1}') == {"a": 1}
    for raw in ("[1]", '{"a": 1,}', '{"a": 1, "a": 2}', "", None, 3):
        assert strict_object(raw) is None


# kinds of schema errors


@pytest.mark.parametrize(
    ("schema", "value", "kinds"),
    [
        pytest.param({"required": ["a"]}, {}, ("missing",), id="missing"),
        pytest.param({"properties": {"a": {"enum": [1]}}}, {"a": 2}, ("enum",), id="enum"),
        pytest.param({"properties": {"a": {"const": 1}}}, {"a": 2}, ("enum",), id="const"),
        pytest.param({"properties": {"a": {"minimum": 3}}}, {"a": 1}, ("range",), id="range"),
        pytest.param({"properties": {"a": {"maxLength": 1}}}, {"a": "xy"}, ("range",), id="size"),
        pytest.param({"properties": {"a": {"pattern": "^b"}}}, {"a": "c"}, ("format",), id="text"),
        pytest.param({"not": {}}, {}, ("other",), id="other"),
        pytest.param(
            {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
            {"a": 1},
            ("type",),
            id="union of types",
        ),
        pytest.param(
            {"properties": {"a": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]}}},
            {"a": 1},
            ("range",),
            id="union with one branch meant",
        ),
        pytest.param(
            {"properties": {"a": {"type": "string"}}, "additionalProperties": False},
            {"a": 1, "b": 2},
            ("type", "unknown_key"),
            id="two",
        ),
        pytest.param({"$ref": "https://example.com/s.json"}, {}, ("other",), id="unusable"),
    ],
)
def test_schema_errors_have_kinds(
    schema: dict[str, Any], value: Any, kinds: tuple[str, ...]
) -> None:
    """Every keyword belongs to one kind; a union tells of the branch that was meant."""
    assert list_error_kinds(schema, value) == kinds


# categories


@pytest.mark.parametrize(
    ("error", "category"),
    [
        pytest.param(ProviderConnectionError("CONNECTION_RESET", "x"), "CONNECTION_ERROR", id="c"),
        pytest.param(ProviderTimeoutError("IDLE_TIMEOUT", "x"), "TIMEOUT_ERROR", id="t"),
        pytest.param(ProviderReplyError("UPSTREAM_HTML", "x", status=200), "DECODE_ERROR", id="d"),
        pytest.param(ToolUseError("NO_TOOL_CALLS", "x"), "NO_TOOL_CALLS", id="none"),
        pytest.param(ToolUseError("TOOL_ERROR", "x"), "TOOL_ERROR", id="tool"),
        pytest.param(
            ProviderStatusError("NO_TOOL_USE_ENDPOINT", "x", status=404),
            "NO_TOOL_USE_ENDPOINT",
            id="endpoint",
        ),
        pytest.param(RunLimitError("DEADLINE_EXCEEDED", "x"), "TIMEOUT", id="deadline"),
        pytest.param(RunLimitError("MAX_TURNS_REACHED", "x"), "EXCEPTION", id="turns"),
        pytest.param(ProviderStatusError("AUTH", "x", status=401), "AUTH", id="401"),
        pytest.param(ProviderStatusError("PAYMENT_REQUIRED", "x", status=402), "PAYMENT_REQUIRED"),
        pytest.param(ProviderStatusError("FORBIDDEN", "x", status=403), "FORBIDDEN", id="403"),
        pytest.param(ProviderStatusError("NOT_FOUND", "x", status=404), "NOT_FOUND", id="404"),
        pytest.param(ProviderStatusError("REQUEST_TIMEOUT", "x", status=408), "TIMEOUT", id="408"),
        pytest.param(ProviderStatusError("CONFLICT", "x", status=409), "CONFLICT", id="409"),
        pytest.param(
            ProviderStatusError("REQUEST_TOO_LARGE", "x", status=413), "REQUEST_TOO_LARGE"
        ),
        pytest.param(ProviderStatusError("UNPROCESSABLE", "x", status=422), "UNPROCESSABLE"),
        pytest.param(ProviderStatusError("RATE_LIMIT", "x", status=429), "RATE_LIMIT", id="429"),
        pytest.param(ProviderStatusError("UPSTREAM_5XX", "x", status=503), "UPSTREAM_5XX", id="5"),
        pytest.param(ProviderStatusError("HTTP_STATUS", "x", status=418), "HTTP_418", id="418"),
        pytest.param(ConfigError("INVALID_OPTION", "x"), "EXCEPTION", id="setup"),
        pytest.param(RuntimeError("x"), "EXCEPTION", id="any"),
    ],
)
def test_errors_have_the_categories_of_the_original(error: Exception, category: str) -> None:
    """The order of the original's rules is kept."""
    assert categorize(error, None, "") == category


async def test_failed_answers_have_the_categories_of_the_original() -> None:
    """Empty, without calls, or simply wrong; without tools it can only be wrong."""
    words = await trace_of("Hello.")
    assert categorize(None, words, " \n") == "EMPTY_ASSISTANT_TEXT"
    assert categorize(None, words, "Hello.") == "NO_TOOL_CALLS"
    call = await trace_of(called(GOOD), "Done.")
    assert categorize(None, call, "Done.") == "ASSERTION_FAILED"
    control = await trace_of("Hello.", tool_use_mode="disabled")
    assert categorize(None, control, "Hello.") == "ASSERTION_FAILED"


def test_only_deadlines_censor() -> None:
    """A run that was stopped by the clock would have taken longer; any other would not."""
    assert is_timeout(ProviderTimeoutError("FIRST_BYTE_TIMEOUT", "x"))
    assert is_timeout(RunLimitError("DEADLINE_EXCEEDED", "x"))
    assert not is_timeout(RunLimitError("MAX_TURNS_REACHED", "x"))
    assert not is_timeout(None)
