"""Functions become tools: a name, a schema, an effect, and a way to call them safely."""

import functools
import inspect
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    NoReturn,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    overload,
)

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, ToolDefinitionError, did_you_mean
from surecall.base.records import CoerceMode, Effect, Receipt, ToolSpec
from surecall.base.redaction import open_log
from surecall.schema import (
    ArgumentBinder,
    References,
    SchemaChecker,
    below_partials,
    bind_method,
    clean_parameters,
    describe_function,
    infer_parameters,
    infer_schema,
    injected_parameters,
    is_unbound_method,
    name_function,
)
from surecall.text import canonical_hash

from .availability import Guard, RunProgress, make_guard

Binder = Callable[[dict[str, Any], Any], Callable[[], Any]]
"""Takes the arguments and the context of a call, and returns the call itself, ready to be made."""

_OPEN_ENDED = frozenset({"anyOf", "oneOf", "patternProperties"})
"""Keywords by which an object may have other properties than those that are listed."""


def make_binder(
    tool_name: str, schema: Mapping[str, Any], parameters: Any, function: Callable[..., Any]
) -> Binder:
    """Return how the function is called with arguments that fit the schema.

    `parameters` is what its author gave in place of the signature, if anything.
    """
    root = dict(schema)
    schema = References(root).join(root)
    if parameters is not None and not isinstance(parameters, Mapping):
        binder = _bind_record(function, parameters, schema.get("properties", {}))
        if binder is not None:
            return binder
    if parameters is not None:
        _refuse_misfit(tool_name, function, schema)
    return _bind_by_name(function)


def _bind_by_name(function: Callable[..., Any]) -> Binder:
    convert = None if _takes_any_keyword(function) else ArgumentBinder(function)
    injected = _marked_parameters(function)

    def bind(arguments: dict[str, Any], context: Any) -> Callable[[], Any]:
        bound = arguments if convert is None else convert(arguments)
        if injected:
            bound = {**bound, **dict.fromkeys(injected, context)}
        return functools.partial(function, **bound)

    return bind


def _bind_record(
    function: Callable[..., Any], record: Any, fields: Mapping[str, Any]
) -> Binder | None:
    """Return a binder that passes all arguments as one record, if the function takes just that."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
        injected = injected_parameters(function)
    except (TypeError, ValueError, ToolDefinitionError):
        return None
    visible = [parameter for parameter in parameters if parameter.name not in injected]
    if len(visible) != 1:
        return None
    name, annotation = visible[0].name, visible[0].annotation
    says_nothing = annotation in (inspect.Parameter.empty, Any) or isinstance(annotation, str)
    if annotation is not record and (name in fields or not says_nothing):
        return None

    def holder(value: Any) -> None: ...

    holder.__annotations__ = {"value": record}
    convert = ArgumentBinder(holder)

    def bind(arguments: dict[str, Any], context: Any) -> Callable[[], Any]:
        bound = {name: convert({"value": arguments})["value"], **dict.fromkeys(injected, context)}
        return functools.partial(function, **bound)

    return bind


def render_parameters(tool_name: str, parameters: Any) -> dict[str, Any]:
    """Return the schema that was given as such, or as a record type."""
    if isinstance(parameters, Mapping):
        schema = clean_parameters(dict(parameters))  # pyright: ignore[reportUnknownArgumentType] - a schema of any shape
    else:
        schema = infer_schema(parameters)
    if schema.get("type", "object") != "object":
        raise ToolDefinitionError(
            Code.INVALID_SCHEMA,
            f"The parameters of {tool_name} are of type {schema['type']!r}.",
            hint="Arguments are always one object: use a schema of type object.",
        )
    return {"type": "object", **schema}


def invalid_tool(message: str, hint: str) -> ToolDefinitionError:
    """Build the error for what cannot be a tool."""
    return ToolDefinitionError(Code.INVALID_TOOL, message, hint=hint)


def _refuse_misfit(tool_name: str, function: Callable[..., Any], schema: Mapping[str, Any]) -> None:
    """Refuse a schema with what the function cannot take, or without what it needs."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    properties: Mapping[str, Any] = schema.get("properties", {})
    if not _takes_any_keyword(function):
        for name in properties:
            if name not in parameters:
                raise invalid_tool(
                    f"The schema of {tool_name} has {name!r}, which the function does not take.",
                    did_you_mean(name, parameters),
                )
    if _OPEN_ENDED & schema.keys():
        return
    filled = (*properties, *_marked_parameters(function))
    for parameter in parameters.values():
        if (
            parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            and parameter.name not in filled
        ):
            raise invalid_tool(
                f"The function of {tool_name} needs {parameter.name!r}, which its schema lacks.",
                "Add it to the schema, or give the parameter a default.",
            )


def _takes_any_keyword(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _marked_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    if not _takes_any_keyword(function):
        return tuple(injected_parameters(function))
    return tuple(
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if getattr(parameter.annotation, "__surecall_injected__", False) is True
    )


P = ParamSpec("P")
R = TypeVar("R")

ApprovalRule = Literal["required"] | Callable[..., Any]
"""Whether calls need an approval: all of them, or those for which a function of the arguments, or
of the arguments and the context, returns true; it may be a coroutine function."""
OnceRule = bool | Callable[..., Any]
"""Whether equal calls run once in a run; a function of the arguments says what makes them equal."""

_log = open_log("surecall.tools")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME_CHARS: Final = 64
_RULES: Final = frozenset({"approval", "once", "quick"})
_TEXTS: Final = frozenset({"title", "description", "default"})
"""Keywords of a schema that still allows any value."""


class ToolContext(Struct, frozen=True):
    """Which call a tool is answering; given to any parameter annotated with this class.

    For example:

        @surecall.tool
        def pay(amount: int, context: surecall.ToolContext) -> str:
            'Pay an amount.'
            return f"{amount} paid as {context.idempotency_key}"

        list(pay.spec.parameters["properties"])  # ['amount']
    """

    __surecall_injected__: ClassVar[bool] = True

    run_id: str = ""
    turn: int = 0
    call_id: str = ""
    receipts: tuple[Receipt, ...] = ()
    """The changes to the call before it ran."""
    once_key: str = ""
    """Identical for calls that a tool with `once` treats as equal; empty for other tools."""

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at one call: `run/turn/call`, or the key of equal calls."""
        return self.once_key or f"{self.run_id}/{self.turn}/{self.call_id}"


class ToolFailed(Exception):  # noqa: N818 - reads as what happened: `raise ToolFailed(...)`
    """Raised by a tool to tell the model what went wrong, with a code of your own if you like.

    For example:

        surecall.ToolFailed("There is no order 7.").code  # 'TOOL_FAILED'
        surecall.ToolFailed("ORDER_NOT_FOUND", "There is no order 7.").code  # 'ORDER_NOT_FOUND'
    """

    @overload
    def __init__(
        self, message: str, /, *, hint: str | None = None, data: Mapping[str, Any] | None = None
    ) -> None: ...

    @overload
    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None: ...

    def __init__(
        self,
        code: str,
        message: str | None = None,
        hint: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        if message is None:
            code, message = Code.TOOL_FAILED, code
        super().__init__(message)
        self.code = str(code)
        self.message = message
        self.hint = hint
        self.data = dict(data or {})


class Tool(Generic[P, R]):
    """A tool: its description for the model, and how its calls are made; never changes.

    For example:

        @surecall.tool
        def add(a: int, b: int) -> int:
            'Add two numbers.'
            return a + b

        isinstance(add, surecall.Tool), add.name  # (True, 'add')
    """

    spec: ToolSpec
    function: Callable[P, R] | None
    """The function that runs; `None` when the tool is only described."""
    binder: Binder | None
    """How the function is called with arguments that were checked."""
    checker: SchemaChecker
    """The schema of the arguments, compiled when first needed."""
    is_async: bool
    declares_effect: bool
    """Whether its author said what effect it has; otherwise it counts as one that writes."""
    approval: ApprovalRule | None
    """Which of its calls need an approval; `None` means that none does."""
    once: OnceRule
    """Whether equal calls run at most once in a run."""
    available_when: Guard | None
    """Decides before every request whether a model may see and call it; `None` means always."""
    quick: bool
    """Whether it returns at once, so that it runs in the event loop and not in a thread."""

    def __init__(
        self,
        spec: ToolSpec,
        function: Callable[P, R] | None,
        *,
        binder: Binder | None = None,
        checker: SchemaChecker | None = None,
        rebind: Callable[[Callable[..., Any]], Binder] | None = None,
        declares_effect: bool = True,
        approval: ApprovalRule | None = None,
        once: OnceRule = False,
        available_when: Guard | None = None,
        quick: bool = False,
    ) -> None:
        _check_spec(spec)
        _check_rules(spec.name, approval, once)
        members = vars(self)
        members.update(
            spec=spec,
            function=function,
            binder=binder,
            checker=checker or SchemaChecker(spec.parameters),
            is_async=is_async(function),
            declares_effect=declares_effect,
            approval=approval,
            once=once,
            available_when=available_when,
            quick=quick,
            _rebind=rebind,
        )
        if function is not None:
            for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
                if (value := getattr(function, attribute, None)) is not None:
                    members[attribute] = value
            members["__wrapped__"] = function

    @property
    def name(self) -> str:
        """The name a model calls it by."""
        return self.spec.name

    @property
    def definition(self) -> str:
        """A digest of what a call means: name, schema, effect, and defaults of the function."""
        spec = self.spec
        return canonical_hash(
            {
                "name": spec.name,
                "parameters": spec.parameters,
                "effect": spec.effect,
                "defaults": _describe_defaults(self.function),
            }
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as if it had not been decorated."""
        if self.function is None:
            raise ToolDefinitionError(
                Code.TOOL_NOT_IMPLEMENTED, f"{self.name} is described but has no function."
            )
        return self.function(*args, **kwargs)

    def __get__(self, instance: object | None, owner: type | None = None) -> "Tool[..., R]":
        rebind = vars(self)["_rebind"]
        if instance is None or rebind is None or self.function is None:
            return self
        method = types.MethodType(self.function, instance)
        return Tool(
            self.spec,
            method,
            binder=rebind(method),
            checker=self.checker,
            declares_effect=self.declares_effect,
            available_when=self.available_when,
            approval=self.approval,
            once=self.once,
            quick=self.quick,
        )

    def guarded(
        self, *, requires: Sequence[str] = (), available_when: Guard | None = None
    ) -> "Tool[P, R]":
        """Return this tool with other conditions for its use, such as one from elsewhere lacks."""
        return Tool(
            msgspec.structs.replace(self.spec, requires=_names_of(self.name, requires)),
            self.function,
            binder=self.binder,
            checker=self.checker,
            rebind=vars(self)["_rebind"],
            declares_effect=self.declares_effect,
            available_when=make_guard(self.name, available_when),
            approval=self.approval,
            once=self.once,
            quick=self.quick,
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Tool never changes; {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Tool never changes; {name!r} cannot be deleted")

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, effect={self.spec.effect!r})"


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "write",
    parameters: Any = None,
    exposed: bool = True,
    idempotent: bool = False,
    polling: bool = False,
    timeout_s: float | None = None,
    coerce: CoerceMode = "on",
    approval: ApprovalRule | None = None,
    once: OnceRule = False,
    requires: Sequence[str] = (),
    available_when: Callable[[], bool] | Callable[[RunProgress], bool] | None = None,
    quick: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(function: Any = None, /, *, parameters: Any = None, **options: Any) -> Any:
    """Make a tool of a function; it stays callable as it was.

        @surecall.tool
        def add(a: int, b: int) -> int:
            'Add two numbers.'
            return a + b

        add(1, 2)  # 3

    Args:
        function: The function that runs, when used without options.
        parameters: A JSON Schema, or a record type, instead of what the signature says.
        **options: The fields of `ToolSpec`, `approval`, `once`, `available_when` and `quick`.
            Without `name` and `description` the function's name and docstring are taken; without
            `effect` the tool counts as one that writes. `approval="required"`, or a function of
            the arguments (and the context), says which calls need an approval; `once=True`, or a
            function of the arguments that returns a key, lets equal calls run at most once in a
            run; `available_when` is asked before every request whether a model may see and call
            the tool, and takes nothing, or the `RunProgress` of the run; `quick=True` says that
            the function returns at once, and runs it in the event loop, where no timeout ends it.
    """
    if function is None:
        return functools.partial(_define, parameters=parameters, options=options)
    return _define(function, parameters=parameters, options=options)


def as_tool(obj: Any) -> Tool[..., Any]:
    """Return the tool that an object is, or that can be made of it."""
    if isinstance(obj, Tool):
        made = cast("Tool[..., Any]", obj)
        if vars(made)["_rebind"] is not None:
            raise invalid_tool(
                f"{made.name} is a method without its object.",
                "Register it from an object: `registry.add(thing.method)`.",
            )
        return made
    if isinstance(obj, ToolSpec):
        described: Tool[..., Any] = Tool(obj, None)
        described.checker.compile()
        return described
    if isinstance(obj, Mapping):
        raise invalid_tool(
            "A tool given as a dict describes itself but cannot run.",
            "Decorate a function with `@tool(parameters=...)`, or give `ToolSpec`s and one "
            "executor to `ToolRegistry.from_executor`.",
        )
    return _define(obj, parameters=None, options={})


def _define(function: Any, *, parameters: Any, options: dict[str, Any]) -> Tool[..., Any]:
    _refuse_what_cannot_run(function)
    options = {key: value for key, value in options.items() if value is not None}
    name = options.pop("name", None)
    name = name_function(function) if name is None else name
    rules = {rule: options.pop(rule) for rule in _RULES & options.keys()}
    _check_name(name)
    description = options.pop("description", None)
    guard = make_guard(name, options.pop("available_when", None))
    if "requires" in options:
        options["requires"] = _names_of(name, options["requires"])
    if description is None:
        description = describe_function(function)
    is_method = is_unbound_method(function)
    target = bind_method(function)
    schema = infer_parameters(target) if parameters is None else render_parameters(name, parameters)
    bind = functools.partial(make_binder, name, schema, parameters)
    try:
        spec = ToolSpec(name=name, description=description, parameters=schema, **options)
    except TypeError:
        raise _unknown_option(name, options) from None
    made: Tool[..., Any] = Tool(
        spec,
        function,
        binder=bind(target),
        rebind=bind if is_method else None,
        declares_effect="effect" in options,
        available_when=guard,
        **rules,
    )
    if parameters is not None:
        made.checker.compile()
    else:
        _warn_of_gaps(spec)
    return made


def _warn_of_gaps(spec: ToolSpec) -> None:
    """Warn of what a model would have to guess."""
    if not spec.description.strip():
        _log.warning("The tool %s has no description; add a docstring.", spec.name)
    members: dict[str, Any] = spec.parameters.get("properties", {})
    untyped = [name for name, schema in members.items() if not schema.keys() - _TEXTS]
    if untyped:
        names = ", ".join(untyped)
        _log.warning("The tool %s does not say of which type these are: %s.", spec.name, names)


def _unknown_option(name: str, options: dict[str, Any]) -> ToolDefinitionError:
    known = {*ToolSpec.__struct_fields__, *_RULES, "available_when"}
    unknown = next(option for option in options if option not in known)
    return ToolDefinitionError(
        Code.UNKNOWN_OPTION,
        f"The tool {name} was given {unknown!r}, which is not an option.",
        hint=did_you_mean(unknown, known),
    )


def _describe_defaults(function: Callable[..., Any] | None) -> dict[str, str]:
    """Return what parameters have when a call leaves them out, in the same words everywhere."""
    if function is None:
        return {}
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions do not say
        return {}
    return {
        name: _describe_default(parameter.default)
        for name, parameter in parameters.items()
        if parameter.default is not parameter.empty
    }


def _describe_default(value: Any) -> str:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    try:
        return f"{kind} {canonical_hash(msgspec.to_builtins(value))}"
    except Exception:  # an object that only this process knows
        return kind


def _names_of(name: str, requires: Any) -> tuple[str, ...]:
    given = () if isinstance(requires, str) else tuple(requires)
    if isinstance(requires, str) or not all(isinstance(item, str) for item in given):
        raise ToolDefinitionError(
            Code.INVALID_OPTION,
            f"The tool {name} has requires={requires!r:.200}.",
            hint="Give a list of tool names.",
        )
    return given


def _refuse_what_cannot_run(function: Any) -> None:
    if isinstance(function, type) or not callable(function):
        raise invalid_tool(
            f"{function!r:.200} cannot be a tool.",
            "Give a function, a bound method, or an object with `__call__`.",
        )
    target = _innermost(function)
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise invalid_tool(
            f"{name_function(function)} is a generator; a tool answers once.",
            "Collect what it yields and return a list.",
        )


def _check_spec(spec: ToolSpec) -> None:
    _check_name(spec.name)
    _check_choice(spec.name, "effect", spec.effect, get_args(Effect))
    _check_choice(spec.name, "coerce", spec.coerce, get_args(CoerceMode))
    if spec.name in spec.requires:
        raise ToolDefinitionError(
            Code.INVALID_OPTION,
            f"The tool {spec.name} requires itself, so it could never be called.",
            hint="Leave its own name out of `requires`.",
        )
    timeout_s = cast("Any", spec.timeout_s)
    if timeout_s is not None and not (
        isinstance(timeout_s, int | float) and 0 < timeout_s < math.inf
    ):
        raise ToolDefinitionError(
            Code.INVALID_OPTION,
            f"The tool {spec.name} has timeout_s={timeout_s!r}.",
            hint="Give seconds above zero, or None.",
        )


def _check_rules(name: str, approval: Any, once: Any) -> None:
    if approval not in (None, "required") and not callable(approval):
        option, value, hint = "approval", approval, 'Use "required", or a function that decides.'
    elif not (isinstance(once, bool) or (callable(once) and not is_async(once))):
        option, value, hint = "once", once, "Use True, or a function that returns a key at once."
    else:
        return
    raise ToolDefinitionError(
        Code.INVALID_OPTION, f"The tool {name} has {option}={value!r:.200}.", hint=hint
    )


def _check_name(name: Any) -> None:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return
    clean = _NOT_IN_NAMES.sub("_", str(name)[:200]).strip("_")[:_MAX_NAME_CHARS]
    suggestion = f", such as {clean!r}" if clean else ""
    raise ToolDefinitionError(
        Code.INVALID_TOOL_NAME,
        f"{name!r:.200} cannot be the name of a tool.",
        hint=f"Use 1 to 64 letters, digits, '_' or '-'{suggestion}.",
    )


def _check_choice(name: str, option: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ToolDefinitionError(
            Code.INVALID_OPTION,
            f"The tool {name} has {option}={value!r}.",
            hint=f"Use one of: {', '.join(choices)}.",
        )


def _innermost(function: Any) -> Any:
    """Return the function whose code runs: below partials, and below an object's `__call__`."""
    function = below_partials(function)
    return function if inspect.isroutine(function) else cast("type[Any]", type(function)).__call__


def is_async(function: Any) -> bool:
    """Tell whether calling a function gives a coroutine."""
    return function is not None and inspect.iscoroutinefunction(_innermost(function))
