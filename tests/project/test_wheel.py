"""What is shipped is what is in the tree, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from surecall.manual import KINDS

from .sources import ROOT, SOURCE


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT],
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


def shipped(wheel: Path) -> dict[str, bytes]:
    """Read the files of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_equals_the_tree(wheel: Path) -> None:
    """Every file of the package and every page is shipped byte for byte, and no other."""
    tree = {
        path.relative_to(SOURCE.parent).as_posix(): path.read_bytes()
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    } | {
        f"surecall/docs/{kind}/{path.name}": path.read_bytes()
        for kind in KINDS
        for path in (ROOT / "docs" / kind).iterdir()
    }
    package = {name: data for name, data in shipped(wheel).items() if ".dist-info/" not in name}
    assert sorted(package) == sorted(tree)
    assert package == tree


def test_the_wheel_holds_nothing_that_runs_by_itself(wheel: Path) -> None:
    """No `.pth` file, no data folder, no script: only the package and its metadata."""
    names = list(shipped(wheel))
    assert [name for name in names if name.endswith((".pth", ".so", ".exe", ".sh"))] == []
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"surecall"}
    assert len(tops) == 2


def test_the_wheel_has_types_and_data(wheel: Path) -> None:
    """The typing marker, the explanations of codes and the licence are in it."""
    names = shipped(wheel)
    assert "surecall/py.typed" in names
    assert "surecall/codes.toml" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_wheel_asks_for_few_packages(wheel: Path) -> None:
    """At most five packages are needed to use surecall."""
    files = shipped(wheel)
    (metadata,) = [data for name, data in files.items() if name.endswith("dist-info/METADATA")]
    needs = [line for line in metadata.decode().splitlines() if line.startswith("Requires-Dist:")]
    required = [line for line in needs if "extra ==" not in line]
    assert 0 < len(required) <= 5
