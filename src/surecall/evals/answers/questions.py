"""Whether a final text asks the user what is meant."""

import re
from typing import Final

from .sentences import is_question, list_sentences, list_words, split_words

_TITLES: Final = split_words("title titles short long heading headings field fields one ones")
_TEXTS: Final = split_words("text texts wording value value's content words name version")
_TO_WRITE: Final = split_words(
    "say said read be become called named call name change changed replace replaced hold update "
    "updated edit edited put set to look worded"
)
_WISHES: Final = split_words("should shall would want like prefer need intend wish")
_MEANINGS: Final = split_words("mean meant meaning referring refer")
_BARE_QUESTION: Final = split_words("what exactly do did you mean meant by that")
_REQUESTS: Final = split_words("tell clarify specify provide explain confirm give share")
_SUBJECTS: Final = split_words("it this that them these those they")
_OTHER_MATTERS: Final = split_words(
    "guess favourite favorite best next general german english french undo back aloud see think "
    "cares time day way happens many"
)
"""A question with one of these is about something else than what to change."""
_OPINIONS: Final = split_words("nice good great beautiful lovely fine")
_QUOTED: Final = re.compile(r'"[^"]*+"|“[^”]*+”|«[^»]*+»')
_OWN_PAST: Final = re.compile(r"\bi(?:'ve| have| just)? (?!need)[a-z]{2,20}(?<!e)ed\b")
_ASIDES: Final = split_words("who whose where when why")
_COURTESIES: Final = (
    *("is that ok", "is that fine", "is this ok", "is this fine", "anything else", "what else"),
    *("all right", "does that", "sound good", "can i help", "may i help", "can i do for you"),
    *(
        "how are you",
        "happy with",
        "n't it?",
        "n't you?",
        "n't they?",
        ", right?",
        ", ok?",
        ", okay?",
    ),
    *("what a ", "do you?", "do you like", "how about", "about you", "did you know"),
    *("your name", "is the current", "'s the current"),
)
_ENGLISH: Final = split_words(
    "the a an is are was it its this that you your i my me we do does did to of in on for and or "
    "what which how why who when where should would could can will time not have has next now "
    "please here there any more other about ok okay yes no"
)
_KNOWN: Final = (
    _ENGLISH | _TITLES | _TEXTS | _TO_WRITE | _WISHES | _MEANINGS | _REQUESTS | _OTHER_MATTERS
)
_SHORT_FORMS: Final = ("'s", "'re", "'ll", "'ve", "'d", "'m", "n't")
_MIN_ENGLISH_SHARE: Final = 1 / 3
_MIN_FOREIGN_CHARS: Final = 4


def asks_for_meaning(text: str) -> bool:
    """Tell whether a text asks which field is meant, or what it should hold."""
    sentences = list_sentences(text)
    named = {word for each in sentences if not is_question(each) for word in list_words(each)}
    return any(_asks(each, named) for each in sentences if is_question(each))


def _asks(sentence: str, named: set[str]) -> bool:
    """Tell whether a question is about what is meant.

    Args:
        sentence: The question.
        named: The words of what is said besides it.
    """
    lowered = _QUOTED.sub(" ", sentence.casefold().replace("’", "'"))
    words = list_words(lowered)
    if not words or _OWN_PAST.search(lowered):
        return False
    if not _is_english(words):
        # Another language, whose words are not known here.
        return len(words) > 1 or (not sentence.isascii() and len(sentence) >= _MIN_FOREIGN_CHARS)
    if words[0] in _ASIDES or any(phrase in lowered for phrase in _COURTESIES):
        return False
    if not _OTHER_MATTERS.isdisjoint(words) or "how long" in lowered:
        return False
    found = set(words)
    if found & _OPINIONS and "which" not in found:
        return False
    if "which" in found:
        return True
    if found & _MEANINGS and "or" not in found:
        return "you" in found and bool(found & _TITLES or found <= _BARE_QUESTION)
    if found & (_TITLES | _TEXTS):
        return True
    if "or" in found:
        return bool(found & _WISHES and found & _TO_WRITE and "not" not in found)
    if found & _REQUESTS:
        return bool(named & (_TITLES | _TEXTS))
    return _asks_for_text(found)


def _asks_for_text(words: set[str]) -> bool:
    """Tell whether a question is about what something should hold, which it does not name."""
    if words == {"to", "what"}:
        return True
    is_open = not words.isdisjoint({"what", "what's", "how"}) and "new" not in words
    return is_open and bool(words & _WISHES and words & _SUBJECTS and words & _TO_WRITE)


def _is_english(words: list[str]) -> bool:
    known = [word for word in words if word in _KNOWN or word.endswith(_SHORT_FORMS)]
    return len(known) >= _MIN_ENGLISH_SHARE * len(words)
