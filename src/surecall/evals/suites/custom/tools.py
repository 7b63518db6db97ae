"""The tools of a file of cases and its Python files, made fresh for every trial."""

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

from surecall.base.errors import Code, ConfigError, SurecallError, ToolDefinitionError, did_you_mean
from surecall.base.records import ToolSpec
from surecall.schema import SchemaChecker
from surecall.tools import Tool, ToolContext, ToolFailed, ToolRegistry

from .document import CaseDoc, Document, KeyPath, ResultDoc, ToolDoc, is_given
from .matching import fits


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


CheckState = Callable[[Any], Any]


class Bench(NamedTuple):
    """What one trial works with."""

    tools: ToolRegistry
    check: CheckState | None


class _Canned(NamedTuple):
    doc: ToolDoc
    spec: ToolSpec
    checker: SchemaChecker


class Workshop:
    """Makes the tools of a suite, and finds the functions that look at what they did.

    Args:
        document: The file.
        own_file: The Python file that the document came from, if it did.
    """

    def __init__(self, document: Document, own_file: PythonFile | None = None) -> None:
        self._document = document
        self._folder = document.place.parent
        self._source = own_file
        if document.suite.tools_from is not None:
            self._source = PythonFile(self._folder / document.suite.tools_from)
        self._canned: dict[str, _Canned] = {}
        for place, doc in enumerate(document.suite.tools):
            self._add(doc, place)
        modules: dict[Path, ModuleType] = {}
        self.specs: Mapping[str, ToolSpec] = self._find_specs(modules)
        """Every tool by its name."""
        for place, case in enumerate(document.suite.cases):
            self._check_answers(case, ("cases", place, "results"))
            self._find_check(case, modules)

    @property
    def python_files(self) -> list[Path]:
        """Every Python file that has a part in the cases."""
        named = [
            self._find_named(case)[0] for case in self._document.suite.cases if case.checks.state
        ]
        files = [self._source, *named]
        return list(dict.fromkeys(file.place for file in files if file is not None))

    def open(self, case: CaseDoc) -> Bench:
        """Make the tools of one trial, and its check."""
        modules: dict[Path, ModuleType] = {}
        tools: dict[str, Tool[..., Any]] = {}
        if self._source is not None:
            tools = {tool.name: tool for tool in tools_in(_load(self._source, modules))}
        tools |= {name: _make(canned, case.results) for name, canned in self._canned.items()}
        if case.tools is not None:
            tools = {name: tool for name, tool in tools.items() if name in case.tools}
        return Bench(ToolRegistry(tools.values()), self._find_check(case, modules))

    def _add(self, doc: ToolDoc, place: int) -> None:
        path = ("tools", place)
        if doc.name in self._canned:
            raise self._document.refusal((*path, "name"), f"{doc.name!r} is there twice.")
        self._document.check_json(doc.parameters, (*path, "parameters"))
        _check_results(self._document, doc.results, (*path, "results"), tool=doc.name)
        if is_given(doc.result):
            self._document.check_json(doc.result, (*path, "result"))
        spec = ToolSpec(
            name=doc.name,
            description=doc.description,
            parameters=doc.parameters or {"type": "object", "properties": {}},
            effect=doc.effect,
        )
        try:
            tool: Tool[..., Any] = Tool(spec, None)
            tool.checker.compile()
        except ToolDefinitionError as error:
            raise self._document.refusal(path, error.message, error.hint) from error
        self._canned[doc.name] = _Canned(doc, spec, tool.checker)

    def _find_specs(self, modules: dict[Path, ModuleType]) -> dict[str, ToolSpec]:
        specs: dict[str, ToolSpec] = {}
        if self._source is not None:
            try:
                found = tools_in(_load(self._source, modules))
                specs = {tool.name: tool.spec for tool in found}
            except ToolDefinitionError as error:
                message = f"{self._source.place}: {error.message}"
                raise ConfigError(Code.INVALID_CASE, message, hint=error.hint) from error
        for place, name in enumerate(self._canned):
            if name in specs:
                message = f"{name!r} is also a tool of {self._source and self._source.place}."
                raise self._document.refusal(("tools", place, "name"), message)
        return specs | {name: canned.spec for name, canned in self._canned.items()}

    def _check_answers(self, case: CaseDoc, path: KeyPath) -> None:
        _check_results(self._document, case.results, path)
        for place, result in enumerate(case.results):
            if result.tool in self.specs and result.tool not in self._canned:
                message = f"{result.tool!r} is written in Python and answers for itself."
                hint = "Give results only to tools that the file describes."
                raise self._document.refusal((*path, place, "tool"), message, hint)

    def _find_check(self, case: CaseDoc, modules: dict[Path, ModuleType]) -> CheckState | None:
        if not case.checks.state:
            return None
        file, name = self._find_named(case)
        return find_function(_load(file, modules), name, file.place)

    def _find_named(self, case: CaseDoc) -> tuple[PythonFile, str]:
        """Return the file and the name of a case's check."""
        given: Any = case.checks.state
        place = next(i for i, other in enumerate(self._document.suite.cases) if other is case)
        path = ("cases", place, "checks", "state")
        text = given if isinstance(given, str) else getattr(given, "__name__", "")
        file, _, name = text.rpartition(":")
        if not name.isidentifier():
            hint = "Name a function as FILE.py:name, or as name in the file with the tools."
            raise self._document.refusal(path, f"{given!r:.80} does not name a function.", hint)
        if file:
            return PythonFile(self._folder / file), name
        if self._source is None:
            hint = "Write FILE.py:name."
            raise self._document.refusal(path, f"the file of {name} is not named.", hint)
        return self._source, name


def _load(file: PythonFile, modules: dict[Path, ModuleType]) -> ModuleType:
    """Run a file once for a trial, however many things of it are wanted."""
    whole = file.place.resolve()
    if whole not in modules:
        modules[whole] = file.load()
    return modules[whole]


def _make(canned: _Canned, of_case: Iterable[ResultDoc]) -> Tool[..., Any]:
    name = canned.spec.name
    results = [result for result in of_case if result.tool == name]
    results += canned.doc.results

    async def answer(arguments: dict[str, Any]) -> Any:
        for result in results:
            if fits(result.when, arguments):
                return _answer(result)
        if is_given(canned.doc.result):
            return canned.doc.result
        if not results:
            return "Done."
        raise ToolFailed(
            Code.ARGUMENT_ERROR,
            "there is nothing for these arguments.",
            "Call it with other arguments.",
        )

    def bind(arguments: dict[str, Any], context: ToolContext) -> Callable[[], Any]:
        return partial(answer, arguments)

    return Tool(canned.spec, answer, binder=bind, checker=canned.checker)


def _answer(result: ResultDoc) -> Any:
    if result.error is not None:
        raise ToolFailed(result.error.code, result.error.message, result.error.hint)
    return result.result if is_given(result.result) else "Done."


def _check_results(
    document: Document, results: Collection[ResultDoc], path: KeyPath, *, tool: str | None = None
) -> None:
    for place, result in enumerate(results):
        here = (*path, place)
        if tool is not None and result.tool not in ("", tool):
            hint = "Leave the tool out here."
            raise document.refusal((*here, "tool"), f"this is a result of {tool!r}.", hint)
        document.check_json(result.when, (*here, "when"))
        if result.error is not None and is_given(result.result):
            raise document.refusal(here, "it has both a result and an error.", "Keep one of them.")
        if is_given(result.result):
            document.check_json(result.result, (*here, "result"))
