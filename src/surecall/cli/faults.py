"""`surecall faults`: a provider that misbehaves on purpose."""

import asyncio
import errno
from typing import Any, Final

import click

from surecall.faults import (
    BUILTIN_ORACLES,
    CLEAN_PLAN,
    FAULTS,
    GROUPS,
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
from surecall.wire import PROTOCOLS

from .console import Output, select_fields
from .event_lines import count_of
from .flags import flag, invalid_option, output_flags, pass_output, reason_of
from .suggestions import complete_fault_groups, complete_faults, complete_simulated
from .terminal import line_of, shown_value, styled

_REACHES: Final = {
    "both": "whole and streamed",
    "whole": "whole replies only",
    "stream": "streamed replies only",
}


@click.group
@output_flags
def faults() -> None:
    """Test against a provider that misbehaves on purpose."""


@faults.command("list")
@flag("--group", f"Only one group: {', '.join(GROUPS)}.", type=str, complete=complete_fault_groups)
@pass_output
def list_faults(output: Output, group: str | None) -> None:
    """List the faults, and what must come of each."""
    found = FAULTS if group is None else find_faults(group)
    columns = {"fault": "whole", "group": "whole dim", "what it does": ""}
    columns |= {"formats": "dim", "a run": ""}
    rows = (
        (
            *(fault.name, fault.group, fault.does),
            "all" if len(fault.protocols) == len(PROTOCOLS) else ", ".join(fault.protocols),
            "is right" if fault.repairable else f"ends: {fault.code or 'not executed'}",
        )
        for fault in found
    )
    data = {"type": "faults", "faults": [render_fault(fault) for fault in found]}
    output.listing(data, columns, rows, optional=("formats", "group", "a run"))


@faults.command("models", short_help="List the simulated models.")
@pass_output
def list_models(output: Output) -> None:
    """List the simulated models, and whose published description each follows."""
    columns = {"model": "whole", "what it does": "", "follows": "dim"}
    rows = ((model.name, model.describes, ", ".join(model.models) or "-") for model in zoo())
    data = {"type": "simulated_models", "models": zoo()}
    output.listing(data, columns, rows, optional=("follows",))


@faults.command("show")
@click.argument("name", shell_complete=complete_faults)
@pass_output
def show_fault(output: Output, name: str) -> None:
    """Explain one fault."""
    fault = find_fault(name)
    if output.json:
        output.data({"type": "fault", **render_fault(fault)})
        return
    console = output.page()
    console.print(styled((fault.name, "bold"), (f"  {fault.group}", "dim")))
    console.print(fault.does)
    console.print()
    output.facts((label, line_of(text)) for label, text in _list_rows(fault))


@faults.command("serve", short_help="Serve replies with faults, in every wire format.")
@flag("--fault NAME", "Every reply has this fault.", to="fault_name", complete=complete_faults)
@flag("--plan FILE", "A plan of faults, as TOML.", to="plan_file")
@flag(
    "--model NAME",
    "Answer as a simulated model: zoo:NAME, NAME or a TOML file.",
    complete=complete_simulated,
)
@flag("--script FILE", "What would be right to do, as TOML.")
@flag("--seed", "The same seed gives the same answers.", type=int, shown=0)
@flag("--host", "Address to listen on.", shown="127.0.0.1")
@flag("--port", "Port; any free one if 0.", type=click.IntRange(0, 65535), default=0)
@flag(
    "--allow-host HOST:PORT",
    "Also accept requests with this Host header; can be given more than once.",
    to="allow_hosts",
    multiple=True,
)
@pass_output
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
) -> None:
    """Serve chat completions, responses, messages and Gemini's format, with faults.

    Without --fault, --plan or --model, the model named in a request decides: `faults:NAME` or
    `zoo:NAME`. Any other name is answered without a fault.
    """
    if sum(given is not None for given in (fault_name, plan_file, model)) > 1:
        raise click.UsageError("Give one of --fault, --plan and --model.")
    plan, behaviour = CLEAN_PLAN, None
    if fault_name is not None:
        plan = FaultPlan.of(fault_name)
    elif plan_file is not None:
        plan = FaultPlan.load(plan_file)
    elif model is not None:
        behaviour = load_behaviour(model) if model.endswith(".toml") else find_behaviour(model)
    oracles = BUILTIN_ORACLES if script is None else (load_script(script), *BUILTIN_ORACLES)
    provider = FaultyProvider(plan=plan, behaviour=behaviour, seed=seed, oracles=oracles)
    server = FaultServer(provider, host=host, port=port, allow_hosts=allow_hosts)
    try:
        asyncio.run(_serve(server, output))
    except OSError as error:
        hint = "Choose a --host that is an address of this machine, such as 127.0.0.1."
        if error.errno in {errno.EADDRINUSE, errno.EACCES}:
            hint = "Choose another --port, or leave it out for a free one."
        reason = f"cannot listen on {host}:{port}: {reason_of(error)}."
        raise invalid_option(reason, hint) from error


def render_fault(fault: Fault) -> dict[str, Any]:
    """Return a fault as data."""
    return {
        **select_fields(fault, "name", "group", "does", "seen", "repairable", "code"),
        "told": fault.refusal,
        **select_fields(fault, "codes", "reach", "protocols"),
        "needs": fault.needs or None,
        **select_fields(fault, "options", "truth"),
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
        counts = select_fields(provider, "requests", "by_model", "by_fault")
        output.data({"type": "stopped", **counts})
    elif not output.quiet:
        output.note(f"stopped after {count_of(provider.requests, 'request')}")


def _announce(server: FaultServer, output: Output) -> None:
    if output.json:
        output.data({"type": "serving", "url": server.url, "seed": server.provider.seed})
        return
    output.text(server.url)
    if not output.quiet:
        output.note("Ctrl-C stops it")


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
    ends = f"ends with {fault.code or 'a note that the call was not executed'}"
    ends = "does the right thing" if fault.repairable else ends
    rows.append(("a run", ends))
    rows += [(f"in {name}", f"ends with {code}") for name, code in fault.codes.items()]
    rows += [("truth", f"{name} = {shown_value(value)}") for name, value in fault.truth.items()]
    rows.append(("try", f"surecall faults serve --fault {fault.name}"))
    return rows
