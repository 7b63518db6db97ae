"""Whole replies."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from support.streams import chunk, fold
from surecall.base.errors import ProviderError, ProviderReplyError, ProviderStatusError
from surecall.base.records import RawCall, Reply, Usage
from surecall.reading import read_reply
from surecall.wire import ChatCompletions, RawReply
from surecall.wire.chat_completions import parse_body

PROTOCOL = ChatCompletions()
MESSAGE = {"role": "assistant", "content": "Hi"}


def _body(**fields: Any) -> bytes:
    document = {"id": "r1", "model": "m", "choices": [{"index": 0, "message": MESSAGE}]}
    return json.dumps({**document, **fields}).encode()


def _parse(**message: Any) -> Reply:
    return PROTOCOL.parse_message(RawReply(message={"role": "assistant", **message}))


def test_a_whole_reply_is_parsed() -> None:
    """Message, finish, usage, model and id are found."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    choice = {"index": 0, "message": MESSAGE, "finish_reason": "stop"}
    raw = parse_body(_body(choices=[choice], usage=usage))
    assert raw == RawReply(
        message=MESSAGE,
        finish_reason="stop",
        usage=Usage(10, 5, 15, 3, 4),
        model="m",
        id="r1",
    )


@dataclass(frozen=True)
class Refused:
    id: str
    body: bytes
    code: str
    error: type[ProviderError] = ProviderReplyError
    content_type: str = "application/json"


REFUSED = (
    Refused("html", b"<!DOCTYPE html><title>Bad</title>", "UPSTREAM_HTML", content_type=""),
    Refused("html by its type", b"oops", "UPSTREAM_HTML", content_type="text/html"),
    Refused("an object said to be html", b"{}", "UPSTREAM_HTML", content_type="Text/HTML"),
    Refused("empty", b"", "UPSTREAM_EMPTY"),
    Refused("space", b" \n", "UPSTREAM_EMPTY"),
    Refused("text", b"upstream timed out", "UPSTREAM_INVALID_JSON", content_type="text/plain"),
    Refused("cut", b'{"choices": [{"mess', "UPSTREAM_INVALID_JSON"),
    Refused("two documents", b"{}{}", "UPSTREAM_INVALID_JSON"),
    Refused("not utf-8", b'{"a": "\xff"}', "UPSTREAM_INVALID_JSON"),
    Refused("too deep", b"[" * 5000, "UPSTREAM_INVALID_JSON"),
    Refused("array", b"[]", "UPSTREAM_NOT_A_REPLY"),
    Refused("number", b"3", "UPSTREAM_NOT_A_REPLY"),
    Refused("null", b"null", "UPSTREAM_NOT_A_REPLY"),
    Refused("no choices", b"{}", "UPSTREAM_NO_CHOICES"),
    Refused("null choices", b'{"choices": null}', "UPSTREAM_NO_CHOICES"),
    Refused("empty choices", b'{"choices": []}', "UPSTREAM_NO_CHOICES"),
    Refused("choices of another type", b'{"choices": {"0": 1}}', "UPSTREAM_NO_CHOICES"),
    Refused("choice of another type", b'{"choices": [3]}', "UPSTREAM_NOT_A_REPLY"),
    Refused("choice without message", b'{"choices": [{}]}', "UPSTREAM_NOT_A_REPLY"),
    Refused("null message", b'{"choices": [{"message": null}]}', "UPSTREAM_NOT_A_REPLY"),
    Refused("text as message", b'{"choices": [{"message": "Hi"}]}', "UPSTREAM_NOT_A_REPLY"),
    Refused(
        "error with 200",
        b'{"error": {"message": "boom"}}',
        "UPSTREAM_ERROR_BODY",
        ProviderStatusError,
    ),
    Refused("error as text", b'{"error": "boom"}', "UPSTREAM_ERROR_BODY", ProviderStatusError),
    Refused(
        "error that names its kind",
        b'{"error": {"message": "slow down", "code": 429}}',
        "RATE_LIMIT",
        ProviderStatusError,
    ),
    Refused(
        "error object",
        b'{"object": "error", "message": "boom"}',
        "UPSTREAM_ERROR_BODY",
        ProviderStatusError,
    ),
    Refused(
        "error beside choices",
        b'{"error": {"message": "boom"}, "choices": [{"message": {"content": "x"}}]}',
        "UPSTREAM_ERROR_BODY",
        ProviderStatusError,
    ),
    Refused(
        "error inside the choice",
        b'{"choices": [{"error": {"message": "boom"}, "message": {"content": ""}}]}',
        "UPSTREAM_ERROR_BODY",
        ProviderStatusError,
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_is_no_reply_is_refused_with_its_own_code(case: Refused) -> None:
    """None of these reaches the loop as a message."""
    with pytest.raises(case.error) as caught:
        parse_body(case.body, {"content-type": case.content_type})
    assert caught.value.code == case.code
    assert caught.value.status == 200


def test_a_refusal_shows_where_and_a_bounded_start() -> None:
    """Position and snippet are enough to see what the provider sent; a key in it is masked."""
    body = b'{"key": "sk-abcdefghijklmnopqrst", oops' + b"x" * 5000
    with pytest.raises(ProviderReplyError) as caught:
        parse_body(body)
    assert "35" in caught.value.message
    assert caught.value.body is not None
    assert caught.value.body.startswith('{"key": "[redacted]", oops')
    assert len(caught.value.body) < 300


def test_a_null_error_beside_choices_is_no_error() -> None:
    """Some providers always send the field."""
    assert parse_body(_body(error=None)).message == MESSAGE


def test_of_several_choices_the_first_is_used_and_the_rest_noted() -> None:
    """Nothing is dropped without a word."""
    choices = [{"message": MESSAGE}, {"message": {"content": "other"}}]
    raw = parse_body(_body(choices=choices))
    assert raw.message == MESSAGE
    assert [defect.code for defect in raw.defects] == ["CHOICES_IGNORED"]


def test_half_a_surrogate_pair_in_a_body_is_replaced() -> None:
    """Nothing that cannot be encoded enters the package."""
    raw = parse_body(b'{"choices": [{"message": {"content": "a\\ud800b"}}]}')
    assert raw.message["content"] == "a\ufffdb"


@pytest.mark.parametrize("arguments", ['{"a":1,"a":2}', '{"o":[{"a":1,"a":2}]}'])
def test_a_key_given_two_values_inside_an_object_is_a_finding(arguments: str) -> None:
    """The codec keeps the last, so the finding is all that is left of the first."""
    text = '{"choices":[{"message":{"tool_calls":[{"function":{"name":"t","arguments":%s}}]}}]}'
    raw = parse_body((text % arguments).encode())
    assert [(defect.code, defect.place) for defect in raw.defects] == [
        ("DUPLICATE_KEY", "/tool_calls")
    ]


def test_a_key_given_two_values_inside_a_legacy_object_is_a_finding() -> None:
    """Also beside an empty list of calls."""
    text = (
        b'{"choices":[{"message":{"tool_calls":[],'
        b'"function_call":{"name":"t","arguments":{"a":1,"a":2}}}}]}'
    )
    assert [defect.code for defect in parse_body(text).defects] == ["DUPLICATE_KEY"]


def test_a_repeated_key_elsewhere_is_no_finding() -> None:
    """Only arguments are acted upon."""
    text = b'{"id":"a","id":"b","choices":[{"message":{"function_call":{"name":"t"}}}]}'
    assert parse_body(text).defects == ()


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(None, None, id="null"),
        pytest.param([], None, id="list"),
        pytest.param({}, None, id="empty"),
        pytest.param({"prompt_tokens": 3, "completion_tokens": 4}, Usage(3, 4, 7), id="no total"),
        pytest.param({"input_tokens": 3, "output_tokens": 4}, Usage(3, 4, 7), id="other names"),
        pytest.param({"total_tokens": 9}, Usage(0, 0, 9), id="only total"),
        pytest.param({"prompt_tokens": -3, "total_tokens": 2}, Usage(0, 0, 2), id="negative"),
        pytest.param({"prompt_tokens": "3", "total_tokens": 2}, Usage(0, 0, 2), id="text"),
        pytest.param({"prompt_tokens": True, "total_tokens": 2}, Usage(0, 0, 2), id="boolean"),
        pytest.param({"prompt_tokens": 1.5, "total_tokens": 2}, Usage(0, 0, 2), id="float"),
        pytest.param(
            {"prompt_tokens": 1, "prompt_tokens_details": 3}, Usage(1, 0, 1), id="odd details"
        ),
        pytest.param(
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4},
            Usage(9, 0, 9, cached_tokens=4),
            id="cache hits",
        ),
        pytest.param(
            {"prompt_tokens": 9, "cached_tokens": 4},
            Usage(9, 0, 9, cached_tokens=4),
            id="cached beside the others",
        ),
    ],
)
def test_usage_is_read_as_far_as_it_can_be(usage: Any, expected: Usage | None) -> None:
    """What is not a count is left out."""
    assert parse_body(_body(usage=usage)).usage == expected


@pytest.mark.parametrize("finish", [None, ""])
def test_a_finish_reason_is_never_invented(finish: Any) -> None:
    """Without one there is none."""
    raw = parse_body(_body(choices=[{"message": MESSAGE, "finish_reason": finish}]))
    assert raw.finish_reason is None


@pytest.mark.parametrize("field", ["id", "model"])
def test_odd_ids_and_models_are_none(field: str) -> None:
    """They are told only when they are text."""
    assert getattr(parse_body(_body(**{field: 3})), field) is None


@dataclass(frozen=True)
class CallCase:
    id: str
    message: dict[str, Any]
    calls: tuple[RawCall, ...]
    codes: tuple[str, ...] = ()


def _entry(**fields: Any) -> dict[str, Any]:
    function = {"name": "t", "arguments": "{}"}
    return {"id": "a", "type": "function", "function": function, **fields}


CALLS = (
    CallCase("none", {"content": "x"}, ()),
    CallCase("null", {"tool_calls": None}, ()),
    CallCase("empty", {"tool_calls": []}, ()),
    CallCase("clean", {"tool_calls": [_entry()]}, (RawCall("a", "t", "{}"),)),
    CallCase(
        "two",
        {"tool_calls": [_entry(index=0), _entry(id="b", index=1)]},
        (RawCall("a", "t", "{}"), RawCall("b", "t", "{}")),
    ),
    CallCase(
        "one object", {"tool_calls": _entry()}, (RawCall("a", "t", "{}"),), ("CALLS_AS_OBJECT",)
    ),
    CallCase("text", {"tool_calls": "[]"}, (), ("CALL_ENTRY_DROPPED",)),
    CallCase(
        "other entries",
        {"tool_calls": [None, _entry(), "x", 3]},
        (RawCall("a", "t", "{}"),),
        ("CALL_ENTRY_DROPPED", "CALL_ENTRY_DROPPED", "CALL_ENTRY_DROPPED"),
    ),
    CallCase("no function", {"tool_calls": [{"id": "a"}]}, (RawCall("a", None, None),)),
    CallCase("null function", {"tool_calls": [_entry(function=None)]}, (RawCall("a", None, None),)),
    CallCase(
        "flat",
        {"tool_calls": [{"id": "a", "name": "t", "arguments": "{}"}]},
        (RawCall("a", "t", "{}"),),
    ),
    CallCase(
        "half flat",
        {"tool_calls": [{"id": "a", "name": "t", "function": {"arguments": "{}"}}]},
        (RawCall("a", "t", "{}"),),
    ),
    CallCase(
        "arguments as object",
        {"tool_calls": [_entry(function={"name": "t", "arguments": {"a": 1}})]},
        (RawCall("a", "t", {"a": 1}),),
        ("ARGUMENTS_AS_OBJECT",),
    ),
    CallCase(
        "blank arguments",
        {"tool_calls": [_entry(function={"name": "t", "arguments": " "})]},
        (RawCall("a", "t", " "),),
        ("ARGUMENTS_BLANK",),
    ),
    CallCase(
        "odd arguments",
        {"tool_calls": [_entry(function={"name": "t", "arguments": 3})]},
        (RawCall("a", "t", 3),),
    ),
    CallCase(
        "odd id and name",
        {"tool_calls": [_entry(id=3, function={"name": ["t"]})]},
        (RawCall(3, ["t"], None),),
    ),
    CallCase(
        "fields to echo",
        {"tool_calls": [_entry(signature="s", thought=None)]},
        (RawCall("a", "t", "{}", extra={"signature": "s"}),),
    ),
    CallCase(
        "legacy",
        {"function_call": {"name": "t", "arguments": "{}"}},
        (RawCall(None, "t", "{}", "function_call"),),
        ("LEGACY_FUNCTION_CALL",),
    ),
    CallCase(
        "legacy beside an empty list",
        {"tool_calls": [], "function_call": {"name": "t", "arguments": "{}"}},
        (RawCall(None, "t", "{}", "function_call"),),
        ("LEGACY_FUNCTION_CALL",),
    ),
    CallCase(
        "legacy beside a list",
        {"tool_calls": [_entry()], "function_call": {"name": "u", "arguments": "{}"}},
        (RawCall("a", "t", "{}"),),
    ),
    CallCase(
        "legacy beside one object",
        {"tool_calls": _entry(), "function_call": {"name": "u", "arguments": "{}"}},
        (RawCall("a", "t", "{}"),),
        ("CALLS_AS_OBJECT",),
    ),
    CallCase("null legacy", {"function_call": None}, ()),
)


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case.id)
def test_calls_are_found_in_every_known_shape(case: CallCase) -> None:
    """Without any option, and with a finding for each oddity."""
    reply = _parse(**case.message)
    assert tuple(replace(call, receipts=()) for call in reply.calls) == case.calls
    assert tuple(defect.code for defect in reply.defects) == case.codes


@pytest.mark.parametrize(
    ("entry", "bare"),
    [
        ({"id": "a", "name": "t", "arguments": "{}"}, ["arguments", "name"]),
        ({"id": "a", "name": "t", "function": {"arguments": "{}"}}, ["name"]),
        ({"id": "a", "arguments": "{}", "function": {"name": "t"}}, ["arguments"]),
        ({"id": "a", "function": {"name": "t", "arguments": "{}"}}, None),
        ({"id": "a", "name": "t", "function": {"name": "t", "arguments": "{}"}}, None),
    ],
)
def test_a_call_without_its_wrapper_leaves_a_receipt(
    entry: dict[str, Any], bare: list[str] | None
) -> None:
    """Whole and streamed alike, and up to the call that is read."""
    reply = _parse(tool_calls=[entry])
    (call,) = read_reply(reply).calls
    expected = [] if bare is None else [("wrap_bare_call", "/tool_calls/0", bare, True)]
    found = [(item.rule, item.place, item.before, item.lossless) for item in call.receipts]
    assert (call.name, call.arguments, found) == ("t", {}, expected)
    data = chunk({"tool_calls": [{"index": 0, **entry}]}) + chunk({}, "tool_calls")
    streamed = PROTOCOL.parse_message(fold(data)[0])
    assert streamed.calls == reply.calls


@pytest.mark.parametrize(("arguments", "lossless"), [("{}", True), ('{"a": 1}', False)])
def test_an_old_call_beside_calls_leaves_a_receipt(arguments: str, lossless: bool) -> None:
    """It is not run, and whether something was lost with it is said."""
    old = {"name": "t", "arguments": arguments}
    message = {"tool_calls": [{"id": "a", "function": {"name": "t", "arguments": "{}"}}]}
    reading = read_reply(_parse(**message, function_call=old))
    assert len(reading.calls) == 1
    (receipt,) = reading.receipts
    assert (receipt.rule, receipt.place) == ("drop_legacy_call", "/function_call")
    assert (receipt.before, receipt.after, receipt.lossless) == (old, None, lossless)
    assert read_reply(_parse(**message)).receipts == ()


@dataclass(frozen=True)
class ContentCase:
    id: str
    message: dict[str, Any]
    content: str | None
    reasoning: str | None = None
    codes: tuple[str, ...] = ()


PARTS = ("CONTENT_AS_PARTS",)
CONTENTS = (
    ContentCase("text", {"content": "Hi"}, "Hi"),
    ContentCase("null", {"content": None}, None),
    ContentCase("missing", {}, None),
    ContentCase("empty", {"content": ""}, ""),
    ContentCase("parts", {"content": [{"type": "text", "text": "a"}, "b"]}, "ab", codes=PARTS),
    ContentCase("one part", {"content": {"type": "text", "text": "a"}}, "a", codes=PARTS),
    ContentCase(
        "thinking part",
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
        "a",
        "hm",
        PARTS,
    ),
    ContentCase(
        "nested thinking part",
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        "",
        "hm",
        PARTS,
    ),
    ContentCase(
        "reasoning part", {"content": [{"type": "reasoning", "text": "r"}]}, "", "r", PARTS
    ),
    ContentCase("part without text", {"content": [{"type": "image_url"}, 3]}, "", codes=PARTS),
    ContentCase("odd type", {"content": [{"type": [], "text": "a"}]}, "a", codes=PARTS),
    ContentCase("number", {"content": 3}, None, codes=("CONTENT_NOT_USABLE",)),
    ContentCase("refusal", {"content": None, "refusal": "No."}, "No."),
    ContentCase("refusal beside text", {"content": "Hi", "refusal": "No."}, "Hi"),
    ContentCase("reasoning_content", {"content": "a", "reasoning_content": "r"}, "a", "r"),
    ContentCase("reasoning", {"content": "a", "reasoning": "r"}, "a", "r"),
    ContentCase("thinking", {"content": "a", "thinking": "r"}, "a", "r"),
    ContentCase("first of two", {"reasoning": "b", "reasoning_content": "a"}, None, "a"),
    ContentCase("empty first of two", {"reasoning": "b", "reasoning_content": ""}, None, "b"),
    ContentCase("odd reasoning", {"content": "a", "reasoning": {"x": 1}}, "a", None),
)


@pytest.mark.parametrize("case", CONTENTS, ids=lambda case: case.id)
def test_text_and_reasoning_are_found_in_every_known_shape(case: ContentCase) -> None:
    """Text stays apart from reasoning."""
    reply = _parse(**case.message)
    assert (reply.content, reply.reasoning) == (case.content, case.reasoning)
    assert tuple(defect.code for defect in reply.defects) == case.codes


def test_parts_left_out_are_counted() -> None:
    """The finding says how many parts had no text."""
    (defect,) = _parse(content=["a", {"type": "image_url"}]).defects
    assert defect.message == "The content came as 2 parts; 1 without text were left out."


def test_unknown_fields_of_a_message_are_kept_for_the_echo() -> None:
    """What a provider may want back travels on; what belongs to the answer alone does not."""
    reply = _parse(
        content="x",
        refusal=None,
        audio={"id": "a"},
        annotations=[],
        reasoning_content="r",
        reasoning_details=[{"type": "reasoning.text"}],
        signature="s",
        empty=None,
    )
    assert reply.extra == {
        "reasoning_content": "r",
        "reasoning_details": [{"type": "reasoning.text"}],
        "signature": "s",
    }
