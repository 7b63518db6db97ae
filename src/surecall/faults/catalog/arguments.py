"""Faults in the arguments of calls, and calls that are too large or cut."""

from typing import Any, Final

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.faults.replies import Occasion, PlannedReply
from surecall.text import decode, encode_text

from .fault import FaultTable, edit_arguments

Values = dict[str, Any]

_MARK: Final = "\ufeff"
_DEEP: Final = 200
_PADDING_CHARS: Final = 8000
_SHAPES: Final = "models that misread what arguments are"
_WRONG_TYPES: Final = "vibe_tavern study, scenario type_error_recovery"
_CRASHES: Final = "servers that crash or are stopped; most clients take it for the end"

ARGUMENTS: Final = FaultTable("arguments", seen="vibe_tavern study, failure modes: arguments drift")
SIZE: Final = FaultTable("size", refusal=Code.ARGUMENTS_TRUNCATED)


@ARGUMENTS.on_arguments(protocols=("chat_completions", "responses"))
def arguments_object(text: str) -> Any:
    """Sends the arguments as an object instead of text."""
    return decode(text)


@ARGUMENTS.on_arguments()
def arguments_double_encoded(text: str) -> str:
    """Sends JSON text inside JSON text."""
    return encode_text(text)


@ARGUMENTS.on_arguments()
def arguments_fenced(text: str) -> str:
    """Puts a code fence around the arguments."""
    return f"```json\n{text}\n```"


@ARGUMENTS.on_arguments(seen=_SHAPES)
def arguments_prose_around(text: str) -> str:
    """Writes a sentence before the arguments."""
    return f"Here are the arguments: {text}"


@ARGUMENTS.on_arguments()
def arguments_trailing_comma(text: str) -> str:
    """Leaves a comma before the closing brace."""
    return f"{text[:-1]},}}" if len(text) > 2 else text


@ARGUMENTS.on_arguments()
def arguments_single_quotes(text: str) -> str:
    """Uses single quotes."""
    return text.replace('"', "'") if "'" not in text and '\\"' not in text else repr(decode(text))


@ARGUMENTS.on_arguments(seen="small models, and text that went through an editor")
def arguments_curly_quotes(text: str) -> str:
    """Uses typographic quotes."""
    curled: list[str] = []
    is_open = is_escaped = False
    for char in text:
        if char == '"' and not is_escaped:
            is_open = not is_open
            char = "“" if is_open else "”"
        is_escaped = char == "\\" and not is_escaped
        curled.append(char)
    return "".join(curled)


@ARGUMENTS.on_arguments()
def arguments_unquoted_keys(text: str) -> str:
    """Leaves the quotes around keys out."""
    values: Values = decode(text)
    return "{" + ", ".join(f"{key}: {encode_text(item)}" for key, item in values.items()) + "}"


@ARGUMENTS.on_arguments()
def arguments_python(text: str) -> str:
    """Writes a Python dict, with True, False and None."""
    return repr(decode(text))


@ARGUMENTS.on_arguments()
def arguments_comment(text: str) -> str:
    """Puts a comment into the JSON."""
    return f"{{ // as asked\n{text[1:]}"


@ARGUMENTS.on_arguments()
def arguments_raw_newline(text: str) -> str:
    """Leaves line breaks in texts as they are."""
    return text.replace("\\n", "\n")


@ARGUMENTS.on_arguments(seen="text that went through an editor or another encoding")
def arguments_bom(text: str) -> str:
    """Begins with a byte order mark."""
    return _MARK + text


@ARGUMENTS.on_arguments()
def arguments_missing_bracket(text: str) -> str:
    """Leaves the last brace out, though the reply came to its end."""
    ordered = _order(decode(text), containers_last=True)  # behind a bracket nothing can be cut
    return ordered[:-1] if ordered[-2:-1] in ("]", "}") else ordered


@ARGUMENTS.on_values(seen="models trained on text formats with that key")
def arguments_wrapped(values: Values) -> Values:
    """Puts the arguments into an object `arguments` once more."""
    return {"arguments": values}


@ARGUMENTS.on_values(seen="vibe_tavern study, failure modes: wrong types")
def arguments_scalars_as_text(values: Values) -> Values:
    """Writes numbers and booleans as strings."""
    return _write_as_text(values, bool | int | float)


@ARGUMENTS.on_values(
    seen="vibe_tavern study, failure modes: wrong types; scenario type_error_recovery"
)
def arguments_lists_as_text(values: Values) -> Values:
    """Writes lists and objects inside the arguments as JSON text."""
    return _write_as_text(values, list | dict)


@ARGUMENTS.on_values(seen=_WRONG_TYPES)
def arguments_list_unwrapped(values: Values) -> Values:
    """Sends the one item of a list without the list."""
    return {
        key: item[0] if isinstance(item, list) and item else item for key, item in values.items()
    }


@ARGUMENTS.on_values(seen="small models")
def arguments_keys_in_capitals(values: Values) -> Values:
    """Writes the keys with a capital."""
    return {key.capitalize(): item for key, item in values.items()}


@ARGUMENTS.on_arguments(refusal=Code.ARGUMENTS_INVALID)
def arguments_blank(_: str) -> str:
    """Sends blank arguments for a tool that needs some."""
    return ""


@ARGUMENTS.on_arguments(refusal=Code.ARGUMENTS_TRUNCATED)
def arguments_missing_brace(text: str) -> str:
    """Leaves out the last brace after a plain value, which looks as if it was cut."""
    values: Values = decode(text)
    return _order(values, containers_last=False)[:-1] if values else "{"


@ARGUMENTS.on_arguments(refusal=Code.ARGUMENTS_JSON_PARSE_ERROR, seen=_SHAPES)
def arguments_prose(_: str) -> str:
    """Describes the arguments in words."""
    return "the text that you gave me"


@ARGUMENTS.on_arguments(refusal=Code.ARGUMENTS_JSON_PARSE_ERROR, seen=_SHAPES)
def arguments_two_objects(text: str) -> str:
    """Sends two different objects, one after the other."""
    return text + '{"other": 1}'


@ARGUMENTS.on_arguments(
    refusal=Code.ARGUMENTS_JSON_PARSE_ERROR,
    seen="models that change their mind; most parsers take the last value",
)
def arguments_repeated_key(text: str) -> str:
    """Gives one key twice, with different values."""
    values: Values = decode(text)
    if not values:
        return text
    return f"{text[:-1]},{encode_text(_first_key(values))}:{encode_text('something else')}}}"


@ARGUMENTS.on_arguments(
    refusal=Code.ARGUMENTS_JSON_PARSE_ERROR, seen="models that write Python or JavaScript"
)
def arguments_nan(text: str) -> str:
    """Sends a number that JSON does not have."""
    return _replace_first(text, "NaN")


ARGUMENTS.add(
    "arguments_too_deep",
    f"Nests {_DEEP} lists in one another.",
    refusal=Code.ARGUMENTS_TOO_DEEP,
    seen="models that repeat themselves, and hostile input",
    reply=edit_arguments(lambda text: _replace_first(text, "[" * _DEEP + "]" * _DEEP)),
)


@ARGUMENTS.on_values(
    refusal=Code.ARGUMENTS_INVALID, seen="vibe_tavern study, scenario missing_workspace_id"
)
def arguments_missing_field(values: Values) -> Values:
    """Leaves out the first field."""
    return _without_first(values)


@ARGUMENTS.on_values(refusal=Code.ARGUMENTS_INVALID, seen=_WRONG_TYPES)
def arguments_wrong_type(values: Values) -> Values:
    """Sends objects for plain values, and words for lists."""
    changed: Values = {}
    for key, item in values.items():
        is_container = isinstance(item, list | dict)
        changed[key] = "as discussed" if is_container else {"unit": "please", "see": ["above"]}
    return changed or {"unit": "please"}


def _order(values: Values, *, containers_last: bool) -> str:
    """Write the values with the lists and objects last, or first."""
    ordered = sorted(
        values.items(), key=lambda item: isinstance(item[1], list | dict) == containers_last
    )
    return encode_text(dict(ordered))


def _write_as_text(values: Values, kinds: Any) -> Values:
    return {
        key: encode_text(item) if isinstance(item, kinds) else item for key, item in values.items()
    }


def _first_key(values: Values) -> str:
    return next(iter(values), "value")


def _without_first(values: Values) -> Values:
    return {key: item for key, item in values.items() if key != _first_key(values)}


def _replace_first(text: str, first: str) -> str:
    """Write the arguments with this text as their first value."""
    values: Values = decode(text)
    rest = "".join(
        f",{encode_text(key)}:{encode_text(item)}" for key, item in _without_first(values).items()
    )
    return f"{{{encode_text(_first_key(values))}:{first}{rest}}}"


def _pad(text: str) -> str:
    values: Values = decode(text)
    padding = "x" * _PADDING_CHARS
    texts = {key: item + padding for key, item in values.items() if isinstance(item, str)}
    key = next(iter(texts), "note")
    return encode_text({**values, key: texts.get(key, padding)})


_halve: Final = edit_arguments(lambda text: text[: max(1, len(text) // 2)])

SIZE.add(
    "arguments_too_large",
    f"Adds {_PADDING_CHARS} characters to the first text.",
    refusal=Code.ARGUMENTS_TOO_LARGE,
    seen="vibe_tavern study: the largest cause of failures, scenario long_arguments_guard",
    needs="max_tool_args_bytes = 4096",
    options={"max_tool_args_bytes": 4096},
    reply=edit_arguments(_pad),
)


@SIZE.on_calls(seen="every model with a token limit")
def cut_at_limit(reply: PlannedReply, occasion: Occasion) -> PlannedReply:
    """Stops at the token limit in the middle of the arguments."""
    return replace(_halve(reply, occasion), finish_reason="length")


@SIZE.on_calls(seen=_CRASHES)
def cut_after_arguments(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Stops at the token limit when the arguments happen to be whole."""
    return replace(reply, finish_reason="length")


@SIZE.on_calls(seen=_CRASHES)
def cut_unmarked(reply: PlannedReply, occasion: Occasion) -> PlannedReply:
    """Stops in the middle of the arguments and says that all is well."""
    return _halve(reply, occasion)


@SIZE.on_calls(seen="hosted providers")
def cut_by_filter(reply: PlannedReply, occasion: Occasion) -> PlannedReply:
    """Stops the reply with a content filter."""
    return replace(_halve(reply, occasion), finish_reason="content_filter")
