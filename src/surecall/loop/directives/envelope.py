"""An envelope: read out of a reply, checked, and freed of directives that cannot be used."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, did_you_mean
from surecall.base.limits import MAX_OUTPUT_BYTES
from surecall.base.records import Certainty, ErrorDetail, Receipt, clip
from surecall.reading import read_value
from surecall.reading.answers import ValueReading
from surecall.reading.truncation import is_missing_closer
from surecall.reading.wording import FIRST_IN_ROW, refuse_several
from surecall.schema import SchemaChecker, coerce_arguments

from .patch import PatchReading
from .registry import DirectiveRegistry, KnownType, read_reasons, tokenize

TEXT: Final = "assistant_text"
DIRECTIVES: Final = "directives"

# What is wrong inside an envelope is said of its directives, not of the whole: any member may be.
_ANY_ENVELOPE: Final = SchemaChecker({"type": "object", "properties": {TEXT: {}, DIRECTIVES: {}}})
_ANY_LIST: Final = SchemaChecker({"type": "array"})
_ANY_OBJECT: Final = SchemaChecker({"type": "object"})

_EMPTY: Final = ErrorDetail(Code.EMPTY, "The answer is empty.", "Answer with the JSON object.")
_NO_TEXT: Final = ErrorDetail(
    Code.MISSING_ASSISTANT_TEXT,
    "The object has no text in assistant_text.",
    "Write what the user reads there.",
    "/assistant_text",
)
_NO_DIRECTIVES: Final = ErrorDetail(
    Code.MISSING_DIRECTIVES,
    "The object has no list in directives.",
    "Write an empty list when there is nothing to do.",
    "/directives",
)
_SAMPLE_CHARS: Final = 200


class Directive(Struct, frozen=True, kw_only=True):
    """An instruction to the application, with a checked payload."""

    type: str
    payload: dict[str, Any]
    """As JSON, after conversions that leave one meaning."""
    value: Any = None
    """The payload as an object of the type that was registered for it; the payload otherwise."""


class Envelope(Struct, frozen=True, kw_only=True):
    """What the user reads, and what the application is to do."""

    assistant_text: str
    directives: tuple[Directive, ...] = ()
    warnings: tuple[ErrorDetail, ...] = ()
    """Why directives were left out."""

    def of_type(self, name: str) -> tuple[Directive, ...]:
        """Return the directives of one type, in order."""
        return tuple(item for item in self.directives if item.type == name)


class EnvelopeReading(Struct, frozen=True, kw_only=True):
    """What became of a reply that should have been an envelope."""

    envelope: Envelope | None = None
    """Unset when there are errors."""
    value: Any = None
    """The JSON that was read, as far as there was any."""
    errors: tuple[ErrorDetail, ...] = ()
    warnings: tuple[ErrorDetail, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    certainty: Certainty = "certain"
    doubt: str = ""
    is_cut: bool = False

    @property
    def ok(self) -> bool:
        """Whether there is an envelope."""
        return self.envelope is not None


def parse_envelope(
    source: str | Mapping[str, Any],
    registry: DirectiveRegistry,
    *,
    allowed: Iterable[str] | None = None,
    finish_reason: str | None = None,
    accept: Certainty = "likely",
    max_bytes: int = MAX_OUTPUT_BYTES,
) -> EnvelopeReading:
    """Read an envelope; a directive that cannot be used is left out with a warning.

    An envelope that was cut yields nothing: the last directive may lack a part.

    Args:
        source: The text of a reply, or an object that was decoded already.
        registry: The types that there are.
        allowed: The types that may be used here; all by default.
        finish_reason: Why the model stopped.
        accept: `certain` takes only replies that are nothing but the envelope.
        max_bytes: Longer text is refused unread.
    """
    names = {known.definition.type for known in registry.select(allowed)}
    if not isinstance(source, str):
        return _Validator(registry, names, ValueReading()).read(dict(source))
    if not source.strip():
        return EnvelopeReading(errors=(_EMPTY,))
    if len(source) > max_bytes:
        message = f"The answer has {len(source)} characters; {max_bytes} are allowed."
        return EnvelopeReading(errors=(ErrorDetail(Code.TOO_LARGE, message, "Answer shorter."),))
    found = read_value(
        source,
        _ANY_ENVELOPE.schema,
        checker=_ANY_ENVELOPE,
        accept=accept,
        finish_reason=finish_reason,
        cut="refuse",
        max_bytes=max_bytes,
    )
    if found.doubt == FIRST_IN_ROW:
        fitting = [item.value for item in found.candidates if item.fits]
        error = refuse_several(fitting if found.value is None else [found.value, *fitting])
        return EnvelopeReading(errors=(error,), receipts=found.receipts)
    is_cut = found.state == "cut" or any(map(is_missing_closer, found.receipts))
    if is_cut or found.state != "whole" or found.errors:
        errors = _explain(source, found, is_cut=is_cut)
        return EnvelopeReading(errors=errors, receipts=found.receipts, is_cut=is_cut)
    return _Validator(registry, names, found).read(found.value)


def _explain(text: str, found: ValueReading, *, is_cut: bool) -> tuple[ErrorDetail, ...]:
    """Say why a text holds no envelope, by the codes for envelopes."""
    first = found.errors[0] if found.errors else None
    if is_cut:
        return (
            ErrorDetail(Code.VALUE_TRUNCATED, first.message if first else "Its end is missing."),
        )
    value: Any = found.value
    if isinstance(value, list | int | float | bool):
        kind = "a list" if isinstance(value, list) else "a single value"
        message = f"The answer is {kind}, not an object."
        return (ErrorDetail(Code.NOT_OBJECT, message, "Answer with the JSON object."),)
    if first is not None and first.code in (Code.VALUE_AMBIGUOUS, Code.VALUE_NOT_CERTAIN):
        return found.errors
    message = (
        f"The answer cannot be read as one JSON object: {first.message if first else ''} "
        f"It begins: {clip(text.strip(), _SAMPLE_CHARS)}"
    )
    hint = "Answer with the JSON object and nothing around it."
    return (ErrorDetail(Code.INVALID_JSON, message, hint),)


class _Validator:
    """Checks one envelope, member by member."""

    def __init__(
        self, registry: DirectiveRegistry, allowed: Collection[str], found: ValueReading
    ) -> None:
        self._registry = registry
        self._allowed = allowed
        self._found = found
        self._receipts: list[Receipt] = list(found.receipts)
        self._warnings: list[ErrorDetail] = []

    def read(self, fields: dict[str, Any]) -> EnvelopeReading:
        text = self._member(fields, TEXT, "")
        items = self._list_items(self._member(fields, DIRECTIVES, ""))
        errors: list[ErrorDetail] = []
        if not isinstance(text, str):
            errors.append(_NO_TEXT)
        if items is None:
            errors.append(_NO_DIRECTIVES)
        directives = [self._directive(item, at) for at, item in enumerate(items or ())]
        envelope = None
        if not errors:
            envelope = Envelope(
                assistant_text=cast("str", text),
                directives=tuple(item for item in directives if item is not None),
                warnings=tuple(self._warnings),
            )
        return EnvelopeReading(
            envelope=envelope,
            value=fields,
            errors=tuple(errors),
            warnings=tuple(self._warnings),
            receipts=tuple(self._receipts),
            certainty=self._found.certainty,
            doubt=self._found.doubt,
        )

    def _member(self, fields: dict[str, Any], name: str, place: str) -> Any:
        """Return a member by its name, or by one that differs only in case and signs."""
        if name in fields:
            return fields[name]
        alike = [key for key in fields if tokenize(key) == name]
        if len(alike) != 1:
            return None
        self._receipts.append(Receipt("rename_key", f"{place}/{name}", clip(alike[0]), name))
        return fields[alike[0]]

    def _list_items(self, value: Any) -> list[Any] | None:
        if isinstance(value, str):
            value = self._decode(value, _ANY_LIST, f"/{DIRECTIVES}")
        if isinstance(value, dict):
            self._receipts.append(Receipt("wrap_in_array", f"/{DIRECTIVES}", 1, 1))
            return [value]
        return cast("list[Any]", value) if isinstance(value, list) else None

    def _directive(self, item: Any, at: int) -> Directive | None:
        place = f"/{DIRECTIVES}/{at}"
        if not isinstance(item, dict):
            return self._drop(Code.DIRECTIVE_NOT_OBJECT, place, "A directive must be an object.")
        fields = cast("dict[str, Any]", item)
        name = self._member(fields, "type", place)
        if not isinstance(name, str) or not name.strip():
            return self._drop(Code.MISSING_TYPE, f"{place}/type", "A directive needs a type.")
        known = self._find_type(name, f"{place}/type")
        if known is None:
            return None
        payload = self._member(fields, "payload", place)
        if isinstance(payload, str):
            payload = self._decode(payload, _ANY_OBJECT, f"{place}/payload")
        if not isinstance(payload, dict):
            message = f"{known.definition.type} needs a payload that is an object."
            return self._drop(Code.MISSING_PAYLOAD, f"{place}/payload", message)
        return self._check(known, cast("dict[str, Any]", payload), f"{place}/payload")

    def _find_type(self, name: str, place: str) -> KnownType | None:
        known = self._registry.find(name)
        shown = clip(name, 80)
        if known is None:
            hint = did_you_mean(name, self._allowed)
            self._drop(Code.UNKNOWN_DIRECTIVE_TYPE, place, f"There is no type {shown!r}.", hint)
            return None
        found = known.definition.type
        if found not in self._allowed:
            self._drop(Code.DISALLOWED_DIRECTIVE_TYPE, place, f"{found} is not allowed here.")
            return None
        if name != found:
            self._receipts.append(Receipt("match_enum", place, shown, found))
        return known

    def _check(self, known: KnownType, payload: dict[str, Any], place: str) -> Directive | None:
        value: Any = payload
        if known.checker is not None:
            coerced = coerce_arguments(payload, known.checker.schema, known.checker)
            if coerced.errors:
                return self._drop_all(
                    ErrorDetail(
                        Code.PAYLOAD_INVALID,
                        error.message,
                        error.hint,
                        f"{place}{error.path or ''}",
                    )
                    for error in coerced.errors
                )
            payload = value = cast("dict[str, Any]", coerced.value)
            self._note(coerced.receipts, place)
        try:
            value = payload if known.bind is None else known.bind(payload)
        except ValueError as error:
            return self._drop(Code.PAYLOAD_INVALID, place, f"The payload is refused: {error}")
        if known.check is not None:
            try:
                said = known.check(payload)
                if isinstance(said, PatchReading):
                    value = said
                    self._note(said.receipts, place)
                    said = list(said.errors)
                reasons = read_reasons(said, place)
            except Exception as error:
                message = clip(f"{type(error).__name__}: {error}")
                return self._drop(Code.PAYLOAD_VALIDATOR_ERROR, place, message)
            if reasons:
                return self._drop_all(reasons)
        return Directive(type=known.definition.type, payload=payload, value=value)

    def _decode(self, text: str, checker: SchemaChecker, place: str) -> Any:
        """Return the list or object that a text is as JSON; the text when it is none."""
        found = read_value(text, checker.schema, checker=checker)
        if found.state != "whole" or found.errors:
            return text
        self._receipts.append(Receipt("decode_json_text", place, clip(text), ""))
        return found.value

    def _note(self, receipts: Iterable[Receipt], place: str) -> None:
        """Keep receipts of a payload, with its place in the envelope."""
        for item in receipts:
            self._receipts.append(replace(item, place=f"{place}{item.place}"))

    def _drop(self, code: str, place: str, message: str, hint: str | None = None) -> None:
        self._warnings.append(ErrorDetail(code, message, hint, place))

    def _drop_all(self, errors: Iterable[ErrorDetail]) -> None:
        self._warnings.extend(errors)
