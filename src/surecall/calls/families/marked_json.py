"""JSON between marks: tags, tokens, a word, a label with a fence."""

from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.records import Receipt
from surecall.calls.formats import Found, OwnFormat, TextCall, add_receipts, text_receipt
from surecall.calls.json_block import (
    RESULTS,
    Block,
    Marks,
    close_block,
    end_block,
    read_block,
    read_marked,
    read_payload,
    skip_fence,
)
from surecall.calls.json_shapes import find_calls, read_json_calls
from surecall.calls.names import PLACEHOLDERS
from surecall.calls.source import Source
from surecall.calls.unmarked_json import read_code
from surecall.calls.yaml_lines import UnreadableError, read_mapping, read_value
from surecall.text import decode, repair_json

_PLAIN: Final = Marks(closes=False)

# tags

_CODE: Final = "<code>"
_CODE_END: Final = "</code>"
_INNER: Final = "<tool_call>"
_SECTION: Final = "<tool_calls>"
_ANSWER: Final = "<answer>"
_OFFERED: Final = "<AVAILABLE_TOOLS>"
_OFFERED_END: Final = "</AVAILABLE_TOOLS>"
_TAGS: Final = {
    **{
        f"<{word}>": Marks((f"</{word}>",), closes="function" not in word)
        for word in ("tool_call", "tool_calls", "TOOLCALL", "function_call", "functioncall")
    },
    "[TOOL_REQUEST]": Marks(("[END_TOOL_REQUEST]",)),
    **{
        f"<{word}>": Marks((f"</{word}>",), grade="damaged")
        for word in ("tools", "tool", "function", "response", "json", "JSON", "xml", "tool_use")
    },
}
_OPENERS: Final = tuple(_TAGS)


def _read_tagged(source: Source, at: int) -> Found | None:
    """Read the calls up to the closer; text that ends inside one makes it cut."""
    wrapped = False
    if other := source.starts_any((_OFFERED, _ANSWER), at):
        at = source.skip_space(at + len(other))
        if other == _OFFERED:
            return _read_offered(source, at)
        if not source.starts(_SECTION, at):
            return None
        wrapped = True
    opener = source.starts_any(_OPENERS, at)
    marks = _TAGS[opener]
    here = source.skip_space(at + len(opener))
    if source.at_end(here):
        return Found(end=here) if marks.grade == "marked" else None
    block = _read_body(source, here, opener, marks.closers[0])
    found = None if block is None else end_block(source, block, opener, marks)
    if wrapped and found is not None:
        found = replace(found, end=close_block(source, found.end, ("</answer>",))[0])
    return found


def _read_offered(source: Source, here: int) -> Found | None:
    """Drop the list of tools when a model repeats it from its prompt before it calls one."""
    end = source.value_end(here) if source.char(here) == "[" else None
    if end is None:
        return None
    end, closer = close_block(source, end, (_OFFERED_END,))
    calls = source.starts_any(_TAGS, source.skip_space(end))
    return Found(end=end) if closer and calls else None


def _read_body(source: Source, here: int, opener: str, closer: str) -> Block | None:
    stops = (opener, closer, *RESULTS)
    if opener == _SECTION:
        if source.starts(_INNER, here):
            return _read_inner(source, here, stops)
        if source.char(here) == "-":
            return _read_yaml_calls(source, here, closer)
    block = read_block(source, here, stops)
    return block if block is None or block.cut else _with_code(source, block, closer)


def _read_inner(source: Source, at: int, stops: tuple[str, ...]) -> Block | None:
    """Read a section that has a tag around each of its calls, too."""
    calls: list[TextCall] = []
    here, end = at, at
    while source.starts(_INNER, here):
        block = read_block(source, here + len(_INNER), (*stops, _INNER, "</tool_call>"))
        if block is None:
            return None if not calls else Block(tuple(calls), end, cut=False)
        calls.extend(block.calls)
        if block.cut:
            return Block(tuple(calls), block.end, cut=True)
        end, _ = close_block(source, block.end, ("</tool_call>",))
        here = source.skip_space(end)
    return Block(tuple(calls), end, cut=False)


def _with_code(source: Source, block: Block, closer: str) -> Block:
    """Put raw code that follows the JSON into the empty argument it stands for."""
    at = source.skip_space(block.end)
    if len(block.calls) != 1 or source.starts(closer, at):
        return block
    call = block.calls[0]
    given: Any = call.arguments
    arguments = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if arguments.get("code") == "" and _CODE.startswith(source.text[at:]) and source.final:
        return Block((replace(call, state="cut"),), len(source.text), cut=True)
    if not source.starts(_CODE, at):
        return block
    start = at + len(_CODE)
    end = source.find(_CODE_END, start)
    while end >= 0 and not source.starts(closer, source.skip_space(end + len(_CODE_END))):
        end = source.find(_CODE_END, end + 1)
    if end < 0:
        return Block((replace(call, state="cut"),), len(source.text), cut=True)
    if arguments.get("code"):
        return block
    code = source.text[start:end].removeprefix("\n").removesuffix("\n")
    filled = replace(call, arguments={**arguments, "code": code})
    note = text_receipt("fill_code_argument", code, "code", "code came after the arguments")
    return Block(add_receipts((filled,), note), end + len(_CODE_END), cut=False)


TAGGED_JSON: Final = OwnFormat(
    "tagged_json", "One object, an array, or objects in a row, between a tag and its closer.",
    "Hermes 2 Pro and Qwen2.5, March 2024", literals=(*_TAGS, _ANSWER, _OFFERED),
    reads=_read_tagged,
)  # fmt: skip

# calls as YAML


def _read_yaml_calls(source: Source, at: int, closer: str) -> Block | None:
    """Read the list that begins here, up to the closer."""
    end = source.find(closer, at)
    is_cut = end < 0
    end = len(source.text) if is_cut else end
    calls: list[TextCall] = []
    items = _items(source.text[at:end])
    for index, lines in enumerate(items):
        is_last = index == len(items) - 1
        call = _call_of(source, lines, is_cut=is_cut and is_last)
        if call is not None:
            calls.append(call)
        elif not (is_cut and is_last):
            return None
    return Block(tuple(calls), end, cut=is_cut) if calls or is_cut else None


def _items(text: str) -> list[list[str]]:
    """Return the lines of each item of the list, without its dash."""
    items: list[list[str]] = []
    for line in text.rstrip().split("\n"):
        if line.startswith("- "):
            items.append(["  " + line[2:]])
        elif items:
            items[-1].append(line)
    return items


def _call_of(source: Source, lines: list[str], *, is_cut: bool) -> TextCall | None:
    text = "\n".join(lines)
    while lines and not lines[-1].strip():
        lines.pop()
    key, _, name = lines[0].strip().partition(":")
    name = name.strip().strip("\"'")
    if key != "name" or not name or (is_cut and len(lines) == 1):
        return None
    if is_cut:
        return TextCall(name=name, arguments=text, state="cut")
    receipts: list[Receipt] = []
    try:
        arguments = _arguments_of(source, name, lines[1:], receipts)
    except UnreadableError:
        return TextCall(name=name, arguments=text, state="unreadable")
    return TextCall(name=name, arguments=arguments, receipts=tuple(receipts))


def _arguments_of(source: Source, name: str, lines: list[str], receipts: list[Receipt]) -> Any:
    if not lines:
        return None
    key, _, rest = lines[0].strip().partition(":")
    if key not in ("arguments", "parameters"):
        raise UnreadableError(key)
    body = "\n".join(lines[1:])
    if rest.strip():
        return f"{rest.strip()}\n{body}" if body else rest.strip()
    return {
        entry.key: read_value(entry, source.schema_of(name, entry.key), receipts)
        for entry in read_mapping(body)
    }


# tokens

_SEPARATOR: Final = "<|message_sep|>"
_ROLE: Final = "function call"
_ROLE_END: Final = "<|role_sep|>"
_ACTION: Final = "<|action_start|>"
_PLUGIN: Final = "<|plugin|>"
_INTERPRETER: Final = "<|interpreter|>"
_ACTION_END: Final = "<|action_end|>"

_TOKENS: Final = {
    "<|tool_call|>": Marks(
        ("<|/tool_call|>", "<|end_tool_call|>", "<|tool_call_end|>"), closes=False
    ),
    "<|function_call|>": _PLAIN,
}


def _read_token_json(source: Source, at: int) -> Found | None:
    """Read the calls behind the token."""
    opener = source.starts_any(_TOKENS, at)
    return read_marked(source, at + len(opener), opener, _TOKENS[opener])


TOKEN_JSON: Final = OwnFormat(
    "token_json", "One object, an array, or objects in a row, after a special token.",
    "Granite 3, October 2024; Phi-4-mini, February 2025", trims=False, literals=tuple(_TOKENS),
    reads=_read_token_json,
)  # fmt: skip


def _read_role(source: Source, at: int) -> Found | None:
    """Read the JSON behind `function call` as the role of a message."""
    here = at
    if source.starts(_SEPARATOR, here):
        here = source.skip_space(here + len(_SEPARATOR))
    if not source.starts(_ROLE, here):
        return None
    here = source.skip_space(here + len(_ROLE))
    if not source.starts(_ROLE_END, here):
        return None
    return read_marked(source, here + len(_ROLE_END), _SEPARATOR, _PLAIN)


GIGACHAT: Final = OwnFormat(
    "token_json", "The same as a message whose role is `function call`.",
    "GigaChat 3, November 2025", trims=False, literals=(_SEPARATOR, _ROLE + _ROLE_END),
    reads=_read_role,
)  # fmt: skip


def _read_action(source: Source, at: int) -> Found | None:
    """Read the calls of a plugin, or the code for the interpreter."""
    here = source.skip_space(at + len(_ACTION))
    if source.starts(_INTERPRETER, here):
        found = read_code(source, here + len(_INTERPRETER), (_ACTION_END,))
        return found and replace(found, end=close_block(source, found.end, (_ACTION_END,))[0])
    if source.starts(_PLUGIN, here):
        here += len(_PLUGIN)
    return read_marked(source, here, _ACTION, Marks((_ACTION_END,)))


INTERNLM: Final = OwnFormat(
    "token_json", "The same behind the token of an action, or code for the tool that runs it.",
    "InternLM2, January 2024", trims=False, literals=(_ACTION,), reads=_read_action,
)  # fmt: skip

_APERTUS: Final = "<|tools_prefix|>"
_SUFFIX: Final = "<|tools_suffix|>"


def _read_apertus(source: Source, at: int) -> Found | None:
    """Read the array up to its bracket; what follows without the suffix is text."""
    here = source.skip_space(at + len(_APERTUS))
    if source.at_end(here):
        return Found(end=here)
    if source.char(here) == "{":
        return _read_items(source, here, is_array=False)
    return _read_items(source, here + 1) if source.char(here) == "[" else None


def _read_items(source: Source, at: int, *, is_array: bool = True) -> Found | None:
    """Read one object after the other, so that a broken one does not hide the rest."""
    calls: list[TextCall] = []
    here = source.skip_space(at)
    while payload := read_payload(source, here, (_SUFFIX, _APERTUS)):
        if payload.state == "cut":
            calls.extend(_cut_call(payload.text))
            return Found(end=payload.end, calls=tuple(calls))
        repaired = repair_json(payload.text, ended=True)
        found = find_calls(repaired.value, repaired.receipts, tools=source.tools, keyed=True)
        calls.extend(found.calls or _broken_call(payload.text))
        here = source.skip_space(payload.end)
        if is_array and source.char(here) == ",":
            here = source.skip_space(here + 1)
    if source.at_end(here) and is_array and not calls:
        return Found(end=here)
    if is_array and source.char(here) == "]":
        here += 1
    elif not calls:
        return None
    end, closer = close_block(source, here, (_SUFFIX,))
    receipts = ()
    if closer != _SUFFIX:
        why = "the calls themselves are complete"
        receipts = (text_receipt("missing_closer", closer, _SUFFIX, why),)
    return Found(end=end, calls=add_receipts(calls, *receipts))


def _broken_call(text: str) -> tuple[TextCall, ...]:
    """Return the call that an object names whose arguments cannot be told."""
    return tuple(replace(call, state="unreadable") for call in _cut_call(text))


def _cut_call(text: str) -> tuple[TextCall, ...]:
    """Return the call that an object without its end was going to be, once its name is there."""
    head, colon, rest = text[1:].partition(":")
    try:
        name = decode(head.strip()) if colon else None
    except JSONTextError:
        name = None
    if not isinstance(name, str):
        return ()
    return (TextCall(name=name, arguments=rest.strip(), state="cut"),)


APERTUS: Final = OwnFormat(
    "apertus", "An array of objects whose keys are the names of the tools.",
    "Apertus, September 2025", trims=False, literals=(_APERTUS,), reads=_read_apertus,
)  # fmt: skip

_WORD: Final = "functools"
_FUNCTOOLS: Final = _WORD + "["


def _read_functools(source: Source, at: int) -> Found | None:
    """Read the array; a subscript of the Python module is none."""
    inside = source.skip_space(at + len(_FUNCTOOLS))
    if source.at_end(inside):
        return Found(end=inside)
    if source.char(inside) not in ("{", "]", '"'):
        return None
    block = read_block(source, at + len(_WORD), (_FUNCTOOLS,))
    return None if block is None else Found(end=block.end, calls=block.calls)


FUNCTOOLS: Final = OwnFormat(
    "functools", "An array of calls directly after the word `functools`.",
    "Phi-4-mini, February 2025", literals=(_FUNCTOOLS,), reads=_read_functools,
)  # fmt: skip

# Cohere

_OPENER: Final = "<|START_ACTION|>"
_ANSWER_ENDS: Final = ("<|END_RESPONSE|>", "<|END_TEXT|>")
_CITED: Final = "<co>"
_CITED_END: Final = "</co"


def _read_cohere(source: Source, at: int) -> Found | None:
    """Read the calls up to the end of the action, or the span that is cited."""
    if source.starts(_CITED, at):
        return _read_citation(source, at)
    if ended := source.starts_any(_ANSWER_ENDS, at):
        at = source.skip_space(at + len(ended))
        if not source.starts(_OPENER, at):
            return None
    return read_marked(source, at + len(_OPENER), _OPENER, Marks(("<|END_ACTION|>",)))


def _read_citation(source: Source, at: int) -> Found | None:
    """Read `<co>span</co: 0:[1]>`, of which only the span is for a person to see."""
    start = at + len(_CITED)
    end, literal = source.find_any((_CITED_END, _CITED, "\n"), start)
    if literal != _CITED_END:
        return None
    closed, literal = source.find_any((">", "\n"), end)
    if literal != ">":
        return None
    return Found(end=closed + 1, content=source.text[start:end])


COHERE_ACTION: Final = OwnFormat(
    "cohere_action", 'An array of `{"tool_call_id", "tool_name", "parameters"}`.',
    "Command R7B, December 2024", trims=False, literals=(_OPENER, _CITED, *_ANSWER_ENDS),
    reads=_read_cohere,
)  # fmt: skip

_LABEL: Final = "Action:"


def _read_command_r(source: Source, at: int) -> Found | None:
    """Read the array; `directly-answer` among the names calls nothing."""
    fence, here = skip_fence(source, source.skip_space(at + len(_LABEL)))
    if not fence or source.char(here) != "[":
        return None
    end = source.value_end(here)
    whole = end is not None
    end = len(source.text) if end is None else end
    calls = read_json_calls(
        source.text[here:end], ended=whole, tools=source.tools, spend=source.spend_on_marks
    )
    if not calls:
        return None
    kept = tuple(call for call in calls if call.name.strip().lower() not in PLACEHOLDERS)
    after = source.skip_space(end)
    if source.starts(fence, after):
        end = after + len(fence)
    return Found(end=end, calls=kept, grade="damaged")


COMMAND_R: Final = OwnFormat(
    "command_r", "An array of `tool_name` and `parameters` in the fence after `Action:`.",
    "Command R, March 2024", line_start=True, literals=(_LABEL,), reads=_read_command_r,
)  # fmt: skip
