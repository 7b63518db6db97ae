"""`surecall serve`: a gateway that any client reaches by its base URL."""

import gc
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from surecall.base.errors import Code, ConfigError

from .console import ExitCode, Output
from .flags import flag, pass_output

if TYPE_CHECKING:
    from surecall.gateway import Gateway, GatewaySettings
    from surecall.gateway.settings.load import UpstreamEntry
    from surecall.gateway.settings.tables import LogFormat


@click.command
@flag("--upstream URL", "Where requests go; any OpenAI-compatible address.")
@flag("--host", "Address to listen on.  [default: 127.0.0.1]", type=str)
@flag("--port", "Port.  [default: 8787]", type=click.IntRange(0, 65535))
@flag("--store PATH", "Where requests are recorded: a file, a postgresql:// address, or off.")
@flag(
    "--approvals PATH",
    "Where calls wait for approval, to be decided in the dashboard: a file or an address.",
)
@flag("--config FILE", "Settings, as TOML.", to="config_file")
@flag("--workers", "Processes that serve.  [default: 1]", type=click.IntRange(1, 64))
@flag(
    "--log",
    "Write a line for every request to standard error, in this format.",
    choices=("text", "json"),
)
@flag("--observe", "Pass every byte untouched, and only record what would have been done.")
@flag("--check", "Show what would run, or every error, and end.")
@pass_output
def serve(
    output: Output,
    upstream: str | None,
    host: str | None,
    port: int | None,
    store: str | None,
    approvals: str | None,
    config_file: str | None,
    workers: int | None,
    log: "LogFormat | None",
    observe: bool,
    check: bool,
) -> ExitCode:
    """Make the tool calls of any client reliable, by changing its base URL.

    Chat completions, responses, messages and Gemini's format are served, whole and streamed.
    Without --upstream and --config, a small model inside this process answers. SIGTERM lets
    requests end before it stops, SIGHUP reads the settings anew.
    """
    gc.disable()  # nothing that an import makes is garbage
    try:
        from surecall.gateway.log import set_up_log
        from surecall.gateway.server import bind_socket, run_server, run_workers
        from surecall.gateway.settings.load import load_settings
    finally:
        gc.enable()

    path = Path(config_file) if config_file is not None else None
    given = {"host": host, "port": port, "workers": workers}

    def read() -> "GatewaySettings":
        return load_settings(
            path,
            upstream=upstream,
            server=given,
            store=store,
            approvals=approvals,
            log=log,
            observe=observe,
        )

    settings = read()
    listening = settings.server
    if check:
        _show_settings(output, settings)
        return ExitCode.OK
    set_up_log(settings.log.format)
    sock = bind_socket(listening.host, listening.port)
    url = address_of(listening.host, sock.getsockname()[1])

    def announce() -> None:
        _announce(output, settings, url)

    if listening.workers == 1:
        run_server(make_gateway(settings, read, 0), sock, announce)
        return ExitCode.OK
    code = run_workers(
        listening.workers,
        lambda number: make_gateway(settings, read, number),
        sock,
        announce,
    )
    return ExitCode.OK if code == 0 else ExitCode.INTERNAL


def _show_settings(output: Output, settings: "GatewaySettings") -> None:
    """Tell what would run; keys are named by their variable or file only."""
    upstreams = {
        name: {
            "url": entry.base or f"embedded:{entry.embedded}",
            "format": entry.protocol,
            "key": _describe_key(entry),
            "models": list(entry.settings.models) or ["*"],
        }
        for name, entry in settings.upstreams.items()
    }
    routes = {
        name: [f"{item.upstream}/{item.model}" for item in (*route.targets, *route.fallbacks)]
        for name, route in settings.routes.items()
    }
    store, approvals = settings.store, settings.approvals
    shown: dict[str, Any] = {
        "type": "settings",
        "url": address_of(settings.server.host, settings.server.port),
        "workers": settings.server.workers,
        "upstreams": upstreams,
        "routes": routes,
        "aliases": dict(settings.aliases),
        "keys": {key.settings.id: key.settings.role for key in settings.keys},
        "store": f"${store.url_env}" if store.url_env else store.path or "the default file",
        "observes": settings.policy.observe,
        "approvals": f"${approvals.url_env}" if approvals.url_env else approvals.store or "none",
    }
    if output.json:
        output.data(shown)
        return
    output.text(f"listens on {shown['url']}, workers: {shown['workers']}")
    for name, entry in upstreams.items():
        served = ", ".join(entry["models"])
        output.text(f"upstream {name}: {entry['url']} ({entry['format']}), models: {served}")
        output.text(f"  key: {entry['key']}")
    for name, targets in routes.items():
        output.text(f"route {name}: {', then '.join(targets)}")
    for name, target in settings.aliases.items():
        output.text(f"alias {name}: {target}")
    for name, role in shown["keys"].items():
        output.text(f"virtual key {name}: {role}")
    if shown["observes"]:
        output.text("observes: every byte passes untouched")
    output.text(f"records: {shown['store']}\napprovals: {shown['approvals']}\nno errors")


def _describe_key(entry: "UpstreamEntry") -> str:
    settings = entry.settings
    if settings.api_key_env:
        return f"${settings.api_key_env}"
    if settings.api_key_file:
        return settings.api_key_file
    if entry.key is not None:
        return f"from the environment, for {entry.provider}"
    return "the client's own" if entry.needs_client_key else "none"


def make_gateway(
    settings: "GatewaySettings", read: "Callable[[], GatewaySettings]", worker: int
) -> "Gateway":
    """Make the gateway of a worker, with its records and budgets."""
    from surecall.gateway import Gateway
    from surecall.gateway.app import BUDGETS_FILE
    from surecall.store.records import STORE_FILE, open_records
    from surecall.store.records.ledger import open_ledger
    from surecall.store.records.postgres import is_postgres

    place = find_store(settings)
    store: Any = None
    folder = Path(STORE_FILE).parent
    if place != "off":
        store = open_records(
            place or STORE_FILE,
            worker=worker,
            spool=settings.store.spool or None,
            spool_bytes=settings.store.spool_max_bytes,
        )
        folder = folder if is_postgres(place) else Path(place or STORE_FILE).parent
    ledger = open_ledger(place, folder / BUDGETS_FILE) if settings.keys else None
    shared = folder if place != "off" or settings.server.workers > 1 else None
    return Gateway(
        settings, store=store, worker=worker, read_settings=read, shared=shared, ledger=ledger
    )


def find_store(settings: "GatewaySettings") -> str:
    """Return where requests are recorded: `off`, a file, or the address of a server."""
    from surecall.models.config import read_key

    variable = settings.store.url_env
    if not variable:
        return settings.store.path
    secret = read_key(variable)
    if secret is None:
        raise ConfigError(
            Code.INVALID_CONFIG,
            f"store.url_env names {variable}, which is not set.",
            hint="Set it to a postgresql:// address.",
        )
    return secret.reveal()


def address_of(host: str, port: int) -> str:
    """Return the URL under which a program on this machine reaches the gateway."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - only shown
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{port}"


def _announce(output: Output, settings: "GatewaySettings", url: str) -> None:
    from surecall.gateway.programs import SHELL, GatewayAddress, find_program, list_programs

    model = example_model(settings)
    at = GatewayAddress(url, model, settings.example_key)
    if output.json:
        exports = at.environment(find_program(SHELL), {})
        output.data({"type": "ready", "url": url, "exports": exports})
        return
    output.text(f"ready on {url}")
    if output.quiet:
        return
    output.text(
        f"\nsurecall connect NAME --url {url} shows what to set; NAME is one of\n"
        + "\n".join(wrap(", ".join(list_programs()), 78))
        + f"\n\n{at.fill(find_program('curl').text)}\n\ndashboard: {url}/ui"
    )


def example_model(settings: "GatewaySettings") -> str:
    """Return a name that the gateway serves; for example."""
    for entry in settings.upstreams.values():
        if entry.embedded:
            return f"embedded:{entry.embedded}"
        for name in entry.settings.models:
            if "*" not in name:
                return name
    return next(iter((*settings.aliases, *settings.routes)), "YOUR_MODEL")


@click.group
def keys() -> None:
    """Make virtual keys of a gateway."""


@keys.command("new")
@click.argument("name", metavar="ID")
@flag("--role", "What the key may do.", choices=("call", "read-only", "admin"), shown="call")
@flag("--config FILE", "Add the key's digest to this file.", to="config_file")
@pass_output
def new_key(output: Output, name: str, role: str, config_file: str | None) -> None:
    """Make a virtual key, show it once, and keep its digest only."""
    import secrets
    from hashlib import sha256

    from surecall.gateway.settings.load import add_key

    key = f"sc-{secrets.token_urlsafe(32)}"
    digest = sha256(key.encode()).hexdigest()
    entry = f'[[keys]]\nid = "{name}"\nrole = "{role}"\nkey_sha256 = "{digest}"\n'
    add_key(None if config_file is None else Path(config_file), name, entry)
    if output.json:
        shown = {"id": name, "role": role, "key": key, "key_sha256": digest}
        output.data({"type": "key", **shown, "file": config_file})
        return
    output.text(key)
    if config_file is not None:
        output.note(f"{config_file} has the digest; the key is shown this once")
    else:
        output.note("the key is shown this once; add its digest to the file of the gateway:")
        for line in entry.splitlines():
            output.note(line)
