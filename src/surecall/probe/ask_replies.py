"""Whether the form of a text reply can be demanded, and how good it is when it cannot."""

from typing import Any, Final

from surecall.errors import Code, JSONTextError, ProviderError
from surecall.jsontext import decode
from surecall.records import Message
from surecall.schema import SchemaChecker

from .ask_tools import second_turn
from .asker import CALL_NAMED, ECHO, ONE_CODE, PLAIN, Answered, Asker, Refused, user
from .findings import Finding, no, quoted, unclear, yes

__all__ = [
    "STABILITY_TEXTS",
    "ask_grammar",
    "ask_json_object",
    "ask_json_schema",
    "ask_json_stability",
    "ask_midturn_system",
    "ask_reasoning_echo",
    "ask_streaming",
]

# Asks for JSON, as some providers demand, but in a form that JSON mode does not allow.
_OBJECT: Final = (
    "First write the sentence 'Here it is.', and below it, inside a ```json fence, "
    'a JSON object that has the key "word" with the value "ping".'
)
_SCHEMA: Final = 'Name a fruit as JSON, as in {"fruit": "..."}. Use no other key.'
_GRAMMAR: Final = "Greet me in one short sentence."
_GRAMMAR_TEXT: Final = "surecall-q7"

STABILITY_TEXTS: Final = tuple(
    f"Write a JSON object and nothing else, without a code fence: {wish}"
    for wish in (
        'the keys "name" and "age" for Ada, who is 36.',
        'the key "colours" with a list of three colours.',
        'the key "quote" with the text: She said "yes" and left.',
        'the keys "a" to "e", each with an object that has the keys "x" and "y" with a number.',
        'the key "lines" with a text of two lines.',
    )
)
_MIN_SAMPLES: Final = 3
_MEDIUM_SHARE: Final = 0.6


async def ask_json_object(asker: Asker) -> Finding:
    """Demand a JSON object while the question asks for words around it."""
    answer = await asker.try_ask(user(_OBJECT), response_format={"type": "json_object"})
    if isinstance(answer, Refused):
        return no(f"json_object is refused with {answer.said}", json_object=False)
    if answer.unusable:
        return unclear(f"a JSON object was demanded, but {answer.unusable}")
    if isinstance(_parsed(answer.content), dict):
        return yes("asked for words around it, a bare object came", json_object=True)
    return no(f"json_object is accepted and ignored: {answer.said}", json_object=False)


async def ask_json_schema(asker: Asker) -> Finding:
    """Demand a schema that the question asks to break."""
    wanted = {
        "type": "json_schema",
        "json_schema": {"name": "surecall_probe", "schema": ONE_CODE, "strict": True},
    }
    answer = await asker.try_ask(user(_SCHEMA), response_format=wanted)
    if isinstance(answer, Refused):
        return no(f"json_schema is refused with {answer.said}", json_schema=False)
    if answer.unusable:
        return unclear(f"a schema was demanded, but {answer.unusable}")
    if SchemaChecker(ONE_CODE).is_valid(_parsed(answer.content)):
        return yes("asked for another shape, the schema's came", json_schema=True)
    return no(f"json_schema is accepted and ignored: {answer.said}", json_schema=False)


async def ask_grammar(asker: Asker) -> Finding:
    """Send a llama.cpp grammar that allows one text only."""
    if asker.protocol.name != "chat_completions":
        return no(f"the wire format {asker.protocol.name} has no place for one", grammar=False)
    grammar = f'root ::= "{_GRAMMAR_TEXT}"'
    answer = await asker.try_ask(user(_GRAMMAR), params={"grammar": grammar})
    if isinstance(answer, Refused):
        return no(f"a grammar is refused with {answer.said}", grammar=False)
    if answer.content == _GRAMMAR_TEXT:
        return yes("asked for a greeting, the grammar's only text came", grammar=True)
    if answer.unusable:
        return unclear(f"a grammar was sent, but {answer.unusable}")
    return no(f"a grammar is accepted and ignored: {answer.said}", grammar=False)


async def ask_json_stability(asker: Asker) -> Finding:
    """Ask for JSON as plain text a few times and count what came out whole."""
    samples: list[Answered] = []
    for text in STABILITY_TEXTS:
        answer = await asker.ask(user(text))
        if not answer.unusable:
            samples.append(answer)
    if len(samples) < _MIN_SAMPLES:
        return unclear(f"only {len(samples)} of {len(STABILITY_TEXTS)} replies were complete")
    whole = sum(isinstance(_parsed(_unfenced(answer.content)), dict) for answer in samples)
    evidence = f"{whole} of {len(samples)} objects written as plain text were whole"
    if whole == len(samples):
        return yes(evidence, json_stability="high")
    share = whole / len(samples)
    return no(evidence, json_stability="medium" if share >= _MEDIUM_SHARE else "low")


def _parsed(text: str) -> Any:
    try:
        return decode(text)
    except JSONTextError:
        return None


def _unfenced(text: str) -> str:
    """Return what stands inside a fence that is around the whole text."""
    if not (text.startswith("```") and text.endswith("```")):
        return text
    return text.removesuffix("```").partition("\n")[2].strip()


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
