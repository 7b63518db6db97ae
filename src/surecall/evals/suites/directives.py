"""The suite `directives`: one request each, done by a directive, and the same by a tool call.

So one report shows how a model does with both. The loose verdict is that of the original
experiment: the right kind of directive is there. The strict one looks at what it says, and that
there is nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, clip
from surecall.evals.cases import (
    Attempt,
    Grades,
    Ideal,
    IdealCall,
    Prepared,
    make_grades,
    number_version,
    refuse_scenario,
    run_failed,
)
from surecall.evals.made_calls import (
    check_plain_answer,
    check_written_calls,
    find_text_calls,
    list_attempts,
    says_nothing,
    shows_call,
)
from surecall.evals.records import Reason, Verdict, read_data
from surecall.evals.scenarios.scene import path_parts
from surecall.loop import OutputResult
from surecall.loop.directives import (
    Directive,
    DirectiveRegistry,
    Envelope,
    EnvelopeForm,
    parse_envelope,
    read_patch,
)
from surecall.text import encode_text
from surecall.tools import ToolRegistry
from surecall.wire import find_protocol

_BY_TOOL: Final = "_by_tool"
_ANSWER: Final = "Done."
_MAX_TURNS: Final = 6
_MAX_TOKENS: Final = {"max_tokens": 600}
_SYSTEM: Final = (
    "You are the assistant of an editor. Do exactly what the user asks, by means of the "
    "application, and nothing else."
)


_IMAGE_KINDS: Final = (
    *("image", "*/*", "png", "jpg", "jpeg", "webp", "gif", "svg", "bmp", "heic", "avif", "tif"),
)
_MIN_IMAGE_BYTES: Final = 1_024
_DATA: Final = read_data("directives.toml")
PAYLOADS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    name: (fields.pop("description"), {"type": "object", "additionalProperties": False, **fields})
    for name, fields in _DATA["payloads"].items()
}
"""The types of directives: what each does, and the schema of its payload."""


def _find_bad_news(payload: dict[str, Any]) -> str:
    level = payload.get("level")
    if level in {"warning", "error"}:
        return f"good news has the level {level}"
    return "the message is empty" if says_nothing(str(payload.get("message"))) else ""


def _find_no_image(payload: dict[str, Any]) -> str:
    accepted = [str(each).casefold() for each in as_list(payload.get("accept") or [])]
    if not all(any(kind in each for kind in _IMAGE_KINDS) for each in accepted):
        return f"not only images are accepted: {clip(' '.join(accepted), 80)}"
    size = payload.get("max_bytes", _MIN_IMAGE_BYTES)
    return f"no image has {size} bytes" if size < _MIN_IMAGE_BYTES else ""


_CONTRADICTIONS: Final = {"toast": _find_bad_news, "request_upload": _find_no_image}
"""Says which member is against what was asked for, by task."""


def _list_operations(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the operations of a patch, also where the payload itself is one."""
    found = payload.get("ops", payload)
    items = as_list(found) if isinstance(found, list) else [found]
    return [as_fields(item) for item in items if isinstance(item, dict)]


class Task(Struct, frozen=True, kw_only=True):
    """One thing that a user asks of the application."""

    name: str
    asks: str
    type: str
    ideal: dict[str, Any]
    """The payload that a good model writes."""
    expected: dict[str, Any] = {}
    """Members that must be exactly these."""

    def find_wrong(self, payload: dict[str, Any]) -> str:
        """Return what the strict verdict finds wrong with a payload; empty when it is right."""
        for key, value in self.expected.items():
            found = list(read_patch(payload).ops) if key == "ops" else payload.get(key)
            if found != value:
                return f"{key} is {clip(repr(payload.get(key)), 80)}"
        find_contradiction = _CONTRADICTIONS.get(self.name)
        return find_contradiction(payload) if find_contradiction else ""

    def check_tried(self, payload: dict[str, Any]) -> Iterator[Reason]:
        """Look at a payload that was refused for anything but slips in its form."""
        for key, value in self.expected.items():
            if key != "ops" and payload.get(key, value) != value:
                yield Reason("PAYLOAD_WRONG", f"{key} was {clip(repr(payload[key]), 80)}")
        for wanted in self.expected.get("ops", ()):
            own = path_parts(wanted["path"])
            for item in _list_operations(payload):
                path = item.get("path")
                if path is not None and path_parts(str(path)) not in (own, own[-1:]):
                    yield Reason("CHANGE_TRIED_ELSEWHERE", clip(repr(item), 80))
                elif item.get("value", wanted["value"]) != wanted["value"]:
                    yield Reason("PAYLOAD_WRONG", f"an operation was {clip(repr(item), 80)}")

    def does_loosely(self, name: str, payload: dict[str, Any]) -> bool:
        """Tell whether this is what was asked for, as the original experiment sees it."""
        if name != self.type:
            return False
        if self.type != "ui.patch":
            return True
        ops = read_patch(payload).ops
        return any((op["op"], op["path"]) == ("set", "/draft/foo") and "value" in op for op in ops)


TASKS: Final = msgspec.convert(_DATA["tasks"], tuple[Task, ...])
"""What is asked, in order."""


def make_registry() -> DirectiveRegistry:
    """Return the types of directives of the suite."""
    registry = DirectiveRegistry()
    for name, (description, schema) in PAYLOADS.items():
        check = read_patch if name == "ui.patch" else None
        registry.add(name, description=description, payload=schema, check=check)
    return registry


_REGISTRY: Final = make_registry()


class DirectiveCase(Struct, frozen=True):
    """A task that is done by a directive."""

    task: Task
    id: str = ""
    control: bool = False

    @property
    def scenario(self) -> str:
        """Its name."""
        return self.task.name

    def prepare(self, seed: int) -> Prepared:
        """Ask for an envelope; no tool is offered."""
        return Prepared(
            tools=ToolRegistry([]),
            system=_SYSTEM,
            messages=(Message("user", self.task.asks),),
            options={"request_overrides": dict(_MAX_TOKENS)},
            output=EnvelopeForm(_REGISTRY, check=self._check),
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Look for the directive, and strictly for nothing else."""
        result = attempt.result
        if not isinstance(result, OutputResult):
            failed = [run_failed(attempt.error or RuntimeError("nothing happened"))]
            return make_grades(
                original=Verdict.of(failed),
                state=None,
                process=failed,
                answer=None,
                kept=_describe(attempt, None),
            )
        envelope = cast("OutputResult[Envelope]", result).output
        loose = [Reason("NO_DIRECTIVE", reason) for reason in self._check(envelope)]
        return make_grades(
            original=Verdict.of(loose),
            state=None,
            process=[*loose, *self._strict_reasons(envelope), *self._check_tried(attempt)],
            answer=_check_words(envelope.assistant_text),
            kept=_describe(attempt, envelope),
        )

    def ideal(self, request: ModelRequest) -> Ideal:
        """Answer with the one directive."""
        directive = {"type": self.task.type, "payload": self.task.ideal}
        return Ideal(text=encode_text({"assistant_text": _ANSWER, "directives": [directive]}))

    def _check(self, envelope: Envelope) -> list[str]:
        if any(self.task.does_loosely(item.type, item.payload) for item in envelope.directives):
            return []
        return [f"The answer needs a directive {self.task.type} that does what the user asks."]

    def _strict_reasons(self, envelope: Envelope) -> list[Reason]:
        reasons = [Reason(str(item.code), item.message) for item in envelope.warnings]
        if find_text_calls(envelope.assistant_text, _TOOLS):
            reasons.append(Reason("EXTRA_CALL", clip(envelope.assistant_text, 80)))
        if says_nothing(envelope.assistant_text):
            reasons.append(Reason("EMPTY_FINAL"))
        others = [item for item in envelope.directives if item.type != self.task.type]
        own = envelope.of_type(self.task.type)
        if others or len(own) > 1:
            names = ", ".join(item.type for item in (*others, *own[1:]))
            reasons.append(Reason("EXTRA_DIRECTIVE", names))
        wrong = self.task.find_wrong(own[0].payload) if own else ""
        if wrong:
            reasons.append(Reason("PAYLOAD_WRONG", wrong))
        return reasons

    def _check_tried(self, attempt: Attempt) -> Iterator[Reason]:
        """Look for what replies before the last one asked for, though it was refused."""
        trace = attempt.trace
        if trace is None:
            return
        protocol = find_protocol(trace.protocol)
        for turn in trace.turns[:-1]:
            text = "" if turn.raw is None else protocol.parse_message(turn.raw).content or ""
            found = as_fields(parse_envelope(text, _REGISTRY).value).get("directives")
            for item in map(as_fields, as_list(found) if isinstance(found, list) else []):
                name = str(item.get("type"))
                if name in PAYLOADS and name != self.task.type:
                    yield Reason("EXTRA_DIRECTIVE", name)
                elif name == self.task.type:
                    yield from self.task.check_tried(as_fields(item.get("payload")))


class ToolCase(Struct, frozen=True):
    """The same task, done by a tool call."""

    task: Task
    id: str = ""
    control: bool = False

    @property
    def scenario(self) -> str:
        """Its name."""
        return f"{self.task.name}{_BY_TOOL}"

    def prepare(self, seed: int) -> Prepared:
        """Offer each type of directives as a tool."""
        done: list[IdealCall] = []

        def note(name: str, arguments: dict[str, Any]) -> str:
            done.append(IdealCall(name, arguments))
            return _ANSWER

        return Prepared(
            tools=ToolRegistry.from_executor(_TOOLS, note),
            system=_SYSTEM,
            messages=(Message("user", self.task.asks),),
            options={"max_turns": _MAX_TURNS, "request_overrides": dict(_MAX_TOKENS)},
            state=done,
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Look for the call, and strictly for nothing else."""
        done: list[IdealCall] = attempt.prepared.state
        own = [made for made in done if made.name == _tool_name(self.task.type)]
        loose: list[Reason] = []
        if attempt.error is not None:
            loose.append(run_failed(attempt.error))
        elif not any(self.task.does_loosely(self.task.type, made.arguments) for made in own):
            loose.append(Reason("NO_CALLS" if not done else "WRONG_CALL"))
        strict = [*loose, *self._check_attempts(attempt, own)]
        if attempt.error is None and says_nothing(attempt.text):
            strict.append(Reason("EMPTY_FINAL"))
        if len(done) > len(own[:1]):
            strict.append(Reason("EXTRA_CALL", ", ".join(made.name for made in done)))
        wrong = self.task.find_wrong(own[0].arguments) if own else ""
        if wrong:
            strict.append(Reason("PAYLOAD_WRONG", wrong))
        return make_grades(
            original=Verdict.of(loose),
            state=None,
            process=strict,
            answer=check_plain_answer(attempt),
            exact=tuple(self._is_expected(call) for _, call, _ in attempt.calls),
            kept={"calls": [{"name": made.name, "arguments": made.arguments} for made in done]},
        )

    def ideal(self, request: ModelRequest) -> Ideal:
        """Make the one call, then answer."""
        if any(message.role == "tool" for message in request.messages):
            return Ideal(text=_ANSWER)
        return Ideal(calls=(IdealCall(_tool_name(self.task.type), dict(self.task.ideal)),))

    def _check_attempts(self, attempt: Attempt, own: Sequence[IdealCall]) -> Iterator[Reason]:
        """Look for calls that did not run: in text only, of no tool, or for other changes."""
        yield from check_written_calls(attempt)
        for made in list_attempts(attempt):
            is_other = made.name in _TOOL_NAMES and made.name != _tool_name(self.task.type)
            is_unread = made.is_unread and IdealCall(made.name, made.arguments) not in own
            if is_unread or (is_other and not made.executed):
                yield Reason("EXTRA_CALL", clip(made.name, 80))
            elif made.name == _tool_name(self.task.type):
                yield from self.task.check_tried(made.arguments)

    def _is_expected(self, call: ToolCall) -> bool:
        is_right = call.name == _tool_name(self.task.type) and call.arguments is not None
        return is_right and not self.task.find_wrong(call.arguments or {})


def _check_words(text: str) -> list[Reason] | None:
    """Return what is wrong with what the user reads, and nothing where no check covers it."""
    if says_nothing(text):
        return [Reason("EMPTY_FINAL")]
    if shows_call(text) or find_text_calls(text, _TOOLS):
        return [Reason("TEXT_CALL_LEAKED", clip(text, 80))]
    return None


def _tool_name(name: str) -> str:
    return name.replace(".", "_")


_TOOL_NAMES: Final = frozenset(map(_tool_name, PAYLOADS))
_TOOLS: Final = tuple(
    ToolSpec(name=_tool_name(name), description=description, parameters=schema)
    for name, (description, schema) in PAYLOADS.items()
)


def _describe(attempt: Attempt, envelope: Envelope | None) -> dict[str, Any]:
    """Return what is kept: how the envelope was asked for, and what it says."""
    read = [turn.output for turn in attempt.turns if turn.output is not None]
    directives: tuple[Directive, ...] = () if envelope is None else envelope.directives
    return {
        "mode": read[-1].mode if read else None,
        "attempts": len(read),
        "semantic_errors": sum(item.is_semantic for item in read),
        "directives": [{"type": item.type, "payload": item.payload} for item in directives],
    }


_REVISION: Final = 5
"""To be raised when verdicts change in a way that the texts do not show."""


class DirectivesSuite:
    """Four tasks by directives, and the same four by tool calls."""

    name = "directives"

    @cached_property
    def version(self) -> str:
        """A number, and a hash of the tasks and types."""
        tasks = [[task.name, task.asks, task.type, task.ideal, task.expected] for task in TASKS]
        surface = [_SYSTEM, tasks, list(PAYLOADS.items())]
        return number_version(_REVISION, surface)

    def scenarios(self) -> Sequence[str]:
        """Name the tasks, first those by directives."""
        names = [task.name for task in TASKS]
        return (*names, *(f"{name}{_BY_TOOL}" for name in names))

    def cases(self, scenario: str) -> Sequence[DirectiveCase | ToolCase]:
        """Return the one case of a scenario."""
        for task in TASKS:
            if scenario == task.name:
                return (DirectiveCase(task),)
            if scenario == f"{task.name}{_BY_TOOL}":
                return (ToolCase(task),)
        raise refuse_scenario(self.name, scenario, self.scenarios())
