"""Exceptions and log records without secrets, whoever made them."""

import logging
from collections.abc import Iterator
from typing import Final

from .text import redact

__all__ = ["cut_secret_causes", "open_log"]


def cut_secret_causes(error: BaseException) -> None:
    """Unlink the exceptions behind an error that show a secret, such as a body not in UTF-8."""
    for later, earlier in list(_causes(error)):
        shown = f"{earlier!r} {earlier} {getattr(earlier, '__dict__', '')}"
        if redact(shown) != shown:
            later.__cause__ = later.__context__ = None


def _causes(error: BaseException) -> Iterator[tuple[BaseException, BaseException]]:
    seen = {id(error)}
    waiting = [error]
    while waiting:
        later = waiting.pop()
        for earlier in (later.__cause__, later.__context__):
            if earlier is not None and id(earlier) not in seen:
                seen.add(id(earlier))
                waiting.append(earlier)
                yield later, earlier


def open_log(name: str) -> logging.Logger:
    """Return a logger whose records hold no secrets, whichever handler takes them."""
    logger = logging.getLogger(name)
    if not any(isinstance(item, _SecretFilter) for item in logger.filters):
        logger.addFilter(_SecretFilter())
    return logger


class _SecretFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        clean = redact(message)
        if clean != message:
            record.msg, record.args = clean, ()
        if record.exc_info:
            text = _FORMATTER.formatException(record.exc_info)
            shown = f"{text} {record.exc_info[1]!r}"
            if redact(shown) != shown:
                record.exc_info, record.exc_text = None, redact(text)
        return True


_FORMATTER: Final = logging.Formatter()
