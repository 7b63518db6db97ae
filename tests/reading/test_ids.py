"""Ids and names of calls."""

from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.records import RawCall, Reading, Reply
from surecall.reading import read_reply

ASSIGN = "assign_call_id"
RENAME = "rename_repeated_id"
CLEAN = "clean_call_id"


@dataclass(frozen=True)
class IdCase:
    id: str
    sent: tuple[Any, ...]
    given: tuple[str, ...]
    rules: tuple[str, ...] = ()
    used: tuple[str, ...] = ()


CASES = (
    IdCase("clean", ("a", "b"), ("a", "b")),
    IdCase("missing", (None,), ("tc_1",), (ASSIGN,)),
    IdCase("empty", ("", "b"), ("tc_1", "b"), (ASSIGN,)),
    IdCase("blank", ("a", "  \n"), ("a", "tc_2"), (ASSIGN,)),
    IdCase("all missing", (None, None), ("tc_1", "tc_2"), (ASSIGN, ASSIGN)),
    IdCase("number", (7,), ("7",), (CLEAN,)),
    IdCase("number too long", (10**60,), ("tc_1",), (ASSIGN,)),
    IdCase("float", (7.5,), ("tc_1",), (ASSIGN,)),
    IdCase("boolean", (True,), ("tc_1",), (ASSIGN,)),
    IdCase("object", ({"id": "a"},), ("tc_1",), (ASSIGN,)),
    IdCase("space around", (" a ",), ("a",), (CLEAN,)),
    IdCase("repeated", ("a", "a", "a"), ("a", "a__2", "a__3"), (RENAME, RENAME)),
    IdCase("repeated after cleaning", ("7", 7), ("7", "7__2"), (RENAME,)),
    IdCase("suffix taken", ("a", "a__2", "a"), ("a", "a__2", "a__3"), (RENAME,)),
    IdCase("suffix taken later", ("a", "a", "a__2"), ("a", "a__2", "a__2__2"), (RENAME, RENAME)),
    IdCase("assigned one is taken", (None, "tc_1"), ("tc_1", "tc_1__2"), (ASSIGN, RENAME)),
    IdCase("used in an earlier turn", ("a", "b"), ("a__2", "b"), (RENAME,), used=("a",)),
    IdCase("assigned in an earlier turn", (None,), ("tc_1__2",), (ASSIGN,), used=("tc_1",)),
    IdCase("used twice", ("a",), ("a__3",), (RENAME,), used=("a", "a__2")),
)


def _read(ids: tuple[Any, ...], used: tuple[str, ...] = ()) -> Reading:
    calls = tuple(RawCall(call_id, "tool", "{}") for call_id in ids)
    return read_reply(Reply(calls=calls, finish_reason="tool_calls"), used_ids=used)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_call_gets_a_unique_id_and_each_change_a_receipt(case: IdCase) -> None:
    """Missing ids are assigned, repeated ones renamed, clean ones left alone."""
    reading = _read(case.sent, case.used)
    assert tuple(call.id for call in reading.calls) == case.given
    rules = [receipt.rule for call in reading.calls for receipt in call.receipts]
    assert tuple(rules) == case.rules


def test_the_same_input_gives_the_same_ids() -> None:
    """Nothing about the ids is random."""
    sent = ("a", "a", None, "", 4, "a")
    assert _read(sent).calls == _read(sent).calls


def test_odd_ids_are_also_findings_about_the_reply() -> None:
    """The defects say where."""
    reading = _read((None, "a", "a"))
    assert [(defect.code, defect.place) for defect in reading.defects] == [
        ("ID_NOT_USABLE", "/tool_calls/0/id"),
        ("ID_REPEATED", "/tool_calls/2/id"),
    ]


def test_many_calls_with_one_id_stay_cheap() -> None:
    """The search for an unused suffix goes on where it stopped."""
    reading = _read(("a",) * 20_000)
    assert reading.calls[-1].id == "a__20000"


def test_a_legacy_call_has_no_id_by_nature() -> None:
    """It gets one with a receipt, and no finding against its reply for it."""
    call = RawCall(None, "tool", "{}", "function_call")
    reading = read_reply(Reply(calls=(call,), finish_reason="function_call"))
    (receipt,) = reading.calls[0].receipts
    assert (reading.calls[0].id, receipt.after) == ("tc_1", "tc_1")
    assert receipt.rule == "assistant_function_call_to_tool_calls"
    assert reading.defects == ()


@pytest.mark.parametrize(
    ("sent", "name", "rules", "codes"),
    [
        pytest.param("tool", "tool", [], [], id="clean"),
        pytest.param(" tool\n", "tool", ["strip_name"], [], id="space around"),
        pytest.param("", "", [], ["NAME_NOT_USABLE"], id="empty"),
        pytest.param("  ", "", ["strip_name"], ["NAME_NOT_USABLE"], id="blank"),
        pytest.param(None, "", [], ["NAME_NOT_USABLE"], id="missing"),
        pytest.param(5, "", [], ["NAME_NOT_USABLE"], id="number"),
        pytest.param(["tool"], "", [], ["NAME_NOT_USABLE"], id="list"),
        pytest.param("../../x", "../../x", [], [], id="path"),
        pytest.param("tооl", "tооl", [], [], id="look-alike letters"),
    ],
)
def test_names_are_stripped_and_never_guessed(
    sent: Any, name: str, rules: list[str], codes: list[str]
) -> None:
    """A name is text without space around, or empty with a finding."""
    reading = read_reply(Reply(calls=(RawCall("a", sent, "{}"),), finish_reason="stop"))
    (call,) = reading.calls
    assert call.name == name
    assert [receipt.rule for receipt in call.receipts] == rules
    assert [defect.code for defect in reading.defects] == codes
