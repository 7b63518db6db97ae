"""Histories in which every call has one result."""

from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import Code, RequestError
from surecall.base.records import Message, Receipt, ToolCall
from surecall.exchange.provider_rules import HistoryRules, fit_history
from surecall.loop.plan import complete_history, parse_history
from surecall.text import decode


def asks(*ids: str) -> Message:
    """Return an assistant message with calls."""
    calls = tuple(ToolCall(id=call_id, name=f"do_{call_id}", arguments={}) for call_id in ids)
    return Message("assistant", "", calls)


def answers(call_id: str) -> Message:
    """Return the result of a call."""
    return Message("tool", "{}", tool_call_id=call_id)


USER = Message("user", "hi")


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param((), id="empty"),
        pytest.param((USER, Message("assistant", "yes")), id="no calls"),
        pytest.param((USER, asks("a"), answers("a"), USER), id="one call"),
        pytest.param((asks("a", "b"), answers("b"), answers("a")), id="two calls in any order"),
        pytest.param((asks("a"), answers("a"), asks("a"), answers("a")), id="id used again"),
    ],
)
def test_a_complete_history_is_left_alone(messages: tuple[Message, ...]) -> None:
    """Nothing is added where nothing is missing."""
    assert complete_history(messages) == messages


@pytest.mark.parametrize(
    ("messages", "order"),
    [
        pytest.param((asks("a"),), ["assistant", "a"], id="at the end"),
        pytest.param((asks("a"), USER), ["assistant", "a", "user"], id="before a user message"),
        pytest.param(
            (asks("a", "b"), answers("b"), USER), ["assistant", "b", "a", "user"], id="one of two"
        ),
        pytest.param(
            (asks("a"), asks("b"), answers("b")), ["assistant", "a", "assistant", "b"], id="between"
        ),
    ],
)
def test_a_missing_result_is_added_in_its_place(
    messages: tuple[Message, ...], order: list[str]
) -> None:
    """The added result stands before the next message and says that the outcome is unknown."""
    complete = complete_history(messages)
    assert [message.tool_call_id or message.role for message in complete] == order
    added = [message for message in complete if message not in messages]
    for message in added:
        shown: Any = decode(message.text)
        assert shown["ok"] is False
        assert shown["tool_name"] == f"do_{message.tool_call_id}"
        assert shown["errors"][0]["code"] == Code.OUTCOME_UNKNOWN
    assert complete_history(complete) == complete


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param((answers("a"),), id="no call at all"),
        pytest.param((asks("b"), answers("a")), id="another call"),
        pytest.param((asks("a"), answers("a"), answers("a")), id="answered twice"),
        pytest.param((asks("a"), USER, answers("a")), id="too late"),
        pytest.param((asks("a", "a"), answers("a"), answers("a")), id="two calls with one id"),
        pytest.param((asks("a", "a"),), id="two calls with one id and no result"),
    ],
)
def test_a_history_that_cannot_be_paired_is_refused(messages: tuple[Message, ...]) -> None:
    """A provider would refuse it; the caller is told what is wrong."""
    with pytest.raises(RequestError) as caught:
        complete_history(messages)
    assert caught.value.code == Code.INVALID_MESSAGE
    assert caught.value.hint


def test_history_items_of_any_kind_become_messages() -> None:
    """Text is the user's, mappings and messages are taken as they say."""
    items = ["hi", {"role": "assistant", "content": "yes"}, USER]
    assert parse_history(items) == (USER, Message("assistant", "yes"), USER)


def system(text: str) -> Message:
    """Return a system message."""
    return Message("system", text)


ONE_EACH = HistoryRules(one_call_each=True)
SYSTEM_FIRST = HistoryRules(system_first=True)
SIGNED: dict[str, list[Any]] = {"thinking_blocks": []}
NOTE = "[System message:]\nNote."


@pytest.mark.parametrize(
    ("rules", "messages", "sent"),
    [
        pytest.param(
            ONE_EACH,
            (USER, asks("a", "b"), answers("b"), answers("a"), USER),
            (USER, asks("a"), answers("a"), asks("b"), answers("b"), USER),
            id="calls-in-one-message",
        ),
        pytest.param(
            ONE_EACH,
            (
                Message("assistant", "Now.", asks("a", "b").tool_calls, extra={"x": 1}),
                answers("a"),
                answers("b"),
            ),
            (
                Message("assistant", "Now.", asks("a").tool_calls, extra={"x": 1}),
                answers("a"),
                asks("b"),
                answers("b"),
            ),
            id="text-and-thoughts-stay-with-the-first-call",
        ),
        pytest.param(ONE_EACH, (asks("a"), answers("a")), (asks("a"), answers("a")), id="one-call"),
        pytest.param(
            SYSTEM_FIRST,
            (system("A"), Message("developer", "B"), USER),
            (system("A"), Message("developer", "B"), USER),
            id="leading-system-messages-stay",
        ),
        pytest.param(
            SYSTEM_FIRST,
            (USER, Message("assistant", "yes"), system("Note."), USER),
            (USER, Message("assistant", "yes"), Message("user", f"{NOTE}\n\nhi")),
            id="before-the-user",
        ),
        pytest.param(
            SYSTEM_FIRST,
            (USER, Message("developer", "Note."), Message("assistant", "yes"), USER, USER),
            (Message("user", f"hi\n\n{NOTE}"), Message("assistant", "yes"), USER, USER),
            id="behind-the-user",
        ),
        pytest.param(
            SYSTEM_FIRST,
            (asks("a"), answers("a"), system("Note.")),
            (asks("a"), answers("a"), Message("user", NOTE)),
            id="behind-a-result",
        ),
        pytest.param(
            SYSTEM_FIRST,
            (Message("user", [{"type": "text", "text": "hi"}]), system("Note.")),
            (Message("user", [{"type": "text", "text": "hi"}]), Message("user", NOTE)),
            id="beside-parts",
        ),
        pytest.param(
            HistoryRules(echo_reasoning=True),
            (USER, asks("a"), answers("a"), Message("assistant", "yes")),
            (
                USER,
                replace(asks("a"), extra={"reasoning_content": ""}),
                answers("a"),
                Message("assistant", "yes"),
            ),
            id="calls-without-reasoning",
        ),
        pytest.param(
            HistoryRules(echo_reasoning=True),
            (replace(asks("a"), extra={"reasoning": "so"}), answers("a")),
            (replace(asks("a"), extra={"reasoning": "so"}), answers("a")),
            id="reasoning-of-its-own",
        ),
    ],
)
def test_a_history_is_sent_as_its_provider_demands(
    rules: HistoryRules, messages: tuple[Message, ...], sent: tuple[Message, ...]
) -> None:
    """The change is named, and nothing is when nothing had to change."""
    fitted, changes = fit_history(messages, rules)
    assert fitted == sent
    assert len(changes) == (messages != sent)


def test_ids_go_back_as_they_were_sent_where_nothing_is_to_be_mended() -> None:
    """Calls and results get the id under which the model made them; the history keeps its own."""
    renamed = Receipt("rename_repeated_id", "/tool_calls/1/id", "same", "same__2")
    second = ToolCall(id="same__2", name="do", arguments={}, receipts=(renamed,))
    first = ToolCall(id="same", name="do", arguments={})
    history = (USER, Message("assistant", "", (first, second)), answers("same"), answers("same__2"))
    sent, changes = fit_history(history, HistoryRules(ids_as_sent=True))
    assert [call.id for call in sent[1].tool_calls] == ["same", "same"]
    assert [message.tool_call_id for message in sent[2:]] == ["same", "same"]
    assert changes == ("restore_call_ids",)
    assert history[1].tool_calls[1].id == "same__2"
