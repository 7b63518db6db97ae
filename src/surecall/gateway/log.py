"""The log of a gateway: sentences or JSON on standard error, and a line for each request."""

import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import Any, Final

from surecall.base.errors import SurecallError
from surecall.base.redaction import excerpt, open_log, redact
from surecall.store.records.record import RequestRecord
from surecall.tools.outputs import encode_kept

from .settings.tables import LogFormat

_REQUESTS: Final = "surecall.requests"
_REPEATED_S: Final = 60.0
_MAX_REMEMBERED: Final = 256
_REQUEST_ID: Final = re.compile(r"\b[0-9a-f]{25}\b")

_requests = open_log(_REQUESTS)


def set_up_log(form: LogFormat) -> None:
    """Write the log of this process to standard error; what repeats within a minute is left out."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(form))
    handler.addFilter(_Repeats())
    logger = logging.getLogger("surecall")
    logger.handlers, logger.propagate = [handler], False
    _requests.setLevel(logging.INFO)


def log_request(record: RequestRecord) -> None:
    """Write the line of a request that is over."""
    model = redact(record.model_asked or record.model_answered) or "no model"
    took_ms = record.upstream_ms + record.added_ms
    notes = [record.outcome]
    if record.observed not in ("", "clean"):
        notes.append(f"would be {record.observed}")
    if record.calls:
        notes.append(f"{record.calls} call{'s' * (record.calls > 1)}")
    if record.key_id:
        notes.append(f"key {record.key_id}")
    if record.error_code:
        notes.append(record.error_code)
    if record.attempts:
        tried = (f"{item.upstream} {item.error or item.outcome}" for item in record.attempts)
        notes.append(f"attempts: {', '.join(tried)}")
    _requests.info(
        "Request %s for %s got %d%s in %.0f ms (%.1f ms added): %s.",
        record.id,
        model,
        record.status,
        f" from {record.upstream}" if record.upstream else "",
        took_ms,
        record.added_ms,
        ", ".join(notes),
        extra={"fields": _describe(record, model)},
    )


def log_refused(method: str, path: str, status: int, error: SurecallError) -> None:
    """Write the line of a request that was refused at the entrance, which leaves no record."""
    path = excerpt(path, 200)
    _requests.info(
        "%s %s got %d: %s.",
        method,
        path,
        status,
        error.code,
        extra={
            "fields": {
                "event": "refused",
                "method": method,
                "path": path,
                "status": status,
                "error": str(error.code),
            }
        },
    )


def _describe(record: RequestRecord, model: str) -> dict[str, Any]:
    names = ("id", "status", "outcome", "observed", "prompt", "upstream", "calls", "retries")
    names += ("stream", "client_closed", "prompt_tokens", "completion_tokens", "cached_tokens")
    names += ("cost",)
    names += ("upstream_ms", "added_ms", "first_byte_ms")
    return {
        "event": "request",
        "model": model,
        "key": record.key_id,
        "error": record.error_code,
        **{name: getattr(record, name) for name in names},
        "attempts": list(record.attempts),
    }


class _Lines(logging.Formatter):
    """One line for each entry: its time, its level, and a sentence or an object of JSON."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        when = when.replace("+00:00", "Z")
        level, message = record.levelname.lower(), record.getMessage()
        trace = record.exc_text or (
            self.formatException(record.exc_info) if record.exc_info else ""
        )
        if self._form == "text":
            return f"{when} {level} {message}" + (f"\n{trace}" if trace else "")
        fields = {"time": when, "level": level, "message": message, **getattr(record, "fields", {})}
        if trace:
            fields["trace"] = trace
        return encode_kept(fields).decode("utf-8")


class _Repeats(logging.Filter):
    """Leaves out what was written within the last minute, and counts it for the next time."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == _REQUESTS:
            return True
        message = record.getMessage()
        key, now = _REQUEST_ID.sub("", message), time.monotonic()
        since, left_out = self._seen.get(key, (-_REPEATED_S, 0))
        if now - since < _REPEATED_S:
            self._seen[key] = (since, left_out + 1)
            return False
        if len(self._seen) >= _MAX_REMEMBERED:
            self._seen.pop(next(iter(self._seen)))
        self._seen[key] = (now, 0)
        if left_out:
            record.msg, record.args = f"{message} ({left_out} more since the last time)", ()
        return True
