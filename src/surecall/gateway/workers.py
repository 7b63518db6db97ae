"""The metrics of several workers, which they leave for each other in a folder."""

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import msgpack

from surecall.base.errors import explain
from surecall.base.files import make_private
from surecall.base.metrics import Metrics, SeriesSnapshot
from surecall.base.redaction import open_log

_log = open_log("surecall.gateway")


_EVERY_S: Final = 1.0
_MAX_AGE_S: Final = 10.0
"""Older snapshots were left by a worker that has ended."""

_Snapshot = tuple[SeriesSnapshot, ...]
_encode: Final = msgpack.Encoder().encode
_decode: Final = msgpack.Decoder(_Snapshot).decode


class WorkerMetrics:
    """Shares the metrics of one worker with the others.

    Args:
        folder: Where workers meet.
        worker: The number of this one.
        metrics: Its own metrics.
    """

    def __init__(self, folder: Path, worker: int, metrics: Metrics) -> None:
        self._folder = folder
        self._path = folder / f"metrics.w{worker}"
        self._metrics = metrics

    async def run(self) -> None:
        """Leave the numbers of this worker, again and again."""
        while True:
            try:
                self.write()
            except OSError as error:
                _log.warning("Metrics cannot be shared through %s: %s", self._path, explain(error))
            await asyncio.sleep(_EVERY_S)

    def write(self) -> None:
        """Leave the numbers of this worker; a reader sees all of them or none."""
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(f"{self._path.suffix}.new")
        make_private(fresh)
        fresh.write_bytes(_encode(self._metrics.snapshot()))
        fresh.replace(self._path)

    def read_others(self) -> Iterable[_Snapshot]:
        """Return the numbers of the other workers, as of a moment ago."""
        found: list[_Snapshot] = []
        for path in self._folder.glob("metrics.w*"):
            if path == self._path or path.suffix == ".new":
                continue
            try:
                if time.time() - path.stat().st_mtime <= _MAX_AGE_S:
                    found.append(_decode(path.read_bytes()))
            except (OSError, msgspec.DecodeError):
                continue
        return found
