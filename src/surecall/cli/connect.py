"""`surecall connect` and `surecall with`: a program uses a gateway, for good or while it runs."""

import asyncio
import contextlib
import shutil
import signal
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from surecall.base.errors import Code, ConfigError, JSONTextError, invalid_config
from surecall.base.files import explain_write_errors, write_whole
from surecall.base.json_values import as_fields
from surecall.models.client.network import is_loopback
from surecall.models.config import all_variables
from surecall.text import decode, encode_text

from .console import Output
from .event_lines import count_of
from .flags import flag, pass_output
from .serve import address_of, example_model, find_store, make_gateway
from .suggestions import complete_programs

if TYPE_CHECKING:
    from surecall.gateway import Gateway, GatewaySettings
    from surecall.gateway.programs import Program

_DEFAULT_URL: Final = "http://127.0.0.1:8787"
_COMMON_RULES: Final = 3
_KEPT_SUFFIX: Final = ".before-surecall"


@click.command
@click.argument("name", required=False, shell_complete=complete_programs)
@flag("--url", "Where the gateway is.", shown=_DEFAULT_URL)
@flag("--model", "The model that the program asks for.", default="")
@flag("--key", "A key of the gateway.  [default: your own keys stay]", type=str)
@flag("--write", "Write it into the program's own settings.")
@pass_output
def connect(
    output: Output, name: str | None, url: str, model: str, key: str | None, write: bool
) -> None:
    """Show what to set so that a program uses the gateway; `shell` prints exports for any program.

    Without NAME, every program is listed.
    """
    from surecall.gateway.programs import GatewayAddress, find_program, list_programs

    if name is None:
        titles = {name: program.title for name, program in list_programs().items()}
        if output.json:
            output.data({"type": "programs", "programs": titles})
        for name, title in () if output.json else titles.items():
            output.text(f"{name:<12} {title}")
        return
    program = find_program(name)
    at = GatewayAddress(url.rstrip("/"), model, key)
    if program.needs_model and not model:
        _refuse_without_model(program)
    if write:
        _write_settings(output, program, at.fill(program.content))
        return
    if output.json:
        shown = {
            "variables": at.environment(program, {}),
            "arguments": at.arguments(program),
            "file": program.file,
            "content": at.fill(program.content),
            "text": at.fill(program.text),
        }
        output.data({"type": "connection", "name": name, **shown})
        return
    output.text(at.lines(program))
    if program.content:
        output.note(f"or write it into {program.file} for good: surecall connect {name} --write")
    if program.command:
        output.note(f"or start a gateway for one session: surecall with {name}")


def _refuse_without_model(program: "Program") -> None:
    raise ConfigError(
        Code.INVALID_CONFIG,
        f"{program.title} asks for the models that it is told of, and none is named.",
        hint="Name it with --model.",
    )


def _write_settings(output: Output, program: "Program", content: str) -> None:
    """Add the content to the program's file; what was there before stays beside it."""
    if not content:
        raise invalid_config(
            f"{program.title} has no file that can be written for it.",
            "Without --write, this command shows what to set.",
        )
    path = Path(program.file).expanduser()
    earlier, text = _read_joined(path, content)
    if text == earlier:
        output.answer({"type": "written", "file": str(path), "changed": False}, f"{path} has it")
        return
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if earlier:
            shutil.copy2(path, path.with_name(path.name + _KEPT_SUFFIX))
        with write_whole(path) as file:
            file.write(text.encode())
    output.answer({"type": "written", "file": str(path), "changed": True}, f"wrote {path}")
    if earlier:
        output.note(f"the file as it was is {path.name}{_KEPT_SUFFIX}, beside it")


def _read_joined(path: Path, content: str) -> tuple[str, str]:
    """Read a file; return its text without and with the content, which are equal if it is there."""
    try:
        earlier = path.read_text(encoding="utf-8") if path.exists() else ""
        join = _join_json if path.suffix == ".json" else _join_toml
        return earlier, join(earlier, content)
    except (OSError, ValueError, JSONTextError) as error:
        raise invalid_config(f"{path}: {error}.", "Correct it first.") from error


def _join_json(earlier: str, content: str) -> str:
    document: Any = decode(earlier or "{}")
    if not isinstance(document, dict):
        raise ValueError("it is not an object")
    joined = _join(as_fields(document), as_fields(decode(content)))
    return earlier if joined == document else encode_text(joined, indent=2) + "\n"


def _join(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    joined = dict(earlier)
    for name, value in later.items():
        is_table = isinstance(earlier.get(name), dict) and isinstance(value, dict)
        joined[name] = _join(as_fields(earlier[name]), as_fields(value)) if is_table else value
    return joined


def _join_toml(earlier: str, content: str) -> str:
    """Add keys at the beginning and tables at the end; comments and order stay."""
    there, wanted = tomllib.loads(earlier), tomllib.loads(content)
    if _join(there, wanted) == there:
        return earlier
    keys, _, tables = content.partition("\n[")
    if taken := [name for name in wanted if name in there and not isinstance(wanted[name], dict)]:
        raise ValueError(f"it sets {taken[0]} already, to {there[taken[0]]!r}; take that out")
    for name, value in wanted.items():
        for inner in as_fields(value) if isinstance(value, dict) else ():
            if inner in as_fields(there.get(name)):
                raise ValueError(f"it has [{name}.{inner}] already; take that out")
    return f"{keys.strip()}\n{earlier.rstrip()}\n\n[{tables.strip()}\n".replace("\n\n\n", "\n\n")


@click.command("with")
@click.argument("name", metavar="NAME|COMMAND", shell_complete=complete_programs)
@click.argument("words", nargs=-1, metavar="[-- ARGUMENTS]")
@flag("--upstream URL", "Where requests go; any OpenAI-compatible address.")
@flag("--config FILE", "Settings of the gateway, as TOML.", to="config_file")
@flag("--model", "The model that the program asks for.", default="")
@flag("--store PATH", "Where requests are recorded: a file, a postgresql:// address, or off.")
@pass_output
def with_program(
    output: Output,
    name: str,
    words: tuple[str, ...],
    upstream: str | None,
    config_file: str | None,
    model: str,
    store: str | None,
) -> int:
    """Run a program with a gateway of its own, and say at the end what was repaired.

    NAME is a program that `surecall connect` lists, or any command; its arguments come behind `--`:
    surecall with codex --upstream http://127.0.0.1:11434/v1 --model qwen3 -- exec "fix the test"
    """
    from surecall.gateway.programs import SHELL, GatewayAddress, list_programs
    from surecall.gateway.server import bind_socket
    from surecall.gateway.settings.load import load_settings

    program = list_programs().get(name.lower(), list_programs()[SHELL])
    command = program.command or name
    if (found := shutil.which(command)) is None:
        how = f", as in `{program.install}`" if program.install else ""
        raise invalid_config(f"There is no command {command!r} on the PATH.", f"Install it{how}.")
    path = Path(config_file) if config_file is not None else None
    settings = load_settings(path, upstream=upstream, store=store)
    model = model or _only_model(settings)
    if program.needs_model and not model:
        _refuse_without_model(program)
    if program.needs_file:
        earlier, wanted = _read_joined(Path(program.file).expanduser(), program.content)
        if wanted != earlier:
            raise invalid_config(
                f"{program.title} uses no other address until a setting is in {program.file}.",
                f"`surecall connect {name} --write` puts it there.",
            )
    sock = bind_socket("127.0.0.1", 0)
    at = GatewayAddress(address_of("127.0.0.1", sock.getsockname()[1]), model, _key_of(settings))
    environ = all_variables()
    environ |= at.environment(program, environ)
    began = time.time()
    gateway = make_gateway(settings, lambda: settings, 0)
    code = asyncio.run(
        _serve_beside(gateway, sock, [found, *at.arguments(program), *words], environ)
    )
    _report(output, find_store(settings), began)
    return code


def _only_model(settings: "GatewaySettings") -> str:
    """The model that can only be meant; none where the program's own choice may be served."""
    embedded = any(entry.embedded for entry in settings.upstreams.values())
    return example_model(settings) if embedded and len(settings.upstreams) == 1 else ""


def _key_of(settings: "GatewaySettings") -> str | None:
    """Return what a program that has no key sends: something where none may be needed."""
    from surecall.gateway.programs import PLACEHOLDER_KEY

    if settings.keys:
        raise invalid_config(
            "These settings demand keys of the gateway, and a program of yours has none of them.",
            "Take [[keys]] out of the file, or start `surecall serve` and use `surecall connect`.",
        )
    hosts = (urlsplit(entry.base).hostname or "" for entry in settings.upstreams.values())
    at_home = all(not host or is_loopback(host) for host in hosts)
    return PLACEHOLDER_KEY if at_home else settings.example_key


async def _serve_beside(
    gateway: "Gateway", sock: Any, words: list[str], environ: dict[str, str]
) -> int:
    """Run the program while the gateway serves, and return how it ended."""
    from surecall.gateway.server import GatewayServer

    server = GatewayServer(gateway)
    await gateway.open()
    try:
        await server.startup(sock)
        process = await asyncio.create_subprocess_exec(*words, env=environ)
        loop = asyncio.get_running_loop()
        if sys.platform != "win32":
            # A terminal interrupts the program as well, which decides what that means.
            loop.add_signal_handler(signal.SIGINT, lambda: None)
            for name in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(name, _send, process, name)
        code = await process.wait()
        await server.shutdown()
    finally:
        await gateway.close()
    return code if code >= 0 else 128 - code


def _send(process: "asyncio.subprocess.Process", name: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(name)


def _report(output: Output, place: str, began: float) -> None:
    """Say what was done, and where to look."""
    from surecall.store.records import STORE_FILE, open_for_reading
    from surecall.store.records.tables import RecordFilter

    if place == "off":
        output.note("surecall kept no records, so there is nothing to tell")
        return
    outcomes: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    codes: Counter[str] = Counter()

    async def count() -> None:
        store = open_for_reading(place or STORE_FILE)
        try:
            async for record in store.export(RecordFilter(since=began)):
                outcomes[record.outcome] += 1
                rules.update(receipt.rule for receipt in record.receipts)
                codes.update(defect.code for defect in record.defects)
                codes.update(filter(None, [record.error_code]))
        finally:
            await store.close()

    asyncio.run(count())
    shown = ", ".join(f"{number} {name}" for name, number in outcomes.most_common())
    output.note(f"surecall: {count_of(outcomes.total(), 'request')}: {shown or 'none came'}")
    common = (rules + codes).most_common(_COMMON_RULES)
    if common:
        output.note(f"most often: {', '.join(f'{name} ×{number}' for name, number in common)}")
    if outcomes:
        flag = "" if not place else f" --store {place}"
        output.note(f"each of them: surecall requests list{flag}")
