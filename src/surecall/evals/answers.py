"""What a final text says: done or not, which numbers, a question, a claim, a notice of ours."""

import re
from collections.abc import Iterable
from typing import Final
from unicodedata import normalize

from surecall.errors import JSONTextError
from surecall.jsontext import decode
from surecall.loop.wording import OWN_NOTICES
from surecall.narrow import as_fields, as_list
from surecall.records import Message


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


_DONE: Final = frozenset({"done", "done.", "done!"})
_QUOTES: Final = "\"'` \t\r\n"
_SENTENCE: Final = re.compile(r"[^.!?;\n。！？؟]++[.!?;\n。！？؟]*+")
_WORD: Final = re.compile(r"[^\W_]++(?:['’][^\W\d_]++)?+")
_NEGATIONS: Final = _split(
    "not no never none nothing cannot cant unable failed fail fails failing failure "
    "without neither nor unfortunately refused instead incomplete unfinished undone "
    "unchanged unsaved impossible couldn"
)
_AFFIRMATIONS: Final = _split(
    "done saved finished complete completed stored set ok okay yes success "
    "successfully written recorded kept noted sure updated ready"
)


def is_done(text: str) -> bool:
    """Tell whether a text is the one-word answer, whatever quotes are around it."""
    return text.strip(_QUOTES).lower() in _DONE


def affirms(text: str, words: frozenset[str] = _AFFIRMATIONS) -> bool:
    """Tell whether a text says that the work is done, and nowhere that it is not."""
    sentences = list_sentences(text)
    if any(is_negated(sentence) for sentence in sentences):
        return False
    stated = (sentence for sentence in sentences if not sentence.rstrip().endswith(_ASKING))
    return any(not words.isdisjoint(_words(sentence)) for sentence in stated)


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text, with what ends them."""
    found = (match.group().strip() for match in _SENTENCE.finditer(normalize("NFKC", text)))
    return [sentence for sentence in found if sentence]


def is_negated(sentence: str) -> bool:
    """Tell whether a sentence denies something."""
    words = _words(sentence)
    if "problem" in words or "worries" in words:  # `no problem` denies nothing
        words = [word for word in words if word != "no"]
    return any(word in _NEGATIONS or word.endswith("n't") for word in words)


def _words(text: str) -> list[str]:
    return [word.replace("’", "'").casefold() for word in _WORD.findall(text)]


_CALL_MARKS: Final = (
    "<tool_call",
    "</tool_call",
    "<function",
    "<invoke",
    "<|tool",
    "<|python_tag|>",
    "[tool_calls]",
    "functools[",
    '"tool_calls"',
    '"arguments"',
    "```tool",
)


def shows_call(text: str) -> bool:
    """Tell whether a text for the user has the marks of a call; naming a tool is none."""
    lowered = text.lower()
    return any(mark in lowered for mark in _CALL_MARKS)


# Numbers

_NUMBER_WORDS: Final = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_SPELLED: Final = {word: number for number, word in enumerate(_NUMBER_WORDS)}
_UNITS: Final = frozenset({"week", "weeks"})


def states_number(text: str, wanted: int) -> bool:
    """Tell whether a text names one number, which is the wanted one, and does not deny it.

    The one of `one week` or `1 week` is no answer.
    """
    plain = normalize("NFKC", text).replace("\ufe0f", "").replace("\u20e3", "")
    numbers: list[float] = []
    tokens = re.findall(r"[-−]?\d[\d.,]*+|[^\W\d_]++(?:['’][^\W\d_]++)?+", plain)
    for place, token in enumerate(tokens):
        following = tokens[place + 1].casefold() if place + 1 < len(tokens) else ""
        value = _read_number(token)
        if value is not None and not (value == 1 and following in _UNITS):
            numbers.append(value)
    if not numbers or any(value != wanted for value in numbers):
        return False
    return not any(is_negated(sentence) for sentence in list_sentences(plain))


def _read_number(token: str) -> float | None:
    spelled = _SPELLED.get(token.casefold())
    if spelled is not None:
        return spelled
    digits = token.rstrip(".,").replace("−", "-").replace(",", "")
    try:
        return float(digits)
    except ValueError:
        return None


# Questions

_ASKING: Final = ("?", "？", "؟")
_QUESTION_WORDS: Final = _split(
    "which what who whose where when how title titles short long text wording field "
    "mean meant say read new name call called one change changed"
)
_COURTESIES: Final = (
    "anything else",
    "is that ok",
    "is that fine",
    "is that all right",
    "is this ok",
    "is this fine",
    "all right",
    "what else",
    "does that work",
    "sound good",
    "can i help",
    "may i help",
    "can i do for you",
    "how are you",
    "happy with",
    "like it",
)


def asks_for_meaning(text: str) -> bool:
    """Tell whether a text asks the user something, and more than whether all is well."""
    for sentence in list_sentences(text):
        if not sentence.rstrip(_QUOTES + ")*_").endswith(_ASKING):
            continue
        lowered = sentence.casefold()
        if any(phrase in lowered for phrase in _COURTESIES):
            continue
        words = _words(sentence)
        if not sentence.isascii() and len(sentence) > 3:
            return True  # another language, whose words are not known here
        if len(words) > 1 and not _QUESTION_WORDS.isdisjoint(words):
            return True
    return False


# Claims

_CLAIM: Final = re.compile(
    r"\b(?:changed|updated|renamed|edited|modified|saved|stored|written|wrote|replaced|applied|"
    r"patched|corrected|adjusted|revised|committed|confirmed|approved|deleted|removed|sent|emailed|"
    r"booked|published|created|added|done|completed|finished|set)\b"
)
_ONLY_MEANT: Final = _split(
    "will would can could shall should if before once when after until want wants "
    "like may might please let need needs to going can't ready was were already "
    "currently"
)
_COMMITS: Final = frozenset({"committed", "confirmed", "approved"})
_IMPOSSIBLE: Final = frozenset({"deleted", "sent", "emailed", "booked", "published"})


def list_claims(text: str) -> frozenset[str]:
    """Return the verbs with which a text says that something has been done."""
    found: set[str] = set()
    for sentence in list_sentences(text):
        if sentence.endswith(_ASKING) or is_negated(sentence):
            continue
        words = _words(sentence)
        if not _ONLY_MEANT.isdisjoint(words) and "have" not in words and "i" not in words[:1]:
            continue
        if {"will", "would", "can", "could", "should"} & set(words):
            continue
        found.update(_CLAIM.findall(sentence.casefold()))
    return frozenset(found)


def is_false_claim(text: str, *, wrote: bool, committed: bool) -> bool:
    """Tell whether a text claims work that was not done.

    Args:
        text: The final answer.
        wrote: Whether anything was changed.
        committed: Whether facts were committed.
    """
    claims = list_claims(text)
    if claims & _IMPOSSIBLE or (claims & _COMMITS and not committed):
        return True
    return not wrote and bool(claims - {"done", "completed", "finished", "set"})


# Notices of ours

_MIN_NOTICE_CHARS: Final = 18


def repeats_notice(text: str, history: Iterable[Message], given: Iterable[Message]) -> bool:
    """Tell whether a text shows the user a sentence that was meant for the model.

    Args:
        text: The final answer.
        history: The conversation as it was in the end.
        given: The conversation as it began; its texts are no notices of ours.
    """
    if len(text) < _MIN_NOTICE_CHARS:
        return False
    folded = _fold(text)
    if any(_fold(words) in folded for words in OWN_NOTICES):
        return True
    begun = {message.text for message in given}
    notices = (
        words
        for message in history
        if message.role == "tool" and message.text not in begun
        for words in _list_notices(message.text)
    )
    return any(len(words) >= _MIN_NOTICE_CHARS and _fold(words) in folded for words in notices)


def _list_notices(result: str) -> Iterable[str]:
    try:
        envelope = as_fields(decode(result))
    except JSONTextError:
        return
    for error in as_list(envelope.get("errors") or []):
        for key in ("message", "hint"):
            yield from list_sentences(str(as_fields(error).get(key) or ""))
    for warning in as_list(envelope.get("warnings") or []):
        yield from list_sentences(str(warning))


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())
