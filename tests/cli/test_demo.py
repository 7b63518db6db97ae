"""`surecall demo`: no key, no network, and the same every time."""

import re
import socket
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree

import pytest

from .harness import documents, invoke


def refuse(*_: Any, **__: Any) -> NoReturn:
    """Stand for a network that must not be used."""
    raise AssertionError("the demo opened a connection")


def test_the_demo_shows_what_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken shapes, changes, refusals and the empty answer are there, without a connection."""
    monkeypatch.setattr(socket.socket, "connect", refuse)
    result = invoke("demo")
    assert result.exit_code == 0, result.stderr
    for words in (
        "is a script",
        "CALLS_AS_OBJECT, ARGUMENTS_AS_OBJECT, ID_NOT_USABLE",
        "ARGUMENTS_INVALID",
        "ARGUMENTS_TRUNCATED",
        "the answer is empty; the model is asked again",
        "7 replies, 5 of them broken · 5 changes, each with a receipt · 2 calls refused",
        "the money was refunded once",
        "surecall docs ARGUMENTS_TRUNCATED",
    ):
        assert words in result.stdout


def test_the_demo_shows_every_change_with_its_call() -> None:
    """What was changed stands between what arrived and the call that came of it."""
    lines = [line.strip() for line in invoke("demo").stdout.splitlines()]
    start = lines.index("turn 1   The arguments are JSON inside JSON inside a code fence")
    words = [re.split(r"\s{2,}", line)[0] for line in lines[start + 1 : start + 6]]
    assert words == ["← arrived", "~ changed", "~ changed", "→ call", "✓ ok"]
    assert (
        '~ changed   decode_nested_text 8:29  "{\\"item\\":\\"lamp\\"}" → {"item":"lamp"}' in lines
    )


@pytest.mark.parametrize("columns", ["60", "80", "100", "200"])
def test_the_demo_fits_the_terminal(columns: str) -> None:
    """No line is longer than the terminal, nor longer than reads well."""
    lines = invoke("demo", COLUMNS=columns).stdout.splitlines()
    assert max(map(len, lines)) <= min(int(columns), 100)


def test_the_demo_as_json() -> None:
    """The events and the result are documents; the refund ran once."""
    *events, last = documents(invoke("demo", "--json"))
    assert events[0]["type"] == "run_start"
    assert (last["type"], last["scripted"], last["refunds"]) == ("result", True, 1)
    codes = [error["code"] for call in last["calls"] for error in call["errors"]]
    assert codes == ["ARGUMENTS_INVALID", "ARGUMENTS_TRUNCATED"]
    assert last["text"].startswith("Order A-17 is refunded")


def test_the_picture_is_one_file_that_loads_nothing(tmp_path: Path) -> None:
    """The SVG is well formed, holds the text, and names no address to load from."""
    path = tmp_path / "demo.svg"
    assert invoke("demo", "--svg", str(path)).exit_code == 0
    svg = path.read_text("utf-8")
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "ARGUMENTS_TRUNCATED" in svg
    assert "url(http" not in svg
    assert 'url("http' not in svg
    assert "@font-face" not in svg


@pytest.mark.parametrize("flag", ["--svg", "--trace"])
def test_a_place_that_cannot_be_written_is_told(flag: str, tmp_path: Path) -> None:
    """It is a mistake in the command, and no error inside surecall."""
    place = tmp_path / "none" / "file"
    result = invoke("demo", flag, str(place))
    assert result.exit_code == 4
    assert f"INVALID_OPTION  {place} cannot be written: No such file or directory." in result.stderr
