"""Python files beside the cases: run anew for every trial, so that trials share nothing in them."""

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from surecall.errors import Code, ConfigError, SurecallError, did_you_mean
from surecall.tools import Tool, ToolRegistry

__all__ = ["PythonFile", "find_function", "tools_in"]


class PythonFile:
    """A file with tools or checks in Python."""

    def __init__(self, place: Path) -> None:
        self.place = place
        whole = place.resolve()
        self._whole = whole
        self._name = f"surecall_cases_{sha256(str(whole).encode()).hexdigest()[:12]}"

    def load(self) -> ModuleType:
        """Run the file and return what it defines; each time with values of its own.

        Raises:
            ConfigError: It is not there, or running it fails.
        """
        spec = importlib.util.spec_from_file_location(self._name, self._whole)
        if spec is None or spec.loader is None or not self._whole.is_file():
            hint = "Name a Python file, relative to the file with the cases."
            raise ConfigError(
                Code.INVALID_CASE, f"{self.place} is not a Python file.", hint=hint
            ) from None
        module = importlib.util.module_from_spec(spec)
        if str(self._whole.parent) not in sys.path:
            sys.path.append(str(self._whole.parent))  # last, so that it can shadow nothing
        # Annotations in quotes are looked up there while the file runs.
        sys.modules[self._name] = module
        try:
            with contextlib.redirect_stdout(sys.stderr):
                spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            del sys.modules[self._name]
            raise self._refusal(error) from error
        return module

    def _refusal(self, error: BaseException) -> ConfigError:
        where = f"{self.place}, line {self._line_of(error)}"
        if isinstance(error, SurecallError):
            return ConfigError(Code.INVALID_CASE, f"{where}: {error.message}", hint=error.hint)
        if isinstance(error, SystemExit):
            problem = "the file ends the program when it is run."
        elif isinstance(error, SyntaxError):
            problem = f"{type(error).__name__}: {error.msg}."
        else:
            problem = f"{type(error).__name__}: {error}"
        hint = f"It must run without a mistake; try `python {self.place}`."
        return ConfigError(Code.INVALID_CASE, f"{where}: {problem}", hint=hint)

    def _line_of(self, error: BaseException) -> int | str:
        if isinstance(error, SyntaxError) and error.filename == str(self._whole):
            return error.lineno or "?"
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(self._whole)]
        return (lines[-1] if lines else None) or "?"


def tools_in(module: ModuleType) -> list[Tool[..., Any]]:
    """Return the tools of a file: those in `tools`, else all, in the order written."""
    found = getattr(module, "tools", None)
    if isinstance(found, ToolRegistry | list | tuple):
        return list(ToolRegistry(cast("Iterable[Any]", found)))
    values = {id(value): value for value in vars(module).values()}
    return [cast("Tool[..., Any]", value) for value in values.values() if isinstance(value, Tool)]


def find_function(module: ModuleType, name: str, place: Path) -> Callable[..., Any]:
    """Return a function of a file, by its name.

    Raises:
        ConfigError: There is none.
    """
    found = getattr(module, name, None)
    if callable(found) and not isinstance(found, type):
        return cast("Callable[..., Any]", found)
    known = [
        key
        for key, value in vars(module).items()
        if callable(value) and not key.startswith("_") and not isinstance(value, type)
    ]
    message = f"{place} has no function {name!r}."
    raise ConfigError(Code.INVALID_CASE, message, hint=did_you_mean(name, known))
