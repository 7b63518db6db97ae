"""Cases of a user's own file, played through the real loop."""

import asyncio
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from evals.scenarios.playing import Played, perfect, play
from surecall.base.errors import ConfigError
from surecall.evals.cases import Case, Suite
from surecall.evals.models import find_contenders, open_transport
from surecall.evals.records import Cell, Unit
from surecall.evals.strategies import settle
from surecall.evals.suites import load_suite
from surecall.evals.suites.custom import CustomCase, CustomSuite
from surecall.evals.trial import run_trial
from surecall.models.config import Config
from surecall.models.profiles import Catalog
from surecall.models.transport import assistant, tool_call

EXAMPLE = Path(__file__).parents[3] / "examples" / "eval_cases.toml"

WEATHER = """
[[tools]]
name = "weather"
effect = "read"
parameters = { type = "object", required = ["city"], properties = { city = { type = "string" }, \
units = { type = "string" } }, additionalProperties = false }

[[tools.results]]
when = { city = "Oslo" }
result = { celsius = 4 }

[[tools.results]]
when = { city = "Rome" }
error = { code = "NO_STATION", message = "there is no station.", hint = "Try Oslo." }
"""


def write(folder: Path, text: str, name: str = "cases.toml") -> Path:
    """Write a file."""
    place = folder / name
    place.write_text(dedent(text), "utf-8")
    return place


def only_case(folder: Path, text: str) -> CustomCase:
    """Return the one case of a file that has the tool `weather`."""
    suite = CustomSuite(write(folder, WEATHER + dedent(text)))
    (case,) = [case for scenario in suite.scenarios() for case in suite.cases(scenario)]
    return case


def ask(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a reply with these calls."""
    made = (
        tool_call(name, arguments, f"{name}_{number}_{arguments}")
        for number, (name, arguments) in enumerate(calls)
    )
    return assistant(None, *made)


def data_of(played: Played) -> list[dict[str, Any]]:
    """Return what the tools answered."""
    turns = played.attempt.trace.turns
    return [result.envelope.data for turn in turns for result in turn.results]


# the example


def test_the_example_is_a_suite() -> None:
    """It is found by its file, and says what it is called and how often it wants to be tried."""
    suite = load_suite(f"custom:{EXAMPLE}")
    assert isinstance(suite, CustomSuite)
    as_suite: Suite = suite
    assert as_suite.name == "custom:travel"
    assert tuple(as_suite.scenarios()) == ("search", "booking", "restraint")
    assert [case.id for case in as_suite.cases("booking")] == ["search-and-book", "full-train"]
    assert suite.trials == 3
    assert len(as_suite.version) == 12


async def test_a_perfect_model_passes_the_example() -> None:
    """What `ideal` says passes both verdicts of every case."""
    suite = CustomSuite(EXAMPLE)
    for scenario in suite.scenarios():
        for case in suite.cases(scenario):
            played = await play(case, perfect(case))
            assert played.grades.original.ok, (case.id, played.grades.original)
            assert played.grades.strict.ok, (case.id, played.grades.strict)
            assert all(played.grades.exact), case.id


async def test_a_simulated_model_can_try_the_example() -> None:
    """A steady model of the zoo passes through the same door as an experiment uses."""
    (contender,) = find_contenders("zoo:steady", config=Config())
    settled = settle("production", contender, catalog=Catalog.builtin())
    suite = CustomSuite(EXAMPLE)
    case: Case = suite.cases("booking")[0]
    cell = Cell(model=contender.label, suite=suite.name, scenario="booking")
    unit = Unit(index=0, cell=cell, case=case.id, seed=5)
    row, body = await run_trial(unit, case, contender, open_transport, settled)
    assert (row.original_ok, row.strict_ok, row.error, row.text) == (True, True, None, "B-17")
    assert [call["name"] for call in body.state["calls"]] == ["find_trains", "book_seat"]


async def test_the_example_sees_a_wrong_day() -> None:
    """A wrong argument fails the strict verdict only, and is told."""
    case = CustomSuite(EXAMPLE).cases("search")[0]
    call = ("find_trains", {"from": "Oslo", "to": "Bergen", "day": "2026-05-03"})
    played = await play(case, [ask(call), "It leaves at 08:25."])
    assert played.grades.original.ok
    assert played.strict_codes == ["CALL_MISSING", "CALL_UNEXPECTED"]
    assert "2026-05-02" in played.grades.strict.reasons[0].message
    assert "2026-05-03" in played.grades.strict.reasons[1].message
    assert played.grades.exact == (False,)


# what a case says


async def test_prompt_system_options_and_tools_are_what_the_file_says(tmp_path: Path) -> None:
    """A case may change what the file says for all, and offer fewer tools."""
    text = (
        """
        system = "For all."
        options = { max_turns = 9, tool_use_mode = "enforced" }
        """
        + WEATHER.replace("\n", "\n        ")
        + """
        [[tools]]
        name = "note"

        [[cases]]
        id = "a"
        prompt = "Hi."
        calls = []

        [[cases]]
        id = "b"
        messages = [{ role = "user", content = "Hi." }, { role = "assistant", content = "Ho." }]
        system = ""
        options = { max_turns = 2 }
        tools = ["note"]
        control = true
        calls = []
        """
    )
    first, second = CustomSuite(write(tmp_path, text)).cases("cases")
    prepared = first.prepare(1)
    assert (prepared.system, prepared.options["max_turns"]) == ("For all.", 9)
    assert [tool.name for tool in prepared.tools] == ["weather", "note"]
    prepared = second.prepare(1)
    assert (prepared.system, second.control) == ("", True)
    assert prepared.options == {"max_turns": 2, "tool_use_mode": "enforced"}
    assert [tool.name for tool in prepared.tools] == ["note"]
    assert [message.text for message in prepared.messages] == ["Hi.", "Ho."]


async def test_tools_answer_what_the_file_says(tmp_path: Path) -> None:
    """The first result that fits is the answer; one that fits nothing is an error."""
    case = only_case(tmp_path, '[[cases]]\nid = "a"\nprompt = "?"\nabsent = ["weather"]\n')
    cities = ("Oslo", "Rome", "Bonn")
    script = [ask(*(("weather", {"city": city}) for city in cities)), "Done."]
    played = await play(case, script)
    results = played.attempt.trace.turns[0].results
    assert results[0].envelope.data == {"celsius": 4}
    (error,) = results[1].envelope.errors
    assert (error.code, error.message, error.hint) == (
        "NO_STATION",
        "there is no station.",
        "Try Oslo.",
    )
    assert results[2].envelope.error_codes == ("ARGUMENT_ERROR",)


async def test_results_of_a_case_come_first(tmp_path: Path) -> None:
    """What a tool answers in one case wins over what it answers in all."""
    text = """
        [[cases]]
        id = "a"
        prompt = "?"
        calls = []
        extra_calls = "allow"

        [[cases.results]]
        tool = "weather"
        when = { units = "f" }
        result = "cold"
        """
    case = only_case(tmp_path, text)
    calls = [("weather", {"city": "Oslo", "units": "f"}), ("weather", {"city": "Oslo"})]
    played = await play(case, [ask(*calls), "Done."])
    assert data_of(played) == [{"value": "cold"}, {"celsius": 4}]


async def test_a_tool_without_results_says_that_it_is_done(tmp_path: Path) -> None:
    """The least that a tool can be is a name."""
    text = '[[tools]]\nname = "ping"\n[[cases]]\nid = "a"\nprompt = "?"\n[[cases.calls]]\n'
    (case,) = CustomSuite(write(tmp_path, text + 'tool = "ping"\n')).cases("cases")
    played = await play(case, [ask(("ping", {})), "Done."])
    assert data_of(played) == [{"value": "Done."}]
    assert played.grades.strict.ok


async def test_a_forbidden_tool_fails_both_verdicts(tmp_path: Path) -> None:
    """It need not even have run."""
    case = only_case(tmp_path, '[[cases]]\nid = "a"\nprompt = "?"\nabsent = ["weather"]\n')
    played = await play(case, [ask(("weather", {"town": "Oslo"})), "Done."])
    assert played.original_codes == played.strict_codes == ["CALL_FORBIDDEN"]
    assert played.grades.exact == (None,)


async def test_a_run_without_an_answer_fails_both_verdicts(tmp_path: Path) -> None:
    """What ended the run is told, and the text of no answer is not judged."""
    text = """
        [[cases]]
        id = "a"
        prompt = "?"
        options = { tool_use_mode = "enforced" }
        checks = { text_equals = "Yes." }

        [[cases.calls]]
        tool = "weather"
        arguments = { city = "Oslo" }
        """
    played = await play(only_case(tmp_path, text), ["Yes."])
    assert played.strict_codes == ["RUN_FAILED", "CALL_MISSING"]
    assert played.original_codes == ["RUN_FAILED", "CALL_MISSING"]
    assert "NO_TOOL_CALLS" in played.grades.strict.reasons[0].message


async def test_a_call_that_was_refused_and_corrected_is_no_extra_call(tmp_path: Path) -> None:
    """Only calls that ran are compared with the expected ones."""
    text = """
        [[cases]]
        id = "a"
        prompt = "?"

        [[cases.calls]]
        tool = "weather"
        arguments = { city = "Oslo" }
        """
    script = [ask(("weather", {"town": "Oslo"})), ask(("weather", {"city": "Oslo"})), "Done."]
    played = await play(only_case(tmp_path, text), script)
    assert played.grades.strict.ok
    assert played.grades.exact == (False, True)


# Python beside the cases

NOTES = '''
    from surecall import tool

    kept = []


    @tool
    def note(text: str) -> int:
        """Keep a note."""
        kept.append(text)
        return len(kept)


    def is_kept(run):
        """Tell whether the right note was kept."""
        return kept == ["tea"] and run.calls[0].data == {"value": 1}


    def says_why(run):
        """Give reasons."""
        return [f"kept {item}" for item in kept]


    def breaks(run):
        """Fail."""
        raise KeyError("nothing")
'''


def noting(folder: Path, check: str) -> CustomCase:
    """Return a case whose tool and check are in Python."""
    write(folder, NOTES, "notes.py")
    text = f'tools_from = "notes.py"\n[[cases]]\nid = "a"\nprompt = "?"\nchecks.state = "{check}"\n'
    (case,) = CustomSuite(write(folder, text)).cases("cases")
    return case


@pytest.mark.parametrize("check", ["is_kept", "notes.py:is_kept"])
async def test_a_check_in_python_sees_what_the_tools_did(check: str, tmp_path: Path) -> None:
    """The check looks at the same values that the tools of this trial changed."""
    case = noting(tmp_path, check)
    good = await play(case, [ask(("note", {"text": "tea"})), "Done."])
    bad = await play(case, [ask(("note", {"text": "salt"})), "Done."])
    assert good.grades.strict.ok
    assert bad.original_codes == bad.strict_codes == ["STATE_WRONG"]


async def test_trials_do_not_see_each_other(tmp_path: Path) -> None:
    """Each trial runs the file anew, also while others are under way."""
    case = noting(tmp_path, "is_kept")
    script = [ask(("note", {"text": "tea"})), "Done."]
    played = await asyncio.gather(*(play(case, script) for _ in range(8)))
    assert [each.grades.strict.ok for each in played] == [True] * 8


async def test_a_check_may_say_why(tmp_path: Path) -> None:
    """Texts that it returns are the reasons; none means yes."""
    case = noting(tmp_path, "says_why")
    played = await play(case, [ask(("note", {"text": "salt"})), "Done."])
    assert [item.message for item in played.grades.strict.reasons] == ["kept salt"]
    assert (await play(case, ["Done."])).grades.strict.ok


async def test_a_check_that_raises_is_a_no(tmp_path: Path) -> None:
    """The exception is told and nothing else breaks."""
    played = await play(noting(tmp_path, "breaks"), ["Done."])
    assert played.strict_codes == ["CHECK_BROKE"]
    assert played.grades.strict.reasons[0].message == "KeyError: 'nothing'"


async def test_cases_can_be_written_in_python(tmp_path: Path) -> None:
    """A Python file has the same keys in dicts, its own tools, and functions as checks."""
    text = dedent(NOTES) + dedent("""
        system = "Be brief."
        trials = 2
        cases = [
            {
                "id": f"note-{word}",
                "prompt": f"Note {word}.",
                "calls": [{"tool": "note", "arguments": {"text": word}}],
                "checks": {"state": is_kept if word == "tea" else None},
            }
            for word in ("tea", "salt")
        ]
        """)
    suite = CustomSuite(write(tmp_path, text, "own.py"))
    assert (suite.name, suite.trials) == ("custom:own", 2)
    for case in suite.cases("cases"):
        assert (await play(case, perfect(case))).grades.strict.ok
    (first, _) = suite.cases("cases")
    wrong = await play(first, [ask(("note", {"text": "milk"})), "Done."])
    assert wrong.strict_codes == ["STATE_WRONG", "CALL_MISSING", "CALL_UNEXPECTED"]


def test_the_version_follows_every_file(tmp_path: Path) -> None:
    """A change in the cases or in the Python beside them is another version."""
    write(tmp_path, NOTES, "notes.py")
    case = '[[cases]]\nid = "a"\nprompt = "?"\nchecks.state = "is_kept"\n'
    place = write(tmp_path, f'tools_from = "notes.py"\n{case}')
    versions = [CustomSuite(place).version]
    write(tmp_path, NOTES + "\n    changed = True\n", "notes.py")
    versions.append(CustomSuite(place).version)
    write(tmp_path, f'tools_from = "notes.py"\nsystem = "x"\n{case}')
    versions.append(CustomSuite(place).version)
    assert len(set(versions)) == 3


def test_an_unknown_scenario_is_refused_with_the_closest() -> None:
    """A misspelt scenario is no empty experiment."""
    with pytest.raises(ConfigError, match="Did you mean 'booking'"):
        CustomSuite(EXAMPLE).cases("bookings")
