"""Replies of scripted models, and how one of them is played."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Any, NamedTuple

from evals.scenarios.playing import Played, patch, play, read
from evals.suites.bfcl_wheel import write_wheel
from surecall.evals.cases import Case
from surecall.evals.scenarios import StateSuite
from surecall.evals.suites.agents import AgentsSuite
from surecall.evals.suites.bfcl import BfclSuite
from surecall.evals.suites.custom import CustomSuite
from surecall.evals.suites.directives import DirectivesSuite
from surecall.evals.suites.errands import ERRANDS, Errand, ErrandsSuite
from surecall.evals.suites.one_tool import OneToolSuite
from surecall.models.transport import assistant, tool_call

__all__ = ["both", "call", "patch", "read"]

SEED = 7
LONG = "x" * 400
COMMIT = {"request_id": "r9", "proposal_id": "p1", "user_confirmed": True}
FILE = Path(__file__).with_name("shop.toml")


class Model(NamedTuple):
    """A scripted model: where it plays, what it does in one line, and its replies."""

    suite: str
    scenario: str
    about: str
    replies: Callable[[], Sequence[Any]]
    options: Mapping[str, Any] = MappingProxyType({})


def find_case(model: Model) -> Case:
    """Return the first case of the scenario that a model plays."""
    suites = {
        "state": StateSuite,
        "one_tool": OneToolSuite,
        "agents": AgentsSuite,
        "errands": ErrandsSuite,
        "directives": DirectivesSuite,
        "bfcl": lambda: BfclSuite(_wheel()),
        "custom": lambda: CustomSuite(FILE),
    }
    return suites[model.suite]().cases(model.scenario)[0]


@cache
def _wheel() -> Path:
    return write_wheel(Path(mkdtemp()))


async def play_model(model: Model) -> Played:
    """Play a model through the loop as `production` does, and have it judged."""
    options = {"text_formats": "auto", "likely_calls": "never", **model.options}
    return await play(find_case(model), list(model.replies()), seed=SEED, **options)  # type: ignore[arg-type]


def call(name: str, call_id: str = "c8", /, **arguments: Any) -> dict[str, Any]:
    """Return a reply with one call."""
    return assistant(None, tool_call(name, arguments, call_id))


def raw(name: str, arguments: str, call_id: str = "c8") -> dict[str, Any]:
    """Return a reply with one call whose arguments are this very text."""
    return assistant(None, tool_call(name, arguments, call_id))


def both(*replies: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    """Return one reply with the calls of several."""
    return assistant(text, *(entry for reply in replies for entry in reply["tool_calls"]))


def beside(text: str, reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply with text next to its calls."""
    return both(reply, text=text)


def ops(*operations: dict[str, Any], call_id: str = "c2", **more: Any) -> dict[str, Any]:
    """Return a reply with one patch of these operations."""
    return call("state_patch", call_id, request_id="r1", ops=list(operations), **more)


def put(path: str, value: Any) -> dict[str, Any]:
    """Return an operation that sets a path."""
    return {"op": "set", "path": path, "value": value}


def tagged(name: str, /, **arguments: Any) -> str:
    """Return a call as some models write it into their text."""
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


def directive(kind: str, text: str = "Done.", /, **payload: Any) -> str:
    """Return an answer with one directive."""
    item = {"type": kind, "payload": payload}
    return json.dumps({"assistant_text": text, "directives": [item]})


BAR = put("/draft/foo", "bar")
PATCH = {"request_id": "r1", "ops": [BAR]}


def keys() -> tuple[str, ...]:
    """Return the keys of the notes."""
    return StateSuite().cases("multi_step_plan")[0].prepare(SEED).state.keys


def word() -> str:
    """Return the word in the last note."""
    return StateSuite().cases("multi_step_plan")[0].prepare(SEED).state.value


def joined() -> str:
    """Return the two words of `duplicate_ids`, joined."""
    return StateSuite().cases("duplicate_ids")[0].prepare(SEED).state.value


def workspace_id(scenario: str) -> str:
    """Return the id of the workspace of a scenario."""
    return StateSuite().cases(scenario)[0].prepare(SEED).state.before.id


def note(place: int, call_id: str = "") -> dict[str, Any]:
    """Return a reply that opens a note by its place."""
    return call("note_open", call_id or f"n{place}", key=keys()[place])


def notes() -> list[dict[str, Any]]:
    """Return the replies that open all notes in order."""
    return [note(place) for place in range(4)]


def sides(*, left: str = "l", right: str = "r") -> dict[str, Any]:
    """Return one reply that reads both words."""
    return both(read(left, select=["/draft/left"]), read(right, select=["/draft/right"]))


def one_tool_call() -> tuple[str, dict[str, Any]]:
    """Return the call that the first request of `one_tool` asks for."""
    case = OneToolSuite().cases("one_tool")[0]
    ideal = case._first(case.answers[0], {name: tool for tool, name in case.names.items()})
    return ideal.name, ideal.arguments


def facts(errand: str) -> dict[str, Any]:
    """Return the facts of an errand."""
    return find_errand(errand).prepare(SEED).state


def find_errand(name: str) -> Errand:
    """Return an errand by its name."""
    return next(errand for errand in ERRANDS if errand.scenario == name)


def steps(errand: str) -> list[dict[str, Any]]:
    """Return the replies that take the steps of an errand in order."""
    known = facts(errand)
    return [
        call(step.tool, f"e{place}", **{name: known[name] for name in step.takes})
        for place, step in enumerate(find_errand(errand).steps)
    ]


def stages() -> list[dict[str, Any]]:
    """Return the replies that take the stages of the pipeline in order."""
    return [stage_call(name, f"p{name}") for name in AgentsSuite().scenarios()[:-1]]


def stage_call(stage: str, call_id: str = "s1", **changed: Any) -> dict[str, Any]:
    """Return the right call of a stage of the first question, perhaps with other arguments."""
    case = AgentsSuite().cases(stage)[0]
    ideal = case._ideal_call(case.stages[0])
    return call(ideal.name, call_id, **{**ideal.arguments, **changed})
