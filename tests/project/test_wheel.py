"""What is shipped is what is in the tree, and nothing else."""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from surecall.cli.manual import KINDS

from .sources import ROOT, SOURCE, load_script

RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive, and the wheel from it, once."""
    folder = tmp_path_factory.mktemp("built")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT],
        capture_output=True,
        text=True,
        timeout=175,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """Return the wheel."""
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """Return what the wheel says about itself."""
    (data,) = [data for name, data in shipped(wheel).items() if name.endswith("dist-info/METADATA")]
    return message_from_bytes(data)


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
    tree["surecall/docs/search.toml"] = (ROOT / "docs" / "search.toml").read_bytes()
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
    assert "surecall/base/codes.toml" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_wheel_asks_for_few_packages(metadata: Message) -> None:
    """At most five packages are needed to use surecall."""
    needs: list[str] = metadata.get_all("Requires-Dist", [])
    required = [need for need in needs if "extra ==" not in need]
    assert 0 < len(required) <= 5


def test_the_index_page_has_no_link_that_leads_nowhere(metadata: Message) -> None:
    """The description is the README, and every link in it works on the package index."""
    page = str(metadata.get_payload())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["License-Expression"] == "MIT"
    assert "pip install surecall" in page
    assert "Try it here" in page
    assert RELATIVE_LINK.search(FENCE.sub("", page)) is None


def test_links_of_the_index_page_lead_to_this_version() -> None:
    """With a repository links and pictures get its address; without one their words stay."""
    rewrite = load_script("hatch_build", ROOT).rewrite_links
    text = "See [docs](docs/a.md#b), [us](https://example.org) and ![a map](docs/m.svg).\n"
    code = "```text\n[as it is](docs/a.md)\n```\n"
    home = "https://example.org/surecall"
    assert rewrite(text + code, home, "v0.1.0") == (
        f"See [docs]({home}/blob/v0.1.0/docs/a.md#b), [us](https://example.org) "
        f"and ![a map]({home}/raw/v0.1.0/docs/m.svg).\n{code}"
    )
    assert rewrite(text + code, "", "v0.1.0") == (
        f"See docs, [us](https://example.org) and *a map*.\n{code}\n"
        "The pages named here come with the package: `surecall docs` lists them.\n"
    )


def test_a_link_that_is_a_sentence_becomes_the_command_that_prints_the_page() -> None:
    """Without a repository, "How" alone would say nothing."""
    rewrite = load_script("hatch_build", ROOT).rewrite_links
    text = (
        "It is fast. [How](docs/explanation/performance.md#a)\nSee [why](docs/index.md) and go.\n"
    )
    page = rewrite(text, "", "v0.1.0")
    assert page.startswith("It is fast. How: `surecall docs performance`\nSee why and go.\n")


def test_the_source_archive_holds_what_is_needed_to_build_and_test(built: Path) -> None:
    """Sources, tests, pages and requirements are in it; caches and results are not."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    tops = {name.partition("/")[0] for name in names}
    assert tops == {
        *("src", "tests", "docs", "examples", "scripts", "bench", "requirements", "deploy"),
        *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"),
        *("Makefile", "action.yml", "hatch_build.py", "pyproject.toml", "zensical.toml"),
        *("PKG-INFO", ".gitignore"),
    }
    assert [name for name in names if "cache__" in name or name.endswith((".pyc", ".db"))] == []


def test_the_bill_of_materials_names_every_pin_with_its_hashes(tmp_path: Path) -> None:
    """What is needed, what is optional and what is for development are told apart."""
    make = load_script("make_sbom")
    target = tmp_path / "sbom.json"
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "make_sbom.py", target], timeout=50, check=False
    )
    assert done.returncode == 0
    document = json.loads(target.read_text("utf-8"))
    base = list(make.read_pins((ROOT / "requirements" / "base.txt").read_text("utf-8")))
    scopes = {part["purl"]: part["scope"] for part in document["components"]}
    assert {pin.purl for pin in base} == {
        purl for purl, scope in scopes.items() if scope == "required"
    }
    assert {scopes[f"pkg:pypi/{name}"] for name in _named(scopes, "starlette", "mcp")} == {
        "optional"
    }
    assert {scopes[f"pkg:pypi/{name}"] for name in _named(scopes, "pytest", "ruff")} == {"excluded"}
    assert all(part["hashes"] for part in document["components"])
    refs = {*scopes, document["metadata"]["component"]["bom-ref"]}
    assert {entry["ref"] for entry in document["dependencies"]} == refs
    assert {ref for entry in document["dependencies"] for ref in entry["dependsOn"]} <= refs


def _named(purls: dict[str, str], *names: str) -> list[str]:
    """Return the packages with their versions."""
    found = [purl.removeprefix("pkg:pypi/") for purl in purls]
    return [item for item in found if item.partition("@")[0] in names]
