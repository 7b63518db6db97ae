"""Whether the form of a text reply can be demanded, and how good it is when it cannot."""

from typing import Any, Final

from surecall.errors import JSONTextError
from surecall.jsontext import decode
from surecall.schema import SchemaChecker

from .asker import Answered, Asker, Refused
from .dummy_tools import ONE_CODE, user
from .findings import Finding, no, unclear, yes

__all__ = [
    "STABILITY_TEXTS",
    "ask_grammar",
    "ask_json_object",
    "ask_json_schema",
    "ask_json_stability",
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
