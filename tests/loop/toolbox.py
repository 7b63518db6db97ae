"""Tools and scripts shared by the tests that run the whole loop."""

from typing import Any

import surecall
from surecall.models.transport import ScriptedTransport, assistant, tool_call

__all__ = ["assistant", "look", "run_script", "save", "saved", "tool_call"]

saved: list[str] = []
"""What the tool `save` was called with; the fixture in conftest.py empties it."""


@surecall.tool(effect="read")
def look(what: str = "") -> dict[str, Any]:
    """Look at something."""
    return {"seen": what}


@surecall.tool(effect="write")
def save(text: str) -> dict[str, Any]:
    """Save a text."""
    saved.append(text)
    return {"count": len(saved)}


async def run_script(replies: Any, **arguments: Any) -> surecall.RunResult:
    """Run a prompt against a script with both tools."""
    arguments.setdefault("tools", [look, save])
    arguments.setdefault("transport", ScriptedTransport(replies))
    return await surecall.run("hi", model="m", preset=(), **arguments)
