"""The example `examples/web_approval`, with somebody who decides in the dashboard."""

import asyncio
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from gateway.harness import make_settings, serve_gateway
from gateway.test_dashboard import act, look

EXAMPLE = Path(__file__).parents[2] / "examples" / "web_approval" / "__main__.py"


def load_example() -> Any:
    """Load the program without running it."""
    spec = spec_from_file_location("web_approval", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_a_decision_in_the_dashboard_lets_the_program_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The call runs once, with what the person made of it."""
    example, place = load_example(), str(tmp_path / "approvals.db")
    settings = make_settings(tmp_path, upstream="http://127.0.0.1:1/v1", approvals=place)
    async with serve_gateway(settings) as served:
        program = asyncio.create_task(example.main(None, place, every_s=0.02))
        while not (waiting := (await look(served, "approvals"))["waiting"]):
            await asyncio.sleep(0.02)
        edited = {"arguments": '{"to": "bob@example.org", "subject": "Invoice", "copies": 1}'}
        answer = await act(served, f"approvals/{waiting[0]['id']}/approve", edited)
        assert answer.status == 200, answer.body
        result = await asyncio.wait_for(program, 60)
    assert result.text == "Ready."
    assert "sent      'Invoice' to bob@example.org, 1 times" in capsys.readouterr().out
