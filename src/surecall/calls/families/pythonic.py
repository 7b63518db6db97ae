"""Calls in Python syntax: between tokens and tags, behind a label, or as all of a message."""

from typing import Final, NamedTuple

from msgspec import structs

from surecall.calls.formats import Found, Grade, OwnFormat, TextCall, add_receipts, text_receipt
from surecall.calls.json_block import read_block, said_by
from surecall.calls.leftovers import note_missing, skip_to_end
from surecall.calls.python_calls import PythonCall, PythonCalls
from surecall.calls.source import Source
from surecall.calls.unmarked_json import code_call, fits, read_code
from surecall.calls.written_python import read_calls_in_python, text_calls_of


class _Block(NamedTuple):
    """How calls stand behind one opener."""

    closers: tuple[str, ...]
    grade: Grade = "marked"
    statements: bool = False
    by_position: bool = False


_TOKENS: Final = {
    "<|tool_call_start|>": _Block(("<|tool_call_end|>",)),
    "<|python_start|>": _Block(("<|python_end|>",)),
}
_TAGS: Final = {
    "<function_calls>": _Block(("</function_calls>",)),
    "<tool_call>": _Block(("</tool_call>",), grade="damaged"),
}
_CODE: Final = {
    "<tool_code>": _Block(("</tool_code>",), grade="damaged", statements=True, by_position=True),
    "<code>": _Block(("</code>", "<end_code>"), grade="damaged", statements=True),
}
_ANSWER: Final = "final_answer"


def _read_python_tokens(source: Source, at: int) -> Found | None:
    """Read calls up to the end token, and an echo of them that some models add."""
    opener = source.starts_any(_TOKENS, at)
    block = _TOKENS[opener]
    here = source.skip_space(at + len(opener))
    if source.at_end(here):
        return Found(end=here)
    fence = source.line_end(here) if source.starts("```", here) else 0
    found = _read_body(source, fence or here, block)
    if found is None:
        return None
    end = found.end
    if fence:
        inner = source.skip_space(end)
        end = inner + 3 if source.starts("```", inner) else end
    calls, end = _skip_closer(source, found.calls, end, block.closers)
    after = _skip_echo(source, end, block, found.calls)
    if after > end:
        why = "the calls were written twice"
        calls = add_receipts(calls, text_receipt("drop_echo", source.text[end:after], "", why))
    return Found(end=after, calls=calls)


PYTHON_TOKENS: Final = OwnFormat(
    "python_tokens", "A list of calls between special tokens, in Python syntax or as JSON.",
    "MiniCPM3, September 2024; Llama 4, April 2025; LFM2, July 2025", trims=False,
    literals=tuple(_TOKENS), reads=_read_python_tokens,
)  # fmt: skip


def _read_python_tags(source: Source, at: int) -> Found | None:
    """Read calls up to the closing tag; other families share the tags."""
    opener = source.starts_any(_TAGS, at)
    block = _TAGS[opener]
    here = source.skip_space(at + len(opener))
    if source.char(here) in ("{", "<", "") or source.starts("[{", here):
        return None
    found = _read_body(source, here, block)
    if found is None or not found.calls:
        return None
    calls, end = _skip_closer(source, found.calls, found.end, block.closers)
    return Found(end=end, calls=calls, grade=block.grade)


PYTHON_TAGS: Final = OwnFormat(
    "python_tags", "Calls in Python syntax between plain tags, one a line.",
    "Olmo 3, November 2025", literals=tuple(_TAGS), never_json=True, reads=_read_python_tags,
)  # fmt: skip


def _read_code_tags(source: Source, at: int) -> Found | None:
    """Read calls, or the answer, when nothing else stands in the code or on its last line."""
    opener = source.starts_any(_CODE, at)
    block = _CODE[opener]
    here = source.skip_space(at + len(opener))
    if source.char(here) in ("{", "[", "<", ""):
        return None
    answer = _read_answer(source, here)
    body = _read_body(source, here, block) if answer is None else Found(end=answer.end)
    if body is None or (answer is None and not body.calls):
        return None
    calls, end = _skip_closer(source, body.calls, body.end, block.closers)
    after = source.skip_space(end)
    if not source.at_end(after) and "\n" not in source.text[end:after]:
        return None
    content = answer.text if answer else ""
    return Found(end=end, calls=calls, content=content, grade=block.grade)


CODE_TAGS: Final = OwnFormat(
    "code_tags", "Plain code between tags on their own lines, as code agents write it.",
    "Gemma 3 prompts and code agents, 2025", line_start=True, literals=tuple(_CODE),
    reads=_read_code_tags,
)  # fmt: skip


class _Answer(NamedTuple):
    text: str
    end: int


def _read_body(source: Source, at: int, block: _Block) -> Found | None:
    if source.char(at) == "{" or source.starts("[{", at):
        return _read_json(source, at, block.closers)
    empty = _read_empty_list(source, at)
    if empty is not None:
        return empty
    found = read_calls_in_python(source, at, statements=block.statements, loose=True)
    if found.state == "not_calls":
        return None
    calls = text_calls_of(source, found, by_position=block.by_position)
    if calls is None:
        return None
    end = len(source.text) if found.state == "cut" else found.end
    if source.char(at) == "[" and found.state == "cut" and found.cut_name is None:
        why = "the list had no closing bracket"
        calls = add_receipts(calls, text_receipt("close_list", source.text[at:end], "", why))
    return Found(end=end, calls=calls)


def _read_json(source: Source, at: int, stops: tuple[str, ...]) -> Found | None:
    found = read_block(source, at, stops)
    return found and Found(end=found.end, calls=found.calls)


def _read_empty_list(source: Source, at: int) -> Found | None:
    """Read the list by which a model says that it calls nothing."""
    if source.char(at) != "[":
        return None
    inside = source.skip_space(at + 1)
    return Found(end=inside + 1) if source.char(inside) == "]" else None


def _skip_closer(
    source: Source, calls: tuple[TextCall, ...], at: int, closers: tuple[str, ...]
) -> tuple[tuple[TextCall, ...], int]:
    here = source.skip_space(at)
    closer = source.starts_any(closers, here)
    if closer:
        return calls, here + len(closer)
    return note_missing(calls, closers[0]), at


def _skip_echo(source: Source, at: int, block: _Block, calls: tuple[TextCall, ...]) -> int:
    """Return where the text goes on behind a repetition of the calls and its own end token."""
    here = source.skip_space(at)
    if source.at_end(here):
        return at
    if closer := source.starts_any(block.closers, here):
        return here + len(closer)
    if source.char(here) not in ("[", "{") and not source.read_name(here)[0]:
        return at
    echo = _read_body(source, here, block)
    if echo is None or list(map(said_by, echo.calls)) != list(map(said_by, calls)):
        return at
    _, end = _skip_closer(source, (), echo.end, block.closers)
    return end if end > echo.end else at


def _read_answer(source: Source, at: int) -> _Answer | None:
    """Read the call by which an agent gives its answer, unless a tool has that name."""
    if not source.starts(_ANSWER, at) or source.tools.resolve(_ANSWER) is not None:
        return None
    found = read_calls_in_python(source, at)
    if found.state != "whole" or len(found.calls) != 1 or found.calls[0].name != _ANSWER:
        return None
    values = [*found.calls[0].positional, *found.calls[0].keywords.values()]
    if len(values) != 1 or not isinstance(values[0], str):
        return None
    return _Answer(values[0], found.end)


_TAG: Final = "<|python_tag|>"
_ENDS: Final = ("<|eom_id|>", "<|eot_id|>", "<|eom|>", "<|eot|>", "<|end_of_text|>")
_BUILT_IN: Final = ".call"


def _read_llama_python_tag(source: Source, at: int) -> Found | None:
    """Read what follows the tag."""
    here = source.skip_space(at + len(_TAG))
    if source.at_end(here):
        return Found(end=here)
    if source.char(here) in ("{", "["):
        found = _read_json(source, here, _ENDS)
        if found is not None and found.calls:
            return found
    found = _read_built_in(source, here)
    return found or read_code(source, here, _ENDS)


LLAMA_PYTHON_TAG: Final = OwnFormat(
    "llama_python_tag",
    "Calls after the tag: objects, `NAME.call(...)`, or code for the one tool that runs it.",
    "Llama 3.1, July 2024", trims=False, literals=(_TAG,), reads=_read_llama_python_tag,
)  # fmt: skip


def _read_built_in(source: Source, at: int) -> Found | None:
    found = read_calls_in_python(source, at, loose=True)
    name = found.cut_name or (found.calls[0].name if found.calls else "")
    calls = None if found.state == "not_calls" else text_calls_of(source, found)
    if not calls:
        return None
    if not name.endswith(_BUILT_IN):
        return _as_written(source, calls, found.end)
    if len(calls) != 1:
        return None
    call = structs.replace(calls[0], name=name.removesuffix(_BUILT_IN))
    end = found.end if call.state == "whole" else len(source.text)
    return Found(end=end, calls=(call,))


def _as_written(source: Source, calls: tuple[TextCall, ...], end: int) -> Found | None:
    """Return calls of tools in Python syntax, unless there is a tool that would run them."""
    if code_call(source.tools, "") is not None:
        return None
    is_cut = calls[-1].state == "cut"
    return Found(end=len(source.text) if is_cut else end, calls=calls, grade="damaged")


# without tags

_MAX_LISTS: Final = 64


def _read_pythonic(source: Source, at: int) -> Found | None:
    """Read calls that run to the end of the message and fit their tools exactly."""
    is_list = source.char(at) == "["
    found = read_calls_in_python(source, at)
    if is_list and found.state == "whole":
        found = _read_more_lists(source, at, found)
    end = skip_to_end(source, found.end, also=".;") if found.state == "whole" else None
    if found.state == "not_calls" or (found.state == "whole" and end is None):
        return None
    if not all(_fits_exactly(source, call) for call in found.calls):
        return None
    calls = text_calls_of(source, found)
    if not calls:
        return None
    if found.state == "cut":
        if found.cut_name is not None and source.tools.resolve(found.cut_name) is None:
            return None
        if found.cut_name is None and _is_remark(source, found.end):
            return None
        # Without its bracket a list may have lost calls, so none of them counts as whole.
        lacks_bracket = not source.text[found.end :].strip()
        calls = tuple(_cut(call, is_complete=lacks_bracket) for call in calls)
        return Found(end=len(source.text), calls=calls, grade="bare")
    return None if end is None else Found(end=end, calls=calls, grade="bare")


PYTHONIC: Final = OwnFormat(
    "pythonic",
    "A list of calls, or calls in a row, from the start of a line to the end of the message.",
    "Llama 3.2, September 2024; BFCL prompts", line_start=True, named=("{}(",), literals=("[",),
    reads=_read_pythonic,
)  # fmt: skip


def _is_remark(source: Source, at: int) -> bool:
    """Tell whether a last word begins no call, such as "Done." behind `ping()`.

    A word in small letters with a stop behind it may begin a name, such as `functions.search`.
    """
    word = source.text[at:].strip()
    if word[:1].isupper():
        word = word.removesuffix(".")
    return word.isidentifier() and not source.tools.begin_with(word)


def _cut(call: TextCall, *, is_complete: bool) -> TextCall:
    unclosed = call.arguments if is_complete and call.state == "whole" else None
    return structs.replace(call, state="cut", unclosed=unclosed)


def _read_more_lists(source: Source, at: int, found: PythonCalls) -> PythonCalls:
    """Add the lists that follow the first one, unless they are known not to end the message."""
    followed = source.once(_make_followed, 0)
    if at in followed:
        return found
    begins, calls, end = [at], list(found.calls), found.end
    while len(begins) <= _MAX_LISTS and source.char(at := source.skip_space(end)) == "[":
        more = read_calls_in_python(source, at)
        if more.state != "whole":
            break
        begins.append(at)
        calls += more.calls
        end = more.end
    if skip_to_end(source, end, also=".;") is None:
        followed.update(begins)
    return structs.replace(found, calls=tuple(calls), end=end)


def _make_followed(_source: Source, _at: int) -> set[int]:
    return set()


def _fits_exactly(source: Source, call: PythonCall) -> bool:
    parameters = source.tools.parameters(call.name)
    return parameters is not None and not call.positional and fits(parameters, call.keywords)


_GORILLA: Final = "<<function>>"
_RAVEN: Final = "Call:"
_RAVEN_END: Final = "<bot_end>"


GORILLA: Final = OwnFormat(
    "gorilla", "OpenFunctions: calls after `<<function>>`, separated by commas.",
    "Gorilla OpenFunctions v2, February 2024", literals=(_GORILLA,),
    reads=lambda source, at: _read_labelled(source, at + len(_GORILLA)),
)  # fmt: skip


def _read_nexus_raven(source: Source, at: int) -> Found | None:
    """Read the calls behind the label; nested calls are refused."""
    found = _read_labelled(source, at + len(_RAVEN))
    if found is None:
        return None
    end = source.skip_space(found.end)
    if source.starts(_RAVEN_END, end):
        return Found(end=end + len(_RAVEN_END), calls=found.calls, grade=found.grade)
    at_line_end = "\n" in source.text[found.end : end] or source.at_end(end)
    return found if at_line_end else None


NEXUS_RAVEN: Final = OwnFormat(
    "nexus_raven", "Calls after `Call:` at the start of a line, ended by `<bot_end>`.",
    "NexusRaven V2, December 2023", line_start=True, literals=(_RAVEN,), reads=_read_nexus_raven,
)  # fmt: skip


def _read_labelled(source: Source, at: int) -> Found | None:
    here = source.skip_space(at)
    if source.at_end(here):
        return None
    is_tool = source.tools.resolve(source.read_name(here)[0]) is not None
    found = read_calls_in_python(source, here, loose=is_tool)
    calls = None if found.state == "not_calls" else text_calls_of(source, found)
    if not calls:
        return None
    end = len(source.text) if found.state == "cut" else found.end
    return Found(end=end, calls=calls, grade="damaged")
