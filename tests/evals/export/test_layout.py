"""How trials are named."""

from evals.trial_rows import row
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.records import Task, TrialRow
from surecall.evals.run_source import FileNames, scan_layout


def names_of(*rows: TrialRow) -> list[str]:
    """Return the file names of trials, in order."""
    names = FileNames(scan_layout(tally_rows(rows)))
    return [names.name(trial) for trial in rows]


def test_a_label_is_the_model_alone_when_nothing_else_differs() -> None:
    """One profile, strategy and fallback are not worth naming."""
    layout = scan_layout(tally_rows([row(model="a/b"), row(model="c")]))
    assert [layout.label(task) for task in layout.tasks] == ["a/b", "c"]


def test_a_label_names_every_dimension_that_has_several_values() -> None:
    """Profile, strategy and fallback follow the model, in this order."""
    rows = [
        row(model="m", profile="p1", strategy="raw", fallback="fallback_on"),
        row(model="m", profile="p2", strategy="raw", fallback="fallback_off"),
    ]
    layout = scan_layout(tally_rows(rows))
    assert [layout.label(task) for task in layout.tasks] == [
        "m:p1:fallback_on",
        "m:p2:fallback_off",
    ]
    layout = scan_layout(tally_rows([row(strategy="raw"), row(strategy="production")]))
    assert layout.label(Task("m", "default", "raw", "best_effort")) == "m:raw"


def test_a_scenario_of_two_suites_is_named_with_its_suite() -> None:
    """A name that one suite has stays as it is."""
    rows = [row(suite="a", scenario="x"), row(suite="b", scenario="x"), row(suite="b")]
    assert scan_layout(tally_rows(rows)).scenarios == ("a/x", "b/x", "s")


def test_file_names_join_label_scenario_and_trial() -> None:
    """Runs of other characters become two underscores."""
    first = row(model="acme/big:v2 (beta)", scenario="happy_path", trial=3)
    assert names_of(first) == ["acme__big__v2__beta____happy_path__trial_03.json"]


def test_a_case_stands_in_the_name() -> None:
    """Scenarios with several cases have a file for each."""
    assert names_of(row(case="simple_7")) == ["m__s__simple_7__trial_01.json"]


def test_no_name_is_used_twice() -> None:
    """Labels that differ only in odd characters or in case get the place of the trial."""
    found = names_of(
        row(model="a/b", index=1), row(model="a:b", index=2), row(model="A/B", index=3)
    )
    assert found == [
        "a__b__s__trial_01.json",
        "a__b__s__2__trial_01.json",
        "A__B__s__3__trial_01.json",
    ]


def test_long_names_are_cut_and_told_apart() -> None:
    """No disk takes a name of a thousand characters."""
    found = names_of(row(model="x" * 1000, index=1), row(model="x" * 1001, index=2))
    assert found == [f"{'x' * 200}__{index}__trial_01.json" for index in (1, 2)]


def test_a_path_cannot_leave_the_folder() -> None:
    """Separators never stay in a name."""
    (name,) = names_of(row(model="../../etc/passwd", scenario="..\\x"))
    assert "/" not in name
    assert "\\" not in name
