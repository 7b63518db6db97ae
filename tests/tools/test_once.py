"""Tools whose equal calls run at most once in a run."""

import asyncio
from typing import Any

from surecall.tools import Dispatcher, ToolContext, ToolFailed, ToolRegistry, tool

from .calls import make_call, shown

RUN = "run"


class Post:
    """A tool that counts what it did, and whose behaviour a test chooses."""

    def __init__(self, once: Any = True, **options: Any) -> None:
        self.sent: list[tuple[str, str]] = []
        self.keys: list[str] = []
        self.error: Exception | None = None
        self.waits = False

        @tool(name="send", effect="external", once=once, **options)
        async def send(to: str, text: str, context: ToolContext) -> dict[str, Any]:
            """Send."""
            self.sent.append((to, text))
            self.keys.append(context.idempotency_key)
            if self.waits:
                await asyncio.Event().wait()
            if self.error is not None:
                raise self.error
            return {"number": len(self.sent)}

        self.dispatcher = Dispatcher(ToolRegistry([send]))

    async def call(self, number: int, *, run_id: str = RUN, **arguments: str) -> Any:
        """Make one call and return its result."""
        context = ToolContext(run_id, number, f"c{number}")
        return await self.dispatcher.dispatch(make_call("send", arguments), context)


async def test_a_repeated_call_gets_the_first_result_with_a_warning() -> None:
    """Whatever its id and the order of its arguments; other arguments are another call."""
    post = Post()
    first = await post.call(1, to="ann", text="hi")
    again = await post.call(2, text="hi", to="ann")
    other = await post.call(3, to="bob", text="hi")
    assert post.sent == [("ann", "hi"), ("bob", "hi")]
    assert shown(first)["data"] == shown(again)["data"] == {"number": 1}
    assert shown(other)["data"] == {"number": 2}
    assert (first.executed, again.executed) == (True, False)
    assert "was not run again" in shown(again)["warnings"][0]
    assert shown(first)["warnings"] == []


async def test_the_idempotency_key_is_that_of_equal_calls() -> None:
    """It names the run, the tool and the arguments; another run has another."""
    post = Post()
    await post.call(1, to="ann", text="hi")
    await post.call(1, run_id="other", to="ann", text="hi")
    same = Post()
    await same.call(7, to="ann", text="hi")
    assert post.keys[0] == same.keys[0]
    assert post.keys[0].startswith("run/send/")
    assert post.keys[1] != post.keys[0]


async def test_a_function_says_what_makes_calls_equal() -> None:
    """Here one mail to each person, whatever it says."""
    post = Post(once=lambda arguments: arguments["to"])
    await post.call(1, to="ann", text="hi")
    again = await post.call(2, to="ann", text="hello")
    assert post.sent == [("ann", "hi")]
    assert again.ok


async def test_a_key_function_that_fails_runs_nothing() -> None:
    """Without a key nobody knows whether the call was made before."""
    post = Post(once=lambda arguments: arguments["id"])
    result = await post.call(1, to="ann", text="hi")
    assert result.envelope.error_codes == ("INTERNAL_ERROR",)
    assert post.sent == []


async def test_a_recorded_result_is_the_first_one() -> None:
    """Equal calls of a resumed run find it, and a key function that fails does not end the run."""
    before, after = Post(), Post()
    broken = Post(once=lambda arguments: arguments["id"])
    call = make_call("send", {"to": "ann", "text": "hi"})
    context = ToolContext(RUN, 1, "c1")
    recorded = await before.call(1, to="ann", text="hi")
    for post in (after, broken):
        post.dispatcher.recall(call, recorded, context)
    again = await after.call(2, to="ann", text="hi")
    assert (again.ok, again.executed, after.sent) == (True, False, [])
    assert broken.dispatcher.once.results == {}


async def test_a_failure_of_the_tool_is_its_result() -> None:
    """The tool has run; the repetition reads the same failure."""
    post = Post()
    post.error = ToolFailed("NO_CREDIT", "There is no money.")
    await post.call(1, to="ann", text="hi")
    again = await post.call(2, to="ann", text="hi")
    assert again.envelope.error_codes == ("NO_CREDIT",)
    assert len(post.sent) == 1


async def test_after_a_timeout_the_repetition_is_refused() -> None:
    """The tool may have taken effect."""
    post = Post(timeout_s=0.01)
    post.waits = True
    first = await post.call(1, to="ann", text="hi")
    again = await post.call(2, to="ann", text="hi")
    assert first.envelope.error_codes == ("TOOL_TIMEOUT",)
    assert again.envelope.error_codes == ("OUTCOME_UNKNOWN",)
    assert "may have taken effect" in again.text
    assert len(post.sent) == 1


async def test_a_call_that_was_refused_may_be_made_again() -> None:
    """Arguments that do not fit never ran."""
    post = Post()
    refused = await post.call(1, to="ann")
    sent = await post.call(2, to="ann", text="hi")
    assert refused.envelope.error_codes == ("ARGUMENTS_INVALID",)
    assert sent.ok
