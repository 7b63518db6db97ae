"""A user's own cases, from TOML, CSV, JSONL or Python: `surecall eval --suite custom:FILE`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from surecall.base.errors import Code, ConfigError
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, clip
from surecall.evals.cases import (
    Attempt,
    Grades,
    Ideal,
    IdealCall,
    Prepared,
    make_grades,
    refuse_scenario,
    run_failed,
)
from surecall.evals.made_calls import (
    check_plain_answer,
    check_written_calls,
    is_same_name,
    list_attempts,
    sample_value,
)
from surecall.evals.records import Reason, Verdict
from surecall.evals.scenarios.scene import Conversation
from surecall.text import encode_text

from .document import CallDoc, CaseDoc, ChecksDoc, Document, SuiteDoc, read_bytes, read_document
from .matching import (
    CalledTool,
    check_calls,
    check_document,
    check_text,
    is_expected,
    match_places,
)
from .tools import Bench, PythonFile, Workshop

__all__ = ["CustomCase", "CustomSuite", "load_custom", "next_step"]


def next_step(case: CaseDoc, tools: Mapping[str, ToolSpec], request: ModelRequest) -> Ideal:
    """Return the next expected calls, or the text that ends the run."""
    seen = Conversation(request)
    made = [CalledTool(name=call.name, arguments=call.arguments) for call in seen.calls]
    done = match_places(case, made)
    left = [call for place, call in enumerate(case.calls or ()) if place not in done]
    calls = [_ideal_call(call, tools) for call in left]
    calls = [call for call in calls if call.name in seen.offered]
    if not calls:
        return Ideal(text=_text(case.checks))
    # One at a time where the order counts, because results may have to be read in between.
    return Ideal(calls=tuple(calls if case.order == "any" else calls[:1]))


def _ideal_call(call: CallDoc, tools: Mapping[str, ToolSpec]) -> IdealCall:
    if call.any_of:
        return _ideal_call(call.any_of[0], tools)
    arguments = {**call.arguments, **{key: values[0] for key, values in call.one_of.items()}}
    if call.match == "subset":
        schema = tools[call.tool].parameters
        for name in schema.get("required", ()):
            if name not in arguments and name not in call.absent:
                arguments[name] = sample_value(schema.get("properties", {}).get(name, {}))
    return IdealCall(call.tool, arguments)


def _text(checks: ChecksDoc) -> str:
    if checks.text_equals is not None:
        return checks.text_equals
    if checks.text_one_of:
        return checks.text_one_of[0]
    if checks.text_schema is not None:
        return encode_text(sample_value(checks.text_schema))
    number = () if checks.text_number is None else (f"{checks.text_number:g}",)
    return " ".join((*checks.text_contains, *number)) or "Done."


_PREFIX: Final = "custom:"
_HASH_CHARS: Final = 12
_MAX_REASON_CHARS: Final = 400
_PYTHON_NAMES: Final = ("cases", "drawn", "name", "options", "system", "trials")
"""What a Python file may define besides its tools and checks."""


class CustomRun(Struct, frozen=True, kw_only=True):
    """A run that is over, as a check in Python sees it."""

    text: str
    """The final answer."""
    calls: tuple[CalledTool, ...]
    """The calls that ran, in order."""
    error: str | None = None
    """Why there is no answer, if there is none."""
    seed: int = 0


class _Trial(Struct, frozen=True):
    """The state of one trial."""

    bench: Bench
    seed: int


class CustomSuite:
    """The cases of one file.

    Args:
        path: A `.toml`, `.json`, `.csv` or `.jsonl` file, or a `.py` file with the same in a list
            named `cases`.

    Raises:
        ConfigError: Something in the file is wrong; the message has the line and the key.
    """

    def __init__(self, path: str | Path) -> None:
        place = Path(path)
        own_file = PythonFile(place) if place.suffix == ".py" else None
        if own_file is None:
            document, data = read_document(place)
        else:
            document, data = _read_python(own_file), read_bytes(place)
        self._data = data
        self._document = document
        self._workshop = Workshop(document, own_file)
        check_document(document, self._workshop.specs)
        self._cases = tuple(
            CustomCase(doc=doc, suite=document.suite, workshop=self._workshop)
            for doc in document.suite.cases
        )

    @property
    def name(self) -> str:
        """`custom:` and the name that the file gives itself, or its own."""
        return f"{_PREFIX}{self._document.suite.name or self._document.place.stem}"

    @cached_property
    def version(self) -> str:
        """Hash of the file, and of the Python files that it names."""
        digest = sha256(self._data)
        for place in self._workshop.python_files:
            digest.update(read_bytes(place))
        return digest.hexdigest()[:_HASH_CHARS]

    @property
    def trials(self) -> int:
        """How often the file wants each case tried."""
        return self._document.suite.trials

    def scenarios(self) -> Sequence[str]:
        """Name the scenarios, in the order in which they come up."""
        return tuple(dict.fromkeys(case.scenario for case in self._cases))

    def cases(self, scenario: str) -> Sequence["CustomCase"]:
        """Return the cases of a scenario, in order."""
        found = tuple(case for case in self._cases if case.scenario == scenario)
        if not found:
            raise refuse_scenario(self.name, scenario, self.scenarios())
        return found


def load_custom(path: str | Path) -> CustomSuite:
    """Return the suite of a file, as `custom:FILE` names it."""
    return CustomSuite(path)


class CustomCase(Struct, frozen=True, kw_only=True):
    """One case of a file.

    The loose verdict asks whether the run gave an answer and the expected tools ran, whatever
    their arguments; the strict one asks for all that the file says.
    """

    doc: CaseDoc
    suite: SuiteDoc
    workshop: Workshop

    @property
    def scenario(self) -> str:
        """The group in which it is counted."""
        return self.doc.scenario

    @property
    def id(self) -> str:
        """Its id in the file."""
        return self.doc.id

    @property
    def control(self) -> bool:
        """Whether it is a control without tools."""
        return self.doc.control

    @property
    def drawn(self) -> bool:
        """Whether the file says that its cases are a sample of many."""
        return self.suite.drawn

    def prepare(self, seed: int) -> Prepared:
        """Set up one trial; Python files are run anew, so that no trial sees another."""
        bench = self.workshop.open(self.doc)
        if self.doc.prompt is not None:
            messages = (Message("user", self.doc.prompt),)
        else:
            messages = tuple(Message(each.role, each.content) for each in self.doc.messages)
        return Prepared(
            tools=bench.tools,
            system=self.suite.system if self.doc.system is None else self.doc.system,
            messages=messages,
            options={**self.suite.options, **self.doc.options},
            state=_Trial(bench, seed),
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Compare what happened with what the file says."""
        trial: _Trial = attempt.prepared.state
        ran = tuple(_list_ran(attempt))
        made = [call for _, call, _ in attempt.calls]
        failed = [] if attempt.error is None else [run_failed(attempt.error)]
        forbidden = [
            Reason("CALL_FORBIDDEN", clip(call.name, 80))
            for call in list_attempts(attempt)
            if any(is_same_name(call.name, absent) for absent in self.doc.absent)
            and call.name not in self._expected_tools()
        ]
        run = CustomRun(
            text=attempt.text,
            calls=ran,
            error=failed[0].message if failed else None,
            seed=trial.seed,
        )
        process = [*failed, *forbidden, *check_calls(self.doc, ran)]
        process += self._check_attempts(attempt)
        state = _check_state(trial.bench, run)
        wrong_text = [] if attempt.error else list(check_text(self.doc.checks, attempt.text))
        loose = [*failed, *forbidden, *self._missing_tools(ran)]
        if self.doc.calls is None:
            loose = [*process, *wrong_text, *state]
        declared = wrong_text if self.doc.checks.checks_text else None
        return make_grades(
            original=Verdict.of(loose),
            state=state,
            # A text that the file asks for is work that was asked for.
            process=[*process, *wrong_text],
            answer=check_plain_answer(attempt, declared, may_be_empty=True),
            exact=tuple(self._is_expected(call) for call in made),
            kept={"calls": [{"name": call.name, "arguments": call.arguments} for call in ran]},
        )

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Make the expected calls that were not made yet; then say what is expected."""
        return next_step(self.doc, self.workshop.specs, request)

    def _expected_tools(self) -> frozenset[str]:
        wanted = (choice for call in self.doc.calls or () for choice in (call, *call.any_of))
        return frozenset(call.tool for call in wanted)

    def _check_attempts(self, attempt: Attempt) -> Iterator[Reason]:
        """Look for calls where the file says that there are none, whatever became of them."""
        if self.doc.calls is None:
            return
        yield from check_written_calls(attempt)
        if not self.doc.calls:
            for call in list_attempts(attempt):
                yield Reason("CALL_UNEXPECTED", clip(call.name, 80))

    def _missing_tools(self, ran: Sequence[CalledTool]) -> Iterator[Reason]:
        names = {call.name for call in ran}
        for call in self.doc.calls or ():
            wanted = {choice.tool for choice in call.any_of} or {call.tool}
            if not wanted & names:
                yield Reason("CALL_MISSING", " or ".join(sorted(wanted)))

    def _is_expected(self, call: ToolCall) -> bool | None:
        if self.doc.calls is None:
            return None
        if call.arguments is None:
            return False
        return is_expected(self.doc, CalledTool(name=call.name, arguments=call.arguments))


def _list_ran(attempt: Attempt) -> Iterator[CalledTool]:
    for _, call, result in attempt.calls:
        if result is not None and result.executed:
            yield CalledTool(
                name=result.name,
                arguments=call.arguments or {},
                ok=result.ok,
                data=result.envelope.data,
            )


def _check_state(bench: Bench, run: CustomRun) -> list[Reason]:
    """Ask the check in Python; anything but a clear yes is a no."""
    if bench.check is None:
        return []
    try:
        said: Any = bench.check(run)
        if said is None or said is True:
            return []
        if isinstance(said, str):
            said = [said] if said else []
        if said is False:
            said = ["it returned False"]
        reasons = [str(each) for each in cast("Iterable[Any]", said)]
    except Exception as error:
        text = clip(f"{type(error).__name__}: {error}", _MAX_REASON_CHARS)
        return [Reason("CHECK_BROKE", text)]
    return [Reason("STATE_WRONG", clip(text, _MAX_REASON_CHARS)) for text in reasons]


def _read_python(file: PythonFile) -> Document:
    module = file.load()
    content = {name: getattr(module, name) for name in _PYTHON_NAMES if hasattr(module, name)}
    if "cases" not in content:
        raise ConfigError(
            Code.INVALID_CASE,
            f"{file.place} has no cases.",
            hint="Put a list of cases into `cases`, each a dict with the keys of a TOML file.",
        )
    return Document(file.place, content)
