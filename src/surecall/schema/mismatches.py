"""What is wrong with a value, in words a language model can act on.

Every sentence about arguments that do not fit their schema is written here.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from surecall.base.errors import Code, JSONTextError
from surecall.base.limits import MAX_JSON_DEPTH
from surecall.base.records import ErrorDetail, clip
from surecall.text import encode_text, render_pointer

from .structure import members_of

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

MAX_ERRORS: Final = 50
"""How many errors of one value are listed."""
NOT_AN_OBJECT: Final = "must be an object with the arguments by name"
NO_FORM_FITS: Final = "fits none of the forms its schema allows"
REPEATS_SCHEMA: Final = "repeats its schema instead of giving a value"
TOO_DEEP: Final = f"is nested deeper than {MAX_JSON_DEPTH} levels; send a flatter object"
TOO_MANY_FORMS: Final = "has more possible forms than can be tried; send it exactly as specified"
UNKNOWN_ERROR: Final = "does not fit its schema"

_MAX_ECHO: Final = 80
_MAX_NAMES: Final = 12
_MAX_BRANCHES: Final = 6
_MAX_SUGGESTED: Final = 8
_MAX_MEANINGS: Final = 4
_CODE: Final = str(Code.ARGUMENTS_INVALID)

NOT_LISTED: Final = ErrorDetail(
    _CODE,
    "/ does not fit the schema, and is nested too deeply for every error to be listed",
    "Send a flatter value, or build it up from small ones that fit.",
)

_TYPE_WORDS: Final = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_FORMAT_WORDS: Final = {
    "date": "a date like 2026-03-31",
    "date-time": "a date and time like 2026-03-31T09:30:00Z",
    "email": "an email address",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "time": "a time like 09:30:00",
    "uri": "an absolute URI like https://example.com/page",
    "uuid": "a UUID like 123e4567-e89b-12d3-a456-426614174000",
}
_BOUNDS: Final = {
    "exclusiveMaximum": "less than",
    "exclusiveMinimum": "greater than",
    "maximum": "at most",
    "minimum": "at least",
}
_SIZES: Final = {
    "additionalItems": ("at most", "item", "items"),
    "maxItems": ("at most", "item", "items"),
    "maxLength": ("at most", "character", "characters"),
    "maxProperties": ("at most", "property", "properties"),
    "minItems": ("at least", "item", "items"),
    "minLength": ("at least", "character", "characters"),
    "minProperties": ("at least", "property", "properties"),
}
_RULES: Final = {
    "contains": "contains no item of the kind that is needed",
    "falseSchema": "is not allowed here; leave it out",
    "oneOf": "fits more than one of the allowed forms; it must fit exactly one",
    "uniqueItems": "must not contain the same item twice",
}


class Checked(NamedTuple):
    """What was checked: a value, its schema, and where the value is in the whole."""

    value: Any
    schema: Any
    path: tuple[str | int, ...] = ()


def detail_at(path: Sequence[str | int], sentence: str) -> ErrorDetail:
    """Return a detail whose message begins with the place it is about."""
    pointer = render_pointer(path)
    return ErrorDetail(_CODE, f"{pointer or '/'} {sentence}", path=pointer)


def show_json(value: Any) -> str:
    """Return a value as bounded JSON text."""
    try:
        return clip(encode_text(value), _MAX_ECHO)
    except JSONTextError:
        return f"a {type(value).__name__}"


# What is left as it is because it could mean several things


def explain_value(value: Any, meanings: Sequence[Any]) -> str:
    """Say that a value could mean each of several."""
    return f"is ambiguous: {show_json(value)} could mean {_or(meanings)}; send the one meant"


def explain_list(value: Any) -> str:
    """Say that a text could be an item or a list of items."""
    return f"is ambiguous: {show_json(value)} could be one item or several"


def explain_shape(meanings: Sequence[Any]) -> str:
    """Say that a value in place of an object could mean each of several objects."""
    return f"must be an object; the value given could mean {_or(meanings)}"


def explain_name(name: str, meanings: Sequence[str]) -> str:
    """Say that the name of a property could mean each of several."""
    return f"has the ambiguous property {show_json(name)}: it could mean {_or(meanings)}"


def explain_same(names: Sequence[str], target: str) -> str:
    """Say that several properties mean the same one."""
    listed = " and ".join(map(show_json, names[:_MAX_MEANINGS]))
    return f"has {listed}, which mean the same; send only {show_json(target)}"


def _or(meanings: Sequence[Any]) -> str:
    return " or ".join(map(show_json, meanings[:_MAX_MEANINGS]))


# What a validator found


def explain_errors(validator: "Validator", checked: Checked) -> list[ErrorDetail]:
    """Return the errors of a value, the most telling ones."""
    return _explain_all(list(validator.iter_errors(checked.value)), checked)


def _explain_all(errors: "list[ValidationError]", checked: Checked) -> list[ErrorDetail]:
    telling = _most_telling(errors)[:MAX_ERRORS]
    return [detail for error in telling for detail in _explain_error(error, checked)]


def _explain_error(error: "ValidationError", checked: Checked) -> list[ErrorDetail]:
    """Return one error, or the errors it stands for."""
    path = [*checked.path, *error.instance_path]
    found = _at(checked.value, error.instance_path)
    kind: Any = error.kind
    match kind.name:
        case "additionalProperties":
            allowed = list(members_of(_at(checked.schema, error.schema_path[:-1])))
            return _explain_unknown(path, kind.unexpected, allowed)
        case "unevaluatedProperties":
            return _explain_unknown(path, kind.unexpected, [])
        case "falseSchema" if found and error.schema_path[-1:] == ["additionalProperties"]:
            return _explain_unknown(path, list(cast("dict[str, Any]", found)), [])
        case "anyOf" | "oneOf" if all(kind.context):
            return _explain_union(error, found, kind.context, checked)
        case "propertyNames":
            name = _quote(str(kind.error.instance))
            reason = clip(kind.error.message, 160)
            return [detail_at(path, f"has a property {name} whose name is not allowed: {reason}")]
        case _:
            return [detail_at(path, _sentence(error, found))]


def _most_telling(errors: "list[ValidationError]") -> "list[ValidationError]":
    """Put errors in a fixed order, without the type of a value whose choices are listed anyway."""
    listed = {tuple(error.instance_path) for error in errors if _lists_values(error)}
    return [
        error
        for error in sorted(errors, key=_order)
        if error.kind.name != "type" or tuple(error.instance_path) not in listed
    ]


def _lists_values(error: "ValidationError") -> bool:
    return error.kind.name in {"enum", "const"}


def _order(error: "ValidationError") -> tuple[Any, ...]:
    path = [
        (0, part, "") if isinstance(part, int) else (1, 0, part) for part in error.instance_path
    ]
    return path, error.kind.name != "required", error.kind.name, error.message


def _sentence(error: "ValidationError", found: Any) -> str:
    kind: Any = error.kind
    if expected := _describe_expected(kind):
        return f"must be {expected}, got {_describe(found)}"
    if kind.name in _SIZES:
        bound, noun, nouns = _SIZES[kind.name]
        size = len(found) if isinstance(found, str | list | dict) else 0  # pyright: ignore[reportUnknownArgumentType] - any JSON
        return f"must have {bound} {kind.limit} {noun if kind.limit == 1 else nouns}, has {size}"
    if kind.name == "required":
        return f"is missing the required property {_quote(kind.property)}"
    if kind.name == "not":
        return f"must not be {_describe(found)}: values of this kind are excluded"
    return _RULES.get(kind.name) or f"is not valid: {clip(error.message, 160)}"


def _describe_expected(kind: Any) -> str:
    match kind.name:
        case "type":
            names: list[str] = sorted(kind.types, key=lambda name: name == "null")
            return _either(_TYPE_WORDS.get(name, name) for name in names)
        case "enum":
            return _list_choices(kind.options)
        case "const":
            return _list_choices([kind.expected_value])
        case "pattern":
            return f"text that matches the pattern {clip(kind.pattern, 120)}"
        case "format":
            return _FORMAT_WORDS.get(kind.format, f"text in the format {kind.format}")
        case "multipleOf":
            return f"a multiple of {kind.multiple_of}"
        case name:
            return f"{_BOUNDS[name]} {kind.limit}" if name in _BOUNDS else ""


def _explain_union(
    error: "ValidationError",
    found: Any,
    branches: "list[list[ValidationError]]",
    checked: Checked,
) -> list[ErrorDetail]:
    """Say which forms are allowed; when only one was meant, say what is wrong with that one."""
    own = error.instance_path
    path = [*checked.path, *own]
    outright = [_describe_demand(branch, own) for branch in branches]
    if all(outright):
        allowed = list(dict.fromkeys(outright))
        more = f" or {len(allowed) - _MAX_NAMES} more forms" if len(allowed) > _MAX_NAMES else ""
        expected = f"{_either(allowed[:_MAX_NAMES])}{more}"
        return [detail_at(path, f"must be {expected}, got {_describe(found)}")]
    near = [branch for branch, words in zip(branches, outright, strict=True) if not words]
    if len(near) > 1:
        # Branches told apart by a fixed value, such as `kind`: the one that agrees was meant.
        near = [branch for branch in near if not _is_other_kind(branch, own)] or near
    if len(near) == 1:
        return _explain_all(near[0], checked)
    forms = [
        f"({number}) {_explain_error(branch[0], checked)[0].message}"
        for number, branch in enumerate(near[:_MAX_BRANCHES], 1)
    ]
    return [detail_at(path, f"fits none of the {len(branches)} allowed forms: {'; '.join(forms)}")]


def _describe_demand(branch: "list[ValidationError]", path: list[str | int]) -> str:
    """Return what a branch demands when the value itself, not a part of it, is the wrong thing."""
    own = [error for error in _most_telling(branch) if error.instance_path == path]
    for error in own:
        if error.kind.name == "type" or _lists_values(error):
            return _describe_expected(error.kind)
    return _describe_expected(branch[0].kind) if own and len(branch) == 1 else ""


def _is_other_kind(branch: "list[ValidationError]", path: list[str | int]) -> bool:
    return any(
        _lists_values(error) and len(error.instance_path) == len(path) + 1 for error in branch
    )


def _explain_unknown(
    path: list[str | int], names: list[str], allowed: list[str]
) -> list[ErrorDetail]:
    place = render_pointer(path) or "/"
    details: list[ErrorDetail] = []
    for number, name in enumerate(names[:MAX_ERRORS]):
        close = _closest(name, allowed) if number < _MAX_SUGGESTED else []
        if close:
            advice = "did you mean " + _either(_quote(item) for item in close) + "?"
        elif allowed:
            more = f" and {len(allowed) - _MAX_NAMES} more" if len(allowed) > _MAX_NAMES else ""
            shown = ", ".join(_quote(item) for item in allowed[:_MAX_NAMES])
            advice = f"allowed here: {shown}{more}"
        else:
            advice = "leave it out"
        message = f"{place} has an unknown property {_quote(name)}; {advice}"
        details.append(ErrorDetail(_CODE, message, path=render_pointer([*path, clip(name)])))
    return details


def _closest(name: str, allowed: list[str]) -> list[str]:
    by_plain = {_plain_name(item): item for item in reversed(allowed[:200])}
    close = get_close_matches(_plain_name(name), list(by_plain), n=3, cutoff=0.6)
    return [by_plain[item] for item in close]


def _plain_name(name: str) -> str:
    return name[:64].casefold().replace("_", "").replace("-", "")


def _at(document: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def _list_choices(options: list[Any]) -> str:
    shown = [_write_scalar(option) for option in options[:_MAX_NAMES]]
    if len(options) > _MAX_NAMES:
        return f"one of {', '.join(shown)} and {len(options) - _MAX_NAMES} more"
    return f"one of {_either(shown)}" if len(shown) > 1 else "".join(shown)


def _either(words: Iterable[str]) -> str:
    listed = list(words)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} or {listed[-1]}"


def _describe(value: Any) -> str:
    """Name the kind of a value and echo it, bounded."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {_write_scalar(value)}"
        case int() | float():
            return f"the number {_write_scalar(value)}"
        case str():
            return f"the string {_quote(value)}"
        case list():
            size = len(cast("list[Any]", value))
            return f"an array of {size} {'item' if size == 1 else 'items'}"
        case dict():
            return _describe_object(cast("dict[str, Any]", value))
        case _:
            return f"a {type(value).__name__}"


def _describe_object(value: dict[str, Any]) -> str:
    if not value:
        return "an empty object"
    names = [_quote(name) for name in list(value)[:5]]
    more = f" and {len(value) - 5} more" if len(value) > 5 else ""
    return clip(f"an object with {', '.join(names)}{more}", 2 * _MAX_ECHO)


def _write_scalar(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quote(value)
        case int() | float():
            return clip(str(value), _MAX_ECHO)
        case _:
            return _describe(value)


def _quote(text: str) -> str:
    head = text[:_MAX_ECHO].replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(part if part.isprintable() else _escape(part) for part in head)
    left_out = len(text) - _MAX_ECHO
    return f'"{shown}"' if left_out <= 0 else f'"{shown}…" (+{left_out} characters)'


def _escape(character: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character, f"\\u{ord(character):04x}")
