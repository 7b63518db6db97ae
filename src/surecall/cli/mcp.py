"""`surecall mcp`: a server for coding agents, and the tools of other servers."""

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from surecall.base.limits import MAX_BODY_BYTES, MAX_OUTPUT_BYTES
from surecall.reading import read_reply as read_any_reply
from surecall.schema import SchemaChecker, lint_tool
from surecall.text import repair_json as repair_text
from surecall.tools.mcp.server import make_server, serve_http

from .console import Output
from .event_lines import count_of
from .flags import flag, output_flags, pass_output
from .terminal import line_of
from .topics import explain_topic

_PINS: Final = "mcp-pins.json"

_target = click.argument("target")
_name_flag = flag("--name", "What comes before the tools' names.", type=str)


@click.group(invoke_without_command=True)
@flag("--http PORT", "Use HTTP.", to="port", type=click.IntRange(1, 65535))
@output_flags
@click.pass_context
def mcp(context: click.Context, port: int | None) -> None:
    """Serve read_reply, repair_json, check_schema and explain to coding agents.

    Speaks MCP over standard input and output, or over HTTP on this machine at /mcp. The commands
    look at the tools of other servers. Needs surecall[mcp].
    """
    if context.invoked_subcommand is not None:
        if port is not None:
            raise click.UsageError("--http is for the server, without a command.", context)
        return

    if port is None:
        if sys.stdin.isatty():
            click.echo("An MCP server on standard input and output; Ctrl-C stops it.", err=True)
        make_server(_INSTRUCTIONS, FUNCTIONS).run()
    else:
        serve_http(make_server(_INSTRUCTIONS, FUNCTIONS), port)


@mcp.command("tools", short_help="List the tools of another server.")
@_target
@_name_flag
@flag("--pins PATH", "File of approved digests to compare with.", type=Path)
@pass_output
def list_tools(output: Output, target: str, name: str | None, pins: Path | None) -> None:
    """List the tools of TARGET, a command in quotes or a URL, as the server defines them."""
    _quiet(output)
    with output.waiting("asking the server for its tools"):
        found = asyncio.run(_look(target, name, pins))
    _show(output, found)
    if pins is not None and all(row["pinned"] is None for row in found["tools"]):
        output.note(f"{pins} has no pins of {found['server']}")


@mcp.command("pin", short_help="Approve the tools of another server as they are now.")
@_target
@_name_flag
@flag("--pins PATH", "File to write.", type=Path, shown=_PINS)
@pass_output
def pin_tools(output: Output, target: str, name: str | None, pins: Path) -> None:
    """Approve the tools of TARGET as they are defined now, and write their digests."""
    from surecall.tools.mcp import PinFile, mcp_tools

    _quiet(output)

    async def read_digests() -> tuple[str, dict[str, str]]:
        server = mcp_tools(target, name=name)
        async with server:
            return server.name, server.digests

    with output.waiting("asking the server for its tools"):
        server_name, digests = asyncio.run(read_digests())
    PinFile(pins).write(server_name, digests)
    output.answer(
        {"type": "pins", "server": server_name, "file": str(pins), "digests": digests},
        f"pinned {count_of(len(digests), 'tool')} of {server_name} in {pins}",
    )


@mcp.command("guard", short_help="Stand between an MCP client and another server.")
@click.argument("words", nargs=-1, required=True, metavar="[URL | -- COMMAND...]")
@flag("--name", "What the server is called in messages and in the file of pins.", type=str)
@flag("--pins PATH", "File of approved digests; written on first use.", type=Path)
@flag(
    "--max-bytes",
    "Most text and data that one result may have.",
    type=click.IntRange(1),
    shown=MAX_OUTPUT_BYTES,
)
@flag("--store FILE|URL", "Record calls for `surecall requests` there.")
@pass_output
def guard_server(output: Output, words: tuple[str, ...], store: str | None, **options: Any) -> None:
    """Offer the tools of another server over standard input and output, and check every call.

    For clients that are configured with a command, such as Claude Desktop, Cursor and VS Code.
    """
    from surecall.gateway.mcp_records import serve_recorded

    _quiet(output)
    log = logging.getLogger("surecall.mcp")
    log.setLevel(logging.INFO)
    log.addHandler(logging.StreamHandler())
    target = words[0] if len(words) == 1 else words
    asyncio.run(serve_recorded(target, place=store, **options))


def _quiet(output: Output) -> None:
    from surecall.tools.mcp import silence_sdk

    if not output.debug:
        silence_sdk()


async def _look(target: str, name: str | None, pins: Path | None) -> dict[str, Any]:
    from surecall.tools.mcp import PinFile, mcp_tools

    server = mcp_tools(target, name=name)
    async with server as tools:
        approved = None if pins is None else PinFile(pins).read(server.name)
        digests = server.digests
        rows = [
            {
                "name": tool.name,
                "server_name": (own := server.server_names[tool.name]),
                "effect": tool.spec.effect,
                "description": tool.spec.description,
                "parameters": tool.spec.parameters,
                "digest": digests[own],
                "pinned": None if approved is None else approved.get(own) == digests[own],
            }
            for tool in tools
        ]
        return {
            "type": "tools",
            "server": server.name,
            "tools": rows,
            "left_out": {**server.left_out},
        }


def _show(output: Output, found: dict[str, Any]) -> None:
    words = {None: "", True: "pinned", False: "not pinned"}
    columns = {"tool": "", "effect": "whole", "pin": "whole", "description": ""}
    rows = (
        (
            *(line_of(row["name"]), row["effect"], words[row["pinned"]]),
            line_of(" ".join(row["description"].split())),
        )
        for row in found["tools"]
    )
    output.listing(found, columns, rows)
    if output.json:
        return
    for name, reason in found["left_out"].items():
        output.note(f"left out: {name}: {reason}")


_INSTRUCTIONS: Final = (
    "Look at what a model sent instead of guessing: read_reply shows the calls in a reply and "
    "every change that was needed, repair_json the value in broken JSON, check_schema what "
    "providers will refuse in a tool, and explain what a code or name of surecall means."
)


def read_reply(
    reply: str | dict[str, Any] | list[Any],
    tools: list[dict[str, Any]] | None = None,
    accept_likely: bool = False,
) -> dict[str, Any]:
    """Read the tool calls in a model's reply, with a receipt for every repair.

    Args:
        reply: The text a model wrote, or a message, a body or a recorded stream of any provider.
        tools: The tools that were offered, in the form of any provider.
        accept_likely: Whether to take calls that the text only probably makes.
    """
    accept = "likely" if accept_likely else "certain"
    reading = read_any_reply(reply, tools=tools, accept=accept)
    return msgspec.to_builtins(reading)


def repair_json(text: str, close_cut: bool = False) -> dict[str, Any]:
    """Read the JSON value in a text that may be broken; what could mean two things is refused.

    Args:
        text: The text of a model where JSON was expected.
        close_cut: Whether a value that was cut off is closed, with what is missing lost.
    """
    cut = "close" if close_cut else "refuse"
    repaired = repair_text(text, cut=cut, max_bytes=MAX_BODY_BYTES)
    shown = msgspec.to_builtins(repaired, enc_hook=lambda changes: changes.receipts)
    return {**shown, "receipts": shown.pop("changes")}


def check_schema(
    parameters: dict[str, Any], name: str = "tool", description: str = ""
) -> dict[str, Any]:
    """Check a tool's schema: whether it is valid, and what some providers or models trip over.

    Args:
        parameters: JSON Schema of the arguments.
        name: The name of the tool.
        description: Its description.
    """
    SchemaChecker(parameters).compile()
    findings = lint_tool(name, description, parameters)
    return {"valid": True, "findings": msgspec.to_builtins(findings)}


def explain(name: str) -> dict[str, Any]:
    """Explain a code, rule, text format, fault, preset, option or setting of surecall.

    Args:
        name: Such as ARGUMENTS_TRUNCATED, or the rule of a receipt.
    """
    return {"found": msgspec.to_builtins(explain_topic(name))}


FUNCTIONS: Final[tuple[Callable[..., dict[str, Any]], ...]] = (
    read_reply,
    repair_json,
    check_schema,
    explain,
)
"""The tools of the server."""
