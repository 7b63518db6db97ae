"""Tools from files: Python that is run, and definitions as JSON."""

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from surecall.base.errors import Code, JSONTextError, SurecallError, ToolDefinitionError
from surecall.base.records import ToolSpec
from surecall.reading.tools import parse_tools
from surecall.text import decode
from surecall.tools import MaskedRegistry, Tool, ToolRegistry


def load_tools(path: str | Path) -> list[Tool[..., Any]]:
    """Import the file and return its tools: those in `tools`, else all, in the order written.

    Raises:
        ToolDefinitionError: The file cannot be imported, or holds no tool.
    """
    place = Path(path)
    module = _import_file(place)
    found = getattr(module, "tools", None)
    if isinstance(found, ToolRegistry | list | tuple):
        tools = list(ToolRegistry(cast("Iterable[Any]", found)))
    else:
        # every tool of the module once, in the order in which it was defined
        values = {id(value): value for value in vars(module).values()}.values()
        tools = [cast("Tool[..., Any]", value) for value in values if isinstance(value, Tool)]
    if not tools:
        raise _invalid_tool(
            f"The file {place} holds no tool.",
            "Put @surecall.tool above a function, or a list of functions into `tools`.",
        )
    return tools


def _import_file(place: Path) -> ModuleType:
    if place.is_dir():
        raise _invalid_tool(f"{place} is a folder.", "Name a Python file with tools.")
    if not place.is_file():
        raise _invalid_tool(f"There is no file {place}.", "Name a Python file with tools.")
    whole = place.resolve()
    name = f"surecall_tools_{sha256(str(whole).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, whole)
    if spec is None or spec.loader is None:
        raise _invalid_tool(f"The file {place} is not Python.", "Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    if str(whole.parent) not in sys.path:
        sys.path.append(str(whole.parent))  # last, so that it can shadow nothing
    sys.modules[name] = module
    try:
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _refusal(place, whole, error) from error
    return module


def _refusal(place: Path, whole: Path, error: BaseException) -> ToolDefinitionError:
    where = f"{place}, line {_line_of(whole, error)}"
    if isinstance(error, SurecallError):
        return ToolDefinitionError(error.code, f"{where}: {error.message}", hint=error.hint)
    if isinstance(error, SystemExit):
        problem = "the file ends the program when it is imported."
    elif isinstance(error, SyntaxError):
        problem = f"{type(error).__name__}: {error.msg}."
    else:
        problem = f"{type(error).__name__}: {error}"
    return _invalid_tool(f"{where}: {problem}", "The file must be importable; try `python FILE`.")


def _line_of(whole: Path, error: BaseException) -> int | str:
    if isinstance(error, SyntaxError) and error.filename == str(whole):
        return error.lineno or "?"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(whole)]
    return (lines[-1] if lines else None) or "?"


_MAX_FILE_BYTES: Final = 10 * 1024 * 1024
_HINT: Final = 'Give a list of OpenAI tool objects, or an object with such a list in "tools".'


def load_offered_tools(files: Iterable[str]) -> MaskedRegistry:
    """Return the tools of Python and JSON files; calling one does nothing.

    Raises:
        ToolDefinitionError: A file cannot be read, or holds something that is not a tool.
    """
    specs = [spec for file in files for spec in _load_specs(Path(file))]
    return MaskedRegistry(ToolRegistry.from_executor(specs, _run_nothing))


async def _run_nothing(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {}


def _load_specs(place: Path) -> list[ToolSpec]:
    if place.suffix == ".py":
        return [tool.spec for tool in load_tools(place)]
    try:
        with place.open("rb") as file:
            document = decode(file.read(_MAX_FILE_BYTES + 1), max_bytes=_MAX_FILE_BYTES)
    except OSError as error:
        problem = f"{place}: {error.strerror or error}."
        raise _invalid_tool(problem, "Name a .json or .py file with tools.") from error
    except JSONTextError as error:
        raise _invalid_tool(f"{place}: {error.message}", _HINT) from error
    if isinstance(document, dict):
        document = cast("dict[str, Any]", document).get("tools")
    if not isinstance(document, list) or not document:
        raise _invalid_tool(f"{place}: it has no list of tools.", _HINT)
    try:
        return list(parse_tools(cast("list[Any]", document)))
    except ToolDefinitionError as error:
        raise _invalid_tool(f"{place}: {error.message}", _HINT) from error


def _invalid_tool(message: str, hint: str) -> ToolDefinitionError:
    return ToolDefinitionError(Code.INVALID_TOOL, message, hint=hint)
