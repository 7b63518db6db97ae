"""The answer of a tool: as one envelope, as plain JSON data, and how large it may be.

The size is judged before anything is turned into text. The walk looks at the answer as it lies in
memory and stops at the first limit passed, so an answer of a gigabyte costs no more than one of
the allowed size. The cost of a value estimates its JSON text from below: no punctuation, no
escapes. A shared value is counted each time it would be written; one inside itself is counted
once and left for the encoder to refuse.
"""

import math
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, ConfigError, JSONTextError
from surecall.base.limits import MAX_OUTPUT_BYTES
from surecall.base.records import Envelope, ErrorDetail
from surecall.base.redaction import mask_known
from surecall.text import encode, repair_surrogates

_ENVELOPE_KEYS: Final = frozenset({"ok", "tool_name", "data", "warnings", "errors"})


def envelope_of(tool_name: str, value: Any) -> Envelope:
    """Return the envelope of what a tool returned.

    A mapping with `ok` is taken as an envelope: `ok` counts only when it is literally true,
    data that is not a mapping is wrapped as `{"value": …}`, and errors are reduced to texts. Where
    it has no `data`, what else it has is its data. A mapping without `ok` is the data of a success;
    so is anything else, as `{"value": …}`.
    """
    if isinstance(value, Envelope):
        return msgspec.structs.replace(value, tool_name=tool_name)
    value = _plain_record(value)
    if not isinstance(value, Mapping):
        return Envelope(ok=True, tool_name=tool_name, data=_data_of(value))
    members = cast("Mapping[Any, Any]", value)
    if "ok" not in members:
        return Envelope(ok=True, tool_name=tool_name, data=dict(members))
    warnings = members.get("warnings")
    return Envelope(
        ok=members["ok"] is True,
        tool_name=tool_name,
        data=_data_of(_plain_record(members["data"])) if "data" in members else _find_data(members),
        warnings=tuple(cast("list[Any]", warnings)) if isinstance(warnings, list | tuple) else (),
        errors=_errors_of(members.get("errors")),
    )


def _find_data(members: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name not in _ENVELOPE_KEYS}


def render_envelope(envelope: Envelope) -> dict[str, Any]:
    """Return the full form of an envelope: `{ok, tool_name, data, warnings, errors}`."""
    return {
        "ok": envelope.ok,
        "tool_name": _encodable(envelope.tool_name),
        "data": envelope.data,
        "warnings": list(envelope.warnings),
        "errors": [
            {key: _encodable(text) for key, text in msgspec.to_builtins(error).items()}
            for error in envelope.errors
        ],
    }


def plain_data(value: Any) -> Any:
    """Return the value with every record, model, set or date inside it as plain JSON data.

    Raises:
        TypeError: when something in it has no plain form.
    """
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_plain_model)


def encode_stored(record: Any) -> bytes:
    """Encode a record without known secrets.

    A result in it may hold models and dates that its tool returned.
    """
    try:
        return mask_known(encode(record))
    except JSONTextError as error:
        if error.code != Code.NOT_SERIALIZABLE:
            raise
    return mask_known(encode(plain_data(record)))


def encode_kept(value: Any) -> bytes:
    """Encode anything that was observed: what JSON cannot carry is replaced, never refused."""
    try:
        return encode(value)
    except JSONTextError:
        return encode(_writable(msgspec.to_builtins(value, str_keys=True, enc_hook=_shown)))


def _shown(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else repr(value)


def _writable(value: Any) -> Any:
    """Return plain data: halves of characters and numbers without end are replaced."""
    if isinstance(value, str):
        return repair_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {_writable(k): _writable(v) for k, v in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_writable(item) for item in cast("list[Any]", value)]
    return value


def _data_of(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return {"value": value}


def _errors_of(entries: Any) -> tuple[ErrorDetail, ...]:
    if not isinstance(entries, list | tuple):
        return ()
    errors: list[ErrorDetail] = []
    for entry in cast("list[Any]", entries):
        if isinstance(entry, ErrorDetail):
            errors.append(entry)
        elif isinstance(entry, Mapping):
            members = cast("Mapping[str, Any]", entry)
            given = {key: members.get(key) for key in ErrorDetail.__struct_fields__}
            texts = {key: str(value) for key, value in given.items() if value is not None}
            errors.append(ErrorDetail(**{"code": "", "message": "", **texts}))
    return tuple(errors)


def _encodable(text: str) -> str:
    # A lone surrogate from a model's name or argument must not make its own refusal unreadable.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _plain_record(value: Any) -> Any:
    """Return a record or model as a mapping; leave anything else as it is."""
    kind = value.__class__
    if value is None or kind is dict or kind is list or kind is str:
        return value
    if isinstance(value, msgspec.Struct) or hasattr(kind, "__dataclass_fields__"):
        return plain_data(value)
    if hasattr(kind, "model_dump"):
        return _plain_model(value)
    return value


def _plain_model(value: Any) -> Any:
    if hasattr(value.__class__, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no JSON form")


RejectionReason = Literal[
    "MAX_ARRAY_ITEMS",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_HASH_KEYS",
    "MAX_NODES",
    "STRING_TOO_LARGE",
]

_NULL_BYTES: Final = 4
_BOOLEAN_BYTES: Final = 5
_UNKNOWN_BYTES: Final = 64
_DIGITS_PER_BIT: Final = 0.30103
_ARRAYS: Final = (list, tuple, set, frozenset)
_SMALL_NODES: Final = 256
_SCALARS: Final = (bool, float, NoneType)
_INTEGERS: Final = range(-(2**63), 2**63)
_SCALAR_BYTES: Final = 24
_CONTAINERS: Final = (Mapping, Struct, *_ARRAYS)


class OutputLimits(Struct, frozen=True, kw_only=True):
    """The most that a tool may answer; going over any limit replaces the answer."""

    max_bytes: int = MAX_OUTPUT_BYTES
    max_depth: int = 20
    """How many objects and arrays may lie inside each other."""
    max_nodes: int = 50_000
    """Values in all, counting objects and arrays."""
    max_keys: int = 50_000
    """Keys of one object."""
    max_items: int = 50_000
    """Items of one array."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            limit = getattr(self, name)
            if type(limit) is not int or limit < 1:
                raise ConfigError(
                    Code.INVALID_OPTION,
                    f"The output limit {name} is {limit!r}.",
                    hint="Give a whole number of at least 1.",
                )


class OutputRejection(Struct, frozen=True):
    """Why an answer is too large, and how many bytes had been counted by then."""

    reason: RejectionReason
    estimated_bytes: int


def check_output(value: Any, limits: OutputLimits) -> OutputRejection | None:
    """Return why the value may not be turned into text, or `None` when it may."""
    if _is_small(value, limits):
        return None
    max_bytes, max_nodes = limits.max_bytes, limits.max_nodes
    total = nodes = 0
    walk: list[tuple[int, Iterator[Any]]] = [(0, iter((value,)))]
    on_path: set[int] = {0}
    while walk:
        owner, items = walk[-1]
        for item in items:
            nodes += 1
            if nodes > max_nodes:
                return OutputRejection("MAX_NODES", total)
            cost = _scalar_bytes(item, max_bytes)
            if cost is not None:
                total += cost
                if total > max_bytes:
                    is_long_text = cost > max_bytes and isinstance(item, str | bytes)
                    reason = "STRING_TOO_LARGE" if is_long_text else "MAX_BYTES"
                    return OutputRejection(reason, total)
            elif id(item) not in on_path:
                if len(walk) > limits.max_depth:
                    return OutputRejection("MAX_DEPTH", total)
                rejection, key_bytes, children = _open(item, limits)
                total += key_bytes
                if rejection is None and total > max_bytes:
                    rejection = "MAX_BYTES"
                if rejection is not None:
                    return OutputRejection(rejection, total)
                walk.append((id(item), children))
                on_path.add(id(item))
                break
        else:
            walk.pop()
            on_path.discard(owner)
    return None


def _is_small(value: Any, limits: OutputLimits) -> bool:
    """Tell at the least cost that no limit can be passed: most answers are a few short values."""
    left_bytes, left_levels = limits.max_bytes, limits.max_depth
    left_nodes = min(_SMALL_NODES, limits.max_nodes, limits.max_keys, limits.max_items)
    waiting = [value]
    for item in waiting:  # grows while it is walked through
        kind = item.__class__
        if kind is str:
            left_bytes -= 4 * len(item)
        elif kind is dict or kind is list:
            left_levels -= 1
            waiting += item
            if kind is dict:
                waiting += item.values()
        elif kind in _SCALARS or (kind is int and item in _INTEGERS):
            left_bytes -= _SCALAR_BYTES
        else:
            return False
        if left_bytes < 0 or left_levels < 0 or len(waiting) > left_nodes:
            return False
    return True


def _scalar_bytes(item: Any, max_bytes: int) -> int | None:
    """Return what the item costs, or `None` when it is a container to be opened."""
    kind = item.__class__
    if kind is str or isinstance(item, str):
        return _text_bytes(item, max_bytes)
    if kind is dict or kind is list or kind is tuple:
        return None
    if item is None:
        return _NULL_BYTES
    if kind is bool:
        return _BOOLEAN_BYTES
    if isinstance(item, int):
        # Python refuses to write integers of thousands of digits, so long ones are estimated.
        bits = item.bit_length()
        return len(str(int(item))) if bits < 1000 else int(bits * _DIGITS_PER_BIT) + 1
    if kind is float:
        return len(repr(item))
    if isinstance(item, bytes | bytearray):
        return len(item) * 4 // 3
    if isinstance(item, _CONTAINERS) or hasattr(kind, "__dataclass_fields__"):
        return None
    return _UNKNOWN_BYTES


def _text_bytes(text: str, max_bytes: int) -> int:
    # A text of n characters is at least n bytes, so a huge one need not be encoded to be refused.
    if text.isascii() or len(text) > max_bytes:
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


def _open(item: Any, limits: OutputLimits) -> tuple[RejectionReason | None, int, Iterator[Any]]:
    """Return a rejection or none, the cost of the container's keys, and its values."""
    if isinstance(item, _ARRAYS):
        items = cast("list[Any]", item)
        too_many = len(items) > limits.max_items
        return ("MAX_ARRAY_ITEMS" if too_many else None), 0, iter(items)
    members = cast("Mapping[Any, Any]", item) if isinstance(item, Mapping) else _fields(item)
    if len(members) > limits.max_keys:
        return "MAX_HASH_KEYS", 0, iter(())
    max_bytes = limits.max_bytes
    total = 0
    for key in members:
        cost = _text_bytes(key, max_bytes) if isinstance(key, str) else _UNKNOWN_BYTES
        total += cost
        if total > max_bytes:
            return ("STRING_TOO_LARGE" if cost > max_bytes else "MAX_BYTES"), total, iter(())
    return None, total, iter(members.values())


def _fields(record: Any) -> dict[str, Any]:
    names = record.__struct_fields__ if isinstance(record, Struct) else record.__dataclass_fields__
    return {name: getattr(record, name, None) for name in names}
