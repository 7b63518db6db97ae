"""Text becomes visible text, reasoning and calls, piece by piece."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from .formats import CallFormat, Found, Thinking
from .leftovers import RESIDUE, find_leftover, take_leftover
from .mentions import Surroundings, goes_on_behind
from .named_bodies import repair_tags
from .names import PLACEHOLDERS, ToolNames
from .openers import ANSWER_TAGS, FENCES, find_openers
from .pieces import CallPiece, DroppedText, Piece, PieceWriter
from .source import NeedMore, Source, TooMuchWork
from .thinking import REASONING, REASONING_CLOSERS, find_open_reasoning
from .unmarked_json import has_placeholder

_CODE_MARKS: Final = frozenset({*FENCES, "`"})
_SPACE: Final = re.compile(r"\s*+")
_OBJECT: Final = re.compile(r"[ \t\r\n]*+\{")
_NOTHING: Final = re.compile(r"(?!)")
_MARKER_ENDS: Final = frozenset(">`")
_MAX_INLINE_CODE: Final = 4096
_RETRY_FREELY_BELOW: Final = 1024
_MAX_CALLS_AHEAD: Final = 500
MAX_MARKS: Final = 3_000
"""Markers, backticks and fences that are looked at in one reply."""
MAX_FALSE_OPENERS: Final = 1_000
"""Openers that turn out to begin nothing."""
MAX_FALSE_MARKS: Final = 100_000
"""Brackets and quotes of JSON that are passed over for openers that begin nothing."""
_COSTLY_QUESTIONS: Final = 150
"""An opener that began nothing counts once for each of so many, wherever on its line it stood."""
MAX_CALLS: Final = 256
"""Calls that are taken from the text of one reply."""
MAX_CUT_CALLS: Final = 4
"""Calls that never come to their end."""


class TextReader:
    """Reads the text of one reply as it arrives; every split gives the same pieces in the end.

    Args:
        tools: The tools that may be called.
        formats: The families to look for, strongest first.
        generation_prompt: What the template had already opened, where known.
    """

    def __init__(
        self,
        tools: ToolNames,
        formats: Sequence[CallFormat],
        generation_prompt: str | None = None,
    ) -> None:
        self._tools = tools
        self._openers = find_openers(tools, formats)
        self._formats = self._openers.formats
        self._pattern = _NOTHING
        self._text = ""
        self._arrived: list[str] = []
        self._waiting_chars = 0
        self._retry_at = 0
        self._held_from = -1
        self._out = PieceWriter()
        self._thinking = find_open_reasoning(generation_prompt)
        self._prompt_known = generation_prompt is not None
        self._fence = ""
        self._answer_end = ""
        self._marked = False
        self._ended = False
        self._marks = 0
        self._false_openers = 0
        self._false_marks = 0
        self._cut_calls = 0
        self._no_closer_ahead = False
        self._never_closed: Thinking | None = None
        self._surroundings = Surroundings()
        self.dropped = DroppedText()
        """What was left out of the text so far."""
        self.questions = 0
        """How many questions the readers of calls asked: what reading the text has cost."""

    @property
    def gave_up(self) -> bool:
        """Whether there were more marks than are looked at; the rest was taken as plain text."""
        return (
            self._marks >= MAX_MARKS
            or self._false_openers >= MAX_FALSE_OPENERS
            or self._false_marks >= MAX_FALSE_MARKS
            or self._out.calls >= MAX_CALLS
            or self._cut_calls >= MAX_CUT_CALLS
        )

    @property
    def ends_in_payload(self) -> bool:
        """Whether the text ended right after the payload of a call, without a marker behind it.

        Such a call looks whole, but more of it, or of its kind, might have followed.
        """
        last = self._out.last_written.rstrip()[-1:]
        return bool(last) and last not in _MARKER_ENDS

    @property
    def held_characters(self) -> int:
        """How much text has arrived of which nothing can be said yet."""
        return self._waiting_chars

    def feed(self, text: str) -> list[Piece]:
        """Take the next text and return what is certain now."""
        self._arrived.append(text)
        self._waiting_chars += len(text)
        if self._waiting_chars < self._retry_at:
            return []
        return self._run(final=False)

    def close(self) -> list[Piece]:
        """Return the rest: nothing more will come."""
        pieces = self._run(final=True)
        self._out.finish()
        return pieces + self._out.taken()

    def read_whole(self, text: str) -> list[Piece]:
        """Read a text that is there to its end, in one pass."""
        self._arrived.append(text)
        return self.close()

    def _run(self, *, final: bool) -> list[Piece]:
        text = self._text + "".join(self._arrived)
        self._arrived.clear()
        source = Source(text, self._tools, final=final)
        self._pattern = self._openers.pattern_for(text, is_whole=final)
        self._held_from = -1
        at = 0
        try:
            while at < len(text):
                try:
                    at = self._drop(text, at) if self._ended else self._step(source, at)
                except TooMuchWork:
                    self._false_openers = MAX_FALSE_OPENERS
            self._retry_at = 0
        except NeedMore:
            held = len(text) - at
            # A long held span is looked at again when it has grown by half, so that all looks
            # together cost three times as much as one.
            self._retry_at = held + held // 2 if held > _RETRY_FREELY_BELOW else 0
        self._text = text[at:]
        self._waiting_chars = len(self._text)
        return self._out.taken()

    def _drop(self, text: str, at: int) -> int:
        """Pass over what the model made up behind its calls; it proves that they had ended."""
        if not text[at:].isspace():
            self._out.last_written = ""
        self.dropped.add("drop_invented_result", text[at:])
        return len(text)

    def _step(self, source: Source, at: int) -> int:
        """Consume something from `at` on and return where the rest begins."""
        source.begin()
        if self.gave_up:  # nothing will be asked about its surroundings
            is_thought = self._thinking is not None and not self._thinking.shown
            (self._out.think if is_thought else self._out.show)(source.text[at:])
            return len(source.text)
        if self._fence:
            return self._step_in_fence(source, at)
        if self._thinking is not None:
            return self._step_in_reasoning(source, at, self._thinking)
        match = self._pattern.search(source.text, at)
        if match is None or match.start() > at:
            end = self._undecided_from(source, at)
            end = min(end, match.start()) if match else end
            if end == at:
                raise NeedMore
            self._show(source.text[at:end])
            return end
        self._refuse_growing(source, at)
        return self._at_literal(source, at, match.group())

    def _at_literal(self, source: Source, at: int, literal: str) -> int:
        if self._surroundings.mention(source, at + len(literal)):
            end = at + len(literal)
            self._show(literal)
            self._marks += 1
            return end
        end = self._read_call(source, at, literal)
        begins_nothing = end is None
        if end is None:
            end = self._at_other_mark(source, at, literal)
        # Counted when it is decided, and not before, so that every split counts the same.
        self._marks += 1
        self._false_openers += begins_nothing and self._openers.may_begin_call(literal)
        return end

    def _at_other_mark(self, source: Source, at: int, literal: str) -> int:
        if literal in REASONING and self._begins_reasoning(source, at, REASONING[literal]):
            self._open_reasoning(REASONING[literal])
            return at + len(literal)
        if literal in REASONING_CLOSERS:
            self._close_unopened()
            return at + len(literal)
        if literal in FENCES:
            return self._open_fence(source, at, literal)
        if literal == "`":
            return self._skip_inline_code(source, at)
        if literal in ANSWER_TAGS and self._is_before_answer():
            self._answer_end = ANSWER_TAGS[literal]
            self._out.drop_space_ahead()
            self.dropped.add("drop_answer_tag", literal)
            return at + len(literal)
        if literal == self._answer_end:
            end = self._close_answer(source, at + len(literal))
            self.dropped.add("drop_answer_tag", literal)
            return end
        if literal in RESIDUE and self._is_at_an_end(source, at + len(literal)):
            end = source.skip_space(at + len(literal))
            self.dropped.add("drop_end_token", literal)
            return end
        self._show(literal[0])
        return at + 1

    def _is_before_answer(self) -> bool:
        """Tell whether a tag may stand around all of an answer, which only follows reasoning."""
        return self._out.has_reasoning and not self._out.has_text and not self._out.calls

    def _close_answer(self, source: Source, end: int) -> int:
        if self._is_at_an_end(source, end):
            self._out.drop_space_ahead()
        self._answer_end = ""
        return end

    # calls

    def _read_call(self, source: Source, at: int, literal: str) -> int | None:
        questions = marks = 0
        is_json = _is_before_object(source.text, at + len(literal))
        for form in self._formats.get(literal, ()):
            if (form.line_start and self._out.line_has_text) or (form.never_json and is_json):
                continue
            found = self._ask(form, source, at)
            questions, marks = max(questions, source.questions), marks + source.marks
            if found is None or not self._is_acceptable(found):
                continue
            if found.calls and self._is_mention(form, source, at, found):
                self._show(source.text[at : found.end])
                self._false_openers += 1
                return found.end
            if not self._prompt_known and not self._out.has_reasoning and found.calls:
                closed = self._find_unopened_closer(source, found.end)
                if closed is not None:  # reasoning opened in the prompt, and a rehearsed call
                    self._show(source.text[at : closed.start()])
                    self._close_unopened()
                    return closed.end()
            found = self._with_leftover(source, at, found)
            self._take(form, found, source, at)
            return found.end
        self._false_openers += questions // _COSTLY_QUESTIONS
        self._false_marks += marks
        return None

    def _with_leftover(self, source: Source, at: int, found: Found) -> Found:
        """Return what was found with the text behind it that belongs to its last call."""
        if not found.calls or found.calls[-1].state == "cut":
            return found

        def find_mark(here: int) -> tuple[int, str] | None:
            match = self._pattern.search(source.text, here)
            if match is None:
                return None
            self._refuse_growing(source, match.start())
            return match.start(), match.group()

        is_over = found.ends_message
        end = find_leftover(source, at, found.end, find_mark, is_over=is_over)
        if end == found.end:
            return found
        calls = take_leftover(found.calls, source.text[found.end : end], self._tools)
        return replace(found, end=end, calls=calls)

    def _is_mention(self, form: CallFormat, source: Source, at: int, found: Found) -> bool:
        if self._surroundings.quote(source, at, found):
            return True
        if not form.is_plain:
            return False
        if any(has_placeholder(call.arguments) for call in found.calls):
            return True
        is_alone = self._out.is_after_call or self._surroundings.stands_alone()
        return not is_alone or self._is_before_text(source, found.end)

    def _is_before_text(self, source: Source, at: int) -> bool:
        """Tell whether text follows, and not only marks of calls, of reasoning or of an end."""
        while True:
            at = source.skip_space(at)
            if source.at_end(at):
                return False
            self._refuse_growing(source, at)
            match = self._pattern.search(source.text, at)
            if match is None or match.start() > at or match.group() in _CODE_MARKS:
                return True
            if not source.starts("</", at):
                return False
            over, _ = source.find_any((">",), at)
            if over < 0:
                return True
            at = over + 1

    def _find_unopened_closer(self, source: Source, at: int) -> re.Match[str] | None:
        """Return the next end of reasoning that does not stand inside a call."""
        if self._no_closer_ahead:
            return None
        last, _ = source.find_any(REASONING_CLOSERS, at)
        for _ in range(_MAX_CALLS_AHEAD if last >= 0 else 0):
            match = self._pattern.search(source.text, at)
            if match is None:
                break
            self._refuse_growing(source, match.start())
            literal, at = match.group(), match.end()
            if literal in REASONING_CLOSERS:
                return match
            if literal in REASONING:  # what it opens has a closer of its own
                closed, closer = source.find_any(REASONING[literal].closers, at)
                at = closed + len(closer) if closed >= 0 else at
                continue
            for form in self._formats.get(literal, ()):
                found = None if form.line_start else self._ask(form, source, match.start())
                if found is not None:
                    at = max(at, found.end)
                    break
        if not source.final:
            raise NeedMore
        self._no_closer_ahead = True
        return None

    def _ask(self, form: CallFormat, source: Source, at: int) -> Found | None:
        source.begin()
        try:
            return form.read(source, at)
        except TooMuchWork:
            self._false_openers = MAX_FALSE_OPENERS
            return None
        finally:
            self.questions += source.questions

    def _is_acceptable(self, found: Found) -> bool:
        if found.grade == "marked":
            return True
        if found.grade != "bare":
            return all(self._tools.resolve(call.name) for call in found.calls)
        if self._marked or self._out.has_text:  # a message that is nothing but calls has no text
            return False
        if any(has_placeholder(call.arguments) for call in found.calls):
            return False
        return all(self._tools.resolve_closely(call.name) for call in found.calls)

    def _take(
        self,
        form: CallFormat,
        found: Found,
        source: Source,
        at: int,
        *,
        in_open_reasoning: bool = False,
    ) -> None:
        if found.reasoning:
            self._out.begin_thought()
            self._out.think(found.reasoning)
            self._out.end_thought()
        if found.content:
            self._show(found.content)
        written = source.text[at : found.end]
        calls = [call for call in found.calls if call.name.strip().lower() not in PLACEHOLDERS]
        if len(calls) == 1 and (mended := repair_tags(calls[0], written, self._tools)) is not None:
            calls = [mended]
        if calls:
            if self._surroundings.is_in_quotation:  # its end may only have been cut off
                calls[-1] = replace(calls[-1], may_go_on=True)
            self._out.begin_calls(trims=form.trims)
            self._marked = self._marked or found.grade == "marked"
            self._surroundings.end_call()
        elif form.trims and not found.content:
            self._out.drop_space()
        if not (calls or found.content or found.reasoning or found.opens):
            self.dropped.add("drop_empty_markup", written)
        ends_text = source.final and found.end >= len(source.text)
        for call in calls:
            resolved = self._tools.resolve(call.name)
            is_bare = found.grade == "bare"
            self._out.add_call(
                CallPiece(call, form.name, resolved, written, in_open_reasoning, is_bare, ends_text)
            )
            self._cut_calls += call.state == "cut"
        if found.opens is not None:
            self._open_reasoning(found.opens)
        self._ended = found.ends_message

    # reasoning

    def _step_in_reasoning(self, source: Source, at: int, thinking: Thinking) -> int:
        text = source.text
        undecided = self._undecided_from(source, at)
        first_word = -1 if self._out.thought_begun else _end_of_space(text, at)
        passed_over: set[str] = set()
        pattern = self._pattern if source.final else self._openers.pattern_in_thought
        for match in pattern.finditer(text, at):
            literal = match[0]
            if literal in passed_over and match.start() > first_word:
                continue
            start = match.start()
            if start >= undecided:
                break
            closes = literal in thinking.closers
            calls = thinking.ends_at_call and self._openers.may_begin_call(literal)
            if (closes or calls) and start > at:
                self._keep(thinking, text[at:start])
                return start
            if closes:
                self._close_block(thinking)
                return at if literal in thinking.kept else match.end()
            if start <= first_word and literal in REASONING and not thinking.shown:
                self._marks += 1
                return match.end()  # an echo of the opener that was in the prompt
            if calls:
                return self._at_call_in_reasoning(source, at, literal, thinking)
            passed_over.add(literal)
        if undecided == at:
            raise NeedMore
        self._keep(thinking, text[at:undecided])
        return undecided

    def _keep(self, thinking: Thinking, text: str) -> None:
        if thinking.shown:
            self._show(text)
        else:
            self._out.think(text)

    def _close_block(self, thinking: Thinking) -> None:
        if thinking.shown:
            self._thinking = None
        else:
            self._close_reasoning()

    def _at_call_in_reasoning(
        self, source: Source, at: int, literal: str, thinking: Thinking
    ) -> int:
        """Decide whether a call ends the reasoning or is only thought about."""
        holds = literal in thinking.holds
        if not holds and self._never_closed is not thinking:
            closed, _ = source.find_any(thinking.closers, at)
            if closed >= 0:
                self._out.think(source.text[at:closed])
                return closed
            self._never_closed = thinking
        questions = marks = 0
        for form in self._formats.get(literal, ()):
            found = self._ask(form, source, at)
            questions, marks = max(questions, source.questions), marks + source.marks
            if found is not None and found.calls and found.grade == "marked":
                if not holds:
                    self._close_reasoning()
                found = self._with_leftover(source, at, found)
                self._take(form, found, source, at, in_open_reasoning=not holds)
                return found.end
        self._out.think(source.text[at : at + len(literal)])
        self._marks += 1
        self._false_openers += questions // _COSTLY_QUESTIONS
        self._false_marks += marks
        return at + len(literal)

    def _begins_reasoning(self, source: Source, at: int, thinking: Thinking) -> bool:
        if not thinking.in_words:
            return True
        if self._out.has_text or self._out.has_reasoning or self._out.calls:
            return False
        return source.find_any(thinking.closers, at)[0] >= 0

    def _open_reasoning(self, thinking: Thinking) -> None:
        self._thinking = thinking
        self._out.begin_thought()

    def _close_reasoning(self) -> None:
        self._thinking = None
        self._out.end_thought()

    def _close_unopened(self) -> None:
        """A closer without an opener: what came before it was reasoning, unless some is known."""
        if not self._out.has_reasoning and not self._out.calls:
            self._out.reclassify()
            self._surroundings = Surroundings()
        if self._out.has_text:
            self._out.line_has_text = False
        else:
            self._out.drop_space_ahead()

    # visible text

    def _show(self, text: str, *, is_code: bool = False) -> None:
        self._surroundings.add(text, is_code=is_code)
        self._out.show(text)

    def _undecided_from(self, source: Source, at: int) -> int:
        if source.final:
            return len(source.text)
        if at > self._held_from:
            self._held_from = self._openers.index.held_from(source.text, at)
        return self._held_from

    def _refuse_growing(self, source: Source, at: int) -> None:
        """Wait while the end of the text may still become a longer literal than it is now."""
        if not source.final and self._openers.index.may_grow(source.text, at):
            raise NeedMore

    # code and residue

    def _open_fence(self, source: Source, at: int, literal: str) -> int:
        end = source.run_end(literal[0], at)
        if not self._out.line_has_text:
            self._fence = source.text[at:end]
        self._show(source.text[at:end])
        return end

    def _step_in_fence(self, source: Source, at: int) -> int:
        """Show code as it is, up to the end of its fence."""
        closing = "\n" + self._fence
        found = source.text.find(closing, at)
        if found >= 0:
            end = found + len(closing)
            self._fence = ""
        else:
            end = len(source.text)
            if not source.final:
                end = max(at, end - len(closing))
                if end == at:
                    raise NeedMore
        self._show(source.text[at:end], is_code=True)
        return end

    def _skip_inline_code(self, source: Source, at: int) -> int:
        end = source.run_end("`", at)
        ticks = source.text[at:end]
        closing, literal = self._find_within(source, (ticks, "\n\n"), end)
        if literal == ticks:
            end = closing + len(ticks)
        self._show(source.text[at:end])
        return end

    def _find_within(self, source: Source, literals: tuple[str, ...], at: int) -> tuple[int, str]:
        """Find a literal, but look no further than inline code is long."""
        window = source.text[at : at + _MAX_INLINE_CODE]
        is_whole = source.final or len(window) == _MAX_INLINE_CODE
        found, literal = Source(window, self._tools, final=is_whole).find_any(literals, 0)
        return (at + found if literal else -1), literal

    def _is_at_an_end(self, source: Source, at: int) -> bool:
        """Tell whether only white space and more residue follow, or nothing came before.

        At the beginning a sentence may speak of it, as in `<eos> ends a text`.
        """
        if not self._out.has_text and not self._out.calls:
            return not goes_on_behind(source, at)
        at = source.skip_space(at)
        while not source.at_end(at):
            literal = source.starts_any(RESIDUE, at)
            if not literal:
                return False
            at = source.skip_space(at + len(literal))
        return True


def _is_before_object(text: str, at: int) -> bool:
    return _OBJECT.match(text, at) is not None


def _end_of_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
