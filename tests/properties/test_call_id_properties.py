"""Call ids that a provider takes: whatever they were, no two of them meet."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.errors import ConfigError, RequestError
from surecall.base.records import Message, ToolCall
from surecall.exchange.provider_rules import HistoryRules, find_own_ids, fit_history
from surecall.wire.call_ids import find_id_shape

PATTERNS = (
    r"^[a-zA-Z0-9]{9}$",
    r"^[a-zA-Z0-9_-]{1,64}$",
    r"[A-Z]{3}-\d{6}",
    r"^call_[a-z0-9]{24}$",
    r"^toolu_01[A-Za-z0-9]{22}$",
    r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    r"^(?:call|tool)-(\d{2}){3}$",
    r"^(?=.{1,12}$)[a-z]+?$",
    r"(?i)^abc\w*$",
    r"^[^\W_]+$",
    r"^\d{2}$",
)
IDS = st.one_of(
    st.text(max_size=12),
    st.from_regex(r"call_\d{1,2}", fullmatch=True),
    st.from_regex(PATTERNS[0], fullmatch=True),
)


def turns_of(turns: list[list[str]]) -> tuple[Message, ...]:
    """Return a history in which each turn makes calls with these ids, answered backwards."""
    messages: list[Message] = []
    for ids in turns:
        calls = tuple(ToolCall(id=item, name="look", arguments={}) for item in ids)
        messages += [Message("user", "go"), Message("assistant", "", calls)]
        messages += [Message("tool", item, tool_call_id=item) for item in reversed(ids)]
    return tuple(messages)


@given(
    st.sampled_from(PATTERNS),
    st.lists(st.lists(IDS, min_size=1, max_size=4, unique=True), min_size=1, max_size=6),
)
def test_sent_ids_match_differ_and_stay(pattern: str, turns: list[list[str]]) -> None:
    """Every id matches, no two calls share one, results follow, and a longer history agrees."""
    history = turns_of(turns)
    rules = HistoryRules(id_pattern=pattern)
    sent, _ = fit_history(history, rules)
    ids = [call.id for message in sent for call in message.tool_calls]
    assert all(re.fullmatch(pattern, item) for item in ids)
    assert len(set(ids)) == len(ids) == sum(map(len, turns))
    names = {
        there.id: here.id
        for old, new in zip(history, sent, strict=True)
        for here, there in zip(old.tool_calls, new.tool_calls, strict=True)
    }
    results = [message for message in sent if message.role == "tool"]
    assert [names[message.tool_call_id or ""] for message in results] == [
        message.content for message in results
    ]
    assert find_own_ids(history, pattern) == {
        there: here for there, here in names.items() if there != here
    }
    shorter = turns_of(turns[:-1])
    assert fit_history(shorter, rules)[0] == sent[: len(shorter)]


@given(st.sets(st.text(max_size=8), min_size=11, max_size=14))
def test_ids_that_cannot_all_differ_are_refused(ids: set[str]) -> None:
    """Ten digits do not name eleven calls, and nobody looks for ever."""
    with pytest.raises(RequestError, match="more calls than there are ids for: 10"):
        fit_history(turns_of([sorted(ids)]), HistoryRules(id_pattern="^[0-9]$"))


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("^[", "not a regular expression"),
        (r"^(a)\1$", "too involved"),
        ("^(?!.).$", "too involved"),
    ],
)
def test_a_pattern_that_no_id_can_be_made_for_is_refused(pattern: str, says: str) -> None:
    """It is told before anything is sent."""
    with pytest.raises(ConfigError, match=says):
        find_id_shape(pattern)
