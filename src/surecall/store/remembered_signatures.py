"""What providers want back, and clients may leave out, in a file that outlives a restart."""

import sqlite3
import time
from pathlib import Path
from threading import Lock
from typing import Any, Final

from surecall.base.errors import StoreError
from surecall.base.redaction import open_log, redact
from surecall.base.sqlite_files import Layout, connect

_log = open_log("surecall.store")

ECHOES_FILE: Final = "echoes.sqlite3"
_BUSY_S: Final = 0.5
_MAX_AGE_S: Final = 30 * 24 * 3600
_MAX_ROWS: Final = 100_000
_CLEANED_EVERY: Final = 500
ECHOES: Final = Layout(
    0x53_43_45_43,  # "SCEC"
    (
        """
        CREATE TABLE echoes (
            rowid INTEGER PRIMARY KEY, key TEXT UNIQUE, value BLOB, kept_at INTEGER
        )
        """,
    ),
)


class KeptEchoes:
    """Echoes that outlive a restart; what goes wrong with the file never fails a request.

    Args:
        path: The file, which is made when something is kept or looked for.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        """Long requests are prepared in threads."""
        self._database: sqlite3.Connection | None = None
        self._version: int | None = None
        self._has_any = False
        self._saved = 0
        self._is_broken = False

    def is_empty(self) -> bool:
        """Tell whether nothing is kept, at next to no cost."""
        with self._lock:
            if not self._has_any:
                version = self._ask("PRAGMA data_version")
                if version is not None and version != self._version:  # another one has written
                    self._version = version
                    self._has_any = bool(self._ask("SELECT EXISTS (SELECT 1 FROM echoes)"))
            return not self._has_any

    def load(self, key: str) -> bytes | None:
        """Return what was kept under a key."""
        with self._lock:
            return self._ask("SELECT value FROM echoes WHERE key = ?", key)

    def save(self, key: str, value: bytes) -> None:
        """Keep something."""
        with self._lock:
            self._has_any = True
            now = int(time.time())
            self._ask(
                "INSERT INTO echoes (key, value, kept_at) VALUES (?, ?, ?) ON CONFLICT (key) "
                "DO UPDATE SET kept_at = excluded.kept_at, value = excluded.value",
                key,
                value,
                now,
            )
            if self._saved % _CLEANED_EVERY == 0:
                self._ask(
                    "DELETE FROM echoes WHERE kept_at < ? OR rowid <= "
                    "(SELECT max(rowid) FROM echoes) - ?",
                    now - _MAX_AGE_S,
                    _MAX_ROWS,
                )
            self._saved += 1

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _ask(self, text: str, *values: Any) -> Any:
        """Return the one value that a query gives, if any."""
        try:
            if self._database is None:
                settings = ("synchronous = NORMAL",)
                self._database = connect(self._path, ECHOES, settings, busy_s=_BUSY_S)
            row = self._database.execute(text, values).fetchone()
        except (sqlite3.Error, StoreError, OSError) as error:
            if not self._is_broken:
                self._is_broken = True
                _log.warning("The file %s cannot be used: %s", self._path, redact(str(error)))
            return None
        return None if row is None else row[0]
