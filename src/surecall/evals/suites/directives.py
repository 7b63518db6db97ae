"""The suite `directives`: one request each, done by a directive, and the same by a tool call.

So one report shows how a model does with both. The loose verdict is that of the original
experiment: the right kind of directive is there. The strict one looks at what it says, and that
there is nothing else.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, cast

from msgspec import Struct

from surecall.directives import Directive, DirectiveRegistry, Envelope, EnvelopeForm, read_patch
from surecall.errors import Code, ConfigError, did_you_mean
from surecall.evals.cases import Attempt, Grades, Ideal, IdealCall, Prepared, run_failed
from surecall.evals.records import Reason, Verdict
from surecall.jsontext import canonical_hash, encode_text
from surecall.loop import OutputResult
from surecall.records import Message, ModelRequest, ToolCall, ToolSpec, clip
from surecall.tools import ToolRegistry

_BY_TOOL: Final = "_by_tool"
_ANSWER: Final = "Done."
_MAX_TURNS: Final = 6
_MAX_TOKENS: Final = {"max_tokens": 600}
_HASH_CHARS: Final = 12
_SYSTEM: Final = (
    "You are the assistant of an editor. Do exactly what the user asks, by means of the "
    "application, and nothing else."
)


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT: Final = {"type": "string", "minLength": 1}
_OP: Final = _object(
    ["op", "path"],
    op={"type": "string", "enum": ["set", "delete", "append", "insert"]},
    path={"type": "string", "description": "A JSON pointer such as /draft/title."},
    value={"type": ["string", "number", "boolean", "null"]},
    index={"type": "integer"},
)
_PAYLOADS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "ui.show_form": (
        "Shows the user a form. The form for a new character is character_form.",
        _object(["form_id"], form_id=_TEXT),
    ),
    "ui.toast": (
        "Shows the user a short message.",
        _object(
            ["message"],
            message=_TEXT,
            level={"type": "string", "enum": ["info", "success", "warning", "error"]},
        ),
    ),
    "ui.patch": (
        "Changes the draft.",
        _object(["ops"], ops={"type": "array", "items": _OP, "minItems": 1}),
    ),
    "ui.request_upload": (
        "Asks the user to upload a file.",
        _object(
            ["purpose"],
            purpose={**_TEXT, "description": "What the file is for."},
            accept={"type": "array", "items": {"type": "string"}},
            max_bytes={"type": "integer", "minimum": 1},
        ),
    ),
}


class Task(Struct, frozen=True, kw_only=True):
    """One thing that a user asks of the application."""

    name: str
    asks: str
    type: str
    ideal: dict[str, Any]
    """The payload that a good model writes."""
    expected: dict[str, Any] = {}
    """Members that must be exactly these."""
    words: tuple[str, ...] = ()
    """One of these must be in the texts of the payload."""

    def find_wrong(self, payload: dict[str, Any]) -> str:
        """Return what the strict verdict finds wrong with a payload; empty when it is right."""
        for key, value in self.expected.items():
            if payload.get(key) != value:
                return f"{key} is {clip(repr(payload.get(key)), 80)}"
        said = " ".join(value for value in payload.values() if isinstance(value, str)).casefold()
        if self.words and not any(word in said for word in self.words):
            return f"nothing says {' or '.join(self.words)}"
        return ""

    def does_loosely(self, name: str, payload: dict[str, Any]) -> bool:
        """Tell whether this is what was asked for, as the original experiment sees it."""
        if name != self.type:
            return False
        if self.type != "ui.patch":
            return True
        ops = read_patch(payload).ops
        return any((op["op"], op["path"]) == ("set", "/draft/foo") and "value" in op for op in ops)


_SET_FOO: Final = {"ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}
TASKS: Final = (
    Task(
        name="show_form",
        asks="I want to create a new character. Show me the form for it.",
        type="ui.show_form",
        ideal={"form_id": "character_form"},
        expected={"form_id": "character_form"},
    ),
    Task(
        name="toast",
        asks="Tell me with a short message on the screen that the draft was saved.",
        type="ui.toast",
        ideal={"message": "The draft was saved."},
        words=("saved", "save"),
    ),
    Task(
        name="patch_draft",
        asks="Set /draft/foo to the string bar.",
        type="ui.patch",
        ideal=_SET_FOO,
        expected=_SET_FOO,
    ),
    Task(
        name="request_upload",
        asks="Ask me to upload an image of my character.",
        type="ui.request_upload",
        ideal={"purpose": "An image of the character", "accept": ["image/*"]},
        words=("image", "picture", "portrait", "character", "photo"),
    ),
)
"""What is asked, in order."""


def make_registry() -> DirectiveRegistry:
    """Return the types of directives of the suite."""
    registry = DirectiveRegistry()
    for name, (description, schema) in _PAYLOADS.items():
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
            verdict = Verdict.of([run_failed(attempt.error or RuntimeError("nothing happened"))])
            return Grades(original=verdict, strict=verdict, state=_describe(attempt, None))
        envelope = cast("OutputResult[Envelope]", result).output
        loose = [Reason("NO_DIRECTIVE", reason) for reason in self._check(envelope)]
        strict = [*loose, *self._strict_reasons(envelope)]
        return Grades(
            original=Verdict.of(loose),
            strict=Verdict.of(strict),
            state=_describe(attempt, envelope),
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
        if not envelope.assistant_text.strip():
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
        strict = list(loose)
        if attempt.error is None and not attempt.text.strip():
            strict.append(Reason("EMPTY_FINAL"))
        if len(done) > len(own[:1]):
            strict.append(Reason("EXTRA_CALL", ", ".join(made.name for made in done)))
        wrong = self.task.find_wrong(own[0].arguments) if own else ""
        if wrong:
            strict.append(Reason("PAYLOAD_WRONG", wrong))
        return Grades(
            original=Verdict.of(loose),
            strict=Verdict.of(strict),
            exact=tuple(self._is_expected(call) for _, call, _ in attempt.calls),
            state={"calls": [{"name": made.name, "arguments": made.arguments} for made in done]},
        )

    def ideal(self, request: ModelRequest) -> Ideal:
        """Make the one call, then answer."""
        if any(message.role == "tool" for message in request.messages):
            return Ideal(text=_ANSWER)
        return Ideal(calls=(IdealCall(_tool_name(self.task.type), dict(self.task.ideal)),))

    def _is_expected(self, call: ToolCall) -> bool:
        is_right = call.name == _tool_name(self.task.type) and call.arguments is not None
        return is_right and not self.task.find_wrong(call.arguments or {})


def _tool_name(name: str) -> str:
    return name.replace(".", "_")


_TOOLS: Final = tuple(
    ToolSpec(name=_tool_name(name), description=description, parameters=schema)
    for name, (description, schema) in _PAYLOADS.items()
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


class DirectivesSuite:
    """Four tasks by directives, and the same four by tool calls."""

    name = "directives"

    @cached_property
    def version(self) -> str:
        """Hash of the tasks and types."""
        tasks = [[task.name, task.asks, task.type, task.ideal, task.expected] for task in TASKS]
        return canonical_hash([_SYSTEM, tasks, list(_PAYLOADS.items())])[:_HASH_CHARS]

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
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"the suite directives has no scenario {scenario!r}.",
            hint=did_you_mean(scenario, self.scenarios()),
        )
