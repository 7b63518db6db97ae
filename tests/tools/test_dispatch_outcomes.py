"""One call becomes one result: what a tool raises, answers that are replaced, and transforms."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pydantic
import pytest

from surecall.base.records import Envelope, ToolSpec
from surecall.tools import OutputLimits, ToolFailed, tool

from .calls import dispatch, shown


def _raise(error: BaseException) -> Callable[[], Any]:
    def failing() -> Any:
        raise error

    return failing


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@dataclass(frozen=True)
class Failure:
    id: str
    error: BaseException
    code: str
    message: str


FAILURES = [
    Failure("value", ValueError("no such day"), "ARGUMENT_ERROR", "no such day"),
    Failure("type inside", TypeError("x + y"), "INTERNAL_ERROR", "TypeError: x + y"),
    Failure("key", KeyError("k"), "INTERNAL_ERROR", "KeyError: 'k'"),
    Failure("no message", RuntimeError(), "INTERNAL_ERROR", "RuntimeError"),
    Failure("stop", StopIteration(), "INTERNAL_ERROR", "StopIteration"),
    Failure("own timeout", TimeoutError("slow"), "INTERNAL_ERROR", "TimeoutError: slow"),
    Failure("own code", ToolFailed("NO_SEATS", "Sold out."), "NO_SEATS", "Sold out."),
    Failure("no code", ToolFailed("Sold out."), "TOOL_FAILED", "Sold out."),
    Failure(
        "secret",
        RuntimeError("key sk-abcdefghijklmnop refused"),
        "INTERNAL_ERROR",
        "RuntimeError: key [redacted] refused",
    ),
    Failure(
        "long",
        RuntimeError("y" * 1000),
        "INTERNAL_ERROR",
        f"RuntimeError: {'y' * 400}… (+600 characters)",
    ),
    Failure(
        "unprintable",
        UnprintableError(),
        "INTERNAL_ERROR",
        "UnprintableError: (its message cannot be shown)",
    ),
    Failure("surrogate", RuntimeError("a\ud800"), "INTERNAL_ERROR", "RuntimeError: a?"),
]


@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "loop"])
@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.id)
async def test_what_a_tool_raises_is_told_without_a_traceback(
    case: Failure, is_async: bool
) -> None:
    """The class and the message, bounded and without secrets."""

    async def failing() -> Any:
        raise case.error

    if is_async and isinstance(case.error, StopIteration):
        case = Failure("", case.error, case.code, "RuntimeError: coroutine raised StopIteration")
    result = await dispatch([failing if is_async else _raise(case.error)], "failing")
    error = shown(result)["errors"][0]
    assert (error["code"], error["message"]) == (case.code, case.message)
    assert "Traceback" not in result.text
    assert result.executed
    assert not result.replaced


async def test_a_tools_own_failure_carries_hint_and_data() -> None:
    """Everything given to `ToolFailed` reaches the model."""
    error = ToolFailed("NO_SEATS", "Sold out.", "Try tomorrow.", {"next": "tue"})
    result = await dispatch([_raise(error)], "failing")
    assert shown(result) == {
        "ok": False,
        "tool_name": "failing",
        "data": {"next": "tue"},
        "warnings": [],
        "errors": [{"code": "NO_SEATS", "message": "Sold out.", "hint": "Try tomorrow."}],
    }


def test_tool_failed_takes_a_message_alone() -> None:
    """Its code is then a usual one; hint and data are given by name."""
    failed = ToolFailed("No city by that name.", hint="Check it.", data={"closest": "Oslo"})
    assert (failed.code, failed.message) == ("TOOL_FAILED", "No city by that name.")
    assert (failed.hint, failed.data) == ("Check it.", {"closest": "Oslo"})
    assert (str(failed), failed.args) == ("No city by that name.", ("No city by that name.",))


async def test_arguments_that_cannot_become_what_the_function_takes() -> None:
    """A model that refuses in its own validator is an error about the arguments."""

    class Trip(pydantic.BaseModel):
        start: date

        @pydantic.field_validator("start")
        @classmethod
        def not_in_the_past(cls, value: date) -> date:
            if value.year < 2000:
                raise ValueError("is in the past")
            return value

    def travel(trip: Trip) -> str:
        return trip.start.isoformat()

    good = await dispatch([travel], "travel", {"trip": {"start": "2030-01-02"}})
    assert good.envelope.data == {"value": "2030-01-02"}
    bad = await dispatch([travel], "travel", {"trip": {"start": "1990-01-02"}})
    assert bad.envelope.error_codes == ("ARGUMENT_ERROR",)
    assert "is in the past" in bad.text
    assert not bad.executed


async def test_a_call_the_function_does_not_take_is_about_the_arguments() -> None:
    """A schema looser than the signature shows at the call itself."""

    def needs(a: int) -> int:
        return a

    loose = tool(parameters={"type": "object", "properties": {"a": {"type": "integer"}}})(needs)
    result = await dispatch([loose], "needs", {})
    assert result.envelope.error_codes == ("ARGUMENT_ERROR",)
    assert "'a'" in result.text


async def test_the_log_has_the_exception_and_not_the_arguments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What failed can be found by whoever runs the program."""

    def failing(password: str) -> None:
        raise RuntimeError("disk full")

    with caplog.at_level(logging.DEBUG, logger="surecall.tools"):
        await dispatch([failing], "failing", {"password": "hunter2-hunter2"})
    record = caplog.records[-1]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "disk full"
    assert "hunter2" not in record.getMessage()


def _returns(value: Any, **options: Any) -> Any:
    def answer() -> Any:
        return value

    return tool(name="answer", **options)(answer)


LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP


@dataclass(frozen=True)
class Replaced:
    id: str
    value: Any
    code: str
    data: dict[str, Any]


class Sized(pydantic.BaseModel):
    n: int


FRAME = '{"ok":true,"tool_name":"answer","data":{"value":},"warnings":[],"errors":[]}'
COUNTED = "oktool_namedatawarningserrorsvalueanswerfalse"
REPLACED = [
    Replaced(
        "long text",
        "x" * 301,
        "TOOL_OUTPUT_TOO_LARGE",
        {
            "estimated_bytes": len(COUNTED) + 301,
            "max_bytes": 300,
            "reason": "STRING_TOO_LARGE",
        },
    ),
    Replaced(
        "punctuation counts in the end",
        list(range(100)),
        "TOOL_OUTPUT_TOO_LARGE",
        {"bytes": len(FRAME) + len("[]") + 190 + 99, "max_bytes": 300},
    ),
    Replaced(
        "escapes count in the end",
        "\n" * 200,
        "TOOL_OUTPUT_TOO_LARGE",
        {"bytes": len(FRAME) + len('""') + 400, "max_bytes": 300},
    ),
]


@pytest.mark.parametrize("case", REPLACED, ids=lambda case: case.id)
async def test_an_answer_that_is_too_large_is_replaced(case: Replaced) -> None:
    """The sizes are told, and how to ask for less."""
    result = await dispatch(
        [_returns(case.value, effect="read")], "answer", limits=OutputLimits(max_bytes=300)
    )
    answer = shown(result)
    assert result.envelope.error_codes == (case.code,)
    assert answer["data"] == case.data
    assert "narrower query" in answer["errors"][0]["hint"]
    assert (result.executed, result.replaced, result.ok) == (True, True, False)


@pytest.mark.parametrize(
    "value",
    [LOOP, [LOOP], float("nan"), "\ud800", object(), {"a": {(1, 2): 3}}],
    ids=["cycle", "cycle in a list", "nan", "surrogate", "object", "key"],
)
async def test_an_answer_without_a_json_form_is_replaced(value: Any) -> None:
    """The class of the error and its message are told."""
    result = await dispatch([_returns(value)], "answer")
    answer = shown(result)
    assert result.envelope.error_codes == ("TOOL_OUTPUT_SERIALIZATION_ERROR",)
    assert sorted(answer["data"]) == ["error_class", "message"]
    assert answer["data"]["error_class"] == "JSONTextError"
    assert answer["errors"][0]["hint"] == "It has run: do not repeat the call."
    assert (result.executed, result.replaced) == (True, True)


async def test_models_and_sets_deep_inside_an_answer_are_written() -> None:
    """Not only the outermost value may be a model."""
    result = await dispatch([_returns({"rows": [Sized(n=1), {"set": {2}}]})], "answer")
    assert shown(result)["data"] == {"rows": [{"n": 1}, {"set": [2]}]}


async def test_a_model_that_cannot_be_dumped_is_a_serialization_error() -> None:
    """A broken answer is not a broken run."""

    class Broken:
        def model_dump(self, mode: str) -> Any:
            raise RuntimeError("no dump")

    result = await dispatch([_returns(Broken())], "answer")
    assert result.envelope.error_codes == ("TOOL_OUTPUT_SERIALIZATION_ERROR",)
    assert shown(result)["data"] == {"error_class": "RuntimeError", "message": "no dump"}


async def test_a_tool_with_effects_is_not_to_be_repeated_for_its_answer() -> None:
    """The model is told that it has run."""
    result = await dispatch([_returns("x" * 999)], "answer", limits=OutputLimits(max_bytes=300))
    error = shown(result)["errors"][0]
    assert error["message"].startswith("answer ran, but")
    assert error["hint"] == "It has run: do not repeat the call only to see its answer."


def _compact(envelope: dict[str, Any], tool_name: str, call_id: str) -> dict[str, Any]:
    assert envelope["tool_name"] == tool_name
    assert call_id == "tc_1"
    return {key: value for key, value in envelope.items() if value or key == "ok"}


async def test_transforms_shape_every_answer_also_replacements() -> None:
    """What the model sees is the transformed form; the record keeps the whole envelope."""
    options: dict[str, Any] = {"result_transforms": _compact, "limits": OutputLimits(max_bytes=300)}
    good = await dispatch([_returns("x")], "answer", **options)
    assert good.text == '{"ok":true,"tool_name":"answer","data":{"value":"x"}}'
    assert good.envelope == Envelope(ok=True, tool_name="answer", data={"value": "x"})
    large = await dispatch([_returns("x" * 999)], "answer", **options)
    assert sorted(shown(large)) == ["data", "errors", "ok", "tool_name"]
    unknown = await dispatch([_returns("x")], "other", **options)
    assert sorted(shown(unknown)) == ["errors", "ok", "tool_name"]


async def test_a_transform_that_fails_does_not_lose_the_result() -> None:
    """The model gets the plain form of an error, never an exception."""

    def broken(envelope: dict[str, Any], tool_name: str, call_id: str) -> dict[str, Any]:
        raise LookupError("no such key")

    result = await dispatch([_returns("x")], "answer", result_transforms=broken)
    assert shown(result)["errors"] == [
        {"code": "INTERNAL_ERROR", "message": "LookupError: no such key"}
    ]
    assert (result.executed, result.replaced) == (True, True)
    refused = await dispatch([_returns("x")], "other", result_transforms=broken)
    assert refused.envelope.error_codes == ("TOOL_NOT_ALLOWED",)
    assert shown(refused)["ok"] is False


async def test_a_schema_that_cannot_be_compiled_is_an_error_of_the_call() -> None:
    """Even then nothing is raised, and the tool does not run."""
    made = _returns("x")
    broken = type(made)(ToolSpec(name="answer", parameters={"type": 7}), made.function)  # pyright: ignore[reportUnknownArgumentType] - any function
    result = await dispatch([broken], "answer")
    assert result.envelope.error_codes == ("INTERNAL_ERROR",)
    assert not result.executed
