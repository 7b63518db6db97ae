"""Whether a final text asks the user what is meant."""

from typing import Final

from .sentences import is_question, list_sentences, list_words, split_words

_TOPICS: Final = split_words(
    "title titles short long text texts wording field fields mean meant say said read new one ones "
    "name named call called change changed replace heading version"
)
_ASKING_WORDS: Final = split_words("which what what's how who whose where when")
_OFFERS: Final = split_words(
    "mean meant want like prefer should shall short long clarify tell specify change say"
)
"""What a question that is answered with yes or no has to be about."""
_WISHES: Final = split_words("should want would like prefer")
_OPINIONS: Final = split_words("nice good great beautiful lovely fine")
_ENGLISH: Final = split_words(
    "the a an is are was it its this that you your i my me we do does did to of in on for and or "
    "what which how why who when where should would could can will time not have has next now "
    "please here there any more other about ok okay yes no"
)
_SHORT_FORMS: Final = ("'s", "'re", "'ll", "'ve", "'d", "'m", "n't")
_REQUESTS: Final = split_words("tell clarify specify confirm explain")
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
    "like it?",
    "you like?",
    "you think",
    "what a ",
    "n't it?",
    "n't you?",
    ", right?",
    ", ok?",
    ", okay?",
)
_MIN_FOREIGN_CHARS: Final = 4


def asks_for_meaning(text: str) -> bool:
    """Tell whether a text asks the user what is meant, and more than whether all is well."""
    sentences = list_sentences(text)
    named = {word for each in sentences if not is_question(each) for word in list_words(each)}
    return any(_asks(each, named) for each in sentences if is_question(each))


def _asks(sentence: str, named: set[str]) -> bool:
    """Tell whether a question is about what is meant.

    Args:
        sentence: The question.
        named: The words of what is said besides it.
    """
    lowered, words = sentence.casefold().replace("’", "'"), list_words(sentence)
    if not words or words[0] == "why" or any(phrase in lowered for phrase in _COURTESIES):
        return False
    is_english = not _ENGLISH.isdisjoint(words) or any(w.endswith(_SHORT_FORMS) for w in words)
    if not is_english and _TOPICS.isdisjoint(words):
        # Another language, whose words are not known here.
        return len(words) > 1 or (not sentence.isascii() and len(sentence) >= _MIN_FOREIGN_CHARS)
    if len(words) == 1:
        return False
    is_open = not _ASKING_WORDS.isdisjoint(words)
    if not _OPINIONS.isdisjoint(words) and "which" not in words:
        return False
    is_wish = not _WISHES.isdisjoint(words) and "it" in words
    is_about = is_wish or not _TOPICS.isdisjoint(words)
    if not _REQUESTS.isdisjoint(words):
        is_about = is_about or not _TOPICS.isdisjoint(named)
    return is_about and (is_open or not _OFFERS.isdisjoint(words))
