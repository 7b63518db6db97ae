"""`surecall mcp`: a server for coding agents, and the tools of other servers."""

import asyncio
from pathlib import Path
from typing import Any, Final

import click

from .flags import output_flags, pass_output
from .output import Output
from .progress import count_of
from .suggestions import complete_files
from .terminal import line_of, make_table

_PINS: Final = "mcp-pins.json"

_target = click.argument("target")
_name_flag = click.option("--name", help="What comes before the tools' names.")


@click.group(invoke_without_command=True)
@click.option("--http", "port", type=click.IntRange(1, 65535), metavar="PORT", help="Use HTTP.")
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
    from surecall.cli.mcp_server import serve_http, serve_stdio

    if port is None:
        serve_stdio()
    else:
        serve_http(port)


@mcp.command("tools", short_help="List the tools of another server.")
@_target
@_name_flag
@click.option(
    "--pins",
    type=Path,
    shell_complete=complete_files,
    help="File of approved digests to compare with.",
)
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
@click.option(
    "--pins",
    type=Path,
    shell_complete=complete_files,
    default=_PINS,
    show_default=True,
    help="File to write.",
)
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
    if output.json:
        output.data(found)
        return
    words = {None: "", True: "pinned", False: "not pinned"}
    table = make_table({"tool": "", "effect": "whole", "pin": "whole", "description": ""})
    for row in found["tools"]:
        text = line_of(" ".join(row["description"].split()))
        table.add_row(line_of(row["name"]), row["effect"], words[row["pinned"]], text)
    output.page().print(table)
    for name, reason in found["left_out"].items():
        output.note(f"left out: {name}: {reason}")
