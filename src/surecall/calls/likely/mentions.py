"""Whether calls in a text are made there, or only spoken of.

What is judged is the text around them: the line, the fence, the sentence before and the one
behind. A question, an example, a condition, a quotation, a program or a report of what was done
make a call a mention.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from surecall.calls.formats import TextCall

from . import phrases
from .documents import why_document, why_lines
from .layout import Fence, Layout, Span

_SPOKEN: Final = "the text before it speaks of a call that could be made"
_PART: Final = "it is a part of a sentence"
_GOES_ON: Final = "the sentence goes on about it"
_SENTENCE: Final = "the sentence speaks of a call that could be made"
_BELOW: Final = "the sentence goes on below it"
_QUOTED: Final = "it is in quotation marks"
_NAMED: Final = "only its name is mentioned"
_QUOTED_LINE: Final = "it is in a quoted line"
_DIALOGUE: Final = "it is in a dialogue"
_LANGUAGE: Final = "it is in a block of code of another language"
IN_WORDS: Final = frozenset(
    {
        _SPOKEN, _PART, _GOES_ON, _SENTENCE, _BELOW, _QUOTED, _NAMED, _QUOTED_LINE, _DIALOGUE,
        _LANGUAGE,
    }
)  # fmt: skip
"""What the words and marks around a call say, which the rest of a damaged one may be."""


class Place(Struct, frozen=True):
    """Calls next to each other: where they stand, and how much of the text they are."""

    start: int
    end: int
    is_tag: bool = False
    is_in_list: bool = False
    """Whether brackets stand around them, or quotes inside brackets."""
    has_arguments: bool = True
    subjects: frozenset[str] = frozenset()
    """Words that the calls are about."""


def why_mention(layout: Layout, place: Place, fence: Fence | None) -> str:
    """Return why calls are only spoken of; empty when they are made.

    Args:
        layout: The whole text.
        place: Where the calls stand.
        fence: The block of code they are in, if any.
    """
    text, rest = layout.text, layout.candidates
    start, end = place.start, place.end
    if why := why_document(layout, start):
        return why
    if fence is not None:
        if fence.language.split(" ")[0] not in phrases.CALL_LANGUAGES:
            return _LANGUAGE
        if layout.is_program(fence):
            return "it is a part of a program"
        if phrases.COMMENT_LINE.match(text, text.rfind("\n", 0, start) + 1, start):
            return "it is in a comment"
        start, end = fence.start, fence.end
    else:
        why = _judge_line(layout, place)
        if why:
            return why
    lead, trail = lead_of(text, start), trail_of(text, end)
    if phrases.GOES_ON_BELOW.match(trail):
        return _BELOW
    if speaks_of(lead, place.subjects) or _is_in_spoken_list(text, start, place.subjects):
        return _SPOKEN
    if why := _judge_trail(trail):
        return why
    if _is_instruction(text, start, trail, rest):
        return "it is a step of an instruction"
    return ""


def _judge_trail(trail: str) -> str:
    """Return why calls are only spoken of, by the text behind them."""
    if _asks(trail) or _asks_leave(trail):
        return "the text asks whether to make it"
    follows = trail.lstrip(phrases.AFTER_AROUND + "\n")
    if phrases.TAKES_BACK.match(follows):
        return "the text behind it takes it back"
    if phrases.FILL_IN.match(follows):
        return "its values are to be filled in"
    if phrases.REPORTS.match(follows):
        return "the text behind it says what became of it"
    return ""


def subjects_of(calls: Iterable[TextCall]) -> frozenset[str]:
    """Return what calls are about: the words of their names and arguments."""
    words = phrases.WORD.findall(
        " ".join(f"{call.name} {call.arguments}" for call in calls).lower()
    )
    return _stems(words[: phrases.MAX_SUBJECTS])


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[: phrases.STEM] for word in words)


def speaks_of(lead: str, subjects: frozenset[str]) -> bool:
    """Tell whether words before a call make it one that is only spoken of, or asked about."""
    if phrases.CONDITION.match(lead.lstrip()):
        return True
    if (
        phrases.SPEAKS_OF.search(lead)
        or phrases.SPEAKS_OF_IN_CHINESE.search(lead)
        or phrases.ECHO_LABEL.search(lead)
    ):
        return True
    return _asks(lead) or _refers_to_it(lead, subjects)


def has_words(text: str) -> bool:
    """Tell whether more than markup stands in a text."""
    return phrases.WORD.search(phrases.MARKUP.sub(" ", text)) is not None


def announces(lead: str) -> bool:
    """Tell whether the last sentence before a call says that it is made now."""
    clause = lead_of(lead, len(lead)).strip("*_ `#-")
    is_announced = phrases.MAKES.search(clause) or phrases.GOES_ON.match(clause)
    return bool(is_announced) and not speaks_of(clause, frozenset())


def _refers_to_it(lead: str, subjects: frozenset[str]) -> bool:
    """Tell whether the last words before a call speak of it as a text, or need it to go on.

    An announcement ("I'll look it up:") does not, nor does a task ("The weather in Oslo:"), which
    has words with the call in common.
    """
    lines = [line for line in phrases.MARKUP.sub(" ", lead).split("\n") if line.strip(" -=*#")]
    clause = lines[-1] if lines else ""
    clause = clause.rpartition("}")[2].strip("*_ `#-")
    if phrases.HERE_IS_OTHER.search(clause):
        return True
    if phrases.MAKES.search(clause) or phrases.ASSIGNMENT.search(clause):
        return False
    if phrases.HANDS_OVER.fullmatch(clause):
        return False
    if phrases.REFERS.search(clause):
        return True
    if not phrases.WORD.search(clause) or phrases.GOES_ON.match(clause):
        return False
    if clause.endswith((".", "!", "。", "！")) and len(clause.split()) <= phrases.MAX_REMARK_WORDS:
        return False
    return subjects.isdisjoint(_stems(phrases.WORD.findall(clause.lower())))


def _is_in_spoken_list(text: str, start: int, subjects: frozenset[str]) -> bool:
    """Tell whether a call is an item of a list whose heading speaks of it."""
    lines = text[max(0, start - phrases.MAX_LEAD) : start].split("\n")
    if not phrases.ITEM_MARK.match(lines[-1]):
        return False
    heading = next((line for line in reversed(lines) if not phrases.ITEM_MARK.match(line)), "")
    return heading.rstrip("*_ ").endswith((":", "：")) and speaks_of(heading, subjects)


def _asks_leave(trail: str) -> bool:
    """Tell whether the text behind a call waits for an answer before it is made."""
    if phrases.WAITS.search(trail) or phrases.WAITS_IN_CHINESE.search(trail):
        return True
    return any(not phrases.HELPS.search(it.group()) for it in phrases.QUESTION.finditer(trail))


def _is_instruction(text: str, start: int, trail: str, rest: list[Span]) -> bool:
    """Tell whether a call is in one of several steps, and the next one is not a call."""
    step = phrases.STEP.match(trail.lstrip(f"{phrases.AFTER_AROUND}.;,\n"))
    if step is None or any(begun > start and begun - start < len(trail) for begun, _ in rest[1:]):
        return False
    return any(map(phrases.STEP.match, text[max(0, start - phrases.MAX_LEAD) : start].split("\n")))


def _is_dialogue(layout: Layout, place: Place) -> bool:
    """Tell whether somebody else spoke before, or speaks on the next line, which ends no call."""
    if layout.first(phrases.OTHER_SPEAKER) < place.start:
        return True
    at = layout.text.find("\n", place.end)
    if at < 0 or layout.candidates[-1].start > at:
        return False
    return phrases.NEXT_SPEAKER.match(layout.text, at + 1) is not None


def _is_example(layout: Layout, prefix: str, start: int) -> bool:
    """Tell whether a call is the output that an example gives for its input."""
    if not phrases.OUTPUT.fullmatch(prefix):
        return False
    end = start - len(prefix)
    before = layout.text[max(0, end - phrases.MAX_LEAD) : end]
    return phrases.EXAMPLE_INPUT.search(before) is not None


def _judge_line(layout: Layout, place: Place) -> str:
    """Return why calls among text are only spoken of, by the line they stand on."""
    prefix, suffix = layout.line_of(place.start, place.end)
    if prefix.strip() and phrases.QUOTED_LINE.match(prefix):
        return _QUOTED_LINE
    if phrases.TIME_OF_DAY.search(prefix):
        return "it is in a log"
    if phrases.SPEAKER.fullmatch(prefix.rstrip(phrases.AROUND)) and _is_dialogue(layout, place):
        return _DIALOGUE
    if phrases.CHOICE.match(prefix) or _is_example(layout, prefix, place.start):
        return "it is one of several ways, or an example"
    if why := why_lines(layout, place.start, place.end):
        return why
    if _is_indented(prefix) and _is_in_indented_block(layout, place.start - len(prefix)):
        return "it is in an indented block"
    if place.is_tag and _is_in_element(layout.text, place.start):
        return "it is a part of a document"
    if phrases.NOT_CALLED.search(phrases.STOPS.split(prefix)[-1]):
        return "it is a definition"
    if "~~" in prefix and "~~" in suffix:
        return "it is struck through"
    is_in_quotes = prefix.rstrip(phrases.AROUND)[-1:] in phrases.QUOTES and bool(
        prefix.strip(phrases.AROUND)
    )
    is_quoted = (is_in_quotes and not place.is_in_list) or _is_quoted_part(prefix, suffix)
    if is_quoted and layout.has_text_outside(place.start, place.end):  # else all of it is in them
        return _QUOTED
    prefix = phrases.TOKENS.sub("", prefix.rstrip(phrases.AROUND + phrases.QUOTES))
    return _judge_sentence(phrases.WRAPPER_TAG.sub("", prefix), suffix, place)


def _is_in_indented_block(layout: Layout, line: int) -> bool:
    """Tell whether a line with a margin is code: one below the tag around calls is none."""
    before = layout.text[max(0, line - phrases.MAX_LEAD) : line]
    return layout.has_text_before(line) and not phrases.WRAPPER_TAG.search(before)


def _is_in_element(text: str, start: int) -> bool:
    """Tell whether an element stands right around a tag that models do not put around calls."""
    opened = phrases.IN_ELEMENT.search(text[max(0, start - phrases.MAX_LEAD) : start].rstrip())
    return opened is not None and not phrases.AROUND_CALLS.search(opened[1])


def _is_indented(prefix: str) -> bool:
    margin = len(prefix) - len(prefix.lstrip())
    if not prefix.startswith("\t") and margin < phrases.CODE_INDENT:
        return False
    return prefix.isspace() or bool(phrases.ASSIGNMENT.fullmatch(prefix.lstrip()))


def _judge_sentence(prefix: str, suffix: str, place: Place) -> str:
    """Return why calls are only spoken of, by the words before and behind them on their line."""
    follows = suffix.lstrip(phrases.AFTER_AROUND)
    if not place.has_arguments and (prefix.strip() or follows.strip("; .")):
        return _NAMED
    words = phrases.ITEM.sub("", prefix, count=1) if prefix.strip() else ""
    stands_alone = (
        not words or phrases.LABEL.fullmatch(words) or phrases.ASSIGNMENT.fullmatch(words)
    )
    if not stands_alone and _ends_sentence(words):
        words = lead_of(words, len(words))
        stands_alone = _leads_to_call(words, place.subjects)
    if not stands_alone and not _is_announced(words, goes_on=follows[:1].isalpha()):
        return _PART
    if words and speaks_of(words, place.subjects):
        return _SENTENCE
    if (
        not phrases.GOES_ON_BEHIND.match(follows)
        or phrases.AFTER_CALL.match(follows)
        or phrases.EAST_ASIAN.match(follows)
    ):
        return _GOES_ON
    if follows.startswith("?") or follows.rstrip().endswith("?"):
        return "it is a part of a question"
    return ""


def _ends_sentence(words: str) -> bool:
    """Tell whether the words before a call are finished, so that it is not a part of them."""
    words = words.rstrip()
    if not words.endswith((".", "!", "。", "！")) or words.endswith(".."):
        return False
    return len(words.split()) > 1 or phrases.GOES_ON.match(words) is not None


def _leads_to_call(sentence: str, subjects: frozenset[str]) -> bool:
    """Tell whether a finished sentence before a call on its line is about it, or a mere remark."""
    if phrases.GOES_ON.match(sentence):
        return True
    if len(sentence.split()) <= phrases.MAX_REMARK_WORDS and phrases.FIRST_PERSON.search(sentence):
        return True
    is_about = not subjects.isdisjoint(_stems(phrases.WORD.findall(sentence.lower())))
    return is_about or phrases.ABOUT_CALLS.search(sentence) is not None


def _is_announced(words: str, *, goes_on: bool) -> bool:
    """Tell whether the words before a call say that it is made now.

    A command whose sentence goes on behind it, as in `run ... at home`, is for somebody else.
    """
    if phrases.NAMES_IT.search(words):
        return True
    for pattern in (phrases.ANNOUNCES,) if goes_on else (phrases.ANNOUNCES, phrases.COMMANDS):
        for found in pattern.finditer(words):
            rest = words[found.end() :]
            if len(rest) <= phrases.MAX_ANNOUNCEMENT and not phrases.STOPS.search(rest):
                return True
    return False


def _is_quoted_part(prefix: str, suffix: str) -> bool:
    """Tell whether a quotation that began with other words on the line holds the call."""
    for opened, closed in (("“", "”"), ("«", "»"), ("„", "“"), ("‹", "›"), ("»", "«")):
        if prefix.rfind(opened) > prefix.rfind(closed) and closed in suffix:
            return True
    return prefix.count('"') % 2 == 1 and suffix.count('"') % 2 == 1


def lead_of(text: str, start: int) -> str:
    """Return the sentence before a place, and what precedes the place on its line."""
    before = text[max(0, start - phrases.MAX_LEAD) : start].rstrip("`*_([{ \"'\n\t")
    cut = 0
    for found in phrases.SENTENCE_END.finditer(before):
        if found.end() < len(before.rstrip()):
            cut = found.end()
    return before[cut:]


def trail_of(text: str, end: int) -> str:
    """Return the text behind a place, as far as it may still be about it."""
    return text[end : end + phrases.MAX_TRAIL]


def _asks(text: str) -> bool:
    """Tell whether a question for leave stands in a text."""
    if phrases.ASKS_IN_CHINESE.search(text):
        return True
    for found in phrases.ASKS.finditer(text):
        stop = phrases.SENTENCE_STOP.search(text, found.start())
        said = text[found.end() : stop.start() if stop else len(text)]
        if phrases.HELPS.search(said) and not phrases.MAKES_IT.search(said):
            continue
        if (stop and stop.group() == "?") or found.group().lower().startswith(
            ("let me know", "tell me")
        ):
            return True
    return False
