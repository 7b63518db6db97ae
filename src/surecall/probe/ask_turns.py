"""How replies come, and what a conversation may hold."""

from typing import Final

from surecall.errors import Code, ProviderError
from surecall.records import Message

from .ask_calls import second_turn
from .asker import Answered, Asker, Refused
from .dummy_tools import CALL_NAMED, ECHO, PLAIN, user
from .findings import Finding, no, quoted, unclear, yes

__all__ = ["ask_midturn_system", "ask_reasoning_echo", "ask_streaming"]

_WORD: Final = "teal"
_BEFORE: Final = (Message("user", PLAIN), Message("assistant", "ready"))
_MIDTURN: Final = Message("system", f"From now on, answer only with the single word: {_WORD}")
_AFTER: Final = Message("user", "Say one word.")


async def ask_streaming(asker: Asker) -> Finding:
    """Ask for the same call whole and streamed, and compare."""
    whole = await asker.try_ask(user(CALL_NAMED), tools=(ECHO,))
    tools = (ECHO,)
    if isinstance(whole, Refused) or not whole.calls(ECHO):
        whole, tools = await asker.ask(user(PLAIN)), ()
    question = CALL_NAMED if tools else PLAIN
    if whole.unusable:
        return unclear(f"there is no whole reply to compare with: {whole.unusable}")
    differences: list[str] = []
    for attempt in (1, 2):
        try:
            streamed = await asker.try_ask(
                user(question), tools=tools, stream=True, attempt=attempt
            )
        except ProviderError as error:
            if error.code != Code.STREAM_TRUNCATED:
                raise
            differences.append("it ended without a finish")
            continue
        if isinstance(streamed, Refused):
            return no(f"streaming is refused with {streamed.said}", streaming=False)
        if streamed.came_whole:
            return no("a stream was asked for, and a whole reply came", streaming=False)
        difference = _difference(whole, streamed)
        if difference is None:
            return _streams(differences)
        differences.append(difference)
    if differences == ["it ended without a finish"] * 2:
        return no("a stream came twice and never had a finish", streaming=False)
    return no(
        f"the same reply, streamed: {'; then '.join(differences)}",
        streaming=True,
        stream_equals_whole=False,
    )


def _streams(differences: list[str]) -> Finding:
    if differences:  # equal the second time: sampling, or a stream that breaks at times
        return yes(f"once equal, once not: {differences[0]}", streaming=True)
    return yes("streamed and whole, the same came", streaming=True, stream_equals_whole=True)


def _difference(whole: Answered, streamed: Answered) -> str | None:
    """Say in what way a streamed reply carries less or other than the whole one."""
    expected = [(call.name, call.arguments) for call in whole.calls(ECHO)]
    found = [(call.name, call.arguments) for call in streamed.calls(ECHO)]
    if len(found) != len(expected):
        return f"{len(found)} calls instead of {len(expected)}"
    if found != expected:
        return f"other arguments: {quoted(str(found[0][1]))}"
    if bool(whole.reply.calls) != bool(streamed.reply.calls):
        return "the call came as text in one of them"
    if whole.reply.finish_reason != streamed.reply.finish_reason:
        return f"finish reason {quoted(streamed.reply.finish_reason)}"
    if not expected and whole.content and not streamed.content:
        return "no text"
    return None


async def ask_midturn_system(asker: Asker) -> Finding:
    """Send a system message in the middle of a conversation."""
    answer = await asker.try_ask((*_BEFORE, _MIDTURN, _AFTER))
    if isinstance(answer, Refused):
        return no(f"it is refused with {answer.said}", allows_midturn_system=False)
    if answer.unusable:
        return unclear(f"it is accepted, but {answer.unusable}")
    if _WORD in answer.content.lower():
        return yes("it is accepted and followed", allows_midturn_system=True)
    without = await asker.ask((*_BEFORE, _AFTER))
    count = answer.prompt_tokens
    if count and count == without.prompt_tokens:
        return no(
            f"it is dropped silently: {count} tokens in the prompt with it and without",
            allows_midturn_system=False,
        )
    return unclear(f"it is accepted but not followed: {answer.said}")


async def ask_reasoning_echo(asker: Asker) -> Finding:
    """Send a turn with a call back without its reasoning, then with it."""
    first = await asker.try_ask(user(CALL_NAMED), tools=(ECHO,))
    if isinstance(first, Refused) or not first.reply.calls:
        return unclear("no structured call came, so that there is no such turn")
    plain = await asker.try_ask(second_turn(first), tools=(ECHO,))
    if isinstance(plain, Answered):
        sent = "some" if first.reply.reasoning else "none"
        evidence = f"the turn is taken without reasoning; the model had sent {sent}"
        return no(evidence, needs_reasoning_echo=False)
    extra = first.reply.extra or {"reasoning_content": ""}  # some demand the field, blank or not
    again = await asker.try_ask(second_turn(first, extra), tools=(ECHO,))
    if isinstance(again, Refused):
        return unclear(f"the turn is refused with its reasoning too, with {again.said}")
    return yes(f"without it the turn is refused with {plain.said}", needs_reasoning_echo=True)
