"""The pages of codes, events, options, settings, metrics and providers."""

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import get_args

import msgspec

from surecall.base.codes import explain_code
from surecall.base.records import CallSummary, Event, RunEvent, Usage
from surecall.cli.manual import find_page
from surecall.loop.options import Options
from surecall.models.config import SETTINGS
from surecall.models.profiles import Catalog
from surecall.models.transport import Deadlines, RetryPolicy
from surecall.wire import DEFAULT_PROTOCOL

from .words import doc_of, field_docs, field_list

OPTION_GROUPS: dict[str, tuple[str, ...]] = {
    "Tools": (
        *("tool_use_mode", "tool_choice", "required_tools", "after_required", "stop_after_calls"),
        *("tool_allowlist", "tool_denylist", "tool_failure_policy", "stream"),
    ),
    "Limits": (
        *("max_turns", "max_tool_calls", "max_tool_calls_per_turn", "max_identical_calls"),
        *("max_run_tokens", "deadline_s", "tool_timeout_s", "max_concurrent_calls"),
        *("max_tool_args_bytes", "max_turn_args_bytes", "max_tool_output_bytes"),
    ),
    "Broken replies": (
        *("max_escalations", "max_parse_retries", "fix_empty_final", "text_formats"),
        *("likely_calls", "fit_gate", "max_step_nudges"),
    ),
    "Typed answers": ("output_modes", "max_output_retries", "check_output"),
    "Requests": ("request_defaults", "request_overrides", "overrides_after_cut", "tool_prompting"),
}
"""The options by what they are for; all others are advanced."""


def code_groups() -> Iterator[tuple[str, list[str]]]:
    """Yield the sections of `codes.toml` with the codes in them."""
    text = files("surecall.base").joinpath("codes.toml").read_text("utf-8")
    title, codes = "", list[str]()
    for line in text.splitlines():
        if heading := re.fullmatch(r"# -+ (.+)", line):
            if codes:
                yield title, codes
            title, codes = heading[1], []
        elif table := re.fullmatch(r"\[([A-Z0-9_]+)\]", line):
            codes.append(table[1])
    yield title, codes


def page_link(topic: str) -> str:
    """Link to a page from the reference."""
    page = find_page(topic)
    folder = "" if page.kind == "reference" else f"../{page.kind}/"
    return f"[{page.title}]({folder}{topic}.md)"


def codes_page() -> str:
    """Every code, with what it means and what to do."""
    parts = [
        "# Codes\n",
        "Every failure, refusal and finding has one stable code: what it means, and what to do.",
        "`surecall docs CODE` also prints why and where it occurs, and how surecall reacts.\n",
    ]
    for title, codes in code_groups():
        parts.append(f"## {title[0].upper()}{title[1:]}\n")
        for name in codes:
            text = explain_code(name)
            parts += [
                f"### {name}\n",
                f"{text.title}\n",
                text.fix + (f" {page_link(text.page)}." if text.page else ""),
                "",
            ]
    return "\n".join(parts)


def events_page() -> str:
    """Every event with its fields."""
    parts = [
        "# Events\n",
        "A run reports what happens as it happens: to `on_event`, and through `surecall.stream`.",
        "Events carry sizes and codes, not bodies, except for text deltas.",
        "A listener that raises does not disturb the run.\n",
        "Every event has these fields:\n",
        *field_list(Event),
        "",
    ]
    for event in get_args(RunEvent):
        tag = msgspec.structs.fields(event) and event.__struct_config__.tag
        parts += [f"## {tag}\n", f"`{event.__name__}`: {doc_of(event)}\n", *field_list(event), ""]
    for record in (CallSummary, Usage):
        parts += [f"## {record.__name__}\n", f"{doc_of(record)}\n", *field_list(record), ""]
    return "\n".join(parts)


def options_page() -> str:
    """Every option of a run with its default, by what it is for."""
    fields = {field.name: field for field in msgspec.structs.fields(Options)}
    docs = {doc.name: doc for doc in field_docs(Options)}
    grouped = {name for names in OPTION_GROUPS.values() for name in names}
    groups = OPTION_GROUPS | {"Advanced": tuple(name for name in docs if name not in grouped)}
    parts = [
        "# Options\n",
        "How a run behaves.",
        "Each can be given to `surecall.run(...)` by name, in the table `[options]` of",
        "`surecall.toml`, or as a variable such as `SURECALL_OPTIONS__MAX_TURNS=8`.",
        "An unknown option is an error.",
        "Behind the name are its type and its default.\n",
    ]
    for title, names in groups.items():
        parts.append(f"## {title}\n")
        for name in names:
            default = fields[name].default
            if default is msgspec.NODEFAULT:
                factory = fields[name].default_factory
                default = factory() if callable(factory) else None
            shown = repr(default) if default is not None else "unset"
            doc = docs[name]
            parts.append(f"- `{name}`: `{doc.type}`, `{shown}`. {doc.doc}")
        parts.append("")
    return "\n".join(parts)


def settings_page() -> str:
    """Every setting with its variable."""
    wire = {"deadlines": Deadlines(), "retry": RetryPolicy()}
    built_in = {
        key: getattr(wire[key.partition(".")[0]], key.partition(".")[2])
        for key in SETTINGS
        if key.partition(".")[0] in wire
    }
    parts = [
        "# Settings\n",
        "From weakest to strongest: the default, `surecall.toml` in the current folder or the",
        "nearest parent (or `[tool.surecall]` in `pyproject.toml`), a `SURECALL_*` variable, and",
        "what is given explicitly.",
        "An unknown key or variable is an error with a suggestion.",
        "`surecall config doctor` shows every value with its origin.",
        "Behind the name are the kind of value and the default.\n",
    ]
    for key, setting in SETTINGS.items():
        shown = {None: "unset", (): "none", False: "`false`"}
        default = shown.get(setting.default, f"`{setting.default}`")
        default = f"{built_in[key]:g}" if key in built_in else default
        parts.append(f"- `{key}`: {setting.expected}, {default}. {setting.doc}")
    parts += [
        "",
        "The variable of a setting is `SURECALL_` and its name in capitals, with `__` for a dot:",
        "`SURECALL_BASE_URL`, `SURECALL_LOCAL__N_CTX`.",
        "Variables are read as TOML values where the key takes more than a string:",
        '`true`, `8`, `0.5`, `["a", "b"]`; anything else is a string.',
        "A further `__` reaches inside an option: `SURECALL_OPTIONS__REQUEST_OVERRIDES__SEED=7`.",
        "A blank variable counts as unset.\n",
        "## The key\n",
        "A key never belongs in a file: `api_key = ...` there is refused.",
        "It is read from the variable that `api_key_env` names, or else from `SURECALL_API_KEY`.",
        "Where a provider is known to need a key and there is none, nothing is sent, and the",
        "error names the variable.",
        "The key of a [provider](providers.md) goes to that provider only; `OPENAI_API_KEY` also",
        "goes where `OPENAI_BASE_URL` points.",
        "Only the name of the variable is ever shown.\n",
        "## Folders\n",
        "A relative folder in a file is relative to that file; in a variable or flag it is",
        "relative to the current folder.\n",
    ]
    return "\n".join(parts)


def metrics_page() -> str:
    """Return every series with its labels and what it counts."""
    from surecall.base.metrics import Metrics
    from surecall.gateway.telemetry import RunMetrics
    from surecall.gateway.telemetry.counters import RequestMetrics

    gateway, run = Metrics(), Metrics()
    RequestMetrics(gateway)
    RunMetrics(run)
    shared = {series.name for series in gateway.series()}
    parts = {
        "A gateway": gateway.series(),
        "Runs of the library": [one for one in run.series() if one.name not in shared],
    }
    lines = [
        "# Metrics",
        "",
        "The gateway's metrics, served at `/metrics` in Prometheus text format.",
        "Runs of the library count in the same series of replies, under the upstream `library`,",
        "and in some of their own. A value of a label that was not configured is `other`.",
    ]
    for title, found in parts.items():
        lines += ["", f"## {title}", ""]
        for one in found:
            labels = ", ".join(f"`{label}`" for label in one.labels)
            kind = f"{one.kind} by {labels}" if labels else one.kind
            lines.append(f"- `{one.name}`: {kind}. {one.help}")
    return "\n".join(lines) + "\n"


def providers_page() -> str:
    """Return the providers that can be named, with what their names imply."""
    lines = [
        "# Providers",
        "",
        "`--provider NAME` or `NAME:MODEL` implies the address, the wire format and the variable",
        "that holds the key; so does the name of a model that belongs to one provider.",
        "Anything else that speaks one of the wire formats works by its address:",
        "`MODEL@https://HOST/v1`, or `--base-url`.",
        "",
        "```console",
        '$ surecall run "hi" --model gpt-5',
        '$ surecall run "hi" --model openrouter:vendor/model',
        '$ surecall run "hi" --model my-model@http://127.0.0.1:8000/v1',
        "```",
        "",
        "An address that is given together with the model, or by a stronger source, decides;",
        "then a colon in the name is part of it, as in `mistral:7b` of Ollama.",
        "",
        "| name | also | address | wire format | key | models by name |",
        "|---|---|---|---|---|---|",
    ]
    for entry in Catalog.builtin().providers:
        cells = (
            f"`{entry.id}`",
            ", ".join(f"`{name}`" for name in entry.aliases) or "–",
            f"`{entry.base_url}`" if entry.base_url else "–",
            f"`{entry.protocol or DEFAULT_PROTOCOL}`",
            ", ".join(f"`{name}`" for name in entry.key_env) or "–",
            ", ".join(f"`{name}`" for name in entry.models) or "–",
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "Every fact about a provider and its models has a date and a source:",
        "`surecall models`, and [Capabilities](../explanation/capabilities.md).",
        "A provider without an address has one for each customer, or runs in this process.",
    ]
    return "\n".join(lines) + "\n"
