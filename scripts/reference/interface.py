"""The page of the public names."""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import msgspec

import surecall

from .words import cell, doc_of, field_list, literal, one_line

LINE_CHARS = 88
TOP: dict[str, tuple[str, ...]] = {
    "Ask a model": ("run", "run_sync", "stream", "Session", "Options", "Policy", "Message"),
    "Results": ("RunResult", "OutputResult", "PausedResult", "ToolCall", "ToolCallEnded"),
    "Typed values": ("extract", "read_value"),
    "Tools": ("tool", "Tool", "ToolContext", "ToolFailed", "mcp_tools", "openapi_tools"),
    "Approvals and paused runs": ("approve", "deny", "resume", "SqliteStore", "FileJournal"),
    "The clients you have": ("wrap", "http_client", "async_http_client"),
    "Read replies": ("read_reply", "read_arguments", "repair_json"),
    "Tests": ("ScriptedTransport", "assistant", "tool_call"),
    "Errors": (
        *("SurecallError", "ConfigError", "ProviderError", "RunError", "ToolUseError", "Code"),
    ),
}
"""The names at the top of the package, by use."""
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "Runs and tools": {
        "surecall.base.codes": ("explain_code",),
        "surecall.base.errors": ("OutputError", "RunLimitError", "SetupError"),
        "surecall.base.records": (
            *("Event", "Receipt", "RunEnded", "TextDelta", "ToolCallStarted", "ToolResult"),
            "Usage",
        ),
        "surecall.clients": ("CallsRefusedError",),
        "surecall.gateway.telemetry": ("RunSpans",),
        "surecall.loop": ("OutputForm", "RunStream", "load_trace", "save_trace"),
        "surecall.loop.directives": (
            *("DirectResult", "Directive", "DirectiveRegistry", "direct", "read_patch"),
        ),
        "surecall.reading": ("LanguagePolicy", "OutputTags", "ReplyReader", "TransformRegistry"),
        "surecall.tools": (
            *("Approval", "ApprovalDecision", "ApprovalRequest", "MemoryApprovals"),
            *("RunProgress", "ToolProvider", "ToolRegistry"),
        ),
        "surecall.tools.mcp": ("McpTools",),
    },
    "State that lasts": {
        "surecall.store": ("PostgresStore",),
        "surecall.workspace": ("Author", "MemoryStore", "Workspace", "WorkspaceTools"),
    },
    "Models": {
        "surecall.models.client": ("Network",),
        "surecall.models.config": ("load_config",),
        "surecall.models.probe": ("probe_model", "select_questions"),
        "surecall.models.profiles": ("find_weights",),
        "surecall.models.transport": ("EmbeddedTransport", "HttpTransport", "ScriptedReply"),
    },
    "Wire formats and text": {
        "surecall.base.records": ("WireRequest",),
        "surecall.text": ("encode", "render_event"),
        "surecall.wire": (
            "ChatCompletions",
            "find_protocol",
            "translate_reply",
            "translate_request",
        ),
    },
    "Faults and evals": {
        "surecall.evals": ("evaluate_sync", "load_run", "plan"),
        "surecall.evals.cases": ("Attempt",),
        "surecall.evals.stats": ("wilson",),
        "surecall.evals.suites.custom": ("load_custom",),
        "surecall.evals.vendors": ("compare_vendors",),
        "surecall.faults": (
            "BUILTIN_ORACLES",
            "CallTools",
            "FaultPlan",
            "FaultServer",
            "FaultyProvider",
            "PlannedCall",
            "Say",
            "SimulatedTransport",
        ),
    },
}
"""What programs import from a part of surecall, by use."""

PAGE_OF = {"Code": "[Codes](codes.md)", "Options": "[Options](options.md)"}


def api_page() -> str:
    """Every top-level name."""
    parts = ["# API\n", "Every name of `import surecall`, by use.\n"]
    for title, names in TOP.items():
        parts.append(f"## {title}\n")
        for name in names:
            parts += api_entry(name, getattr(surecall, name))
    parts += [
        "## Names of the parts\n",
        "Import these from their part: `from surecall.store import SqliteStore`.",
        "They may change in a minor version, with a line in the changelog.\n",
        *part_names(),
    ]
    return "\n".join(parts)


def api_entry(name: str, value: Any) -> list[str]:
    """Describe one top-level name."""
    heading = f"### `{name}`\n"
    if name in PAGE_OF:
        return [heading, *doc_lines(value), f"See {PAGE_OF[name]}.\n"]
    if not inspect.isclass(value):
        return [heading, *signature_block(name, value), *doc_lines(value)]
    entry = [heading]
    if not issubclass(value, msgspec.Struct) and "__init__" in vars(value):
        entry += signature_block(name, value.__init__)
    entry += doc_lines(value)
    if issubclass(value, msgspec.Struct):
        entry += field_list(value)
    return [*entry, *class_members(value)]


def doc_lines(value: Any) -> list[str]:
    """Write a docstring as text, with its sections as lists."""
    lines: list[str] = []
    in_section = False
    for line in doc_of(value).replace("For example:\n\n", "").splitlines():
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
    return [*lines, ""]


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


def part_names() -> Iterator[str]:
    """Return a table for each use of the parts."""
    for title, modules in PARTS.items():
        yield from (f"### {title}\n", "| name | what it is |", "|---|---|")
        for module, names in modules.items():
            loaded = importlib.import_module(module)
            for name in names:
                yield f"| `{module}.{name}` | {cell(first_words(loaded, name))} |"
        yield ""


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
