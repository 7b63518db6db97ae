"""`surecall demo`: what happens to broken replies, shown with a scripted model."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import click

from surecall.base.records import Event, WireRequest
from surecall.loop import RunResult, run, save_trace
from surecall.models.transport import ScriptedReply, ScriptedTransport, assistant, tool_call
from surecall.text import encode_text
from surecall.tools import Tool, tool

from .console import Output
from .event_lines import Progress, count_of, duration_text
from .flags import flag, pass_output
from .run import render_result
from .terminal import save_svg, styled

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH: Final = 100
_QUESTION: Final = "The lamp of order A-17 arrived broken. Please refund it."


class _Scene(NamedTuple):
    """One reply of the script, and what is wrong with it."""

    title: str
    reply: ScriptedReply
    shown: str
    """The reply as text."""
    broken: bool


def _scene(
    title: str,
    message: dict[str, Any],
    finish_reason: str = "tool_calls",
    *,
    broken: bool = True,
) -> _Scene:
    reply = ScriptedReply(message=message, finish_reason=finish_reason)
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        function = cast("list[Any]", calls)[0]["function"]
        shown = f"{function['name']}  {function['arguments']}"
    else:
        shown = encode_text({name: message[name] for name in message if name != "role"})
    cut = "" if finish_reason in {"stop", "tool_calls"} else f"   finish_reason {finish_reason}"
    return _Scene(title, reply, shown + cut, broken)


def _make_scenes() -> list[_Scene]:
    order = {"number": "A-17"}
    calls = {"function": {"name": "find_order", "arguments": order}}
    twice = "```json\n" + encode_text(encode_text({"item": "lamp"})) + "\n```"
    return [
        _scene(
            "`tool_calls` is not a list, `arguments` is not a string, and there is no id",
            {"role": "assistant", "tool_calls": calls},
        ),
        _scene(
            "The arguments are JSON inside JSON inside a code fence",
            assistant(None, tool_call("find_price", twice, "call_2")),
        ),
        _scene(
            "The arguments do not fit the schema",
            assistant(None, tool_call("refund", order | {"cents": "all of it"}, "call_3")),
        ),
        _scene(
            "The corrected call is cut off at the token limit",
            assistant(None, tool_call("refund", '{"number": "A-17", "cents": 45', "call_4")),
            "length",
        ),
        _scene(
            "The call is complete at last",
            assistant(None, tool_call("refund", order | {"cents": 4500}, "call_5")),
            broken=False,
        ),
        _scene("The final answer is empty", assistant(""), "stop"),
        _scene(
            "The answer",
            assistant("Order A-17 is refunded: 45.00 for the lamp."),
            "stop",
            broken=False,
        ),
    ]


class _Shop:
    """Three tools, and a count of what they did."""

    def __init__(self) -> None:
        self.refunds = 0

    def tools(self) -> list[Tool[..., Any]]:
        @tool(effect="read")
        def find_order(number: str) -> dict[str, Any]:
            """Find an order by its number."""
            return {"number": number, "item": "lamp"}

        @tool(effect="read")
        def find_price(item: str) -> dict[str, Any]:
            """Find the price of an item."""
            return {"item": item, "cents": 4500}

        @tool(effect="external")
        def refund(number: str, cents: int) -> dict[str, Any]:
            """Pay money back."""
            self.refunds += 1
            return {"number": number, "refunded_cents": cents}

        return [find_order, find_price, refund]


@click.command
@flag("--trace FILE", "Save a trace for `surecall replay`.")
@flag("--svg FILE", "Save a picture of the terminal as SVG.")
@pass_output
def demo(output: Output, trace: str | None, svg: str | None) -> None:
    """Show broken replies being repaired or refused: no key, no network.

    The model is a script, so the replies are the same every time. Everything else is what
    `surecall run` does with a real model.
    """
    shop = _Shop()
    if output.json:
        result = _play(shop, output.data)
        output.data(render_result(result) | {"scripted": True, "refunds": shop.refunds})
    else:
        console = output.page(record=svg is not None)
        console.width = min(console.width, _WIDTH) if svg is None else _WIDTH
        result = _show(console, shop)
        if svg is not None:
            save_svg(console, "surecall demo", svg)
    if trace is not None:
        save_trace(result.trace, trace)


def _play(
    shop: _Shop,
    listener: Callable[[Event], None],
    on_reply: Callable[[int, _Scene], None] | None = None,
) -> RunResult:
    scenes = _make_scenes()
    turns = iter(enumerate(scenes))

    def next_reply(_request: WireRequest) -> ScriptedReply:
        number, scene = next(turns)
        if on_reply is not None:
            on_reply(number, scene)
        return scene.reply

    return asyncio.run(
        run(
            _QUESTION,
            model="scripted",
            tools=shop.tools(),
            transport=ScriptedTransport(next_reply),
            on_event=listener,
            preset=(),
        )
    )


def _show(console: "Console", shop: _Shop) -> RunResult:
    progress = Progress(console, brief=True)
    console.print(styled(("surecall demo", "bold"), ("  no key, no network", "dim")))
    console.print("The model below is a script with broken replies; the rest is real.", style="dim")
    console.print()
    progress.title(_QUESTION, "user")

    def on_reply(number: int, scene: _Scene) -> None:
        console.print()
        progress.title(scene.title, f"turn {number}")
        progress.say_all("←", "arrived", scene.shown)

    result = _play(shop, progress, on_reply)
    console.print()
    progress.title(result.text, "answer")
    console.print()
    _summarise(console, result, shop)
    return result


def _summarise(console: "Console", result: RunResult, shop: _Shop) -> None:
    refused = sum(not answer.executed for answer in result.results)
    parts = (
        f"{result.turns} replies, {sum(scene.broken for scene in _make_scenes())} of them broken",
        f"{count_of(len(result.receipts), 'change')}, each with a receipt",
        f"{count_of(refused, 'call')} refused",
    )
    console.print(styled(("✓ ", "green"), " · ".join(parts)))
    once = "once" if shop.refunds == 1 else f"{shop.refunds} times"
    took = duration_text(result.elapsed_ms)
    console.print(styled(("✓ ", "green"), f"the money was refunded {once} · {took}"))
    console.print()
    for command, what in (
        ("surecall docs ARGUMENTS_TRUNCATED", "what a code means"),
        ('surecall run --tools FILE.py "…"', "the same with your model and tools"),
        ("surecall config doctor", "what is set up"),
    ):
        console.print(styled("  ", (f"{command:<38}", "bold"), (what, "dim")))
