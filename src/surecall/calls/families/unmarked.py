"""Calls without markers of their own: JSON on a line, and what stands in code fences."""

from typing import Final, NamedTuple

from msgspec import structs

from surecall.calls.formats import (
    CallFormat,
    Found,
    Grade,
    OwnFormat,
    TextCall,
    add_receipts,
    text_receipt,
)
from surecall.calls.json_shapes import read_json_calls
from surecall.calls.leftovers import note_leftovers, note_missing, skip_leftovers, skip_to_end
from surecall.calls.source import Source
from surecall.calls.unmarked_json import begins_like_call, fits, gate_row, read_row
from surecall.calls.written_python import read_calls_in_python, text_calls_of

from .elements import ANTHROPIC_XML, BARE_INVOKE, BARE_QWEN_XML, QWEN_XML, SEED_XML
from .marked_json import TAGGED_JSON
from .named_json import FUNCTION_TAG

_IN_FENCES: Final[tuple[CallFormat, ...]] = (
    QWEN_XML, SEED_XML, ANTHROPIC_XML, TAGGED_JSON, FUNCTION_TAG, BARE_QWEN_XML, BARE_INVOKE
)  # fmt: skip
"""Families that models also write inside a code fence."""
_FENCES: Final = ("```", "~~~")
_STRONG: Final = frozenset(
    {"tool_call", "tool_calls", "tool_use", "tool_code", "tool", "function_call", "function_calls"}
)
_WEAK: Final = frozenset(
    {"", "json", "json5", "jsonc", "python", "py", "xml", "function", "tool_json"}
)
_CODE: Final = frozenset({"tool_code", "python", "py"})
_MAX_TAG: Final = 40
_MAX_FENCES: Final = 16


class _Fence(NamedTuple):
    """One fence that holds calls and nothing else."""

    end: int
    calls: tuple[TextCall, ...]
    is_strong: bool
    content: str = ""
    reasoning: str = ""


class CodeFences(CallFormat, frozen=True, eq=False, kw_only=True):
    """A fence whose whole body is calls."""

    inner: tuple[CallFormat, ...] = ()
    """Families whose calls may stand in a fence too, such as those of XML tags."""
    announcing: frozenset[str] = _STRONG
    """Words behind the ticks that announce a call."""

    def read(self, source: Source, at: int) -> Found | None:
        """Read one announced fence, or all fences from here to the end of the message."""
        first = self._read_fence(source, at)
        if first is None:
            return None
        if first.is_strong:
            return _found_in_fences([first], first.end, "damaged")
        fences = [first]
        while (end := skip_to_end(source, fences[-1].end)) is None:
            here = source.skip_space(fences[-1].end)
            following = None
            if source.starts_any(_FENCES, here) and len(fences) < _MAX_FENCES:
                following = self._read_fence(source, here)
            if following is None:
                return None
            fences.append(following)
        return _found_in_fences(fences, end, "bare")

    def _read_fence(self, source: Source, at: int) -> _Fence | None:
        body = source.run_end(source.char(at), at)
        fence = source.text[at:body]
        tag, body = _read_tag(source, body)
        is_strong = tag in self.announcing
        if not is_strong and tag not in _WEAK:
            return None
        here = source.skip_space(body)
        char = source.char(here)
        if char in ("{", "["):
            found = _read_json(source, here, fence, is_strong=is_strong)
            if found is not None or char == "{":
                return found
        if char == "<":
            return self._read_inner(source, here, fence, is_strong=tag in _STRONG)
        return _read_python(source, here, fence, tag)

    def _read_inner(self, source: Source, at: int, fence: str, *, is_strong: bool) -> _Fence | None:
        """Read a body in another format; all of the body must be its calls."""
        if not self.inner:
            return None
        closing = source.find("\n" + fence, at)
        end = len(source.text) if closing < 0 else closing
        body = Source(source.text[at:end], source.tools, final=True)
        calls: list[TextCall] = []
        here = 0
        while not body.at_end(here):
            found = self._read_once(body, here)
            if found is None or not found.calls or found.end <= here:
                return None
            calls += found.calls
            here = body.skip_space(found.end)
        if not all(_is_known(source, call, is_strong=is_strong) for call in calls):
            return None
        end = end if closing < 0 else closing + 1 + len(fence)
        return _Fence(end, tuple(calls), is_strong)

    def _read_once(self, body: Source, at: int) -> Found | None:
        for form in self.inner:
            if body.starts_any(form.openers(body.tools), at):
                found = form.read(body, at)
                if found is not None:
                    return found
        return None


def _read_tag(source: Source, at: int) -> tuple[str, int]:
    """Return the word behind the ticks, in lower case, and where the body begins."""
    end = at
    while end - at <= _MAX_TAG and source.char(end) not in ("\n", "", "{", "["):
        end += 1
    return source.text[at:end].strip().lower(), end


def _read_json(source: Source, at: int, fence: str, *, is_strong: bool) -> _Fence | None:
    if not begins_like_call(source, at):
        return None
    row = read_row(source, at)
    if row is None:
        return None
    end = row.end if row.is_cut else _skip_closing(source, row.end, fence)
    if end is None:
        return None
    gated = gate_row(source, row)
    if gated is not None:
        rest = row.end if row.is_cut else skip_leftovers(source, row.end)
        calls = _noted(source, gated.calls, rest, fence)
        extra = source.text[row.end : rest].strip("; \t\r\n")
        calls = note_leftovers(calls, source.text[at : row.end], extra)
        return _Fence(end, calls, is_strong, gated.content, gated.reasoning)
    if not is_strong or row.is_cut:
        return None
    calls = tuple(
        call
        for start, stop in row.spans
        for call in read_json_calls(
            source.text[start:stop], tools=source.tools, spend=source.spend_on_marks
        )
    )
    return _Fence(end, calls, is_strong) if calls else None


def _read_python(source: Source, at: int, fence: str, tag: str) -> _Fence | None:
    announced = tag == "tool_code"
    found = read_calls_in_python(source, at, statements=tag in _CODE, loose=announced)
    if found.state == "not_calls":
        return None
    calls = text_calls_of(source, found, by_position=announced)
    if not calls or any(not _fits(source, call) for call in calls):
        return None
    if found.state == "cut":
        return _Fence(len(source.text), calls, tag in _STRONG)
    end = _skip_closing(source, found.end, fence)
    if end is None:
        return None
    return _Fence(end, _noted(source, calls, found.end, fence), tag in _STRONG)


def _is_known(source: Source, call: TextCall, *, is_strong: bool) -> bool:
    """Tell whether the tool exists, and whether the arguments fit where the tag proves nothing."""
    if is_strong or not isinstance(call.arguments, dict):
        return source.tools.resolve(call.name) is not None
    return _fits(source, call)


def _fits(source: Source, call: TextCall) -> bool:
    parameters = source.tools.parameters(call.name)
    if parameters is None:
        return False
    return call.state == "cut" or fits(parameters, call.arguments)


def _noted(
    source: Source, calls: tuple[TextCall, ...], at: int, fence: str
) -> tuple[TextCall, ...]:
    """Return the calls, with a receipt when their fence is not closed."""
    return note_missing(calls, fence) if source.rest_is_blank(at) else calls


def _skip_closing(source: Source, at: int, fence: str) -> int | None:
    """Return where the text goes on behind the closing fence; it may be missing at the end."""
    here = source.skip_space(skip_leftovers(source, at))
    if source.at_end(here):
        return here
    if not source.starts(fence, here):
        return None
    return source.run_end(fence[0], here)


def _found_in_fences(fences: list[_Fence], end: int, grade: Grade) -> Found:
    return Found(
        end=end,
        calls=tuple(call for fence in fences for call in fence.calls),
        content="".join(fence.content for fence in fences),
        reasoning="\n".join(fence.reasoning for fence in fences if fence.reasoning),
        grade=grade,
    )


CODE_FENCE: Final = CodeFences(
    "code_fence", "A fence whose whole body is calls.", "Any model without a parser",
    line_start=True, literals=_FENCES, inner=_IN_FENCES,
)  # fmt: skip
CODE_FENCE_AS_TAUGHT: Final = structs.replace(CODE_FENCE, announcing=_STRONG.union(("", "json")))
"""For a model that was told to write its calls in plain fences."""

# one line or more of JSON

_CLOSERS: Final = {
    f"</{tag}>": f"<{tag}>" for tag in ("tool_call", "tool_calls", "function_call", "TOOLCALL")
}
"""Tags that close calls; what opens them may be in the prompt, or be lost."""


def _read_bare_json(source: Source, at: int) -> Found | None:
    """Read values up to a closer, or to the end of the message."""
    if not begins_like_call(source, at):
        return None
    row = read_row(source, at)
    if row is None:
        return None
    rest = row.end if row.is_cut else skip_leftovers(source, row.end)
    closer = "" if row.is_cut else source.starts_any(_CLOSERS, source.skip_space(rest))
    if closer:
        end = source.skip_space(rest) + len(closer)
    else:
        end = rest if row.is_cut else skip_to_end(source, rest)
    if end is None:
        return None
    gated = gate_row(source, row)
    if gated is None or (closer and not gated.calls):
        return None
    extra = source.text[row.end : rest].strip("; \t\r\n")
    calls = note_leftovers(gated.calls, source.text[at : row.end], extra)
    if closer:
        why = f"only {closer} is there"
        calls = add_receipts(calls, text_receipt("missing_opener", "", _CLOSERS[closer], why))
    return Found(
        end=end,
        calls=calls,
        content=gated.content,
        reasoning=gated.reasoning,
        grade="damaged" if closer else "bare",
    )


BARE_JSON: Final = OwnFormat(
    "bare_json",
    "JSON from the start of a line to a closer or the end of the message; all calls fit.",
    "Llama 3.1, July 2024; any model without a parser", line_start=True, literals=("{", "["),
    reads=_read_bare_json,
)  # fmt: skip
