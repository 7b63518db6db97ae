"""Faults in the arguments of calls, and calls that are too large or cut."""

from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import Code
from surecall.jsontext import decode, encode_text

from .drafts import Draft, Occasion
from .edits import DraftEdit, edit_arguments, edit_values
from .records import Fault

__all__ = ["ARGUMENT_FAULTS", "SIZE_FAULTS"]

_MARK: Final = "\ufeff"
_DEEP: Final = 200
_PADDING_CHARS: Final = 8000
_SMALL_LIMIT: Final = {"max_tool_args_bytes": 4096}
_DRIFT: Final = "vibe_tavern study, failure modes: arguments drift"
_SHAPES: Final = "models that misread what arguments are"


def _unquoted_keys(values: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {encode_text(item)}" for key, item in values.items()) + "}"


def _curly_quotes(text: str, _: Occasion) -> str:
    curled: list[str] = []
    is_open = is_escaped = False
    for char in text:
        if char == '"' and not is_escaped:
            is_open = not is_open
            char = "“" if is_open else "”"
        is_escaped = char == "\\" and not is_escaped
        curled.append(char)
    return "".join(curled)


def _without_last_brace(values: dict[str, Any]) -> str:
    """Leave the last brace out behind another bracket, so that no value can have been cut."""
    ordered = sorted(values.items(), key=lambda item: isinstance(item[1], list | dict))
    text = encode_text(dict(ordered))
    return text[:-1] if text[-2:-1] in ("]", "}") else text


def _cut_behind_plain(values: dict[str, Any]) -> str:
    ordered = sorted(values.items(), key=lambda item: not isinstance(item[1], list | dict))
    return encode_text(dict(ordered))[:-1] if values else "{"


def _single_quotes(text: str, _: Occasion) -> str:
    return text.replace('"', "'") if "'" not in text and '\\"' not in text else repr(decode(text))


def _scalars_as_text(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: encode_text(item) if isinstance(item, bool | int | float) else item
        for key, item in values.items()
    }


def _containers_as_text(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: encode_text(item) if isinstance(item, list | dict) else item
        for key, item in values.items()
    }


def _lists_unwrapped(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: item[0] if isinstance(item, list) and item else item for key, item in values.items()
    }


def _first_key(values: dict[str, Any]) -> str:
    return next(iter(values), "value")


def _without_first(values: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in values.items() if key != _first_key(values)}


def _wrong_type(values: dict[str, Any]) -> dict[str, Any]:
    """Put an object where a plain value is wanted, and words where an object or a list is."""
    changed: dict[str, Any] = {}
    for key, item in values.items():
        is_container = isinstance(item, list | dict)
        changed[key] = "as discussed" if is_container else {"unit": "please", "see": ["above"]}
    return changed or {"unit": "please"}


def _repeated_key(text: str, _: Occasion) -> str:
    values = decode(text)
    if not values:
        return text
    return f"{text[:-1]},{encode_text(_first_key(values))}:{encode_text('something else')}}}"


def _deep_text(text: str, _: Occasion) -> str:
    values = decode(text)
    nested = "[" * _DEEP + "]" * _DEEP
    rest = "".join(
        f",{encode_text(key)}:{encode_text(item)}" for key, item in _without_first(values).items()
    )
    return f"{{{encode_text(_first_key(values))}:{nested}{rest}}}"


def _not_a_number(text: str, _: Occasion) -> str:
    values = decode(text)
    rest = "".join(
        f",{encode_text(key)}:{encode_text(item)}" for key, item in _without_first(values).items()
    )
    return f"{{{encode_text(_first_key(values))}:NaN{rest}}}"


def _padded(values: dict[str, Any]) -> dict[str, Any]:
    for key, item in values.items():
        if isinstance(item, str):
            return {**values, key: item + "x" * _PADDING_CHARS}
    return {**values, "note": "x" * _PADDING_CHARS}


def _stopped(finish_reason: str, *, cuts: bool) -> DraftEdit:
    def edit(draft: Draft, occasion: Occasion) -> Draft:
        if not draft.calls:
            return draft
        if cuts:
            half = edit_arguments(lambda text, _: text[: max(1, len(text) // 2)])
            draft = half(draft, occasion)
        return replace(draft, finish_reason=finish_reason)

    return edit


def _argument_fault(
    name: str, does: str, edit: DraftEdit, seen: str = _DRIFT, **fields: Any
) -> Fault:
    return Fault(name=name, group="arguments", does=does, seen=seen, draft=edit, **fields)


def _refused(name: str, does: str, edit: DraftEdit, told: Code, seen: str = _SHAPES) -> Fault:
    return Fault(
        name=name,
        group="arguments",
        does=does,
        seen=seen,
        repairable=False,
        told=told,
        code=Code.REPEATED_CALL,
        draft=edit,
    )


ARGUMENT_FAULTS: Final = (
    _argument_fault(
        "arguments_object",
        "Sends the arguments as an object in place of its text.",
        edit_arguments(lambda text, _: decode(text)),
        protocols=("chat_completions", "responses"),
    ),
    _argument_fault(
        "arguments_double_encoded",
        "Sends JSON text inside JSON text.",
        edit_arguments(lambda text, _: encode_text(text)),
    ),
    _argument_fault(
        "arguments_fenced",
        "Puts a code fence around the arguments.",
        edit_arguments(lambda text, _: f"```json\n{text}\n```"),
    ),
    _argument_fault(
        "arguments_prose_around",
        "Writes a sentence before the arguments.",
        edit_arguments(lambda text, _: f"Here are the arguments: {text}"),
        _SHAPES,
    ),
    _argument_fault(
        "arguments_trailing_comma",
        "Leaves a comma before the closing brace.",
        edit_arguments(lambda text, _: f"{text[:-1]},}}" if len(text) > 2 else text),
    ),
    _argument_fault(
        "arguments_single_quotes",
        "Uses single quotes.",
        edit_arguments(_single_quotes),
    ),
    _argument_fault(
        "arguments_curly_quotes",
        "Uses typographic quotes.",
        edit_arguments(_curly_quotes),
        "small models, and text that went through an editor",
    ),
    _argument_fault(
        "arguments_unquoted_keys",
        "Leaves the quotes around keys out.",
        edit_arguments(lambda text, _: _unquoted_keys(decode(text))),
    ),
    _argument_fault(
        "arguments_python",
        "Writes a Python dict, with True, False and None.",
        edit_arguments(lambda text, _: repr(decode(text))),
    ),
    _argument_fault(
        "arguments_comment",
        "Puts a comment into the JSON.",
        edit_arguments(lambda text, _: f"{{ // as asked\n{text[1:]}"),
    ),
    _argument_fault(
        "arguments_raw_newline",
        "Leaves line breaks in texts as they are.",
        edit_arguments(lambda text, _: text.replace("\\n", "\n")),
    ),
    _argument_fault(
        "arguments_bom",
        "Begins with a byte order mark.",
        edit_arguments(lambda text, _: _MARK + text),
        "text that went through an editor or another encoding",
    ),
    _argument_fault(
        "arguments_missing_bracket",
        "Leaves the last brace out, though the reply came to its end.",
        edit_arguments(lambda text, _: _without_last_brace(decode(text))),
    ),
    _argument_fault(
        "arguments_wrapped",
        "Puts the arguments into an object `arguments` once more.",
        edit_values(lambda values: {"arguments": values}),
        "models trained on text formats with that key",
    ),
    _argument_fault(
        "arguments_scalars_as_text",
        "Writes numbers and booleans as text.",
        edit_values(_scalars_as_text),
        "vibe_tavern study, failure modes: wrong types",
    ),
    _argument_fault(
        "arguments_lists_as_text",
        "Writes lists and objects inside the arguments as JSON text.",
        edit_values(_containers_as_text),
        "vibe_tavern study, failure modes: wrong types; scenario type_error_recovery",
    ),
    _argument_fault(
        "arguments_list_unwrapped",
        "Sends the one item of a list without the list.",
        edit_values(_lists_unwrapped),
        "vibe_tavern study, scenario type_error_recovery",
    ),
    _argument_fault(
        "arguments_keys_in_capitals",
        "Writes the keys with a capital.",
        edit_values(lambda values: {key.capitalize(): item for key, item in values.items()}),
        "small models",
    ),
    _refused(
        "arguments_blank",
        "Sends blank arguments for a tool that needs some.",
        edit_arguments(lambda _, __: ""),
        Code.ARGUMENTS_INVALID,
        _DRIFT,
    ),
    _refused(
        "arguments_missing_brace",
        "Leaves the last brace out behind a plain value, which looks as if it was cut.",
        edit_arguments(lambda text, _: _cut_behind_plain(decode(text))),
        Code.ARGUMENTS_TRUNCATED,
        _DRIFT,
    ),
    _refused(
        "arguments_prose",
        "Describes the arguments in words.",
        edit_arguments(lambda _, __: "the text that you gave me"),
        Code.ARGUMENTS_JSON_PARSE_ERROR,
    ),
    _refused(
        "arguments_two_objects",
        "Sends two different objects, one after the other.",
        edit_arguments(lambda text, _: text + '{"other": 1}'),
        Code.ARGUMENTS_JSON_PARSE_ERROR,
    ),
    _refused(
        "arguments_repeated_key",
        "Gives one key twice, with differing values.",
        edit_arguments(_repeated_key),
        Code.ARGUMENTS_JSON_PARSE_ERROR,
        "models that change their mind; most parsers take the last value",
    ),
    _refused(
        "arguments_nan",
        "Sends a number that JSON does not have.",
        edit_arguments(_not_a_number),
        Code.ARGUMENTS_JSON_PARSE_ERROR,
        "models that write Python or JavaScript",
    ),
    _refused(
        "arguments_too_deep",
        f"Nests {_DEEP} lists in one another.",
        edit_arguments(_deep_text),
        Code.ARGUMENTS_TOO_DEEP,
        "models that repeat themselves, and hostile input",
    ),
    _refused(
        "arguments_missing_field",
        "Leaves the first field out.",
        edit_values(_without_first),
        Code.ARGUMENTS_INVALID,
        "vibe_tavern study, scenario missing_workspace_id",
    ),
    _refused(
        "arguments_wrong_type",
        "Sends objects for plain values, and words for lists.",
        edit_values(_wrong_type),
        Code.ARGUMENTS_INVALID,
        "vibe_tavern study, scenario type_error_recovery",
    ),
)

SIZE_FAULTS: Final = (
    Fault(
        name="arguments_too_large",
        group="size",
        does=f"Adds {_PADDING_CHARS} characters to the first text.",
        seen="vibe_tavern study: the largest cause of failures, scenario long_arguments_guard",
        repairable=False,
        told=Code.ARGUMENTS_TOO_LARGE,
        code=Code.REPEATED_CALL,
        needs="max_tool_args_bytes = 4096",
        options=_SMALL_LIMIT,
        draft=edit_values(_padded),
    ),
    Fault(
        name="cut_at_limit",
        group="size",
        does="Stops at the token limit in the middle of the arguments.",
        seen="every model with a token limit",
        repairable=False,
        told=Code.ARGUMENTS_TRUNCATED,
        code=Code.REPEATED_CALL,
        draft=_stopped("length", cuts=True),
    ),
    Fault(
        name="cut_after_arguments",
        group="size",
        does="Stops at the token limit when the arguments happen to be whole.",
        seen="servers that crash or are stopped; most clients take it for the end",
        repairable=False,
        told=Code.ARGUMENTS_TRUNCATED,
        code=Code.REPEATED_CALL,
        draft=_stopped("length", cuts=False),
    ),
    Fault(
        name="cut_unmarked",
        group="size",
        does="Stops in the middle of the arguments and says that all is well.",
        seen="servers that crash or are stopped; most clients take it for the end",
        repairable=False,
        told=Code.ARGUMENTS_TRUNCATED,
        code=Code.REPEATED_CALL,
        draft=_stopped("tool_calls", cuts=True),
    ),
    Fault(
        name="cut_by_filter",
        group="size",
        does="Stops the reply with a content filter.",
        seen="hosted providers",
        repairable=False,
        told=Code.ARGUMENTS_TRUNCATED,
        code=Code.REPEATED_CALL,
        draft=_stopped("content_filter", cuts=True),
    ),
)
