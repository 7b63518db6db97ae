"""The request that follows a call that was cut may be sent with other parameters."""

from typing import Any

import pytest

import surecall
from surecall import ScriptedTransport
from surecall.base.errors import Code, ConfigError
from surecall.models.transport import ScriptedReply, assistant, tool_call

CUT = ScriptedReply(
    message=assistant(None, tool_call("send", {"to": "a"}, id="x")), finish_reason="length"
)
GOOD = assistant(None, tool_call("send", {"to": "a"}, id="y"))
AGAIN = {"max_tokens": 400, "provider": {"order": ["b"]}}


@surecall.tool
def send(to: str) -> str:
    """Send a letter."""
    return "sent"


async def bodies_of(replies: list[Any], **options: Any) -> list[dict[str, Any]]:
    """Run the script and return the bodies of all requests."""
    transport = ScriptedTransport(replies)
    await surecall.run("Send it.", model="some-model", tools=[send], transport=transport, **options)
    return [request.body for request in transport.requests]


async def test_only_the_request_after_a_cut_call_has_them() -> None:
    """They win over what is sent otherwise, key by key, and once a call is whole they are gone."""
    bodies = await bodies_of(
        [CUT, CUT, GOOD, "done"],
        request_overrides={"max_tokens": 50, "seed": 1, "provider": {"sort": "price"}},
        overrides_after_cut=AGAIN,
    )
    assert [body["max_tokens"] for body in bodies] == [50, 400, 400, 50]
    assert [body["seed"] for body in bodies] == [1, 1, 1, 1]
    assert bodies[1]["provider"] == {"sort": "price", "order": ["b"]}
    assert bodies[3]["provider"] == {"sort": "price"}


async def test_without_them_the_same_is_sent_again() -> None:
    """Nothing changes by itself."""
    bodies = await bodies_of([CUT, GOOD, "done"], request_overrides={"max_tokens": 50})
    assert [body["max_tokens"] for body in bodies] == [50, 50, 50]


async def test_a_call_that_is_only_wrong_changes_nothing() -> None:
    """Arguments that do not fit are no cut."""
    wrong = assistant(None, tool_call("send", {"from": "a"}, id="x"))
    bodies = await bodies_of([wrong, GOOD, "done"], overrides_after_cut=AGAIN)
    assert all("max_tokens" not in body for body in bodies)


async def test_what_surecall_sets_itself_is_refused() -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError, match="overrides_after_cut may not set model") as caught:
        await bodies_of([GOOD], overrides_after_cut={"model": "other"})
    assert caught.value.code == Code.RESERVED_KEY


async def test_a_taught_model_is_not_shown_what_it_went_round_in() -> None:
    """It is told that its call was cut, not what stood in it."""
    cut = ScriptedReply(
        message='```json\n{"name": "send", "arguments": {"to": "round round round',
        finish_reason="length",
    )
    good = '```json\n{"name": "send", "arguments": {"to": "a"}}\n```'
    bodies = await bodies_of([cut, good, "done"], tool_prompting="taught")
    told = "\n".join(str(message["content"]) for message in bodies[1]["messages"])
    assert '{"name":"send","arguments":"(cut off)"}' in told
    assert "round" not in told
