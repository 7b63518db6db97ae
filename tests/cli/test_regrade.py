"""`surecall eval regrade`: what changed is shown, and written as a new run."""

from pathlib import Path

from .harness import STEADY, document, invoke

CASE = """
[[cases]]
id = "hello"
prompt = "Say hello."
[cases.checks]
text_contains = ["{word}"]
"""


def test_an_unchanged_run_is_written_again(own_folder: Path) -> None:
    """The command says that nothing changed, and where the new run is."""
    invoke("eval", *STEADY, "--quiet")
    result = invoke("eval", "regrade")

    assert result.exit_code == 0
    assert "1 trial judged again, no verdict changed; written as run" in result.stdout
    assert document(invoke("eval", "runs", "list", "--json"))["count"] == 2


def test_changes_are_listed_with_their_reasons(own_folder: Path) -> None:
    """As a table for people and as data for programs."""
    Path("cases.toml").write_text(CASE.format(word="Done"))
    invoke("eval", "--models", "zoo:steady", "--suite", "custom:cases.toml", "--tag", "first")
    Path("cases.toml").write_text(CASE.format(word="hello"))
    shown = invoke("eval", "regrade", "@first", "--dry-run")
    found = document(invoke("eval", "regrade", "@first", "--json"))

    assert "✗ failed" in shown.stdout
    assert "1 strict failed now" in shown.stdout
    assert "nothing was written" in shown.stdout
    assert found["type"] == "regraded"
    assert found["changes"][0]["verdict"] == "strict"
    assert found["undecided"] == []
