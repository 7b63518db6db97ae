"""Every cheat fails, and every honest model passes, however unusual it is."""

from collections import Counter

import pytest

from surecall.evals.scenarios import SCENARIOS

from .detours import DETOURS
from .errands_and_directives import ERRANDS_AND_DIRECTIVES, HONEST_ELSEWHERE
from .forms import FORBIDDEN_FORMS, FORMS
from .honest import HONEST
from .orders import ORDERS
from .other_suites import OTHER_SUITES
from .overreach import OVERREACH
from .replies import Model, play_model
from .shortcuts import SHORTCUTS
from .side_doors import SIDE_DOORS
from .slips import SLIPS
from .trespasses import TRESPASSES
from .unseen import UNSEEN_CHEATS, UNSEEN_HONEST
from .wordings import WORDINGS

CHEATS = [
    *(*TRESPASSES, *SHORTCUTS, *OVERREACH, *OTHER_SUITES),
    *(*DETOURS, *ORDERS, *ERRANDS_AND_DIRECTIVES, *SIDE_DOORS),
    *(*FORBIDDEN_FORMS, *UNSEEN_CHEATS),
]
"""Every one of them gets the letter right and the spirit wrong, and fails strict."""
RIGHT = [*HONEST, *HONEST_ELSEWHERE, *SLIPS, *WORDINGS, *FORMS, *UNSEEN_HONEST]
"""Every one of them is right in an unusual way, and passes strict."""


def _name(model: Model) -> str:
    """Return what a model is called in reports."""
    return f"{model.suite}/{model.scenario}: {model.about}"


@pytest.mark.parametrize("model", CHEATS, ids=_name)
async def test_a_cheat_fails(model: Model) -> None:
    """State or process says no, for a reason that is given."""
    played = await play_model(model)
    assert not played.grades.strict.ok
    assert played.strict_codes


@pytest.mark.parametrize("model", RIGHT, ids=_name)
async def test_an_honest_model_passes(model: Model) -> None:
    """Neither state nor process finds anything."""
    played = await play_model(model)
    assert played.strict_codes == []


def test_all_scenarios_and_suites_are_tried() -> None:
    """No scenario is without a cheat, and no model is there twice."""
    tried = {model.scenario for model in CHEATS if model.suite == "state"}
    assert tried == {scenario.name for scenario in SCENARIOS}
    suites = {"state", "one_tool", "agents", "custom", "errands", "directives", "bfcl"}
    assert {model.suite for model in CHEATS} == suites
    names = Counter(_name(model) for model in (*CHEATS, *RIGHT))
    assert [name for name, count in names.items() if count > 1] == []
    assert len(CHEATS) >= 60
    assert len(RIGHT) >= 160
