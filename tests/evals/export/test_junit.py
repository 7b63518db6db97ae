"""JUnit XML: what build servers read, whatever models write."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.trial_rows import row, series
from support.eval_rows import make_rows
from surecall.evals.export import write_junit
from surecall.evals.export.junit import clean_xml
from surecall.evals.records import Reason, TrialRow

from .stored import HOSTILE, keep_rows, no_body

SECONDS = re.compile(r"\d+\.\d{3}")
COUNTS = ("tests", "failures", "errors", "skipped")


def document_of(folder: Path, rows: list[TrialRow]) -> ET.Element:
    """Write some trials, and return the root of what was written once its structure is checked."""
    (path,) = keep_rows(folder, rows, body=no_body).write(write_junit)
    root = ET.fromstring(path.read_bytes())
    check_structure(root)
    return root


def check_structure(root: ET.Element) -> None:
    """Check elements, their order, the attributes that readers need, and that counts agree."""
    assert root.tag == "testsuites"
    assert set(root.attrib) == {"name", "time", *COUNTS}
    assert {suite.tag for suite in root} <= {"testsuite"}
    for suite in root:
        assert set(suite.attrib) == {"name", "time", "timestamp", *COUNTS}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
        assert [child.tag for child in suite] == ["properties"] + ["testcase"] * (len(suite) - 1)
        check_properties(suite[0])
        for case in suite.iter("testcase"):
            assert set(case.attrib) == {"classname", "name", "time"}
            assert SECONDS.fullmatch(case.attrib["time"])
            assert [child.tag for child in case] in (
                ["properties"],
                ["properties", "failure"],
                ["properties", "error"],
            )
            check_properties(case[0])
            for problem in case[1:]:
                assert set(problem.attrib) == {"message", "type"}
                assert (problem.text or "").strip()
        check_counts(suite)
    check_counts(root)
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root.iter("testcase")]
    assert len(set(names)) == len(names)


def check_properties(element: ET.Element) -> None:
    """Check that names are there once and values are there."""
    names = [one.attrib["name"] for one in element]
    assert names
    assert len(set(names)) == len(names)
    assert all(set(one.attrib) == {"name", "value"} and one.tag == "property" for one in element)


def check_counts(element: ET.Element) -> None:
    """Check that the counts of a suite are those of its cases."""
    counted = {
        "tests": sum(1 for _ in element.iter("testcase")),
        "failures": sum(1 for _ in element.iter("failure")),
        "errors": sum(1 for _ in element.iter("error")),
        "skipped": 0,
    }
    assert {name: int(element.attrib[name]) for name in COUNTS} == counted
    assert SECONDS.fullmatch(element.attrib["time"])


def properties_of(element: ET.Element) -> dict[str, str]:
    """Return the properties of a suite or case."""
    return {one.attrib["name"]: one.attrib["value"] for one in element.findall("properties/*")}


def test_a_suite_is_a_model_profile_and_strategy(tmp_path: Path) -> None:
    """A case is a scenario; simulated models are marked."""
    root = document_of(tmp_path, make_rows(trials=1))
    assert len(root) == 18
    assert root[0].attrib["name"] == "zoo:steady / default / raw (simulated)"
    assert root[9].attrib["name"] == "acme/large-2 / default / raw"
    assert [case.attrib["name"] for case in root[0].iter("testcase")][:2] == [
        "happy_path",
        "partial_success_failure",
    ]
    assert properties_of(root[0])["simulated"] == "true"
    assert properties_of(root[9])["simulated"] == "false"


def test_a_case_tells_its_counts_and_intervals(tmp_path: Path) -> None:
    """Both verdicts as k/n, with Wilson intervals; time is that of all trials."""
    rows = series("+" * 36 + "-" * 4, elapsed_ms=250.0)
    (case,) = document_of(tmp_path, rows).iter("testcase")
    assert properties_of(case) == {
        "suite": "state",
        "strict": "36/40",
        "strict_interval": "0.7695..0.9604",
        "original": "36/40",
        "original_interval": "0.7695..0.9604",
        "errors": "0",
        "simulated": "false",
    }
    assert case.attrib["time"] == "10.000"
    assert case[1].tag == "failure"
    assert case[1].attrib == {"message": "4 of 40 trials failed", "type": "DRAFT_WRONG"}
    assert case[1].text == (
        "4 x behaviour DRAFT_WRONG called, as in trial 36: draft is not as asked"
    )


def test_a_case_passes_when_every_trial_is_strictly_right(tmp_path: Path) -> None:
    """The loose verdict is not enough."""
    why = (Reason("READ_CAME_LATER"),)
    rows = [row(scenario="a")]
    rows += [row(scenario="b", index=1, strict_ok=False, strict_reasons=why)]
    good, bad = document_of(tmp_path, rows).iter("testcase")
    assert good.find("failure") is None
    assert bad.find("failure") is not None


@pytest.mark.parametrize(
    ("codes", "tag"),
    [
        pytest.param([{"code": "AUTH"}, {"code": "DNS_FAILURE"}], "error", id="outside"),
        pytest.param([{"code": "INTERNAL_ERROR"}], "error", id="inside surecall"),
        pytest.param([{"code": "MAX_TURNS_REACHED"}], "failure", id="limit"),
        pytest.param([{"code": "AUTH"}, {"reason": "X"}], "failure", id="mixed"),
    ],
)
def test_what_is_not_the_models_doing_is_an_error(
    tmp_path: Path, codes: list[dict[str, Any]], tag: str
) -> None:
    """As soon as one trial failed by behaviour, the case is a failure."""
    rows = [row(ok=False, index=n, trial=n + 1, **facts) for n, facts in enumerate(codes)]
    (case,) = document_of(tmp_path, rows).iter("testcase")
    assert case[1].tag == tag


def test_fallbacks_and_suites_keep_cases_apart(tmp_path: Path) -> None:
    """No two cases have the same name in the same suite."""
    rows = [
        row(index=0, fallback="fallback_on", suite="a"),
        row(index=1, fallback="fallback_off", suite="a"),
        row(index=2, fallback="fallback_off", suite="b"),
    ]
    root = document_of(tmp_path, rows)
    assert [suite.attrib["name"] for suite in root] == [
        "m / default / production / fallback_on",
        "m / default / production / fallback_off",
    ]
    assert [case.attrib["name"] for case in root[1].iter("testcase")] == ["a/s", "b/s"]


def test_only_the_most_common_failures_are_told(tmp_path: Path) -> None:
    """The rest is counted, and long messages are cut."""
    rows = [
        row(index=n, trial=n + 1, ok=False, strict_reasons=(Reason(f"R{n}", "y" * 900),))
        for n in range(8)
    ]
    (case,) = document_of(tmp_path, rows).iter("testcase")
    lines = (case[1].text or "").splitlines()
    assert len(lines) == 6
    assert lines[-1] == "and 3 more kinds"
    assert lines[0].endswith("y" * 400 + "…")


def test_hostile_text_stays_inside_its_element(tmp_path: Path) -> None:
    """Names, codes and messages with every dangerous character are parsed as text."""
    made = row(
        ok=False,
        model=HOSTILE,
        scenario=HOSTILE,
        strict_reasons=(Reason(HOSTILE, HOSTILE),),
        error=HOSTILE,
    )
    root = document_of(tmp_path, [made])
    (case,) = root.iter("testcase")
    shown = HOSTILE.replace("\x00", "\\x00").replace("\x1b", "\\x1b").replace("\ufffe", "\\ufffe")
    assert case.attrib["name"] == shown
    assert case[1].attrib["type"] == shown
    assert "]]></failure><x" in (case[1].text or "")


def test_a_run_without_trials_is_an_empty_document(tmp_path: Path) -> None:
    """A reader finds no suites, and no error."""
    assert len(document_of(tmp_path, [])) == 0


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_text_is_safe_in_attributes_and_between_tags(text: str) -> None:
    """Text without odd characters comes back as it was; other text still parses."""
    clean = clean_xml(text)
    element = ET.fromstring(f'<a b="{clean}">{clean}</a>')
    assert element.attrib["b"] == (element.text or "")
    if all(char.isprintable() or char in "\t\n\r" for char in text):
        assert (element.text or "") == text
