"""A name and an object: between tokens, in a tag, on lines, behind what is left of an id."""

import re
from functools import lru_cache
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.records import Receipt
from surecall.calls.formats import (
    Found,
    OwnFormat,
    TextCall,
    add_receipts,
    as_object,
    text_receipt,
)
from surecall.calls.json_block import (
    RESULTS,
    Payload,
    close_block,
    read_arguments_text,
    read_block,
    read_object,
    read_payload,
    skip_fence,
)
from surecall.calls.leftovers import skip_to_end, take_leftover
from surecall.calls.names import ToolNames
from surecall.calls.python_calls import PythonCall
from surecall.calls.source import Source
from surecall.calls.tags import ends_within, run_end
from surecall.calls.unmarked_json import fits, read_code
from surecall.calls.written_python import read_calls_in_python
from surecall.text import repair_json

# sections of calls, each with its id or name between tokens

_MAX_WORD_CHARS: Final = 300
_NAME_ENDS: Final = ("\n", "`", "{", "<", '"')
_FENCE: Final = "```"


class Sections(Struct, frozen=True):
    """The tokens of a section and of its calls."""

    openers: tuple[str, ...]
    closers: tuple[str, ...]
    call: str
    call_end: str
    arguments: str = ""
    """What stands before the arguments; without it, they follow the name."""
    name: str = ""
    """What stands between the id of a call and its name; else the id holds the name."""
    ends: tuple[str, ...] = ()
    """What ends a turn."""
    needs_opener: bool = True
    """Whether calls outside of a section are damaged."""

    @property
    def stops(self) -> tuple[str, ...]:
        """What may end the arguments of a call."""
        return (self.call_end, self.call, *self.closers, *self.openers, *self.ends)

    @property
    def every(self) -> tuple[str, ...]:
        """All tokens."""
        return (*filter(None, (self.arguments, self.name)), *self.stops)


def read_section(source: Source, at: int, tokens: Sections) -> Found | None:
    """Read the section that begins here up to its end, or calls that stand outside of any."""
    section = source.starts_any(tokens.openers, at)
    begun = here = source.skip_space(at + len(section)) if section else at
    if source.at_end(here) or source.begun_at_end(tokens.every, here):
        return Found(end=len(source.text))
    if section and not source.starts_any((tokens.call, *tokens.closers), here):
        here, token = source.find_any((tokens.call, *tokens.closers, *tokens.openers), here)
        if token != tokens.call:
            return None
    noise, first = source.text[begun:here].strip(), here
    calls: list[TextCall] = []
    while source.starts(tokens.call, here):
        end = _read_call(source, here, tokens, calls)
        if end < 0:
            break
        here = source.skip_space(end)
    if closer := source.starts_any(tokens.closers, here) if section or calls else "":
        here += len(closer)
    elif here == first and not calls:
        return None
    elif source.begun_at_end(tokens.every, here):
        here = len(source.text)
    if noise and calls:
        calls[:1] = take_leftover(tuple(calls[:1]), noise, source.tools)
    if section or not tokens.needs_opener:
        return Found(end=here, calls=tuple(calls))
    note = text_receipt(
        "missing_opener", "", tokens.openers[0], "the calls themselves are complete"
    )
    return Found(end=here, calls=add_receipts(calls, note), grade="damaged")


def _read_call(source: Source, at: int, tokens: Sections, calls: list[TextCall]) -> int:
    """Read one call into the list and return where it ends; -1 when it is none."""
    written, here, token = _read_word(source, at + len(tokens.call), tokens)
    name, payload = "", None
    if token and token == tokens.name:
        if tokens.arguments:
            name, here, token = _read_word(source, here, tokens)
        else:
            stop, _ = source.find_any(_NAME_ENDS, source.skip_space(here))
            if stop < 0:
                return len(source.text)
            name, written = source.text[here:stop].strip() or written, ""
            payload = _read_fenced(source, stop, tokens)
            if payload is None:
                return -1
    if payload is None and (not token or token not in (tokens.arguments, tokens.call_end)):
        # The text ended inside the head, or a beginning without a call: what counts begins here.
        return here - len(token) if token or source.at_end(here) else -1
    notes: list[Receipt] = []
    if payload is None and token == tokens.arguments:
        payload = read_arguments_text(source, here, tokens.stops)
    elif payload is None:
        payload = Payload("", here - len(token), "whole")
        notes.append(text_receipt("missing_arguments", "", "{}", "the call ends after its id"))
    end = source.skip_space(payload.end)
    if payload.state == "cut":
        end = payload.end
    elif source.starts(tokens.call_end, end):
        end += len(tokens.call_end)
    else:
        notes.append(
            text_receipt("missing_closer", "", tokens.call_end, "the arguments are complete")
        )
        end = len(source.text) if source.begun_at_end(tokens.every, end) else end
    call = TextCall(name=name, arguments=payload.text, id=written or None, state=payload.state)
    calls.extend(add_receipts((call if tokens.name else _name_by_id(source, call),), *notes))
    return end


def _read_word(source: Source, at: int, tokens: Sections) -> tuple[str, int, str]:
    """Return the id or name that stands here, where the token after it ends, and the token."""
    found, token = source.find_any(tokens.every, at)
    end = len(source.text) if found < 0 else found
    word = source.text[at:end].strip()
    if len(word) > _MAX_WORD_CHARS or len(word.split()) > 1 + word.count("\n"):
        return "", at, ""
    return word, end + len(token), token


# Kimi

_KIMI: Final = Sections(
    openers=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
    closers=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    call="<|tool_call_begin|>",
    arguments="<|tool_call_argument_begin|>",
    call_end="<|tool_call_end|>",
    ends=("<|im_end|>",),
)
_PREFIX: Final = "functions."
_COUNTER: Final = re.compile(r"[:!#]\d++\Z")

KIMI: Final = OwnFormat(
    "kimi", "Calls between `<|tool_call_begin|>` and `<|tool_call_end|>`, in a section or alone.",
    "Kimi K2, July 2025", trims=False, literals=(*_KIMI.openers, _KIMI.call),
    reads=lambda source, at: read_section(source, at, _KIMI),
)  # fmt: skip


def _read_kimi_stripped(source: Source, at: int) -> Found | None:
    """Read an id that its arguments directly follow."""
    written, after = source.read_name(at)
    after = source.skip_space(after)
    if not _COUNTER.search(written) or source.char(after) != "{":
        return None
    payload = read_payload(source, after, ())
    if payload is None:
        return None
    name = _COUNTER.sub("", written.removeprefix(_PREFIX))
    call = TextCall(name=name, arguments=payload.text, id=written, state=payload.state)
    note = text_receipt(
        "missing_markers", "", _KIMI.call, "an id of a call and its arguments are there"
    )
    return Found(end=payload.end, calls=add_receipts((call,), note), grade="damaged")


KIMI_STRIPPED: Final = OwnFormat(
    "kimi", "What is left of a call when a server drops its tokens: `functions.name:0{...}`.",
    "Kimi K2 behind servers that drop its tokens, July 2025", line_start=True,
    named=(f"{_PREFIX}{{}}:",), reads=_read_kimi_stripped,
)  # fmt: skip


def _name_by_id(source: Source, call: TextCall) -> TextCall:
    """Return a call with the name that its id holds."""
    name = _COUNTER.sub("", "".join((call.id or "").split()))
    if source.tools.resolve(name) != name:
        name = name.removeprefix(_PREFIX)
    call = replace(call, name=name)
    return _infer_name(source.tools, call) if name.isdigit() and call.state == "whole" else call


def _infer_name(tools: ToolNames, call: TextCall) -> TextCall:
    """Return a call that has a counter for a name with the one tool its arguments fit."""
    arguments = repair_json(call.arguments, ended=True).value
    if tools.resolve(call.name) or not isinstance(arguments, dict) or not arguments:
        return call
    keys = frozenset(cast("dict[str, Any]", arguments))
    fitting = [name for name in tools.names if _fits_keys(tools.parameters(name) or {}, keys)]
    if len(fitting) != 1:
        return call
    why = "the only tool whose parameters the arguments fit"
    note = text_receipt("infer_tool_name", call.name, fitting[0], why, lossless=False)
    return replace(call, name=fitting[0], receipts=(*call.receipts, note))


def _fits_keys(schema: dict[str, Any], keys: frozenset[str]) -> bool:
    properties: Any = schema.get("properties")
    required: Any = schema.get("required") or ()
    return isinstance(properties, dict) and keys <= properties.keys() and keys >= set(required)


SOLAR_TOKENS: Final = Sections(
    openers=("<|tool_calls|>",),
    closers=("<|calls|>",),
    call="<|tool_call:begin|>",
    name="<|tool_call:name|>",
    arguments="<|tool_call:args|>",
    call_end="<|tool_call:end|>",
    ends=("<|end|>", "<|begin|>assistant"),
    needs_opener=False,
)

# DeepSeek V3, R1 and V3.1: V3 writes `function`, a separator, the name and a fenced object, V3.1
# the name, the separator and the object. Both are read under both, also in look-alike characters.

_BARS: Final = ("｜｜", "｜", "||", "|", "‖")
_LINES: Final = ("▁", "_", "\\_", " ")
_OUTPUTS: Final = ("tool outputs begin", "tool output begin")


@lru_cache(maxsize=32)
def _deepseek_tokens(bar: str, line: str) -> Sections:
    def token(words: str) -> str:
        return f"<{bar}{words.replace(' ', line)}{bar}>"

    return Sections(
        openers=(token("tool calls begin"),),
        closers=(token("tool calls end"),),
        call=token("tool call begin"),
        name=token("tool sep"),
        call_end=token("tool call end"),
        ends=tuple(map(token, _OUTPUTS)),
    )


def _read_deepseek(source: Source, at: int) -> Found | None:
    """Read the section up to its end, or calls that stand outside of any."""
    bar = source.starts_any(_BARS, at + 1)
    begun = at + 1 + len(bar) + len("tool")
    line = "" if source.at_end(begun) else source.starts_any(_LINES, begun)
    tokens = _deepseek_tokens(bar, line or _LINES[0])
    opener = source.starts_any(tokens.every, at)
    if not opener and source.begun_at_end(tokens.every, at):
        return Found(end=len(source.text))
    is_begun = opener in (*tokens.openers, tokens.call)
    found = read_section(source, at, tokens) if is_begun else None
    if found is None or not found.calls:
        return found
    has_result = source.starts_any(tokens.ends, source.skip_space(found.end))
    found = replace(found, ends_message=bool(has_result))
    if (bar, line) == (_BARS[1], _LINES[0]):
        return found
    why = "characters that look like those of the token"
    note = text_receipt("look_alike_markers", opener, opener.replace(line, "_")[2:-2], why)
    return replace(found, calls=add_receipts(found.calls, note), grade="damaged")


DEEPSEEK: Final = OwnFormat(
    "deepseek",
    "Calls between `<｜tool▁call▁begin｜>` and `<｜tool▁call▁end｜>`, in a section or alone.",
    "DeepSeek V3, December 2024; V3.1, August 2025", trims=False,
    literals=tuple(f"<{bar}tool" for bar in _BARS), reads=_read_deepseek,
)  # fmt: skip


def _read_fenced(source: Source, at: int, tokens: Sections) -> Payload | None:
    """Read the arguments, perhaps in a code fence; the end is that of the fence."""
    fenced, here = skip_fence(source, source.skip_space(at))
    if source.at_end(here) or (not fenced and close_block(source, here, (_FENCE,))[1]):
        return Payload("", len(source.text), "cut")
    if (fenced and source.starts(_FENCE, here)) or source.starts_any(tokens.stops, here):
        payload = Payload("", here, "whole")
    elif source.char(here) == '"':  # a string that holds an object
        payload = read_arguments_text(source, here, tokens.stops)
    else:
        payload = read_payload(source, here, tokens.stops)
    if payload is None or payload.state == "cut" or not fenced:
        return payload
    end = source.skip_space(close_block(source, payload.end, (_FENCE,))[0])
    return Payload(payload.text.rstrip().removesuffix(_FENCE), end, payload.state)


# Mistral

_MISTRAL: Final = "[TOOL_CALLS"
_MISTRAL_ARGS: Final = "[ARGS"
_CALL_ID: Final = "[CALL_ID]"
_CUT_TOKENS: Final = (_CALL_ID, _MISTRAL_ARGS + "]")
_MISTRAL_END: Final = "[/TOOL_CALLS]"
_MISTRAL_STOPS: Final = ("[TOOL_CALLS]", _MISTRAL_END, *RESULTS, "</s>")


def _read_mistral(source: Source, at: int) -> Found | None:
    """Read the array, or one call of the compact form."""
    here, start, notes = at, at, list[Receipt]()
    while source.starts(_MISTRAL, here):
        start, notes = _skip_token(source, here, _MISTRAL)
        here = source.skip_space(start)
    if source.at_end(here):
        return Found(end=here)
    if source.char(here) in ("[", "{") and not source.starts(_MISTRAL_ARGS, here):
        return _read_array(source, here, notes)
    name, end = source.read_name(here)
    if source.at_end(end) and start < here and not source.tools.begin_with(name):
        return None  # prose that names the token; a name follows it directly
    return _read_compact(source, here, notes)


MISTRAL: Final = OwnFormat(
    "mistral", "The array form of the older tokenizers and the compact form of the newer ones.",
    "Mistral 7B v0.3, May 2024; Small 3.2, June 2025", trims=False, literals=(_MISTRAL,),
    reads=_read_mistral,
)  # fmt: skip


def _read_mistral_stripped(source: Source, at: int) -> Found | None:
    """Read one call."""
    why = "the name of a tool and its [ARGS] are there"
    lost = text_receipt("missing_opener", "", "[TOOL_CALLS]", why)
    found = _read_compact(source, at, [lost])
    return None if found is None else replace(found, grade="damaged")


MISTRAL_STRIPPED: Final = OwnFormat(
    "mistral", "The compact form of a server that drops the first token: `name[ARGS]{...}`.",
    "Mistral Small 3.2 behind servers that drop its tokens, June 2025", line_start=True,
    named=("{}" + _MISTRAL_ARGS,), reads=_read_mistral_stripped,
)  # fmt: skip


def _skip_token(source: Source, at: int, token: str) -> tuple[int, list[Receipt]]:
    """Return what follows a token that may have lost its bracket."""
    here = at + len(token)
    if source.starts("]", here):
        return here + 1, []
    return here, [
        text_receipt("missing_bracket", token, token + "]", "the rest of the token is there")
    ]


def _read_array(source: Source, at: int, notes: list[Receipt]) -> Found | None:
    block = read_block(source, at, _MISTRAL_STOPS)
    if block is None:
        return None
    return _end_array(source, block.end, add_receipts(block.calls, *notes), is_cut=block.cut)


def _read_compact(source: Source, at: int, notes: list[Receipt]) -> Found | None:
    name, here = source.read_name(at)
    if source.at_end(here):
        return Found(end=here)
    here = source.skip_space(here)
    call_id = None
    if source.starts(_CALL_ID, here):
        call_id, here = source.read_name(source.skip_space(here + len(_CALL_ID)))
        here = source.skip_space(here)
    if source.starts(_MISTRAL_ARGS, here):
        here, more = _skip_token(source, here, _MISTRAL_ARGS)
        here, notes = source.skip_space(here), [*notes, *more]
    elif not name or not (
        source.at_end(here) or source.begun_at_end(_CUT_TOKENS, here) or source.char(here) == "{"
    ):
        return None
    if source.at_end(here) or source.begun_at_end(_CUT_TOKENS, here):
        call = TextCall(name=name, arguments="", id=call_id, state="cut")
        return Found(end=len(source.text), calls=add_receipts((call,), *notes))
    payload = read_payload(source, here, _MISTRAL_STOPS)
    if payload is None:
        return None
    call = TextCall(name=name, arguments=payload.text, id=call_id, state=payload.state)
    return _end_array(
        source, payload.end, add_receipts((call,), *notes), is_cut=payload.state == "cut"
    )


def _end_array(source: Source, end: int, calls: tuple[TextCall, ...], *, is_cut: bool) -> Found:
    if is_cut:
        return Found(end=end, calls=calls)
    end, _ = close_block(source, end, (_MISTRAL_END,))
    result = source.starts_any(RESULTS, source.skip_space(end))
    return Found(end=end, calls=calls, ends_message=bool(result and calls))


# tags

_FUNCTION_TAG: Final = "<function="
_CLOSERS: Final = ("</function>", "<function>")
_WRITTEN_NAME: Final = re.compile(r"[^\s<>\"'{}()\[\]=/]{0,256}+")
_ATTRIBUTES: Final = re.compile(r"[^<>{}\n]{0,256}+")


def _read_function_tag(source: Source, at: int) -> Found | None:
    """Read the object after the name; `>` may be missing, or come after the object."""
    begin = at + len(_FUNCTION_TAG)
    begin += len(source.starts_any(('"', "'"), begin))
    name_end = run_end(source, _WRITTEN_NAME, begin)
    name = source.text[begin:name_end]
    if not name:
        return None
    here = run_end(source, _ATTRIBUTES, name_end)
    if source.at_end(here):
        return Found(end=here) if source.tools.begin_with(name) else None
    character = source.char(here)
    if character == "<" and source.starts("</function>", here):
        return _without_arguments(source, name, at, here)
    receipts: tuple[Receipt, ...] = ()
    if character == ">":
        here = source.skip_space(here + 1)
        if source.at_end(here):
            return None
    else:
        receipts = (text_receipt("missing_bracket", source.text[at:here], name),)
    if source.char(here) != "{" or (receipts and source.tools.resolve(name) is None):
        return None
    return _with_json(source, name, here, receipts)


def _with_json(source: Source, name: str, at: int, receipts: tuple[Receipt, ...]) -> Found | None:
    end = source.value_end(at)
    known = source.tools.resolve(name) is not None
    if end is None:
        call = TextCall(name=name, arguments=source.text[at:], state="cut", receipts=receipts)
        return Found(end=len(source.text), calls=(call,)) if known else None
    text = source.text[at:end]
    if not known and as_object(text) is None:
        return None
    here = source.skip_space(end)
    if receipts and source.char(here) == ">":
        here = source.skip_space(here + 1)
    closer = "" if source.at_end(here) else source.starts_any(_CLOSERS, here)
    if closer:
        end = here + len(closer)
    elif ends_within(source, _CLOSERS[0], here):
        end = len(source.text)
    if closer != _CLOSERS[0]:
        receipts += (text_receipt("missing_closing_tag", closer, _CLOSERS[0]),)
    call = TextCall(name=name, arguments=text, receipts=receipts)
    return Found(end=end, calls=(call,), grade="marked" if closer or known else "damaged")


def _without_arguments(source: Source, name: str, at: int, here: int) -> Found:
    receipt = text_receipt("missing_bracket", source.text[at:here], name)
    call = TextCall(name=name, arguments=None, receipts=(receipt,))
    return Found(end=here + len("</function>"), calls=(call,), grade="damaged")


FUNCTION_TAG: Final = OwnFormat(
    "function_tag", "A name in the tag, and one JSON object.",
    "Llama 3.1 and Functionary v3.1, July 2024", literals=(_FUNCTION_TAG,),
    reads=_read_function_tag,
)  # fmt: skip


# lines

_ASSISTANT: Final = "<|assistant|>"
_PYTHON_FENCE: Final = "```python"
_TICKS: Final = "```"
_MAX_CALLS: Final = 64
_KEY_STARTS: Final = ('"', "'", "}")


def _read_chatglm(source: Source, at: int) -> Found | None:
    """Read names and arguments by turns; the token of the next turn stands between them."""
    calls: list[TextCall] = []
    here = at + len(source.starts_any((_ASSISTANT,), at))
    while len(calls) < _MAX_CALLS:
        read = _read_one(source, here)
        if read is None:
            return None
        call, end = read
        calls.append(call)
        if call.state == "cut":
            return Found(end=end, calls=tuple(calls), grade="bare")
        here = source.skip_space(end)
        if source.starts(">>>", here):
            return Found(end=here, calls=tuple(calls), grade="bare")
        if not source.starts(_ASSISTANT, here):
            last = skip_to_end(source, end)
            found = Found(end=last or 0, calls=tuple(calls), grade="bare")
            return None if last is None else found
        here += len(_ASSISTANT)
    return None


CHATGLM: Final = OwnFormat(
    "chatglm", "The name of a tool, a newline and an object, up to the end of the message.",
    "ChatGLM3, October 2023", line_start=True, named=("{}\n", f"{_ASSISTANT}{{}}"),
    reads=_read_chatglm,
)  # fmt: skip


def _read_one(source: Source, at: int) -> tuple[TextCall, int] | None:
    name, end = source.read_name(at)
    if source.tools.resolve(name) is None or source.char(end) != "\n":
        return None
    here = source.skip_space(end)
    if source.starts(_PYTHON_FENCE, here):
        return _read_code(source, name, here + len(_PYTHON_FENCE))
    if source.char(here) != "{":
        return None
    end = source.value_end(here)
    if end is None:
        inside = source.skip_space(here + 1)
        if not source.at_end(inside) and source.char(inside) not in _KEY_STARTS:
            return None
        rest = source.text[here:]
        return TextCall(name=name, arguments=rest, state="cut"), len(source.text)
    text = source.text[here:end]
    value = repair_json(text, ended=True).value
    keys = cast("dict[str, Any]", value) if isinstance(value, dict) else None
    if keys is None or not fits(source.tools.parameters(name), keys):
        return None  # a line of prose or code in braces, or data under a heading
    return TextCall(name=name, arguments=text), end


def _read_code(source: Source, name: str, at: int) -> tuple[TextCall, int] | None:
    """Read the arguments of a made-up function that stands for the tool."""
    found = read_calls_in_python(source, at)
    if found.state == "cut" and found.cut_name is not None and not found.calls:
        rest = source.text[found.cut_from :]
        return TextCall(name=name, arguments=rest, state="cut"), len(source.text)
    if found.state != "whole" or len(found.calls) != 1 or not _fits(source, name, found.calls[0]):
        return None
    here = source.skip_space(found.end)
    end = here + len(_TICKS) if source.starts(_TICKS, here) else found.end
    return TextCall(name=name, arguments=found.calls[0].keywords), end


def _fits(source: Source, name: str, call: PythonCall) -> bool:
    return not call.positional and fits(source.tools.parameters(name), call.keywords)


_FROM: Final = "<|from|>"
_RECIPIENT: Final = "<|recipient|>"
_CONTENT: Final = "<|content|>"
_STOP: Final = "<|stop|>"
_MARK: Final = ">>>"
_ALL: Final = "all"
_MAX_NAME: Final = 128


def _read_functionary(source: Source, at: int) -> Found | None:
    """Read one header, and the arguments when it names a tool."""
    if source.starts(_MARK, at):
        return _read_mark(source, at + len(_MARK))
    here = at
    if source.starts(_FROM, at):
        here = source.text.find(_RECIPIENT, at, at + _MAX_NAME)
        if here < 0:
            source.at_end(at + _MAX_NAME)
            return None
    return _read_header(source, here + len(_RECIPIENT))


FUNCTIONARY: Final = OwnFormat(
    "functionary", "Messages to a recipient: `all` is text, any other is a tool.",
    "Functionary v2, 2024; v3.2, August 2024", trims=False, literals=(_FROM, _RECIPIENT, _MARK),
    reads=_read_functionary,
)  # fmt: skip


def _read_functionary_start(source: Source, at: int) -> Found | None:
    """Drop the recipient when a call follows its text."""
    start = at + len(_ALL) + 1
    found, mark = source.find_any((_MARK, f"\n{_ALL}\n"), start - 1)
    if mark != _MARK or _read_mark(source, found + len(_MARK)) is None:
        return None
    return Found(end=start, grade="damaged")


FUNCTIONARY_START: Final = OwnFormat(
    "functionary", "A message whose first `>>>` was in the prompt, so it begins with `all`.",
    "Functionary v3.2, August 2024", line_start=True, literals=(f"{_ALL}\n",),
    reads=_read_functionary_start,
)  # fmt: skip


def _read_mark(source: Source, at: int) -> Found | None:
    name, end = source.read_name(at)
    if source.char(end) != "\n":
        return None
    if name == _ALL:
        return Found(end=end + 1, grade="damaged")
    if source.tools.resolve(name) is None:
        return None
    body = source.skip_space(end)
    if source.char(body) == "{":
        call, end = read_object(source, name, body)
        return Found(end=end, calls=(call,), grade="damaged")
    found = read_code(source, body, (_MARK, _STOP), name)
    return None if found is None else replace(found, grade="damaged")


def _read_header(source: Source, at: int) -> Found | None:
    name, end = source.read_name(source.skip_space(at))
    end = source.skip_space(end)
    if source.at_end(end):
        return Found(end=end)
    if not name or not source.starts(_CONTENT, end):
        return None
    body = end + len(_CONTENT)
    if name == _ALL:
        return Found(end=body)
    body = source.skip_space(body)
    if source.at_end(body):
        return Found(end=body, calls=(TextCall(name=name, arguments="", state="cut"),))
    if source.char(body) == "{":
        call, end = read_object(source, name, body)
        return Found(end=end, calls=(call,))
    if found := read_code(source, body, (_FROM, _STOP), name):
        return found
    stop, _ = source.find_any((_FROM, _STOP), body)
    stop = len(source.text) if stop < 0 else stop
    return Found(end=stop, calls=(TextCall(name=name, arguments=source.text[body:stop]),))


_FUNCTION: Final = "✿FUNCTION✿"
_FLORETTE_ARGS: Final = "✿ARGS✿"
_MAX_LINE: Final = 256
_RETURN: Final = "✿RETURN✿:"
_FLORETTE_RESULTS: Final = ("✿RESULT✿", "✿RETURN✿")


FLORETTE_ANSWER: Final = OwnFormat(
    "florette", "The marker before an answer, which is dropped.", "Qwen-Agent, 2023",
    line_start=True, trims=False, literals=(_RETURN,),
    reads=lambda source, at: Found(end=source.skip_space(at + len(_RETURN)), grade="damaged"),
)  # fmt: skip


def _read_florette(source: Source, at: int) -> Found | None:
    """Read pairs up to a result or the end."""
    calls: list[TextCall] = []
    end = here = at
    while source.starts(_FUNCTION, here):
        line = _line_end(source, here)
        name = source.text[here + len(_FUNCTION) : line].strip().removeprefix(":").strip()
        if line < 0 or not name or source.tools.resolve(name) is None:
            break
        if source.at_end(line):
            return Found(end=line, calls=tuple(calls), grade="damaged")
        call, end = _read_arguments(source, name, source.skip_space(line))
        calls.append(call)
        here = source.skip_space(end)
    if not calls:
        return None
    if source.begun_at_end((*_FLORETTE_RESULTS, _FUNCTION), here):
        return Found(end=len(source.text), calls=tuple(calls), grade="damaged")
    if source.starts_any(_FLORETTE_RESULTS, here):
        return Found(end=here, calls=tuple(calls), grade="damaged", ends_message=True)
    return Found(end=end, calls=tuple(calls), grade="damaged")


FLORETTE: Final = OwnFormat(
    "florette", "Pairs of a name and its arguments; results that follow are made up.",
    "Qwen-Agent, 2023", literals=(_FUNCTION,), reads=_read_florette,
)  # fmt: skip


def _line_end(source: Source, at: int) -> int:
    """Return where the line of a name ends, or -1 when it is longer than names are."""
    found = source.text.find("\n", at, at + _MAX_LINE)
    if found >= 0:
        return found
    return len(source.text) if source.at_end(at + _MAX_LINE) else -1


def _read_arguments(source: Source, name: str, at: int) -> tuple[TextCall, int]:
    if source.at_end(at):
        return TextCall(name=name, arguments="", state="cut"), at
    if not source.starts(_FLORETTE_ARGS, at):
        partial = source.text[at : at + len(_FLORETTE_ARGS)]
        if _FLORETTE_ARGS.startswith(partial):
            return TextCall(name=name, arguments="", state="cut"), len(source.text)
        return TextCall(name=name, arguments=None), at
    here = source.skip_space(at + len(_FLORETTE_ARGS))
    if source.char(here) == ":":
        here = source.skip_space(here + 1)
    if source.at_end(here):
        return TextCall(name=name, arguments="", state="cut"), here
    if source.char(here) != "{":
        end = source.line_end(here)
        return TextCall(name=name, arguments=source.text[here:end]), end
    return read_object(source, name, here)
