"""Plans: which fault meets which request, and the same for the same seed."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import ConfigError
from surecall.base.records import Message
from surecall.faults import FAULTS, Answer, FaultPlan, FaultyProvider
from surecall.wire import PROTOCOLS

from .conversations import ask, request_of, succeeded

SAVE_A = 'call save with {"text": "a"}'


def met(plan: FaultPlan, requests: int = 6, **fields: Any) -> list[str]:
    """Return the faults that requests meet, by number."""
    provider = FaultyProvider(plan=plan)
    found: list[str] = []
    for _ in range(requests):
        before = provider.by_fault.copy()
        ask(provider, request_of(SAVE_A, **fields))
        found.append("+".join(sorted(provider.by_fault - before)))
    return found


def steps(*names: str, **fields: Any) -> FaultPlan:
    """Return a plan of one step for each name."""
    return FaultPlan.parse({"steps": [{"fault": name} for name in names], **fields})


def test_one_fault_for_every_request() -> None:
    """`--fault NAME` is a plan of its own."""
    assert met(FaultPlan.of("reset"), 3) == ["reset"] * 3
    assert met(FaultPlan.of("clean"), 2) == ["", ""]


def test_some_faults_come_every_other_time() -> None:
    """What a second attempt cures is not there at the second attempt."""
    assert met(FaultPlan.of("reset_once"), 4) == ["reset_once", "", "reset_once", ""]


def test_a_fault_of_streams_leaves_whole_replies_alone() -> None:
    """A fault that cannot touch an answer does not count as met."""
    assert met(FaultPlan.of("stream_crlf"), 1) == [""]
    assert met(FaultPlan.of("stream_crlf"), 1, stream=True) == ["stream_crlf"]


@pytest.mark.parametrize(
    ("after", "rest"),
    [("clean", ["", "", ""]), ("repeat", ["reset", "", "auth"]), ("stay", ["auth"] * 3)],
)
def test_steps_come_in_order_and_then_what_is_said(after: str, rest: list[str]) -> None:
    """A step may be clean, and what follows the last step can be chosen."""
    plan = steps("reset", "clean", "auth", after=after)
    assert met(plan) == ["reset", "", "auth", *rest]


def test_a_step_may_last() -> None:
    """`times` repeats a step."""
    plan = FaultPlan.parse({"steps": [{"fault": "reset", "times": 2}, {"fault": "auth"}]})
    assert met(plan, 4) == ["reset", "reset", "auth", ""]


def test_chances_are_drawn_by_the_seed() -> None:
    """The same seed meets the same faults, another seed others; several may meet."""
    chances = [
        {"fault": "id_missing", "probability": 0.5},
        {"fault": "stream_crlf", "probability": 0.5},
    ]
    plans = [FaultPlan.parse({"chances": chances, "seed": seed}) for seed in (1, 1, 2)]
    one, same, other = (met(plan, 24, stream=True) for plan in plans)
    assert one == same != other
    assert {"", "id_missing", "stream_crlf", "id_missing+stream_crlf"} == set(one)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"steps": [{"fault": "resett"}]}, "Did you mean 'reset'"),
        ({"step": []}, "step"),
        ({"steps": [{"fault": "reset", "time": 2}]}, "time"),
        ({"steps": [{"fault": "reset", "times": 0}]}, "times must be"),
        ({"chances": [{"fault": "reset", "probability": 1.5}]}, "between 0 and 1"),
        ({"after": "then"}, "then"),
    ],
)
def test_a_plan_with_a_mistake_is_refused(table: dict[str, Any], problem: str) -> None:
    """Nothing in a plan is ignored."""
    with pytest.raises(ConfigError, match=problem):
        FaultPlan.parse(table)


def test_a_plan_is_read_from_a_file(tmp_path: Path) -> None:
    """TOML is what plans are written in."""
    path = tmp_path / "plan.toml"
    path.write_text('seed = 3\nafter = "stay"\n[[steps]]\nfault = "auth"\n')
    assert FaultPlan.load(path) == steps("auth", after="stay", seed=3)
    with pytest.raises(ConfigError, match="cannot be read"):
        FaultPlan.load(tmp_path / "none.toml")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_same_seed_gives_the_same_answers(stream: bool) -> None:
    """Every fault, byte for byte; another seed gives other ids."""
    request = request_of(SAVE_A, stream=stream)

    def answers(seed: int) -> list[Answer]:
        return [
            ask(FaultyProvider(plan=FaultPlan.of(fault.name), seed=seed), request)
            for fault in FAULTS
        ]

    assert answers(1) == answers(1)
    clean = FaultPlan.of("clean")
    one, two = (ask(FaultyProvider(plan=clean, seed=seed), request) for seed in (1, 2))
    assert one != two


def test_a_seed_in_the_request_makes_the_order_of_requests_unimportant() -> None:
    """Many clients can ask at once, and each gets what it would get alone."""
    plan = FaultPlan.parse({"chances": [{"fault": "id_missing", "probability": 0.5}]})
    one = [request_of(SAVE_A, params={"seed": seed}) for seed in range(12)]
    provider, reverse = FaultyProvider(plan=plan), FaultyProvider(plan=plan)
    forward = [ask(provider, request) for request in one]
    backward = [ask(reverse, request) for request in reversed(one)]
    assert forward == backward[::-1]
    assert len(set(map(str, forward))) == len(one)


names = st.sampled_from([fault.name for fault in FAULTS])
endings = st.sampled_from(
    [(), succeeded("save"), (*succeeded("save"), Message("user", "And now?"))]
)


@settings(max_examples=400, deadline=None)
@given(
    chosen=st.lists(names, min_size=2, max_size=4),
    stream=st.booleans(),
    ending=endings,
    protocol=st.sampled_from(sorted(PROTOCOLS)),
)
def test_any_faults_can_meet(
    chosen: list[str], stream: bool, ending: tuple[Message, ...], protocol: str
) -> None:
    """However faults are combined, there is an answer, and the same one twice."""
    table = {"chances": [{"fault": name, "probability": 1.0} for name in chosen]}
    plan = FaultPlan.parse(table)
    request = request_of(SAVE_A, *ending, stream=stream)
    first = ask(FaultyProvider(plan=plan), request, protocol)
    assert first.status in range(200, 600)
    assert first == ask(FaultyProvider(plan=plan), request, protocol)
