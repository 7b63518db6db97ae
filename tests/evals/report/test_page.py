"""The file that is written: its policy, its data, its size."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from support.eval_rows import MODELS, make_body, make_rows, seed_sized_rows
from support.reports import embedded, make_info, with_bodies
from surecall.base.errors import ConfigError
from surecall.evals.records import Manifest
from surecall.evals.report import MAX_FILE_BYTES, render_html, write_html
from surecall.evals.store import RunStore

FEW = make_rows(models=MODELS[:2], trials=2)


def policy_of(page: bytes) -> dict[str, str]:
    """Return the rules of the page's policy by name."""
    found = re.search(rb'Content-Security-Policy" content="([^"]+)"', page)
    assert found is not None
    rules = (rule.split(" ", 1) for rule in found[1].decode().split("; "))
    return dict(rules)


def inside(page: bytes, tag: str) -> str:
    """Return the text of the one plain element of this kind."""
    (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page.decode("utf-8"), re.DOTALL)
    return text


def hash_of(text: str) -> str:
    """Return the hash of a text as a policy names it."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def test_the_policy_names_exactly_the_style_and_the_script_inside() -> None:
    """Nothing may be loaded, and only the two texts with these hashes may act."""
    page = render_html(FEW, make_info(FEW))
    assert policy_of(page) == {
        "default-src": "'none'",
        "style-src": hash_of(inside(page, "style")),
        "script-src": hash_of(inside(page, "script")),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_the_page_names_no_other_address() -> None:
    """No link, style or script from elsewhere; the name of the SVG language is no address."""
    page = render_html(FEW, make_info(FEW), bodies="none").decode()
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    links = set(re.findall(r'(?:src|href)="([^"]*)"', page))
    assert {link for link in links if not link.startswith("#")} == {"data:,"}


def test_text_cannot_leave_its_element() -> None:
    """Whatever stands in a row, the data holds no character that markup begins with."""
    hostile = "</script><script>alert(1)</script><!--&lt;\u2028"
    rows = make_rows(models=MODELS[:1], trials=1)
    info = make_info(rows, id=hostile, tags=(hostile,))
    page = render_html(rows, info)
    text = page.decode("utf-8")
    assert embedded(page, "data")["run"]["id"] == hostile
    assert text.count("<script") == 3
    assert text.count("</script>") == 3
    start = text.index('id="data">') + len('id="data">')
    data = text[start : text.index("</script>", start)]
    assert set("<>&") & set(data) == set()


def test_the_same_run_gives_the_same_bytes() -> None:
    """The time of writing is not in the file."""
    assert render_html(with_bodies(FEW), make_info(FEW)) == render_html(
        with_bodies(make_rows(models=MODELS[:2], trials=2)), make_info(FEW)
    )


def test_a_run_of_the_original_size_stays_small() -> None:
    """1,450 trials take at most 2 MB without bodies and at most 15 MB with them."""
    rows = seed_sized_rows()
    assert len(rows) == 1450
    assert len(render_html(rows, make_info(rows), bodies="none")) <= 2_000_000
    assert len(render_html(with_bodies(rows), make_info(rows))) <= MAX_FILE_BYTES


def test_the_header_says_what_ran() -> None:
    """Run, command, version, suites and counts are in the data."""
    run = embedded(render_html(FEW, make_info(FEW, done=30)), "data")["run"]
    assert run["id"] == "20260921-kestrel"
    assert run["command"] == "surecall eval --models 'zoo:*' --trials 5"
    assert (run["package"], run["suites"]) == ("0.1.0", {"state": "1"})
    assert (run["units"], run["done"]) == (len(FEW), 30)
    assert run["simulated"] == ["zoo:steady", "zoo:tag-writer"]


def test_a_store_is_read_like_rows(tmp_path: Path) -> None:
    """A report from a store holds what one from rows and bodies holds."""
    with RunStore(tmp_path / "evals.db") as store:
        run_id = store.create(Manifest(units=len(FEW)))
        store.add(run_id, [(row, make_body(row)) for row in FEW[:20]])
        store.add(run_id, [(row, None) for row in FEW[20:]])
        page = write_html(store, store.info(run_id), tmp_path / "out" / "a.html").read_bytes()
    pairs = [(row, make_body(row) if row.index < 20 else None) for row in FEW]
    again = render_html(pairs, make_info(FEW))
    for name in ("texts", "cells", "trials", "calls", "bodies"):
        assert embedded(page, "data")[name] == embedded(again, "data")[name]
    assert embedded(page, "bodies") == embedded(again, "bodies")


def test_writing_replaces_the_file_at_once(tmp_path: Path) -> None:
    """The folder is made, an older file is replaced, and nothing else is left behind."""
    path = tmp_path / "deep" / "report.html"
    write_html(FEW[:1], make_info(FEW[:1]), path)
    written = write_html(FEW, make_info(FEW), str(path))
    assert written == path
    assert len(embedded(path.read_bytes(), "data")["trials"]["index"]) == len(FEW)
    assert [found.name for found in path.parent.iterdir()] == ["report.html"]


def test_an_empty_run_has_a_report() -> None:
    """No trial at all is no reason to fail."""
    data = embedded(render_html([], make_info([])), "data")
    assert data["trials"]["index"] == []


def test_an_unknown_choice_of_bodies_is_refused() -> None:
    """A misspelt choice is answered with the one that was meant."""
    with pytest.raises(ConfigError, match="failed") as caught:
        render_html(FEW, make_info(FEW), bodies="faild")  # pyright: ignore[reportArgumentType]
    assert caught.value.code == "INVALID_OPTION"
