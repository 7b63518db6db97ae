"""`surecall eval runs trend` and `surecall eval runs case`."""

from pathlib import Path

from .harness import STEADY, document, invoke


def test_a_trend_has_a_line_for_each_run(own_folder: Path) -> None:
    """Marked as simulated, as everywhere."""
    for _ in range(2):
        invoke("eval", *STEADY, "--new", "--quiet")
    lines = invoke("eval", "runs", "trend").stdout.splitlines()
    found = document(invoke("eval", "runs", "trend", "@latest~1", "--json"))

    assert len([line for line in lines if "1/1" in line]) == 2
    assert "simulated" in "".join(lines)
    assert [point["strict"]["k"] for point in found["points"]] == [1, 1]
    assert found["points"][0]["task"]["model"] == "zoo:steady"


def test_replies_to_a_case_are_listed(own_folder: Path) -> None:
    """A row for each trial, with calls and answer."""
    invoke("eval", *STEADY, "--strategies", "raw,production", "--quiet")
    shown = invoke("eval", "runs", "case", "@latest", "happy_path")
    found = document(invoke("eval", "runs", "case", "@latest", "happy_path", "--json"))

    assert shown.stdout.count("✓") == 2
    assert "Done." in shown.stdout
    assert [reply["task"]["strategy"] for reply in found["replies"]] == ["raw", "production"]
    assert found["replies"][0]["calls"]


def test_the_cost_is_beside_the_rate_where_a_price_is_known(own_folder: Path) -> None:
    """Without a price there is no column for it."""
    plain = invoke("eval", *STEADY)
    priced = invoke("eval", *STEADY, "--price", "zoo:steady=1/2", "--new")

    assert "cost" not in plain.stdout
    assert "cost" in priced.stdout
    assert "$" in priced.stdout


def test_cases_are_chosen_on_the_command_line(own_folder: Path) -> None:
    """The plan says how many trials are left."""
    flags = ("eval", "--models", "zoo:steady", "--suite", "one_tool", "--dry-run", "--json")
    assert document(invoke(*flags, "--sample", "7"))["trials"] == 7
    assert document(invoke(*flags, "--limit", "3", "--shuffle"))["trials"] == 3
    assert invoke(*flags, "--cases", "nothing").exit_code == 5
