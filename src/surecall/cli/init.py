"""`surecall config init`: a commented configuration, filled in with what this machine has."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import click

from surecall.base.files import explain_write_errors, write_whole
from surecall.models.config import SETTINGS, Config, find_keys, load_config
from surecall.models.config.load import FILE_NAME
from surecall.models.profiles import ProviderEntry, embedded_name
from surecall.text import encode_text

from .flags import invalid_option, pass_output, settings_flags
from .output import ExitCode, Output

_SERVER: Final = "http://127.0.0.1:8000/v1"
_EXAMPLES: Final[Mapping[str, Any]] = {
    "model": "gpt-5",
    "base_url": "https://host.example/v1",
    "api_prefix": "/openai",
    "api_key_env": "MY_PROVIDER_KEY",
    "protocol": "responses",
    "provider": "openrouter",
    "preset": ["auto"],
    "profile": "default",
    "stream": True,
    "journal_dir": "journals",
    "trace_dir": "traces",
    "cache_dir": "cache",
    "evals_dir": "evals",
    "ca_file": "company.pem",
    "client_cert_file": "client.pem",
    "client_key_file": "client-key.pem",
    "probe": "auto",
    "max_probe_age_s": 604_800,
    "deadlines.connect_s": 10,
    "deadlines.first_byte_s": 60,
    "deadlines.idle_s": 60,
    "deadlines.total_s": 300,
    "retry.max_retries": 2,
    "retry.max_wait_s": 60,
    "local.n_ctx": 4096,
    "local.threads": 4,
    "local.passive_wait": True,
    "options.max_turns": 12,
    "capabilities.supports_parallel_tools": True,
    "headers.X-Title": "my application",
}
"""What a commented line suggests; tables come last, as TOML has it."""


@click.command
@settings_flags("model", "base_url", "provider")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--probe", "ask", is_flag=True, help="Ask the provider for its models afterwards.")
@pass_output
def init(output: Output, *, force: bool, ask: bool, **settings: str | None) -> ExitCode:
    """Write surecall.toml here: every setting with its meaning, and those that are known.

    Keys are looked for by the names of their variables, and only the names are written.
    """
    place = Path(FILE_NAME)
    if place.exists() and not force:
        raise invalid_option(f"The file {place} is already there.", "Use --force to replace it.")
    keys = find_keys()
    values = _choose_values(settings, keys)
    # refuses what could not be used later; a file that is replaced has no say
    config = load_config(overrides=values, search=False)
    with explain_write_errors(place), write_whole(place) as file:
        file.write("\n".join(_lines(values, keys)).encode())
    variables = [name for _, name in keys]
    words = f"wrote {place}; keys found: {', '.join(variables) or 'none'}"
    output.answer({"type": "init", "file": str(place), "keys": variables, **values}, words)
    output.note(f"next: {_next_command(config)}")
    return _ask_provider(output) if ask else ExitCode.OK


def _choose_values(
    settings: Mapping[str, str | None], keys: list[tuple[ProviderEntry, str]]
) -> dict[str, str]:
    values = {key: value for key, value in settings.items() if value is not None}
    if not values and keys:
        values["provider"] = keys[0][0].id
    return values


def _next_command(config: Config) -> str:
    """Return the command that shows whether the settings work."""
    has_place = config.base_url is not None or embedded_name(config.model) is not None
    if config.model is None:
        model = "MODEL" if has_place else f"MODEL@{_SERVER}"
        return f'surecall run "hi" --model {model}'
    return 'surecall run "hi"' + ("" if has_place else f" --base-url {_SERVER}")


def _lines(values: Mapping[str, str], keys: list[tuple[ProviderEntry, str]]) -> Iterator[str]:
    yield "# Settings of surecall. Variables such as SURECALL_MODEL win over this file, flags over"
    yield "# both. `surecall config show --origin` shows what is in force."
    yield "# Keys stay in the environment; found here:"
    for entry, variable in keys:
        yield f"#   {variable} ({entry.id})"
    if not keys:
        yield "#   none; a local server may need none"
    table = ""
    for key, example in _EXAMPLES.items():
        place, _, name = key.rpartition(".")
        if place != table:
            table = place
            yield from ("", f"# [{table}]")
        setting = SETTINGS.get(key) or SETTINGS[f"{table}.*"]
        value = values.get(key)
        yield from () if table else ("",)
        yield from wrap(setting.plain_doc, 88, initial_indent="# ", subsequent_indent="# ")
        yield f"{'# ' if value is None else ''}{name} = {encode_text(value or example)}"
    yield ""


def _ask_provider(output: Output) -> ExitCode:
    import asyncio

    from .reach import reach_provider

    config = load_config()
    if not config.base_url:
        raise invalid_option(
            "there is no provider to ask.",
            "Name one with --provider or --base-url, or write --model PROVIDER:MODEL.",
        )
    with output.waiting("asking the provider"):
        reached = asyncio.run(reach_provider(config))
    if reached.code:
        output.problem(reached.code, f"{config.base_url}: {reached.message}", reached.fix)
        return ExitCode.PROVIDER
    listed = list(reached.models)
    output.answer(
        {"type": "provider", "address": config.base_url, "models": listed},
        f"{config.base_url} {reached.message}",
    )
    if config.model:
        output.note(f"find out what the model really does: surecall probe {config.model}")
    return ExitCode.OK
