"""Write the reference pages that are made from the code; `--check` only compares.

python scripts/generate_reference.py [--check]
"""

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_args

import msgspec

import surecall
from surecall.config import SETTINGS
from surecall.evals.scenarios import PRESETS, REASON_MEANINGS, SCENARIOS
from surecall.explain import explain_code
from surecall.faults import GROUPS, Fault, find_faults, zoo
from surecall.formats import FORMATS, CallFormat, ToolNames, catalog
from surecall.loop.options import Options
from surecall.manual import find_page
from surecall.profiles import Catalog
from surecall.protocols import DEFAULT_PROTOCOL, PROTOCOLS
from surecall.records import CallSummary, Event, RunEvent, ToolSpec, Usage
from surecall.transport import Deadlines, RetryPolicy

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
LINE_CHARS = 88
PAGE_OF = {"Code": "[Codes](codes.md)", "Options": "[Options](options.md)"}
NOTE = "<!-- Made by scripts/generate_reference.py; changes here are lost. -->\n\n"


class FieldDoc(NamedTuple):
    """A field of a record as a page shows it."""

    name: str
    type: str
    default: str
    doc: str


def field_docs(record: type) -> list[FieldDoc]:
    """List the fields of a class in order, with the text that stands below each."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found: list[FieldDoc] = []
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if not node.target.id.startswith("_"):
            default = ast.unparse(node.value) if node.value else ""
            found.append(
                FieldDoc(node.target.id, ast.unparse(node.annotation), default, literal(after))
            )
    return found


def literal(node: ast.stmt | None) -> str:
    """Return the text of a bare string statement, on one line."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return ""


def cell(text: str) -> str:
    """Escape text for a table."""
    return text.replace("|", "\\|")


def code(text: str) -> str:
    """Set text as code inside a table, or leave the cell empty."""
    return f"`{cell(text)}`" if text else ""


def doc_of(value: Any) -> str:
    """Return the cleaned docstring."""
    return inspect.cleandoc(value.__doc__ or "")


# ---------------------------------------------------------------- codes


def code_groups() -> Iterator[tuple[str, list[str]]]:
    """Yield the sections of `codes.toml` with the codes in them."""
    text = files("surecall").joinpath("codes.toml").read_text("utf-8")
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
        "Every failure, refusal and finding has one stable code.",
        "`surecall explain CODE` prints the same text without a network.\n",
    ]
    for title, codes in code_groups():
        parts.append(f"## {title[0].upper()}{title[1:]}\n")
        for name in codes:
            text = explain_code(name)
            parts += [
                f"### {name}\n",
                f"{text.title}\n",
                f"- **Seen:** {text.seen}",
                f"- **Why:** {text.why}",
                f"- **What to do:** {text.fix}",
                f"- **What surecall does:** {text.reaction}",
                *([f"- **Read on:** {page_link(text.page)}"] if text.page else []),
                "",
            ]
    return "\n".join(parts)


# ---------------------------------------------------------------- events


def events_page() -> str:
    """Every event with its fields."""
    parts = [
        "# Events\n",
        "A run tells what happens as it happens: to `on_event`, and through `surecall.stream`.",
        "Events carry sizes and codes, not bodies, except for text deltas.",
        "An exception raised by a listener does not disturb the run.\n",
        "Every event has these fields:\n",
        *field_table(Event),
    ]
    for event in get_args(RunEvent):
        tag = msgspec.structs.fields(event) and event.__struct_config__.tag
        parts += [f"## {tag}\n", f"`{event.__name__}`: {doc_of(event)}\n", *field_table(event)]
    for record in (CallSummary, Usage):
        parts += [f"## {record.__name__}\n", f"{doc_of(record)}\n", *field_table(record)]
    return "\n".join(parts)


def field_table(record: type) -> list[str]:
    """Draw the fields of a record as a table."""
    docs = field_docs(record)
    if not docs:
        return []
    rows = [f"| {code(doc.name)} | {code(doc.type)} | {cell(doc.doc)} |" for doc in docs]
    return ["| field | type | |", "|---|---|---|", *rows, ""]


# ---------------------------------------------------------------- options and settings


def options_page() -> str:
    """Every option of a run with its default."""
    defaults = {field.name: field for field in msgspec.structs.fields(Options)}
    parts = [
        "# Options\n",
        "How a run behaves.",
        "Each can be given to `surecall.run(...)` by name, in the table `[options]` of",
        "`surecall.toml`, or as a variable such as `SURECALL_OPTIONS__MAX_TURNS=8`.",
        "An unknown option is an error.\n",
        "| option | type | default | |",
        "|---|---|---|---|",
    ]
    for doc in field_docs(Options):
        field = defaults[doc.name]
        default = field.default
        if default is msgspec.NODEFAULT:
            default = field.default_factory() if callable(field.default_factory) else None
        shown = repr(default) if default is not None else "unset"
        parts.append(f"| {code(doc.name)} | {code(doc.type)} | {code(shown)} | {cell(doc.doc)} |")
    return "\n".join([*parts, ""])


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
        "`surecall doctor` shows every value with its origin.\n",
        "| key | variable | takes | default | |",
        "|---|---|---|---|---|",
    ]
    for key, setting in SETTINGS.items():
        variable = "SURECALL_" + key.upper().replace(".", "__").replace("*", "NAME")
        shown = {None: "unset", (): "none", False: "`false`"}
        default = shown.get(setting.default, f"`{setting.default}`")
        default = f"{built_in[key]:g}" if key in built_in else default
        parts.append(
            f"| `{key}` | `{variable}` | {setting.expected} | {default} | {cell(setting.doc)} |"
        )
    parts += [
        "",
        "Variables are read as TOML values where the key takes more than text:",
        '`true`, `8`, `0.5`, `["a", "b"]`; anything else is text.',
        "A further `__` reaches inside an option: `SURECALL_OPTIONS__REQUEST_OVERRIDES__SEED=7`.",
        "A blank variable counts as unset.\n",
        "## The key\n",
        "A key never belongs in a file: `api_key = ...` there is refused.",
        "It is read from the variable that `api_key_env` names, or else from `SURECALL_API_KEY`.",
        "The key of a [provider](providers.md) goes to that provider only; `OPENAI_API_KEY` also",
        "goes where `OPENAI_BASE_URL` points.",
        "Only the name of the variable is ever shown.\n",
        "## Folders\n",
        "A relative folder in a file is relative to that file; in a variable or flag it is",
        "relative to the current folder.\n",
    ]
    return "\n".join(parts)


# ---------------------------------------------------------------- text formats

SAMPLE_TOOL = "get_weather"
MAX_OPENERS = 4
TEXT_FORMATS_INTRO = Path(__file__).with_name("text_formats_intro.md")


def text_formats_page() -> str:
    """Every family of text formats."""
    parts = ["# Text formats\n", TEXT_FORMATS_INTRO.read_text("utf-8")]
    tools = ToolNames([ToolSpec(name=SAMPLE_TOOL)])
    groups = format_groups()
    assert [name for _, names in groups for name in names] == [
        type(form).__name__ for form in FORMATS
    ]
    forms = iter(FORMATS)
    for title, names in groups:
        parts += [
            f"## {title[0].upper()}{title[1:]}\n",
            "| family | what it is | begins with | line | space |",
            "|---|---|---|---|---|",
            *(format_row(next(forms), tools) for _ in names),
            "",
        ]
    return "\n".join(parts)


def format_groups() -> list[tuple[str, list[str]]]:
    """Return the groups of the catalog with the classes in them."""
    groups: list[tuple[str, list[str]]] = []
    for line in inspect.getsource(catalog).splitlines():
        if heading := re.fullmatch(r"    # (.+)", line):
            groups.append((heading[1], []))
        elif groups and (entry := re.fullmatch(r"    (\w+)\(.*\),", line)):
            groups[-1][1].append(entry[1])
    return groups


def format_row(form: CallFormat, tools: ToolNames) -> str:
    """Describe one family in a row."""
    shown = dict.fromkeys(opener.strip().replace("\n", "\\n") for opener in form.openers(tools))
    openers = [code_span(opener) for opener in shown]
    begins = ", ".join(openers[:MAX_OPENERS])
    if len(openers) > MAX_OPENERS:
        begins += f" and {len(openers) - MAX_OPENERS} more"
    line = "start" if form.line_start else "anywhere"
    space = "dropped" if form.trims else "kept"
    doc = cell(doc_of(type(form)).partition("\n")[0])
    return f"| `{form.name}` | {doc} | {begins} | {line} | {space} |"


def code_span(text: str) -> str:
    """Set any text as code inside a table, also one that has backticks."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{cell(text)}{pad}{fence}"


# ---------------------------------------------------------------- faults


def faults_page() -> str:
    """Every named fault and every simulated model."""
    parts = [
        "# Faults\n",
        "What [a faulty provider](../how-to/test-against-a-faulty-provider.md) can do to a reply.",
        "Each row says what a run makes of it when every reply has the fault: *right* means that",
        "the right call is run exactly once and the answer is given; a code is how the run ends.",
        "`surecall faults show NAME` tells more.\n",
        "A fault is served in all four wire formats unless its row names some; a request that asks",
        "for it in another one is answered with",
        "[FAULT_NOT_APPLICABLE](codes.md#fault_not_applicable).\n",
    ]
    for group in GROUPS:
        chosen = find_faults(group)
        has_truth = group == "capability"
        parts += [
            f"## {group}\n",
            f"| fault | what it does | a run |{' what is true |' if has_truth else ''}",
            f"|---|---|---|{'---|' if has_truth else ''}",
            *(fault_row(fault, has_truth=has_truth) for fault in chosen),
            "",
        ]
    parts += [
        "## Simulated models\n",
        "They follow published descriptions of how models fail; the probabilities are chosen, not",
        "measured, so a result against one says nothing about the model whose description it",
        "follows.\n",
        "| model | what it does | follows |",
        "|---|---|---|",
    ]
    for model in zoo():
        follows = ", ".join(f"`{name}`" for name in model.models) or "small local models"
        parts.append(f"| `zoo:{model.name}` | {cell(model.describes)} | {follows} |")
    return "\n".join([*parts, ""])


def fault_row(fault: Fault, *, has_truth: bool) -> str:
    """Describe one fault in a row."""
    outcome = "right" if fault.code is None else f"[{fault.code}](codes.md#{fault.code.lower()})"
    for protocol, code in fault.codes.items():
        outcome += f" ([{code}](codes.md#{code.lower()}) in `{protocol}`)"
    if fault.refusal is not None:
        outcome += f"; the model reads [{fault.refusal}](codes.md#{fault.refusal.lower()})"
    if fault.needs:
        outcome += f", with `{fault.needs}`"
    reach = {"both": "", "whole": " Whole replies only.", "stream": " Streamed replies only."}
    named = ", ".join(f"`{name}`" for name in fault.protocols)
    formats = "" if len(fault.protocols) == len(PROTOCOLS) else f" Only in {named}."
    row = f"| `{fault.name}` | {cell(fault.does)}{reach[fault.reach]}{formats} | {outcome} |"
    if not has_truth:
        return row
    truths = (f"`{name}` is `{cell(repr(value))}`" for name, value in fault.truth.items())
    return f"{row} {', '.join(truths)} |"


# ---------------------------------------------------------------- scenarios


def scenarios_page() -> str:
    """Every scenario of the suite `state`, its presets, and every reason for failing one."""
    parts = [
        "# Scenarios\n",
        "The suite `state` asks a model to work on [a workspace](../explanation/workspace.md).",
        "Every trial has its own workspace and gets two verdicts.",
        "The *loose* one is that of the experiment this suite continues: a final text and a value.",
        "The *strict* one asks whether the model did what it was asked to do, and nothing else.",
        "For every scenario it also demands that the run ended with the right answer, that",
        "`/draft/foo` was changed once and nothing else was, that the workspace was read in an",
        "earlier reply where reading comes first, that no call named another workspace or a locked",
        "path, that no hidden tool was called, and that no call is shown in the answer.\n",
        "| scenario | what is asked | loose: yes when | strict: besides what applies to all |",
        "|---|---|---|---|",
    ]
    for scenario in SCENARIOS:
        name = f"`{scenario.name}`" + (" (control)" if scenario.control else "")
        texts = (scenario.asks, scenario.loose, scenario.strict)
        parts.append(f"| {name} | {' | '.join(cell(text) for text in texts)} |")
    parts += [
        "",
        "## Presets\n",
        "Names and presets can be mixed, separated by commas; `*` stands for any characters and",
        "`!` excludes, as in `typical,multi*,!chat_only`.",
        "Without any, `default` is meant; `*` alone is `all`.",
        "A name that is not known is [an error](codes.md#unknown_scenario).",
        "The order is always that of the table above.\n",
        "| preset | scenarios |",
        "|---|---|",
    ]
    everything = tuple(scenario.name for scenario in SCENARIOS)
    for preset, members in PRESETS.items():
        listed = "every one" if members == everything else ", ".join(f"`{x}`" for x in members)
        parts.append(f"| `{preset}` | {listed} |")
    parts += [
        "",
        "## Reasons\n",
        "A verdict of no has one reason or more, each with a stable code.\n",
        "| reason | what it means |",
        "|---|---|",
        *(f"| `{reason}` | {cell(text)} |" for reason, text in REASON_MEANINGS.items()),
    ]
    return "\n".join([*parts, ""])


# ---------------------------------------------------------------- API


def api_page() -> str:
    """Every top-level name."""
    parts = ["# API\n", "Every name of `import surecall`.\n"]
    for name in getattr(surecall, "__all__", ()):
        parts += api_entry(name, getattr(surecall, name))
    return "\n".join(parts)


def api_entry(name: str, value: Any) -> list[str]:
    """Describe one top-level name."""
    heading = f"## `{name}`\n"
    if name in PAGE_OF:
        return [heading, f"{doc_of(value)}", f"See {PAGE_OF[name]}.\n"]
    if not inspect.isclass(value):
        return [heading, *signature_block(name, value), *doc_lines(value)]
    entry = [heading]
    if not issubclass(value, msgspec.Struct) and "__init__" in vars(value):
        entry += signature_block(name, value.__init__)
    entry += doc_lines(value)
    if issubclass(value, msgspec.Struct):
        entry += field_table(value)
    return [*entry, *class_members(value)]


def doc_lines(value: Any) -> list[str]:
    """Write a docstring as text, with its sections as lists."""
    lines: list[str] = []
    in_section = False
    for line in doc_of(value).splitlines():
        item = re.fullmatch(r"    (\*{0,2}\w+): (.+)", line)
        if line in {"Args:", "Raises:", "Returns:"}:
            in_section = True
            lines += [f"{line}\n"]
        elif in_section and item:
            lines.append(f"- `{item[1]}`: {item[2]}")
        elif in_section and line.startswith("    "):
            lines.append(f"  {line.strip()}")
        else:
            lines.append(line)
    return [*lines, ""]


def class_members(value: type) -> list[str]:
    """List the public methods and properties that a class defines itself."""
    lines: list[str] = []
    for name, member in vars(value).items():
        kind = isinstance(member, property | classmethod | staticmethod)
        if name.startswith("_") or not (kind or inspect.isfunction(member)):
            continue
        shown = name if isinstance(member, property) else f"{name}()"
        lines.append(f"- `{shown}`: {doc_of(member).partition(chr(10))[0]}")
    return [*lines, ""] if lines else []


def signature_block(name: str, function: Callable[..., Any]) -> list[str]:
    """Write the signature as it stands in the source, without `self`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef)
    arguments = tree.args
    if arguments.args and arguments.args[0].arg == "self":
        arguments.args.pop(0)
    word = "await " if isinstance(tree, ast.AsyncFunctionDef) else ""
    returns = f" -> {ast.unparse(tree.returns)}" if tree.returns and tree.name != "__init__" else ""
    parts = [
        re.sub(r"^(\w+: [^=]+)=(.+)$", r"\1 = \2", part)
        for part in top_level_parts(ast.unparse(arguments))
    ]
    line = f"{word}{name}({', '.join(parts)}){returns}"
    if len(line) > LINE_CHARS:
        line = f"{word}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"
    return ["```text", line, "```\n"]


def top_level_parts(text: str) -> list[str]:
    """Split at the commas that are in no bracket and no quote."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        quote = "" if char == quote else quote or (char if char in "'\"" else "")
        depth += 0 if quote else (char in "([{") - (char in ")]}")
        if char == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


# Packages


def packages_page() -> str:
    """Return what each package offers through its entrance, with one sentence for each name."""
    lines = [
        "# Packages",
        "",
        "What each package offers: `from surecall.reading import read_reply`.",
        "What most programs need is in `surecall` itself: see [API](api.md).",
        "Everything else inside a package may change without notice.",
    ]
    for package in public_packages():
        module = importlib.import_module(package)
        lines += ["", f"## {package}", "", *doc_of(module).partition("\n\n")[0].splitlines()]
        if module.__all__:
            lines += ["", "| name | what it is |", "|---|---|"]
            lines += [
                f"| `{name}` | {cell(first_words(module, name))} |" for name in module.__all__
            ]
    return "\n".join(lines) + "\n"


def public_packages() -> list[str]:
    """List every package below `surecall` that has an entrance for others."""
    root = Path(surecall.__file__ or "").parent
    found = (path.parent.relative_to(root.parent) for path in root.rglob("__init__.py"))
    return sorted(".".join(path.parts) for path in found if len(path.parts) == 2)


def first_words(module: ModuleType, name: str) -> str:
    """Return the first sentence about a name: its docstring, or the text below its definition."""
    value = getattr(module, name)
    home = getattr(value, "__module__", None)
    if (inspect.isclass(value) or inspect.isroutine(value)) and home:
        return one_line(doc_of(value))
    for source in (module, *imported_modules(module, name)):
        body = ast.parse(inspect.getsource(source)).body
        for node, after in zip(body, [*body[1:], None], strict=True):
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return one_line(literal(after))
    return one_line(doc_of(value))


def imported_modules(module: ModuleType, name: str) -> Iterator[ModuleType]:
    """Follow the imports of a name to the module that defines it."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            target = importlib.import_module(
                "." * node.level + (node.module or ""), module.__name__
            )
            yield target
            yield from imported_modules(target, name)
            return


def metrics_page() -> str:
    """Return every series with its labels and what it counts."""
    from surecall.telemetry import Metrics, RequestMetrics, RunMetrics

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
        "What a gateway counts, in the text form of Prometheus at `/metrics`.",
        "Runs of the library count in the same series of replies, under the upstream `library`,",
        "and in some of their own. A value of a label that was not configured is `other`.",
    ]
    for title, found in parts.items():
        lines += [
            "",
            f"## {title}",
            "",
            "| series | kind | labels | what it is |",
            "|---|---|---|---|",
        ]
        for one in found:
            labels = ", ".join(f"`{label}`" for label in one.labels) or "–"
            lines.append(f"| `{one.name}` | {one.kind} | {labels} | {cell(one.help)} |")
    return "\n".join(lines) + "\n"


def one_line(text: str) -> str:
    """Return the first paragraph of a text on one line."""
    return " ".join(text.partition("\n\n")[0].split())


# ---------------------------------------------------------------- providers


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
        "What is known about a provider and its models has a date and a source:",
        "`surecall models`, and [Capabilities](../explanation/capabilities.md).",
        "A provider without an address has one for each customer, or runs in this process.",
    ]
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "codes.md": codes_page,
    "events.md": events_page,
    "faults.md": faults_page,
    "metrics.md": metrics_page,
    "options.md": options_page,
    "providers.md": providers_page,
    "scenarios.md": scenarios_page,
    "settings.md": settings_page,
    "text-formats.md": text_formats_page,
    "packages.md": packages_page,
}


def page_text(name: str) -> str:
    """Return the whole text of a page as it must be on disk."""
    heading, _, rest = PAGES[name]().partition("\n")
    return f"{heading}\n\n{NOTE}{rest.strip()}\n"


def main() -> int:
    """Write all pages, or with `--check` say which are out of date."""
    stale: list[str] = []
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        path, text = REFERENCE / name, page_text(name)
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, "utf-8")
    if "--check" in sys.argv and stale:
        print(f"out of date: {', '.join(stale)}; run `make docs`")
        return 1
    print(f"{len(PAGES)} pages, {len(stale)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
