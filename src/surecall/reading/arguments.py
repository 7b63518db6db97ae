"""Arguments of one call: from whatever arrived to an object, or to a refusal the model can use."""

from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.base.limits import MAX_ARGUMENTS_BYTES, MAX_JSON_DEPTH
from surecall.base.records import CallState, Certainty, ErrorDetail, Receipt, clip
from surecall.base.redaction import excerpt
from surecall.schema import Coerced, SchemaChecker, coerce_arguments
from surecall.text import (
    MAX_ARGUMENT_STEPS,
    apply_patch,
    decode,
    decode_noting,
    decode_plain,
    encode,
    number_spellings,
    repair_json,
)
from surecall.text.codec import NotJSONError
from surecall.wire.substitutes import UNREADABLE_KEY

from .rules import BLANK_TO_EMPTY_OBJECT
from .truncation import (
    doubt_blank,
    doubt_closers,
    is_complete,
    may_lack_members_only,
    takes_nothing,
    vouch_for_members,
)
from .wording import (
    refuse_bad_json,
    refuse_cut,
    refuse_deep,
    refuse_json,
    refuse_kind,
    refuse_large,
    refuse_repeated_key,
    refuse_unclear_number,
)

_MAX_MEASURED_BYTES: Final = 2 * 1024 * 1024
_MAX_NESTED_TEXTS: Final = 2
_STARTS: Final = ("{", "[", '"', "```")
_STAND_IN: Final = "They are a placeholder for arguments that could not be read."
_WHITESPACE: Final = " \t\n\r"
_MARK: Final = "\ufeff"
_EMPTY_TWICE: Final = '{}""'
_EMPTY_TEXT: Final = Receipt("extra_values", "2:4", '""', "", why="an empty text says nothing more")


class ArgumentsReading(Struct, frozen=True, kw_only=True):
    """What became of the arguments of one call."""

    value: dict[str, Any] | None = None
    """The arguments; `None` when they were refused."""
    state: CallState = "whole"
    receipts: tuple[Receipt, ...] = ()
    errors: tuple[ErrorDetail, ...] = ()
    bytes: int = 0
    """Size of what arrived, as JSON text in UTF-8."""
    certainty: Certainty = "certain"
    """`likely` when a part of the arguments may be missing."""
    doubt: str = ""
    """Why they are only likely: one sentence that a model can read."""


def read_arguments(
    value: Any,
    schema: dict[str, Any] | None = None,
    *,
    max_bytes: int = MAX_ARGUMENTS_BYTES,
    ended: bool = False,
    checker: SchemaChecker | None = None,
    tool_name: str = "",
) -> ArgumentsReading:
    """Read the arguments of a call: whatever arrived is read or refused, and never made up.

        schema = {"type": "object", "properties": {"days": {"type": "integer"}}}
        surecall.read_arguments("{'days': '3'}", schema).value  # {'days': 3}

    Args:
        value: What arrived: text, an object, nothing, or anything else.
        schema: The schema they are fitted to, where it decides what is meant.
        max_bytes: Arguments larger than this are refused.
        ended: Whether the model is known to have come to its own end; only then can brackets that
            are missing at the end of the text be a slip, and not a sign that it was cut.
        checker: The compiled schema, when there is one already.
        tool_name: Name of the tool, which may be found wrapped around its arguments.

    Raises:
        ToolDefinitionError: The schema cannot be used.
    """
    plain = None
    if isinstance(value, str) and value[:1] == "{":
        if value == _EMPTY_TWICE and schema is not None and takes_nothing(schema):
            return ArgumentsReading(value={}, receipts=(_EMPTY_TEXT,), bytes=len(value))
        size = len(value) if value.isascii() else text_bytes(value)
        plain = decode_plain(value) if size <= max_bytes else None
        if plain is not None and schema is None and not is_stand_in(plain):
            return ArgumentsReading(value=plain, bytes=size)
    reader = _Reader(max_bytes, ended)
    try:
        given = found = _value_of(value, plain, reader)
        if is_stand_in(found):
            raise _Refusal(refuse_json(_STAND_IN))
    except _Refusal as refusal:
        return ArgumentsReading(state=refusal.state, errors=(refusal.error,), bytes=reader.bytes)
    errors = ()
    receipts, doubt = _doubt(reader, found, schema) if reader.receipts else ((), "")
    if schema is not None and isinstance(found, (dict, list)):
        checker = SchemaChecker(schema) if checker is None else checker
        fitted = coerce_arguments(found, schema, checker, tool_name=tool_name, accept="likely")
        if fitted.receipts and isinstance(value, str):
            fitted = _respell_numbers(value, fitted, checker)
        found, receipts, errors = fitted.value, receipts + fitted.receipts, fitted.errors
        doubt = doubt or fitted.doubt
    if not isinstance(found, dict):
        error = refuse_kind(given)
        return ArgumentsReading(state="unreadable", errors=(error,), bytes=reader.bytes)
    return ArgumentsReading(
        value=cast("dict[str, Any]", found),
        receipts=receipts,
        errors=errors,
        bytes=reader.bytes,
        certainty="likely" if doubt else "certain",
        doubt=doubt,
    )


def _doubt(
    reader: "_Reader", value: Any, schema: dict[str, Any] | None
) -> tuple[tuple[Receipt, ...], str]:
    """Return the receipts of arguments, and why something of these may be missing."""
    receipts = tuple(reader.receipts)
    if receipts[0].rule == BLANK_TO_EMPTY_OBJECT:
        return receipts, doubt_blank(schema)
    if reader.doubt and reader.lacks_only_members and is_complete(value, schema):
        return vouch_for_members(receipts), ""
    return receipts, doubt_closers(receipts) or reader.doubt


def is_stand_in(value: Any) -> bool:
    """Tell whether arguments only stand for unreadable ones, as a history or translation does."""
    return isinstance(value, dict) and cast("dict[Any, Any]", value).keys() == {UNREADABLE_KEY}


class _Reader:
    """What is known of arguments while they are read."""

    __slots__ = ("bytes", "doubt", "ended", "lacks_only_members", "max_bytes", "receipts")

    def __init__(self, max_bytes: int, ended: bool) -> None:
        self.bytes = 0
        self.max_bytes = max_bytes
        self.ended = ended
        self.receipts: list[Receipt] = []
        self.doubt = ""
        self.lacks_only_members = True
        """Whether a member of the whole object is all that may be lost."""


class _Refusal(Exception):  # noqa: N818 - a signal inside this file
    def __init__(self, error: ErrorDetail, state: CallState = "unreadable") -> None:
        super().__init__(error)
        self.error = error
        self.state: CallState = state


def _value_of(value: Any, plain: Any, reader: _Reader) -> Any:
    if isinstance(value, str):
        reader.bytes = text_bytes(value)
        return _value_in(value, reader) if plain is None else plain
    return {} if value is None else _measured(value, reader)


# Text


def _value_in(value: str, reader: _Reader) -> Any:
    """Return the object in the text, or another value if that is what it holds."""
    text = value.strip(_WHITESPACE)
    bare = text.removeprefix(_MARK).strip()
    if not bare:
        reader.receipts[:] = [Receipt(BLANK_TO_EMPTY_OBJECT, "", clip(value), "{}")]
        return {}
    if len(bare) != len(text):
        reader.receipts.append(Receipt("strip_invisible", "", clip(text), clip(bare)))
    for _ in range(_MAX_NESTED_TEXTS):
        found = _decoded(bare, reader)
        inner = found.strip() if isinstance(found, str) else ""
        if not inner.startswith(_STARTS):
            return found
        reader.receipts.append(Receipt("decode_nested_text", "", clip(bare), clip(inner)))
        bare = inner
    return _decoded(bare, reader)


def _decoded(text: str, reader: _Reader) -> Any:
    size = text_bytes(text)
    if size > reader.max_bytes:
        raise _Refusal(refuse_large(size, reader.max_bytes, _decoded_or_none(text, size)))
    try:
        value, repeated = decode_noting(text, explains=False)
    except NotJSONError:
        return _repaired(text, None, reader)
    except JSONTextError as error:
        return _repaired(text, error, reader)
    if repeated:
        raise _Refusal(refuse_repeated_key(repeated[0]))
    return value


def _repaired(text: str, error: JSONTextError | None, reader: _Reader) -> Any:
    """Return what text that is not JSON stands for, if nothing has to be invented."""
    if error is not None and error.code == Code.JSON_TOO_DEEP:
        raise _Refusal(refuse_deep())
    repaired = repair_json(text, ended=reader.ended, max_steps=MAX_ARGUMENT_STEPS)
    if repaired.state == "cut":
        start = excerpt(text, 80, at=len(text))
        cause = f"the JSON stops in the middle, after {start!r}"
        raise _Refusal(refuse_cut(cause), "cut")
    # The same value again, as some streams send it, says nothing else.
    has_more = any(one.rule == "extra_values" and not one.lossless for one in repaired.receipts)
    if repaired.state == "unreadable" or has_more:
        raise _Refusal(refuse_bad_json(error or _explained(text)))
    if repaired.certainty == "likely":
        reader.doubt = reader.doubt or repaired.doubt
        reader.lacks_only_members &= may_lack_members_only(text, repaired.receipts)
    reader.receipts.extend(repaired.receipts)
    return repaired.value


def _explained(text: str) -> JSONTextError:
    """Say why text is not JSON, which costs more than to see it."""
    try:
        decode(text)
    except JSONTextError as error:
        return error
    raise AssertionError(text)


# Values


def _measured(value: Any, reader: _Reader) -> Any:
    """Return a value that is neither too deep nor too large."""
    try:
        data = encode(value)
        if data.count(b"{") + data.count(b"[") > MAX_JSON_DEPTH and len(data) <= reader.max_bytes:
            decode(data)
    except JSONTextError as error:
        deep = error.code == Code.JSON_TOO_DEEP
        raise _Refusal(refuse_deep() if deep else refuse_bad_json(error)) from None
    reader.bytes = len(data)
    if reader.bytes > reader.max_bytes:
        raise _Refusal(refuse_large(reader.bytes, reader.max_bytes, value))
    return value


def _decoded_or_none(text: str, size: int) -> Any:
    if size > _MAX_MEASURED_BYTES:
        return None
    try:
        return decode(text)
    except JSONTextError:
        return None


def text_bytes(text: str) -> int:
    """Return the size of text in UTF-8; of a huge one that is not ASCII, at least its length."""
    if text.isascii() or len(text) > _MAX_MEASURED_BYTES:
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


# Numbers for text fields: `1.10` is a version, `007` a code


def _respell_numbers(text: str, fitted: Coerced, checker: SchemaChecker) -> Coerced:
    """Return fitted arguments in which every number that became text reads as it does in `text`."""
    if not any(map(_is_spelled_anew, fitted.receipts)):
        return fitted
    known = number_spellings(text)
    receipts: list[Receipt] = []
    changes: list[dict[str, Any]] = []
    errors: list[ErrorDetail] = []
    for receipt in fitted.receipts:
        spellings: list[str] = []
        if _is_spelled_anew(receipt):
            spellings = known.get((receipt.before.__class__.__name__, receipt.before), [])
        if len(spellings) > 1:
            errors.append(refuse_unclear_number(receipt.place, spellings))
        if len(spellings) == 1 and spellings[0] != receipt.after:
            changes.append({"op": "replace", "path": receipt.place, "value": spellings[0]})
            receipts.append(replace(receipt, after=spellings[0]))
        else:
            receipts.append(receipt)
    if errors:
        return replace(fitted, errors=(*fitted.errors, *errors))
    if not changes:
        return fitted
    try:
        value = apply_patch(fitted.value, changes)
    except JSONTextError:  # the place has another name by now
        errors = [refuse_unclear_number(change["path"], [change["value"]]) for change in changes]
        return replace(fitted, errors=(*fitted.errors, *errors))
    wrong = fitted.errors or checker.check(value)
    return replace(fitted, value=value, receipts=tuple(receipts), errors=wrong)


def _is_spelled_anew(receipt: Receipt) -> bool:
    return receipt.rule == "write_as_text" and receipt.before.__class__ in (int, float)
