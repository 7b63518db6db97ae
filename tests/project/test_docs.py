"""The documentation is complete, up to date, and its code runs."""

import re
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest

from surecall.base.errors import Code
from surecall.base.records import RunEvent
from surecall.calls import FORMATS
from surecall.loop.options import Options
from surecall.models.config import SETTINGS

from .sources import ROOT, doc_pages, load_script

REFERENCE = ROOT / "docs" / "reference"
BLOCK = re.compile(r"^```python(?P<mark>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"\s*^```text\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

with_code = pytest.mark.parametrize(
    "page",
    [page for page in doc_pages() if BLOCK.search(page.read_text("utf-8"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)


generator = load_script("generate_reference")
links = load_script("check_links")


@pytest.mark.parametrize("name", generator.PAGES)
def test_generated_pages_are_up_to_date(name: str) -> None:
    """A page on disk is what the code makes now; `make docs` writes it."""
    assert (REFERENCE / name).read_text("utf-8") == generator.page_text(name)


def test_every_code_has_its_entry() -> None:
    """Each code is a heading of the codes page, so that it can be linked to."""
    page = (REFERENCE / "codes.md").read_text("utf-8")
    assert sorted(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == sorted(Code)


def test_every_option_has_a_row_with_words() -> None:
    """Each option of a run is in the list and says what it does."""
    page = (REFERENCE / "options.md").read_text("utf-8")
    rows = dict(re.findall(r"^- `(\w+)`: `.+?`, `.*?`\. (.+)$", page, re.MULTILINE))
    assert sorted(rows) == sorted(Options.__struct_fields__)


def test_every_setting_has_a_row() -> None:
    """Each key of the configuration is in the list."""
    page = (REFERENCE / "settings.md").read_text("utf-8")
    assert [key for key in SETTINGS if f"\n- `{key}`: " not in page] == []


def test_every_event_has_a_heading() -> None:
    """Each event is listed by the name in its JSON form."""
    page = (REFERENCE / "events.md").read_text("utf-8")
    tags = [event.__struct_config__.tag for event in get_args(RunEvent)]
    assert [tag for tag in tags if f"\n## {tag}\n" not in page] == []


def test_every_text_format_has_a_row() -> None:
    """Each family is in a table, once for each reader it has."""
    page = (REFERENCE / "text-formats.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert Counter(rows) == Counter(form.name for form in FORMATS)


def test_links_lead_somewhere() -> None:
    """Every relative link names a file that exists, and a heading in it."""
    assert [broken for page in doc_pages() for broken in links.broken_links(page)] == []


@with_code
def test_code_runs(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every Python block runs, in order, and prints what the text block behind it shows.

    A block marked `no-run` needs a provider.
    """
    monkeypatch.chdir(tmp_path)
    for name in ("SURECALL_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    text = page.read_text("utf-8")
    names: dict[str, Any] = {"__name__": "docs"}
    for block in BLOCK.finditer(text):
        if "no-run" not in block["mark"]:
            line = text.count("\n", 0, block.start()) + 1
            exec(compile("\n" * line + block["code"], str(page), "exec"), names)
            printed = capsys.readouterr().out
            shown = OUTPUT.match(text, block.end())
            assert shown is None or shown["text"] == printed


RUN_BY_OTHERS = {"plain_agent.py", "test_booking.py"}


@pytest.mark.parametrize(
    "path",
    sorted(path for path in (ROOT / "examples").glob("*.py") if path.name not in RUN_BY_OTHERS),
    ids=lambda path: path.name,
)
def test_examples_run(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every example runs without a key and prints something."""
    names = {"__name__": "__main__", "__file__": str(path)}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), names)
    assert capsys.readouterr().out.strip()
