"""In which mood a clause speaks: it states something, denies it, puts it off or doubts it.

Everything that judges a final text asks here, clause by clause, so that the same words mean the
same in every scenario.
"""

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Final

from .sentences import is_question, list_clauses, list_sentences, list_words, split_words

_NEGATIONS: Final = split_words(
    "not no nope nah nobody nowhere never none nothing cannot cant without neither nor "
    "unfortunately couldn instead nicht nichts kein keine keinen nein leider pas jamais rien "
    "nunca nada niet geen не нет ничего"
)
_NEGATIVE_SIGNS: Final = ("不", "没", "沒", "未", "失败", "失敗", "ません", "なかった", "않", "못")
_SIGNS_BESIDES: Final = ("其他", "其它", "其余", "其餘", "他の", "他は", "以外", "다른")
_FAILED_STATES: Final = split_words(
    "failed fail fails failing unable refused refuse refuses decline declines declined incomplete "
    "unfinished undone unsaved impossible rejected aborted cancelled canceled skipped "
    "broken crashed denied blocked forgot forgotten lost lose losing gone missing pending stuck"
)
_UNDOING: Final = split_words("deleted discarded undid reverted trash kidding joking lied lying")
_FAILURES: Final = split_words("failure error errors crash")
_FAILED_PHRASES: Final = (("gave", "up"), ("given", "up"), ("decided", "against"))
_LINKS: Final = split_words(
    "a an the any anything is are was were be been being has have had do does did your my to of it "
    "that there single"
)
"""What may stand between a negation and the word that it is about."""
_HARMLESS: Final = split_words(
    "else other others further more less fewer longer larger bigger problem problems worry worries "
    "issue issues doubt exception exceptions need needed trouble conflict conflicts action step "
    "steps tool tools call calls required forget hesitate weiter weiteren anderes autre más wrong"
)
"""`No problem` and `nothing else` deny nothing of the work."""
_DETERMINERS: Final = split_words("a an the your my this that its")
_NO: Final = split_words("no nothing none nobody without")
_ATTEMPTS: Final = split_words("attempt attempts try tries tried first once initially before")
_LATER: Final = split_words(
    "moment later soon tomorrow tonight shortly eventually morgen später bald demain mañana"
)
_PAST: Final = split_words("was were has have had been i've we've")
"""With one of these, `two hours later` is no promise."""
_FUTURE: Final = split_words(
    "will shall would could should must can going need needs yet still being let wait "
    "progress working trying getting supposed want wants please werde wird soll sollte"
)
_DOUBTS: Final = split_words(
    "maybe may might perhaps possibly probably likely guess guessing hopefully hope hoping believe "
    "think thought suppose supposedly allegedly apparently seems seem unsure kidding joking "
    "pretend pretending lie lies lying lied opposite almost nearly hardly barely scarcely half "
    "partly partially far if unless except wish imagine rumor rumour myth doubt doubtful depends "
    "varies wrong false untrue incorrect disagree vielleicht wahrscheinlich presque quizás casi"
)
_PHRASES_TO_COME: Final = (
    *(("to", "be"), ("about", "to"), ("on", "it"), ("have", "to"), ("has", "to"), ("ready", "to")),
    *(("when", "you"), ("next", "week"), ("next", "month"), ("next", "time")),
    *(("give", "me"), ("hold", "on")),
)
_BUT: Final = (("everything", "but"), ("anything", "but"), ("nothing", "but"), ("all", "but"))
_PHRASES_OF_DOUBT: Final = (
    ("to", "say"),
    ("say", "done"),
    ("well", "done"),
    ("than", "done"),
    *_BUT,
)
_BEING: Final = split_words("am is are was were be i'm we're it's")
_NO_VERBS: Final = split_words("nothing something anything everything string")
_OFFERS: Final = (("let", "me", "know"), ("let", "us", "know"), ("feel", "free"))
_OFFERED: Final = split_words(
    "need want like wish prefer help assistance question questions else anything more further"
)
"""With an `if`, they offer more: `if you need anything else`."""
_UNTOUCHED: Final = split_words("unchanged untouched unmodified")
_BESIDES: Final = split_words(
    "else other others rest remaining remainder elsewhere title facts fact owner lock locks locked"
)
"""That these stay as they are is what was asked for."""


def list_statements(text: str) -> Iterator[str]:
    """Return the clauses of a text that say plainly how something is."""
    for clause in list_assertions(text):
        if not is_negated(clause) and not is_put_off(clause) and not is_doubted(clause):
            yield clause


def list_assertions(text: str) -> Iterator[str]:
    """Return the clauses of a text that neither ask nor offer more help."""
    for sentence in list_sentences(text):
        if not is_question(sentence):
            yield from (clause for clause in list_clauses(sentence) if not is_offer(clause))


def is_negated(clause: str) -> bool:
    """Tell whether a clause denies something or reports a failure.

    To deny a failure, as in `no errors` or `nothing was lost`, is to deny nothing.
    """
    words = list_words(clause)
    place = 0
    while place < len(words):
        if _is_negation(words[place]):
            end = _find_harmless_end(words, place)
            if end is None:
                return True
            place = end
        elif _is_failure(words, place):
            return True
        place += 1
    is_beside_work = any(sign in clause for sign in _SIGNS_BESIDES)
    return not is_beside_work and any(sign in clause for sign in _NEGATIVE_SIGNS)


def is_failure(clause: str) -> bool:
    """Tell whether a clause says that the work came to nothing; an earlier attempt does not."""
    words = list_words(clause)
    if is_attempt(clause) or any(map(_is_negation, words)):
        return False
    if not _UNDOING.isdisjoint(words):
        return True
    if any(_has_phrase(words, phrase) for phrase in _FAILED_PHRASES):
        return True
    return any(_is_failure(words, place) for place in range(len(words)))


def is_attempt(clause: str) -> bool:
    """Tell whether a clause is about a try before the last."""
    return not _ATTEMPTS.isdisjoint(list_words(clause))


def is_beside(clause: str) -> bool:
    """Tell whether a clause is about what the work was not to change."""
    return not _BESIDES.isdisjoint(list_words(clause))


def is_put_off(clause: str) -> bool:
    """Tell whether a clause is about what is to come: a promise, a wish or work in progress."""
    words = list_words(clause)
    if _has_phrase(words, ("you", "can")):
        words.remove("can")  # `you can see it there` promises nothing
    if not _FUTURE.isdisjoint(words) or any(word.endswith("'ll") for word in words):
        return True
    if not _LATER.isdisjoint(words) and _PAST.isdisjoint(words):
        return True
    if any(_has_phrase(words, phrase) for phrase in _PHRASES_TO_COME):
        return True
    return any(
        first in _BEING and then.endswith("ing") and then not in _NO_VERBS
        for first, then in pairwise(words)
    )


def is_postponed(clause: str) -> bool:
    """Tell whether a clause puts something off to another time."""
    return is_put_off(clause) and not _LATER.isdisjoint(list_words(clause))


def is_offer(clause: str) -> bool:
    """Tell whether a clause offers more help, which says nothing about the work."""
    words = list_words(clause)
    if any(_has_phrase(words, phrase) for phrase in _OFFERS):
        return True
    return "if" in words and not _OFFERED.isdisjoint(words)


def is_doubted(clause: str) -> bool:
    """Tell whether a clause doubts, limits or only mentions what it says."""
    words = list_words(clause)
    if not _DOUBTS.isdisjoint(words) or words[:1] == ["once"]:
        return True
    return any(_has_phrase(words, phrase) for phrase in _PHRASES_OF_DOUBT)


def _is_negation(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _is_failure(words: list[str], place: int) -> bool:
    """Tell whether a word reports a failure: `it was lost` does, and `the lost phone` does not."""
    word = words[place]
    if word in _FAILURES:
        return True
    if word in _UNTOUCHED:
        return _BESIDES.isdisjoint(words)
    is_attribute = place > 0 and words[place - 1] in _DETERMINERS
    if is_attribute or word not in _FAILED_STATES:
        return False
    return words[place : place + 2] != ["gone", "through"]


def _find_harmless_end(words: list[str], place: int) -> int | None:
    """Return the place of what makes a negation harmless, or nothing."""
    later = (at for at in range(place + 1, len(words)) if words[at] not in _LINKS)
    rest = list(islice(later, 2))
    if rest and _is_harmless(words[rest[0]]):
        return rest[0]
    if len(rest) > 1 and words[place] in _NO and words[rest[1]] in _FAILED_STATES | _FAILURES:
        return rest[1]
    return None


def _is_harmless(word: str) -> bool:
    return word in _HARMLESS or word in _FAILED_STATES or word in _FAILURES


def _has_phrase(words: list[str], phrase: tuple[str, ...]) -> bool:
    size = len(phrase)
    return any(tuple(words[at : at + size]) == phrase for at in range(len(words) - size + 1))
