"""What becomes of wrong calls is chosen by request, key, upstream, policy and kind of client."""

from pathlib import Path
from typing import Any

import pytest

from surecall.exchange.policy import is_agent

from .harness import Plain, ask, chat, serve_faults

WRONG = chat("faults:arguments_missing_field")
NAMED = "x-surecall-refused-calls"


def outcome(answered: Plain) -> str:
    """Return what became of the calls of an answer."""
    if answered.status != 200:
        assert answered.headers["x-should-retry"] == "false"
        return f"{answered.status}"
    message: dict[str, Any] = answered.json["choices"][0]["message"]
    assert answered.headers["x-surecall-outcome"] == "unrepaired"
    return "delivered" if message.get("tool_calls") else "told"


async def test_the_nearest_setting_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header wins over a key, a key over its upstream, an upstream over the policy."""
    monkeypatch.setenv("PLAIN", "sk-plain-0000000000000000")
    monkeypatch.setenv("OWN", "sk-own-000000000000000000")
    text = """
[policy]
max_requests = 1
refused_calls = "error"

[upstreams.a]
url = "{url}"
key = "none"
probe = "off"
refused_calls = "deliver"

[[keys]]
id = "plain"
key_env = "PLAIN"

[[keys]]
id = "own"
key_env = "OWN"
refused_calls = "tell"
"""
    async with serve_faults(tmp_path, text) as (served, _):

        async def choose(key: str, **headers: str) -> str:
            given = {"authorization": f"Bearer {key}", **headers}
            return outcome(await ask(served, "POST", "/v1/chat/completions", WRONG, given))

        plain, own = "sk-plain-0000000000000000", "sk-own-000000000000000000"
        assert await choose(plain) == "delivered"
        assert await choose(own) == "told"
        assert await choose(own, **{NAMED: "error"}) == "422"
        assert await choose(own, **{NAMED: "deliver"}) == "delivered"
        assert await choose(own, **{NAMED: "auto"}) == "422"
        assert await choose(plain, **{NAMED: "auto", "user-agent": "GeminiCLI/1"}) == "delivered"
        bad = await ask(
            served,
            "POST",
            "/v1/chat/completions",
            WRONG,
            {NAMED: "all", "authorization": f"Bearer {own}"},
        )
        assert bad.status == 400
        assert "auto, deliver, tell, error" in bad.json["error"]["message"]
    async with serve_faults(tmp_path, text.replace('refused_calls = "deliver"', "")) as (served, _):
        headers = {"authorization": f"Bearer {plain}"}
        assert outcome(await ask(served, "POST", "/v1/chat/completions", WRONG, headers)) == "422"


async def test_an_error_is_a_400_for_langchain_js(tmp_path: Path) -> None:
    """It repeats any 422 six times, whatever else the answer says."""
    async with serve_faults(tmp_path) as (served, _):
        given = {"user-agent": "langchainjs-openai/1.0.0 ((node/v20.20.2; linux; x64))"}
        given[NAMED] = "error"
        answered = await ask(served, "POST", "/v1/chat/completions", WRONG, given)
        assert answered.headers["x-should-retry"] == "false"
        assert answered.status == served.last.status == 400
        assert answered.json["error"]["code"] == "CALLS_REFUSED"


@pytest.mark.parametrize(
    ("header", "value", "found"),
    [
        ("user-agent", "claude-cli/2.0.14 (external, cli)", True),
        ("user-agent", "codex_exec/0.99.0 (Debian)", True),
        ("user-agent", "QwenCode/0.1.0 (linux; x64)", True),
        ("x-title", "Cline", True),
        ("user-agent", "OpenAI/Python 3.49.0", False),
        ("accept", "codex", False),
    ],
)
def test_agent_programs_are_known_by_a_header(header: str, value: str, found: bool) -> None:
    """Only the beginning of a header counts that programs name themselves by."""
    assert is_agent([("accept", "*/*"), (header, value)]) is found
