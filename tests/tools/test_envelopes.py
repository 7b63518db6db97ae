"""What tools return becomes an envelope."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest

from surecall.base.records import Envelope, ErrorDetail
from surecall.tools import envelope_of, render_envelope


class Point(msgspec.Struct):
    x: int
    inner: Any = None


@dataclasses.dataclass
class Pair:
    left: int
    right: Any


class Model(pydantic.BaseModel):
    when: str
    size: int


class Verdict(msgspec.Struct):
    ok: bool
    data: Any


def _success(data: dict[str, Any], **fields: Any) -> Envelope:
    return Envelope(ok=True, tool_name="t", data=data, **fields)


def _failure(data: dict[str, Any], **fields: Any) -> Envelope:
    return Envelope(ok=False, tool_name="t", data=data, **fields)


@dataclass(frozen=True)
class Case:
    id: str
    value: Any
    expected: Envelope


CASES = [
    Case("none", None, _success({})),
    Case("text", "hello", _success({"value": "hello"})),
    Case("number", 0, _success({"value": 0})),
    Case("list", [1, 2], _success({"value": [1, 2]})),
    Case("mapping", {"a": 1}, _success({"a": 1})),
    Case("empty mapping", {}, _success({})),
    Case("ok true", {"ok": True, "data": {"a": 1}}, _success({"a": 1})),
    Case("ok is one", {"ok": 1, "data": {"a": 1}}, _failure({"a": 1})),
    Case("ok is text", {"ok": "true"}, _failure({})),
    Case("ok is null", {"ok": None}, _failure({})),
    Case("data is a list", {"ok": True, "data": [1]}, _success({"value": [1]})),
    Case("data is null", {"ok": True, "data": None}, _success({})),
    Case("data is false", {"ok": True, "data": False}, _success({"value": False})),
    Case("keys beside data are dropped", {"ok": True, "data": {}, "secret": 1}, _success({})),
    Case("keys without data are data", {"ok": True, "id": 5}, _success({"id": 5})),
    Case("an error as one text", {"ok": False, "error": "gone"}, _failure({"error": "gone"})),
    Case("warnings", {"ok": True, "warnings": ["w", 1]}, _success({}, warnings=("w", 1))),
    Case("warnings not a list", {"ok": True, "warnings": "w"}, _success({})),
    Case(
        "errors",
        {"ok": False, "errors": [{"code": "E", "message": "m", "hint": "h", "more": 1}]},
        _failure({}, errors=(ErrorDetail("E", "m", "h"),)),
    ),
    Case(
        "errors become text",
        {"ok": False, "errors": [{"code": 404, "message": None, "path": "/a"}, "no", 3]},
        _failure({}, errors=(ErrorDetail("404", "", None, "/a"),)),
    ),
    Case(
        "error records",
        {"ok": False, "errors": (ErrorDetail("E", "m"),)},
        _failure({}, errors=(ErrorDetail("E", "m"),)),
    ),
    Case("errors not a list", {"ok": False, "errors": {"code": "E"}}, _failure({})),
    Case("another tool's name", {"ok": True, "tool_name": "other"}, _success({})),
    Case("struct", Point(1, Point(2)), _success({"x": 1, "inner": {"x": 2, "inner": None}})),
    Case("dataclass", Pair(1, {2}), _success({"left": 1, "right": [2]})),
    Case("pydantic", Model(when="now", size=2), _success({"when": "now", "size": 2})),
    Case("struct as data", {"ok": True, "data": Point(1)}, _success({"x": 1, "inner": None})),
    Case("struct with ok", Verdict(False, [1]), _failure({"value": [1]})),
    Case("envelope", Envelope(ok=True, tool_name="", data={"a": 1}), _success({"a": 1})),
    Case("dataclass class", Pair, _success({"value": Pair})),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_normalised(case: Case) -> None:
    """Every kind of answer has exactly one envelope."""
    assert envelope_of("t", case.value) == case.expected


def test_full_form_has_all_keys() -> None:
    """Optional parts of an error appear only when they are there."""
    envelope = Envelope(
        ok=False,
        tool_name="t",
        data={"a": 1},
        warnings=("w",),
        errors=(ErrorDetail("A", "one"), ErrorDetail("B", "two", "try", "/x")),
    )
    assert render_envelope(envelope) == {
        "ok": False,
        "tool_name": "t",
        "data": {"a": 1},
        "warnings": ["w"],
        "errors": [
            {"code": "A", "message": "one"},
            {"code": "B", "message": "two", "hint": "try", "path": "/x"},
        ],
    }


def test_lone_surrogates_in_our_own_words_become_question_marks() -> None:
    """A refusal that quotes what the model sent can always be encoded."""
    envelope = Envelope.failure("n\ud800", "C", "bad \udfff", hint="é")
    rendered = render_envelope(envelope)
    assert rendered["tool_name"] == "n?"
    assert rendered["errors"] == [{"code": "C", "message": "bad ?", "hint": "é"}]
