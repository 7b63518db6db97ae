"""`surecall faults`: a provider that misbehaves on purpose."""

import asyncio
from typing import Any, Final

import click
import msgspec

from surecall.errors import Code, ConfigError
from surecall.faults import (
    BUILTIN_ORACLES,
    CLEAN_PLAN,
    FAULTS,
    GROUPS,
    Behaviour,
    Fault,
    FaultPlan,
    FaultServer,
    FaultyProvider,
    find_behaviour,
    find_fault,
    find_faults,
    load_behaviour,
    load_script,
    zoo,
)
from surecall.protocols import PROTOCOLS

from .flags import output_flags
from .output import ExitCode, Output
from .terminal import line_of, shown_value

_BOTH: Final = "whole and streamed"
_REACHES: Final = {"both": _BOTH, "whole": "whole replies only", "stream": "streamed replies only"}


@click.group
@output_flags
def faults() -> None:
    """Test against a provider that misbehaves on purpose."""


@faults.command("list")
@click.option("--group", help=f"Only one group: {', '.join(GROUPS)}.")
@output_flags
@click.pass_obj
def list_faults(output: Output, group: str | None) -> ExitCode:
    """List the faults, and what must come of each."""
    found = FAULTS if group is None else find_faults(group)
    if output.json:
        output.data({"faults": [render_fault(fault) for fault in found]})
        return ExitCode.OK
    console = output.page()
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("fault", no_wrap=True)
    table.add_column("group", no_wrap=True, style="dim")
    table.add_column("what it does", overflow="fold")
    table.add_column("formats", overflow="fold", style="dim")
    table.add_column("a run", no_wrap=True)
    for fault in found:
        formats = "all" if len(fault.protocols) == len(PROTOCOLS) else ", ".join(fault.protocols)
        table.add_row(fault.name, fault.group, fault.does, formats, _describe_outcome(fault))
    console.print(table)
    return ExitCode.OK


@faults.command("models")
@output_flags
@click.pass_obj
def list_models(output: Output) -> ExitCode:
    """List the simulated models, and whose published description each follows."""
    if output.json:
        output.data({"models": [msgspec.to_builtins(behaviour) for behaviour in zoo()]})
        return ExitCode.OK
    console = output.page()
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", no_wrap=True)
    table.add_column("what it does", overflow="fold")
    table.add_column("follows", overflow="fold", style="dim")
    for behaviour in zoo():
        table.add_row(behaviour.name, behaviour.describes, ", ".join(behaviour.models) or "-")
    console.print(table)
    return ExitCode.OK


@faults.command("show")
@click.argument("name")
@output_flags
@click.pass_obj
def show_fault(output: Output, name: str) -> ExitCode:
    """Explain one fault."""
    fault = find_fault(name)
    if output.json:
        output.data(render_fault(fault))
        return ExitCode.OK
    console = output.page()
    from rich.table import Table
    from rich.text import Text

    console.print(Text.assemble((fault.name, "bold"), (f"  {fault.group}", "dim")))
    console.print(fault.does)
    console.print()
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    for label, text in _list_rows(fault):
        table.add_row(label, line_of(text))
    console.print(table)
    return ExitCode.OK


@faults.command("serve")
@click.option("--fault", "fault_name", metavar="NAME", help="Every reply has this fault.")
@click.option("--plan", "plan_file", metavar="FILE", help="A plan of faults, as TOML.")
@click.option("--model", metavar="NAME", help="Answer as a simulated model, by name or TOML file.")
@click.option("--script", metavar="FILE", help="What would be right to do, as TOML.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same answers."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; any free one if 0.")
@click.option(
    "--allow-host",
    "allow_hosts",
    metavar="HOST:PORT",
    multiple=True,
    help="Also accept requests with this Host header; can be given more than once.",
)
@output_flags
@click.pass_obj
def serve_faults(
    output: Output,
    fault_name: str | None,
    plan_file: str | None,
    model: str | None,
    script: str | None,
    seed: int,
    host: str,
    port: int,
    allow_hosts: tuple[str, ...],
) -> ExitCode:
    """Serve chat completions, responses, messages and Gemini's format, with faults.

    Without --fault, --plan or --model, the model named in a request decides: `faults:NAME` or
    `zoo:NAME`. Any other name is answered without a fault.
    """
    if sum(given is not None for given in (fault_name, plan_file, model)) > 1:
        raise click.UsageError("Give one of --fault, --plan and --model.")
    plan = CLEAN_PLAN
    if fault_name is not None:
        plan = FaultPlan.of(fault_name)
    elif plan_file is not None:
        plan = FaultPlan.load(plan_file)
    oracles = BUILTIN_ORACLES if script is None else (load_script(script), *BUILTIN_ORACLES)
    provider = FaultyProvider(plan=plan, behaviour=_load_model(model), seed=seed, oracles=oracles)
    server = FaultServer(provider, host=host, port=port, allow_hosts=allow_hosts)
    try:
        asyncio.run(_serve(server, output))
    except OSError as error:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"cannot listen on {host}:{port}: {error.strerror or error}.",
            hint="Choose another --port, or leave it out for a free one.",
        ) from error
    return ExitCode.OK


def render_fault(fault: Fault) -> dict[str, Any]:
    """Return a fault as data."""
    return {
        "name": fault.name,
        "group": fault.group,
        "does": fault.does,
        "seen": fault.seen,
        "repairable": fault.repairable,
        "code": fault.code,
        "told": fault.refusal,
        "codes": fault.codes,
        "reach": fault.reach,
        "protocols": fault.protocols,
        "needs": fault.needs or None,
        "options": fault.options,
        "truth": fault.truth,
    }


async def _serve(server: FaultServer, output: Output) -> None:
    async with server:
        _announce(server, output)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass  # Ctrl-C is how it ends
    provider = server.provider
    if output.json:
        output.data(
            {
                "type": "stopped",
                "requests": provider.requests,
                "by_model": dict(provider.by_model),
                "by_fault": dict(provider.by_fault),
            }
        )
    elif not output.quiet:
        output.stderr.write(f"stopped after {provider.requests} requests\n")


def _announce(server: FaultServer, output: Output) -> None:
    if output.json:
        output.data({"type": "serving", "url": server.url, "seed": server.provider.seed})
        return
    output.text(server.url)
    if not output.quiet:
        output.stderr.write("Ctrl-C stops it\n")
        output.stderr.flush()


def _load_model(model: str | None) -> Behaviour | None:
    if model is None:
        return None
    return load_behaviour(model) if model.endswith(".toml") else find_behaviour(model)


def _describe_outcome(fault: Fault) -> str:
    return "is right" if fault.repairable else f"ends: {fault.code}"


def _list_rows(fault: Fault) -> list[tuple[str, str]]:
    rows = [
        ("seen", fault.seen),
        ("touches", _REACHES[fault.reach]),
        ("formats", ", ".join(fault.protocols)),
    ]
    if fault.every > 1:
        rows.append(("how often", f"one request in {fault.every}, beginning with the first"))
    if fault.needs:
        rows.append(("with", fault.needs))
    if fault.refusal is not None:
        rows.append(("refusal", f"the model reads {fault.refusal}"))
    ends = "does the right thing" if fault.repairable else f"ends with {fault.code}"
    rows.append(("a run", ends))
    rows += [(f"in {name}", f"ends with {code}") for name, code in fault.codes.items()]
    rows += [("truth", f"{name} = {shown_value(value)}") for name, value in fault.truth.items()]
    rows.append(("try", f"surecall faults serve --fault {fault.name}"))
    return rows
