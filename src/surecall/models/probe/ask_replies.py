"""Questions about replies in words: which form can be demanded, and what a turn may hold."""

from typing import Any, Final

from surecall.base.errors import JSONTextError
from surecall.base.records import Message
from surecall.schema import SchemaChecker
from surecall.text import decode

from .ask_tools import second_turn
from .asker import CALL_NAMED, ECHO, ONE_CODE, PLAIN, Answered, Asker, Refused, question, user
from .findings import Finding, no, unclear, yes

# Asks for JSON, as some providers demand, but in a form that JSON mode does not allow.
_OBJECT: Final = (
    "First write the sentence 'Here it is.', and below it, inside a ```json fence, "
    'a JSON object that has the key "word" with the value "ping".'
)
_SCHEMA: Final = 'Name a fruit as JSON, as in {"fruit": "..."}. Use no other key.'
_GRAMMAR: Final = "Greet me in one short sentence."
_GRAMMAR_TEXT: Final = "surecall-q7"

_STABILITY_TEXTS: Final = tuple(
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


@question("Does response_format json_object hold?", "json_object", max_requests=1)
async def ask_json_object(asker: Asker) -> Finding:
    """Demand a JSON object while the question asks for words around it."""
    answer = await asker.try_ask(user(_OBJECT), response_format={"type": "json_object"})
    if isinstance(answer, Refused):
        return no(f"json_object is refused with {answer.said}", json_object=False)
    if answer.unusable:
        return unclear(f"a JSON object was demanded, but {answer.unusable}")
    if isinstance(_parse(answer.content), dict):
        return yes("asked for words around it, a bare object came", json_object=True)
    return no(f"json_object is accepted and ignored: {answer.said}", json_object=False)


@question(
    "Does response_format json_schema hold against a question that breaks it?",
    "json_schema",
    max_requests=1,
)
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
    if SchemaChecker(ONE_CODE).is_valid(_parse(answer.content)):
        return yes("asked for another shape, the schema's came", json_schema=True)
    return no(f"json_schema is accepted and ignored: {answer.said}", json_schema=False)


@question("Does a llama.cpp grammar hold?", "grammar", max_requests=1)
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


@question(
    "Is JSON that is written as plain text whole every time?",
    "json_stability",
    max_requests=len(_STABILITY_TEXTS),
)
async def ask_json_stability(asker: Asker) -> Finding:
    """Ask for JSON as plain text a few times and count what came out whole."""
    samples: list[Answered] = []
    for text in _STABILITY_TEXTS:
        answer = await asker.ask(user(text))
        if not answer.unusable:
            samples.append(answer)
    if len(samples) < _MIN_SAMPLES:
        return unclear(f"only {len(samples)} of {len(_STABILITY_TEXTS)} replies were complete")
    whole = sum(isinstance(_parse(_strip_fence(answer.content)), dict) for answer in samples)
    evidence = f"{whole} of {len(samples)} objects written as plain text were whole"
    if whole == len(samples):
        return yes(evidence, json_stability="high")
    share = whole / len(samples)
    return no(evidence, json_stability="medium" if share >= _MEDIUM_SHARE else "low")


def _parse(text: str) -> Any:
    try:
        return decode(text)
    except JSONTextError:
        return None


def _strip_fence(text: str) -> str:
    """Return what is inside a fence that is around the whole text."""
    if not (text.startswith("```") and text.endswith("```")):
        return text
    return text.removesuffix("```").partition("\n")[2].strip()


_WORD: Final = "teal"
_BEFORE: Final = (Message("user", PLAIN), Message("assistant", "ready"))
_MIDTURN: Final = Message("system", f"From now on, answer only with the single word: {_WORD}")
_AFTER: Final = Message("user", "Say one word.")


@question(
    "May a system message be in the middle of a conversation?",
    "allows_midturn_system",
    max_requests=2,
)
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


@question(
    "Must the reasoning of a turn with calls be sent back?", "needs_reasoning_echo", max_requests=3
)
async def ask_reasoning_echo(asker: Asker) -> Finding:
    """Send a turn with a call back without its reasoning, then with it."""
    first = await asker.try_ask(user(CALL_NAMED), tools=(ECHO,))
    if isinstance(first, Refused) or not first.reply.calls:
        return unclear("no structured call came, so there is no such turn")
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


REPLY_QUESTIONS: Final = (
    ask_json_object,
    ask_json_schema,
    ask_grammar,
    ask_midturn_system,
    ask_reasoning_echo,
    ask_json_stability,
)
