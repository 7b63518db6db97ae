"""The tools a recorded reply could call: described, never run."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

from surecall.errors import Code, JSONTextError, ToolDefinitionError
from surecall.jsontext import decode
from surecall.reading.tools import parse_tools
from surecall.records import ToolSpec
from surecall.tools import MaskedRegistry, ToolRegistry

from .tool_files import load_tools

__all__ = ["load_offered_tools"]

_MAX_FILE_BYTES: Final = 10 * 1024 * 1024
_HINT: Final = 'Give a list of OpenAI tool objects, or an object with such a list in "tools".'


def load_offered_tools(files: Iterable[str]) -> MaskedRegistry:
    """Return the tools of Python and JSON files; calling one does nothing.

    Raises:
        ToolDefinitionError: A file cannot be read, or holds something that is not a tool.
    """
    specs: list[ToolSpec] = []
    for file in files:
        specs += _load_specs(Path(file))
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
        problem = error.strerror or str(error)
        raise _refusal(place, f"{problem}.", "Name a .json or .py file with tools.") from error
    except JSONTextError as error:
        raise _refusal(place, error.message, _HINT) from error
    if isinstance(document, dict):
        document = cast("dict[str, Any]", document).get("tools")
    if not isinstance(document, list) or not document:
        raise _refusal(place, "there is no list of tools in it.", _HINT)
    try:
        return list(parse_tools(cast("list[Any]", document)))
    except ToolDefinitionError as error:
        raise _refusal(place, error.message, _HINT) from error


def _refusal(place: Path, problem: str, hint: str) -> ToolDefinitionError:
    return ToolDefinitionError(Code.INVALID_TOOL, f"{place}: {problem}", hint=hint)
