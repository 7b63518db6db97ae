"""Errors of a value against a schema, in words a language model can act on."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, cast

import jsonschema_rs

from surecall.errors import Code
from surecall.jsontext import render_pointer
from surecall.records import ErrorDetail, clip

from .narrow import MAX_ERRORS

__all__ = ["Checked", "detail_at", "explain_error", "most_telling"]

_Kind = jsonschema_rs.ValidationErrorKind

_VALUES: Final = (_Kind.Enum, _Kind.Constant)

_MAX_ECHO: Final = 80
_MAX_NAMES: Final = 12
_MAX_BRANCHES: Final = 6
_MAX_SUGGESTED: Final = 8
_CODE: Final = str(Code.ARGUMENTS_INVALID)

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


class Checked(NamedTuple):
    """What was checked: a value, its schema, and where the value is in the whole."""

    value: Any
    schema: dict[str, Any]
    path: tuple[str | int, ...] = ()


def explain_error(error: jsonschema_rs.ValidationError, checked: Checked) -> list[ErrorDetail]:
    """Return one error, or the errors it stands for, as details a model can act on."""
    path = [*checked.path, *error.instance_path]
    found = _at(checked.value, error.instance_path)
    match error.kind:
        case _Kind.AdditionalProperties(unexpected=names):
            return _unknown(path, names, _allowed_names(checked.schema, error.schema_path))
        case _Kind.UnevaluatedProperties(unexpected=names):
            return _unknown(path, names, [])
        case _Kind.FalseSchema() if found and error.schema_path[-1:] == ["additionalProperties"]:
            return _unknown(path, list(cast(dict[str, Any], found)), [])
        case _Kind.AnyOf(context=branches) | _Kind.OneOfNotValid(context=branches):
            return _explain_union(error, found, branches, checked)
        case _Kind.PropertyNames(error=inner):
            name = _quoted(str(inner.instance))
            return [
                detail_at(path, f"has a property {name} whose name is not allowed: {_plain(inner)}")
            ]
        case _:
            return [detail_at(path, _sentence(error, found))]


def most_telling(
    errors: list[jsonschema_rs.ValidationError],
) -> list[jsonschema_rs.ValidationError]:
    """Put errors in a fixed order, without the type of a value whose choices are listed anyway."""
    listed = {tuple(error.instance_path) for error in errors if isinstance(error.kind, _VALUES)}
    return [
        error
        for error in sorted(errors, key=_order)
        if not isinstance(error.kind, _Kind.Type) or tuple(error.instance_path) not in listed
    ]


def _order(error: jsonschema_rs.ValidationError) -> tuple[Any, ...]:
    path = [
        (0, part, "") if isinstance(part, int) else (1, 0, part) for part in error.instance_path
    ]
    return path, error.kind.name != "required", error.kind.name, error.message


def detail_at(path: Sequence[str | int], sentence: str) -> ErrorDetail:
    """Return a detail whose message begins with the place it is about."""
    pointer = render_pointer(path)
    return ErrorDetail(_CODE, f"{pointer or '/'} {sentence}", path=pointer)


def _sentence(error: jsonschema_rs.ValidationError, found: Any) -> str:
    expected = _expected(error.kind)
    if expected:
        return f"must be {expected}, got {_shown(found)}"
    return _structure(error.kind, found) or f"is not valid: {_plain(error)}"


def _expected(kind: Any) -> str:
    match kind:
        case _Kind.Type(types=types):
            names = sorted(types, key=lambda name: name == "null")
            return _either(_TYPE_WORDS.get(name, name) for name in names)
        case _Kind.Enum(options=options):
            return _choices(options)
        case _Kind.Constant(expected_value=expected):
            return _choices([expected])
        case _Kind.Minimum(limit=limit):
            return f"at least {limit}"
        case _Kind.ExclusiveMinimum(limit=limit):
            return f"greater than {limit}"
        case _Kind.Maximum(limit=limit):
            return f"at most {limit}"
        case _Kind.ExclusiveMaximum(limit=limit):
            return f"less than {limit}"
        case _Kind.MultipleOf(multiple_of=step):
            return f"a multiple of {step}"
        case _Kind.Pattern(pattern=pattern):
            return f"text that matches the pattern {clip(pattern, 120)}"
        case _Kind.Format(format=name):
            return _FORMAT_WORDS.get(name, f"text in the format {name}")
        case _:
            return ""


def _structure(kind: Any, found: Any) -> str:  # noqa: C901 - one row for each keyword
    size = len(found) if isinstance(found, str | list | dict) else 0  # pyright: ignore[reportUnknownArgumentType] - any JSON
    match kind:
        case _Kind.Required(property=name):
            return f"is missing the required property {_quoted(name)}"
        case _Kind.MinLength(limit=limit):
            return f"must have at least {_count(limit, 'character')}, has {size}"
        case _Kind.MaxLength(limit=limit):
            return f"must have at most {_count(limit, 'character')}, has {size}"
        case _Kind.MinItems(limit=limit):
            return f"must have at least {_count(limit, 'item')}, has {size}"
        case _Kind.MaxItems(limit=limit) | _Kind.AdditionalItems(limit=limit):
            return f"must have at most {_count(limit, 'item')}, has {size}"
        case _Kind.MinProperties(limit=limit):
            return f"must have at least {limit} properties, has {size}"
        case _Kind.MaxProperties(limit=limit):
            return f"must have at most {limit} properties, has {size}"
        case _Kind.UniqueItems():
            return "must not contain the same item twice"
        case _Kind.Contains():
            return "contains no item of the kind that is needed"
        case _Kind.FalseSchema():
            return "is not allowed here; leave it out"
        case _Kind.Not():
            return f"must not be {_shown(found)}: values of this kind are excluded"
        case _Kind.OneOfMultipleValid():
            return "fits more than one of the allowed forms; it must fit exactly one"
        case _:
            return ""


def _explain_union(
    error: jsonschema_rs.ValidationError,
    found: Any,
    branches: list[list[jsonschema_rs.ValidationError]],
    checked: Checked,
) -> list[ErrorDetail]:
    """Say which forms are allowed; when only one was meant, say what is wrong with that one."""
    own = error.instance_path
    path = [*checked.path, *own]
    outright = [_outright(branch, own) for branch in branches]
    if all(outright):
        allowed = list(dict.fromkeys(outright))
        more = f" or {len(allowed) - _MAX_NAMES} more forms" if len(allowed) > _MAX_NAMES else ""
        expected = f"{_either(allowed[:_MAX_NAMES])}{more}"
        return [detail_at(path, f"must be {expected}, got {_shown(found)}")]
    near = [branch for branch, words in zip(branches, outright, strict=True) if not words]
    if len(near) > 1:
        # Branches told apart by a fixed value, such as `kind`: the one that agrees was meant.
        near = [branch for branch in near if not _is_other_kind(branch, own)] or near
    if len(near) == 1:
        inner = most_telling(near[0])[:MAX_ERRORS]
        return [detail for each in inner for detail in explain_error(each, checked)]
    forms = [
        f"({number}) {explain_error(branch[0], checked)[0].message}"
        for number, branch in enumerate(near[:_MAX_BRANCHES], 1)
    ]
    return [detail_at(path, f"fits none of the {len(branches)} allowed forms: {'; '.join(forms)}")]


def _outright(branch: list[jsonschema_rs.ValidationError], path: list[str | int]) -> str:
    """Return what a branch demands when the value itself, not a part of it, is the wrong thing."""
    own = [error for error in most_telling(branch) if error.instance_path == path]
    for error in own:
        if isinstance(error.kind, (_Kind.Type, *_VALUES)):
            return _expected(error.kind)
    return _expected(branch[0].kind) if own and len(branch) == 1 else ""


def _is_other_kind(branch: list[jsonschema_rs.ValidationError], path: list[str | int]) -> bool:
    return any(
        isinstance(error.kind, _VALUES) and len(error.instance_path) == len(path) + 1
        for error in branch
    )


def _unknown(path: list[str | int], names: list[str], allowed: list[str]) -> list[ErrorDetail]:
    place = render_pointer(path) or "/"
    details: list[ErrorDetail] = []
    for number, name in enumerate(names[:MAX_ERRORS]):
        close = _closest(name, allowed) if number < _MAX_SUGGESTED else []
        if close:
            advice = "did you mean " + _either(_quoted(item) for item in close) + "?"
        elif allowed:
            more = f" and {len(allowed) - _MAX_NAMES} more" if len(allowed) > _MAX_NAMES else ""
            shown = ", ".join(_quoted(item) for item in allowed[:_MAX_NAMES])
            advice = f"allowed here: {shown}{more}"
        else:
            advice = "leave it out"
        message = f"{place} has an unknown property {_quoted(name)}; {advice}"
        details.append(ErrorDetail(_CODE, message, path=render_pointer([*path, clip(name)])))
    return details


def _closest(name: str, allowed: list[str]) -> list[str]:
    by_plain = {_plain_name(item): item for item in reversed(allowed[:200])}
    close = get_close_matches(_plain_name(name), list(by_plain), n=3, cutoff=0.6)
    return [by_plain[item] for item in close]


def _plain_name(name: str) -> str:
    return name[:64].casefold().replace("_", "").replace("-", "")


def _allowed_names(schema: Any, schema_path: list[str | int]) -> list[str]:
    owner = _at(schema, schema_path[:-1])
    properties = cast(dict[str, Any], owner).get("properties") if isinstance(owner, dict) else None
    return list(cast(dict[str, Any], properties)) if isinstance(properties, dict) else []


def _at(document: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def _plain(error: jsonschema_rs.ValidationError) -> str:
    return clip(error.message, 160)


def _choices(options: list[Any]) -> str:
    shown = [_scalar(option) for option in options[:_MAX_NAMES]]
    if len(options) > _MAX_NAMES:
        return f"one of {', '.join(shown)} and {len(options) - _MAX_NAMES} more"
    return f"one of {_either(shown)}" if len(shown) > 1 else "".join(shown)


def _either(words: Iterable[str]) -> str:
    listed = list(words)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} or {listed[-1]}"


def _shown(value: Any) -> str:
    """Name the kind of a value and echo it, bounded."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {_scalar(value)}"
        case int() | float():
            return f"the number {_scalar(value)}"
        case str():
            return f"the string {_quoted(value)}"
        case list():
            return f"an array of {_count(len(cast(list[Any], value)), 'item')}"
        case dict():
            return _object(cast(dict[str, Any], value))
        case _:
            return f"a {type(value).__name__}"


def _object(value: dict[str, Any]) -> str:
    if not value:
        return "an empty object"
    names = [_quoted(name) for name in list(value)[:5]]
    more = f" and {len(value) - 5} more" if len(value) > 5 else ""
    return clip(f"an object with {', '.join(names)}{more}", 2 * _MAX_ECHO)


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case int() | float():
            return clip(str(value), _MAX_ECHO)
        case _:
            return _shown(value)


def _quoted(text: str) -> str:
    head = text[:_MAX_ECHO].replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(part if part.isprintable() else _escape(part) for part in head)
    left_out = len(text) - _MAX_ECHO
    return f'"{shown}"' if left_out <= 0 else f'"{shown}…" (+{left_out} characters)'


def _escape(character: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character, f"\\u{ord(character):04x}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
