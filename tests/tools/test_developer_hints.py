"""What a developer is told about tools: where they raised, and what a model would have to guess."""

import logging
from typing import Any

import pytest

import surecall
from surecall.models.transport import assistant, tool_call


def fetch(url: str) -> str:
    """Fetch a page."""
    raise KeyError(url)


def check(url: str) -> str:
    """Check an address."""
    raise ValueError("not an address")


async def call(name: str, tool: Any) -> Any:
    """Return the result of one call."""
    model = surecall.ScriptedTransport([assistant(None, tool_call(name, {"url": "u"})), "Done."])
    result = await surecall.run("Go.", model="m", tools=[tool], transport=model)
    return result.results[0]


async def test_the_traceback_of_a_tool_is_logged_and_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log has it as an error, the result has it for later, and the model never reads it."""
    result = await call("fetch", fetch)
    (record,) = [item for item in caplog.records if item.levelno == logging.ERROR]
    assert record.name == "surecall.tools"
    assert record.getMessage() == "fetch raised KeyError"
    assert "raise KeyError(url)" in result.traceback
    assert "in fetch" in result.traceback
    assert "Traceback" not in result.text


async def test_a_refusal_of_arguments_is_not_an_error_of_the_program(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A `ValueError` is an answer to the model: its place is kept, and no error is logged."""
    result = await call("check", check)
    assert "not an address" in result.traceback
    assert [item for item in caplog.records if item.levelno >= logging.WARNING] == []


async def test_a_secret_is_not_in_the_traceback() -> None:
    """What looks like a key is taken out."""

    def leak(url: str) -> str:
        """Leak a key."""
        raise RuntimeError("key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD")

    result = await call("leak", leak)
    assert "abcdefghijklmnopqrstuvwxyz0123456789" not in result.traceback


def test_a_tool_without_words_or_types_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """What is missing is named; a tool that has both, or its own schema, is not mentioned."""

    def bare(first, second: int): ...  # type: ignore[no-untyped-def]

    surecall.tool(bare)
    surecall.tool(fetch)
    surecall.tool(name="any", parameters={"type": "object"})(lambda **_: None)
    assert [item.getMessage() for item in caplog.records] == [
        "The tool bare has no description; add a docstring.",
        "The tool bare does not say of which type these are: first.",
    ]
