"""The original's files: its names, its rules, and ours beside them."""

import json
from pathlib import Path
from typing import Any

import pytest

from evals.trial_rows import call, row, series
from support.eval_rows import CONTROL, make_rows
from surecall.evals.export import write_json
from surecall.evals.records import TrialBody, TrialRow
from surecall.evals.stats import wilson

from .stored import HOSTILE, Stored, keep_rows, no_body

TOP_FIELDS = [
    "ts",
    "base_url",
    "api_prefix",
    "http_adapter",
    "language_policy_filter",
    "language_policy_matrix",
    "language_policy_strict",
    "language_policies",
    "client_timeout",
    "client_open_timeout",
    "client_read_timeout",
    "fix_empty_final",
    "tool_use_mode",
    "tool_failure_policy",
    "tool_calling_fallback_retry_count",
    "tool_allowlist",
    "request_overrides",
    "sampling_profile_filter",
    "sampling_profiles",
    "sampling_profile_enforce_applicability",
    "llm_options_defaults_overrides",
    "model_filter",
    "selected_models",
    "strategy_filter",
    "strategy_matrix",
    "strategies",
    "content_tag_tool_call_fallback_global_override",
    "best_effort_content_tag_tool_call_fallback_models",
    "fallback_matrix",
    "fallback_profiles",
    "jobs",
    "trials_per_model",
    "scenarios",
    "output_dir",
    "models",
]
ENTRY_FIELDS = [
    "model",
    "model_base",
    "strategy",
    "fallback_profile",
    "sampling_profile",
    "language_policy",
    "language_enabled",
    "content_tag_tool_call_fallback",
    "runs",
    "ok",
    "ok_rate",
    "ms_p50",
    "ms_p95",
    "tool_runs",
    "tool_ok",
    "tool_ok_rate",
    "tool_ms_p50",
    "tool_ms_p95",
    "control_runs",
    "control_ok",
    "control_ok_rate",
    "control_ms_p50",
    "control_ms_p95",
    "scenarios",
    "run_results",
    "failure_samples",
]
RESULT_FIELDS = [
    "model",
    "model_base",
    "strategy",
    "fallback_profile",
    "sampling_profile",
    "scenario",
    "trial",
    "ok",
    "elapsed_ms",
    "error",
    "error_hint",
    "error_status",
    "error_category",
    "report_path",
]
TRIAL_FIELDS = [
    "model",
    "model_base",
    "strategy",
    "fallback_profile",
    "sampling_profile",
    "empty_response_retry",
    "language_policy",
    "llm_options_defaults",
    "content_tag_tool_call_fallback",
    "scenario",
    "trial",
    "ok",
    "elapsed_ms",
    "tool_use_mode",
    "tools_enabled",
    "context_tool_calling",
    "assistant_text",
    "draft",
    "error",
    "error_status",
    "error_body",
    "error_raw_body",
    "error_category",
    "history",
    "trace",
]


def load(path: Path) -> Any:
    """Read a JSON file strictly."""
    return json.loads(path.read_text("utf-8"), parse_constant=pytest.fail)


def summary_of(stored: Stored) -> dict[str, Any]:
    """Write the files and read the summary."""
    stored.write(write_json)
    return load(stored.out / "summary.json")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A run of six models, three strategies and eight scenarios, written once."""
    stored = keep_rows(
        tmp_path_factory.mktemp("sample"),
        make_rows(trials=2),
        axes={"models": "all", "trials": 2, "strategies": "all", "enforce_applicability": True},
        options={"timeout_s": 120.0, "concurrency": 4, "overrides": {"tool_use_mode": "enforced"}},
        contenders={"acme/large-2": {"model": "large-2", "base_url": "http://127.0.0.1:1/v1"}},
        command="surecall eval",
    )
    stored.write(write_json)
    return stored


def test_the_summary_has_every_field_of_the_original(sample: Stored) -> None:
    """No name is missing at the top, in an entry, or in a result."""
    summary = load(sample.out / "summary.json")
    entry = summary["models"][0]
    assert [name for name in TOP_FIELDS if name not in summary] == []
    assert [name for name in ENTRY_FIELDS if name not in entry] == []
    assert [name for name in RESULT_FIELDS if name not in entry["run_results"][0]] == []


def test_the_head_says_what_was_asked_for(sample: Stored) -> None:
    """Filters, options and times come from the run, under the original's names."""
    summary = load(sample.out / "summary.json")
    assert summary["ts"] == "2026-09-21T14:13:20Z"
    assert summary["client_timeout"] == 120.0
    assert summary["jobs"] == 4
    assert summary["tool_use_mode"] == "enforced"
    assert summary["fix_empty_final"] is None
    assert summary["model_filter"] == "all"
    assert summary["trials_per_model"] == 2
    assert summary["strategies"] == ["raw", "baseline", "production"]
    assert summary["strategy_matrix"] is True
    assert summary["fallback_matrix"] is False
    assert summary["sampling_profile_enforce_applicability"] is True
    assert summary["simulated_models"] == ["zoo:steady", "zoo:tag-writer", "zoo:loose-arguments"]
    assert summary["run"] == sample.run_id


def test_entries_come_in_the_order_of_the_matrix(sample: Stored) -> None:
    """One for each model and strategy, with the trials of each in order."""
    models = load(sample.out / "summary.json")["models"]
    assert [entry["model"] for entry in models[:4]] == [
        "zoo:steady:raw",
        "zoo:steady:baseline",
        "zoo:steady:production",
        "zoo:tag-writer:raw",
    ]
    assert len(models) == 18
    for entry in models:
        places = [result["index"] for result in entry["run_results"]]
        assert places == sorted(places)
        assert len(places) == entry["runs"] == 16


def test_what_a_name_stands_for_is_told(sample: Stored) -> None:
    """The base is what the provider calls the model."""
    models = load(sample.out / "summary.json")["models"]
    bases = {entry["model"]: entry["model_base"] for entry in models}
    assert bases["acme/large-2:raw"] == "large-2"
    assert bases["zoo:steady:raw"] == "zoo:steady"


def test_counts_agree_with_the_rows(sample: Stored) -> None:
    """Tools and controls are counted apart, and together they are all."""
    rows = [one for one in make_rows(trials=2) if one.cell.model == "acme/small-2"]
    entry = next(
        entry
        for entry in load(sample.out / "summary.json")["models"]
        if entry["model"] == "acme/small-2:baseline"
    )
    mine = [one for one in rows if one.cell.strategy == "baseline"]
    tools = [one for one in mine if not one.control]
    assert entry["ok"] == sum(one.original_ok for one in mine)
    assert entry["ok_rate"] == entry["ok"] / 16
    assert (entry["tool_runs"], entry["control_runs"]) == (14, 2)
    assert entry["tool_ok"] == sum(one.original_ok for one in tools)
    assert entry["tool_strict_ok"] == sum(one.strict_ok for one in tools)
    interval = wilson(entry["tool_strict_ok"], 14)
    assert entry["tool_strict_ok_interval"] == [interval.low, interval.high]
    assert entry["simulated"] is False


def test_endpoint_errors_are_in_no_strict_rate(tmp_path: Path) -> None:
    """The original counts them as runs that are not ok, and its own rate stays as it was."""
    rows = [
        row(index=0),
        row(index=1, trial=2, ok=False),
        row(index=2, trial=3, ok=False, outcome="error"),
    ]
    stored = keep_rows(tmp_path, rows)
    stored.write(write_json)
    (entry,) = load(stored.out / "summary.json")["models"]
    assert (entry["runs"], entry["errors"], entry["strict_ok_rate"]) == (3, 1, 1 / 2)
    assert entry["strict_ok_interval"] == [wilson(1, 2).low, wilson(1, 2).high]
    assert (entry["ok_rate"], entry["ok_interval"]) == (
        1 / 3,
        [wilson(1, 3).low, wilson(1, 3).high],
    )


def test_samples_are_the_first_three_failures(tmp_path: Path) -> None:
    """Those that fail only by the strict verdict are none."""
    rows = series("+-+---", elapsed_ms=1.0)
    rows.append(row(index=9, trial=9, original_ok=True, strict_ok=False))
    (entry,) = summary_of(keep_rows(tmp_path, rows))["models"]
    assert [sample["trial"] for sample in entry["failure_samples"]] == [2, 4, 5]


@pytest.mark.parametrize(
    ("times", "p50", "p95"),
    [
        pytest.param([5.0], 5.0, 5.0, id="one"),
        pytest.param([float(n) for n in range(10)], 5.0, 9.0, id="ten: p95 is the maximum"),
        pytest.param([float(n) for n in range(40)], 20.0, 38.0, id="forty"),
    ],
)
def test_percentiles_take_the_place_the_original_takes(
    tmp_path: Path, times: list[float], p50: float, p95: float
) -> None:
    """Sorted, place floor(n * p), nothing in between."""
    rows = [row(index=n, trial=n + 1, elapsed_ms=time) for n, time in enumerate(reversed(times))]
    (entry,) = summary_of(keep_rows(tmp_path, rows))["models"]
    assert (entry["ms_p50"], entry["ms_p95"]) == (p50, p95)
    assert (entry["control_ms_p50"], entry["control_ok_rate"]) == (0, None)
    assert entry["control_ok_interval"] is None


def test_scenarios_are_counted_with_their_errors(tmp_path: Path) -> None:
    """First met, first listed; a failure without a category is unknown."""
    rows = [
        row(scenario="b", index=0, ok=False, category="TIMEOUT"),
        row(scenario="a", index=1, strategy="raw"),
        row(scenario="b", index=2, ok=False, strategy="raw"),
        row(scenario="b", index=3, trial=2, original_ok=True, strict_ok=False, simulated=True),
        row(scenario=CONTROL, index=4, control=True),
    ]
    stored = keep_rows(tmp_path, rows)
    stored.write(write_json)
    by_scenario = load(stored.out / "summary_by_scenario.json")
    assert list(by_scenario) == ["b", "a", CONTROL]
    interval = wilson(1, 3)
    assert by_scenario["b"] == {
        "runs": 3,
        "ok": 1,
        "errors": {"TIMEOUT": 1, "unknown": 1},
        "ok_interval": [interval.low, interval.high],
        "strict_ok": 0,
        "strict_ok_interval": [wilson(0, 3).low, wilson(0, 3).high],
        "control": False,
        "simulated_runs": 1,
    }
    assert by_scenario[CONTROL]["control"] is True
    by_strategy = load(stored.out / "summary_by_scenario_and_strategy.json")
    assert list(by_strategy) == ["production", "raw"]
    assert by_strategy["raw"]["b"]["errors"] == {"unknown": 1}
    assert by_strategy["production"]["b"]["runs"] == 2


def test_every_result_leads_to_its_file(sample: Stored) -> None:
    """All fields of the original are there, and the trial is the one that was meant."""
    summary = load(sample.out / "summary.json")
    results = [result for entry in summary["models"] for result in entry["run_results"]]
    paths = {result["report_path"] for result in results}
    assert len(paths) == len(results) == 288
    on_disk = {f"runs/{path.name}" for path in (sample.out / "runs").iterdir()}
    assert paths == on_disk
    for result in results[::40]:
        trial = load(sample.out / result["report_path"])
        assert [name for name in TRIAL_FIELDS if name not in trial] == []
        shared = ("model", "scenario", "trial", "ok", "strict_ok", "error", "elapsed_ms", "index")
        assert {name: trial[name] for name in shared} == {name: result[name] for name in shared}


def test_a_trial_holds_its_conversation(tmp_path: Path) -> None:
    """History is what was asked, what was answered, and what the tools said."""

    def body(one: TrialRow) -> TrialBody:
        turn = {
            "turn": 0,
            "raw": {"role": "assistant", "tool_calls": [{"id": "c1"}]},
            "results": [{"id": "c1", "name": "state_get", "ok": True, "text": '{"ok":true}'}],
        }
        return TrialBody(
            index=one.index,
            request={
                "system": "Be good.",
                "messages": [{"role": "user", "content": "go"}],
                "tools": [{"name": "state_get"}],
            },
            config={
                "options": {
                    "tool_use_mode": "enforced",
                    "text_formats": "all",
                    "request_defaults": {"temperature": 0.3},
                }
            },
            transcript=(turn, {"turn": 1, "raw": {"role": "assistant", "content": "Done."}}),
            state={"draft": {"foo": "bar"}},
        )

    stored = keep_rows(tmp_path, [row(calls=(call(rules=("replace_quotes",)),))], body=body)
    summary = summary_of(stored)
    trial = load(stored.out / "runs" / "m__s__trial_01.json")
    assert trial["history"] == [
        {"role": "system", "content": "Be good."},
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [{"id": "c1"}]},
        {"role": "tool", "tool_call_id": "c1", "name": "state_get", "content": '{"ok":true}'},
        {"role": "assistant", "content": "Done."},
    ]
    assert trial["draft"] == {"foo": "bar"}
    assert trial["tool_use_mode"] == "enforced"
    assert trial["tools_enabled"] is True
    assert trial["llm_options_defaults"] == {"temperature": 0.3}
    assert trial["content_tag_tool_call_fallback"] is True
    assert trial["calls"][0]["rules"] == ["replace_quotes"]
    assert summary["best_effort_content_tag_tool_call_fallback_models"] == ["m"]
    assert summary["models"][0]["content_tag_tool_call_fallback"] is True


def test_a_failure_is_worded_as_the_original_words_it(tmp_path: Path) -> None:
    """Category first, then the reasons; an error that was raised speaks for itself."""
    rows = [
        row(index=0, trial=1, ok=False, category="NO_TOOL_CALLS"),
        row(index=1, trial=2, ok=False, category="AUTH", error="AUTH: no.", error_status=401),
        row(index=2, trial=3),
    ]
    (entry,) = summary_of(keep_rows(tmp_path, rows))["models"]
    told = [(one["error"], one["error_status"]) for one in entry["run_results"]]
    assert told == [
        ("NO_TOOL_CALLS: draft is not as asked", None),
        ("AUTH: no.", 401),
        (None, None),
    ]


def test_trials_without_a_body_are_written_all_the_same(tmp_path: Path) -> None:
    """What nobody kept is null or empty, not made up."""
    stored = keep_rows(tmp_path, [row()], body=no_body)
    (entry,) = summary_of(stored)["models"]
    trial = load(stored.out / entry["run_results"][0]["report_path"])
    assert entry["content_tag_tool_call_fallback"] is None
    assert (trial["history"], trial["trace"], trial["draft"]) == ([], [], None)
    assert trial["tools_enabled"] is False


def test_trials_of_a_task_need_not_stand_together(tmp_path: Path) -> None:
    """Whatever the order of the matrix, every trial is under its own entry."""
    rows = [row(model="ab"[n % 2], index=n, trial=n + 1) for n in range(9)]
    models = summary_of(keep_rows(tmp_path, rows))["models"]
    places = {entry["model"]: [one["index"] for one in entry["run_results"]] for entry in models}
    assert places == {"a": [0, 2, 4, 6, 8], "b": [1, 3, 5, 7]}


def test_a_run_without_trials_has_a_summary(tmp_path: Path) -> None:
    """Nothing done yet is no error."""
    stored = keep_rows(tmp_path, [], units=5, status="interrupted")
    summary = summary_of(stored)
    assert (summary["models"], summary["done"], summary["units"]) == ([], 0, 5)
    assert load(stored.out / "summary_by_scenario.json") == {}
    assert load(stored.out / "figures.json")["rows"] == 0


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """Whatever a model is called or says, the files are JSON and hold it."""
    rows = [row(model=HOSTILE, scenario=HOSTILE, text=HOSTILE, ok=False, error=HOSTILE)]
    stored = keep_rows(tmp_path, rows, body=no_body)
    (entry,) = summary_of(stored)["models"]
    assert entry["model"] == HOSTILE
    trial = load(stored.out / entry["run_results"][0]["report_path"])
    assert (trial["assistant_text"], trial["error"]) == (HOSTILE, HOSTILE)


def test_figures_are_those_of_the_report(sample: Stored) -> None:
    """All rates with counts and intervals, by axis and by cell."""
    figures = load(sample.out / "figures.json")
    assert figures["rows"] == 288
    assert figures["overall"]["n"] == 252
    assert [group["value"] for group in figures["axes"]["strategy"]] == [
        "raw",
        "baseline",
        "production",
    ]


def test_trials_of_a_run_that_was_written_here_before_are_gone(tmp_path: Path) -> None:
    """A folder holds one run; files that are no trials stay."""
    for place in ("first", "second"):
        (tmp_path / place).mkdir()
    out = tmp_path / "out"
    first = keep_rows(tmp_path / "first", series("+++"))
    write_json(first.store, first.run_id, out)
    (out / "runs" / "notes.json").write_text("{}")
    second = keep_rows(tmp_path / "second", series("+"))
    write_json(second.store, second.run_id, out)
    assert {path.name for path in (out / "runs").iterdir()} == {
        "m__s__trial_01.json",
        "notes.json",
    }
