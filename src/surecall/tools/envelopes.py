"""Whatever a tool returns becomes one envelope, and an envelope becomes plain JSON data."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from surecall.records import Envelope, ErrorDetail

__all__ = ["envelope_of", "plain_data", "render_envelope"]


def envelope_of(tool_name: str, value: Any) -> Envelope:
    """Return the envelope of what a tool returned.

    A mapping with `ok` is taken as an envelope: `ok` counts only when it is literally true,
    data that is no mapping is wrapped as `{"value": …}`, and errors are reduced to texts. A
    mapping without `ok` is the data of a success; so is anything else, as `{"value": …}`.
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
        data=_data_of(_plain_record(members.get("data"))),
        warnings=tuple(cast("list[Any]", warnings)) if isinstance(warnings, list | tuple) else (),
        errors=_errors_of(members.get("errors")),
    )


def render_envelope(envelope: Envelope) -> dict[str, Any]:
    """Return the full form of an envelope: `{ok, tool_name, data, warnings, errors}`."""
    return {
        "ok": envelope.ok,
        "tool_name": _encodable(envelope.tool_name),
        "data": envelope.data,
        "warnings": list(envelope.warnings),
        "errors": [_render_error(error) for error in envelope.errors],
    }


def plain_data(value: Any) -> Any:
    """Return the value with every record, model, set or date inside it as plain JSON data.

    Raises:
        TypeError: when something in it has no plain form.
    """
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_plain_model)


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
            errors.append(
                ErrorDetail(
                    code=_text_of(members.get("code")) or "",
                    message=_text_of(members.get("message")) or "",
                    hint=_text_of(members.get("hint")),
                    path=_text_of(members.get("path")),
                )
            )
    return tuple(errors)


def _text_of(value: Any) -> str | None:
    return None if value is None else str(value)


def _render_error(error: ErrorDetail) -> dict[str, str]:
    rendered = {"code": _encodable(error.code), "message": _encodable(error.message)}
    if error.hint is not None:
        rendered["hint"] = _encodable(error.hint)
    if error.path is not None:
        rendered["path"] = _encodable(error.path)
    return rendered


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
