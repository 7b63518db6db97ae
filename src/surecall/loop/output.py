"""A value in place of a text: the form that an answer must have, and how a reply is read as it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError, RequestError, ToolDefinitionError
from surecall.base.json_values import as_fields
from surecall.base.limits import MAX_OUTPUT_BYTES
from surecall.base.records import Certainty, ErrorDetail, Receipt, Reply, clip
from surecall.calls.teach import MAX_GRAMMAR_CHARS, MAX_GRAMMAR_ITEMS
from surecall.models.profiles import Capabilities
from surecall.reading import FIXED_RULES, read_value
from surecall.reading.answers import ValueReading
from surecall.reading.rules import is_off
from surecall.reading.taught import reaches_bound
from surecall.reading.truncation import is_missing_closer
from surecall.schema import References, SchemaChecker, ValueBinder, infer_schema, rewrite_schema
from surecall.text import resolve_pointer

from . import wording

if TYPE_CHECKING:
    # What is here before Python 3.13 knows no defaults; type checkers know them without it.
    from typing_extensions import TypeVar as TypeVarWithDefault

    T = TypeVarWithDefault("T", default=Any)
else:
    T = TypeVar("T")

OutputMode = Literal["json_schema", "json_object", "prompt_only"]
"""How a value is asked for: held to its schema, held to some JSON object, or only told."""
OUTPUT_MODES: Final[tuple[OutputMode, ...]] = get_args(OutputMode)
"""From the surest to the one that every model takes."""

VALUE_KEY: Final = "value"
"""Where a value is put that is not an object: providers hold replies to objects only."""

Check = Callable[[Any], str | Iterable[str] | None]
"""Says what is wrong with a value that fits its schema; nothing when it is right."""


class OutputSpec(Struct, frozen=True, kw_only=True):
    """What is asked for, as data: a run with the same spec is the same run."""

    name: str
    schema: dict[str, Any]
    """What the reply must fit; a value that is not an object is in the member `value`."""
    instructions: str = ""
    """What the model is told about the value besides its schema."""
    is_wrapped: bool = False
    """Whether the value is in the member `value` of the reply."""


class OutputReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one reply that should have been the value."""

    mode: OutputMode
    ok: bool
    certainty: Certainty = "certain"
    """`likely` when it took a judgement to find the value in the reply."""
    doubt: str = ""
    """Why it is only likely."""
    errors: tuple[ErrorDetail, ...] = ()
    warnings: tuple[ErrorDetail, ...] = ()
    """What was left out of the value, although the rest of it was taken."""
    receipts: tuple[Receipt, ...] = ()
    is_cut: bool = False
    """Whether the reply ended inside the value."""
    is_semantic: bool = False
    """Whether the value has its form, and the application's own check refused it."""


class ReadOutput(Struct, frozen=True):
    """A reply as the value it holds, and how it was read."""

    reading: OutputReading
    output: Any = None
    """The value as the application asked for it: an object of the given type, or JSON."""
    value: Any = None
    """The same as JSON."""


class TextReader(Protocol):
    """Takes the pieces of a reply and returns what of them may be shown as text."""

    def feed(self, text: str) -> str:
        """Take a piece; return the text that it completes."""
        ...


class OutputForm(Generic[T]):
    """The form of an answer, made of a type or a JSON schema.

    Args:
        output: A dataclass, Struct, TypedDict, pydantic model or any other type with a schema, or
            a JSON schema.
        name: Its name for the provider; by default the name of the type.
        check: Called with a value that fits; says what is wrong with it, and the model is asked
            again with these words.
        instructions: What the model is told besides the schema.
        accept: `certain` takes only replies that are nothing but the value.
    """

    def __init__(
        self,
        output: type[T] | Mapping[str, Any],
        *,
        name: str | None = None,
        check: Check | None = None,
        instructions: str = "",
        accept: Certainty = "likely",
    ) -> None:
        is_value = type(output).__hash__ is None or isinstance(output, str | float | int | tuple)
        if is_value and not isinstance(output, Mapping):
            raise ToolDefinitionError(
                Code.UNSUPPORTED_TYPE,
                f"output must be a type or a JSON schema, not a {type(output).__name__}.",
                hint=f"Write output={type(output).__name__}.",
            )
        if isinstance(output, Mapping):
            bare, bind = dict(output), None
        else:
            bare, bind = infer_schema(output), ValueBinder(output)
        self._bind = bind
        self._check = check
        self._accept: Certainty = accept
        self._bare = SchemaChecker(bare)
        self._bare.compile()
        is_wrapped = References(bare).join(bare).get("type") != "object"
        schema = _wrap(bare) if is_wrapped else bare
        self._whole = SchemaChecker(schema)
        self.spec = OutputSpec(
            name=_clean_name(name or _name_of(output, bare)),
            schema=schema,
            instructions=instructions,
            is_wrapped=is_wrapped,
        )

    def read(
        self, text: str, finish_reason: str | None, mode: OutputMode, *, checks: bool = True
    ) -> ReadOutput:
        """Read the text of a reply as the value; what is wrong with it is in the reading."""
        found = self._find_value(text, finish_reason)
        reading = read_verdict(found, mode)
        if not reading.ok:
            return ReadOutput(reading)
        value = found.value
        try:
            output = value if self._bind is None else self._bind(value)
        except ValueError as error:
            wrong = ErrorDetail(Code.VALUE_INVALID, wording.value_not_usable(str(error)))
            return ReadOutput(replace(reading, ok=False, errors=(wrong,)))
        reasons = find_reasons(self._check if checks else None, output)
        if reasons:
            wrong = tuple(ErrorDetail(Code.ASSERTION_FAILED, reason) for reason in reasons)
            return ReadOutput(replace(reading, ok=False, is_semantic=True, errors=wrong))
        return ReadOutput(reading, output, value)

    def open_text(self) -> TextReader | None:
        """Return what finds the text to show in a reply that arrives; a value has none."""
        return None

    def _find_value(self, text: str, finish_reason: str | None) -> ValueReading:
        def read(checker: SchemaChecker) -> ValueReading:
            return read_value(
                text,
                checker.schema,
                checker=checker,
                accept=self._accept,
                finish_reason=finish_reason,
                cut="refuse",
                max_bytes=MAX_OUTPUT_BYTES,
            )

        if not self.spec.is_wrapped:
            return read(self._whole)
        found = read(self._whole)
        if found.state == "whole" and not found.errors:
            return replace(found, value=found.value[VALUE_KEY])
        # A model that is only told may write the value alone.
        alone = read(self._bare)
        return alone if alone.state == "whole" and not alone.errors else found


AnyForm = OutputForm[Any]
Wanted = type[T] | OutputForm[T] | Mapping[str, Any]
"""The value that a run is to end with: a type, a form, or a JSON schema."""


def make_form(output: Any) -> AnyForm:
    """Take a form as it is, or make one of a type or a JSON schema."""
    return cast("AnyForm", output) if isinstance(output, OutputForm) else OutputForm(output)


def read_verdict(found: ValueReading, mode: OutputMode) -> OutputReading:
    """Say what a reading of a value is worth.

    A value whose end had to be made up is a cut one: what is missing may be a part of it.
    """
    receipts = found.receipts
    is_cut = found.state == "cut" or any(map(is_missing_closer, receipts))
    errors = found.errors
    if is_cut and not errors:
        errors = (wording.OUTPUT_CUT,)
    return OutputReading(
        mode=mode,
        ok=found.state == "whole" and not errors,
        certainty=found.certainty,
        doubt=found.doubt,
        errors=errors,
        receipts=receipts,
        is_cut=is_cut,
    )


def read_output(
    form: AnyForm,
    reply: Reply,
    mode: OutputMode,
    *,
    is_grammar: bool = False,
    disabled_rules: Collection[str] = (),
    checks: bool = True,
) -> ReadOutput:
    """Read a reply as the value that its request asked for.

    Args:
        form: The form of the value.
        reply: The reply.
        mode: How the value was asked for.
        is_grammar: Whether the schema became a grammar, which ends texts and lists at a bound.
        disabled_rules: Rules without which the value must be readable.
        checks: Whether the application's own check is asked.
    """
    if reply.calls:
        return ReadOutput(OutputReading(mode=mode, ok=False, errors=(wording.CALLS_PRESENT,)))
    read = form.read(reply.content or "", reply.finish_reason, mode, checks=checks)
    if not read.reading.ok:
        return read
    if is_grammar and mode == "json_schema" and reaches_bound(read.value):
        cut = replace(read.reading, ok=False, is_cut=True, errors=(wording.OUTPUT_CUT,))
        return ReadOutput(cut)
    disabled = frozenset(disabled_rules)
    used = [item.rule for item in read.reading.receipts if item.rule not in FIXED_RULES]
    off = [rule for rule in used if is_off(rule, disabled)]
    if not off:
        return read
    wrong = ErrorDetail(Code.VALUE_INVALID, wording.value_needs_rule(off[0]))
    return ReadOutput(replace(read.reading, ok=False, errors=(wrong,)))


def find_reasons(check: Check | None, value: Any) -> tuple[str, ...]:
    """Return what a check says is wrong with a value; one that raises says so itself."""
    if check is None:
        return ()
    try:
        said = check(value)
        reasons = (said,) if isinstance(said, str) else tuple(said or ())
    except Exception as error:
        return (clip(f"{type(error).__name__}: {error}"),)
    return tuple(clip(str(reason)) for reason in reasons if str(reason).strip())


# How it is asked for


def choose_modes(wanted: tuple[str, ...], capabilities: Capabilities) -> tuple[OutputMode, ...]:
    """Return the ways of asking that the model is not known to lack, in order.

    Raises:
        RequestError: none of the ways that the caller asks for is left.
    """
    can: dict[OutputMode, bool] = {
        "json_schema": capabilities.json_schema,
        "json_object": capabilities.json_object,
        "prompt_only": True,
    }
    modes = tuple(mode for mode in (wanted or OUTPUT_MODES) if can[cast("OutputMode", mode)])
    if not modes:
        raise RequestError(
            Code.CAPABILITY_UNSUPPORTED,
            f"this model is declared not to support {' or '.join(wanted)}.",
            hint="Add 'prompt_only' to output_modes, or declare the capability if it does.",
        )
    return cast("tuple[OutputMode, ...]", modes)


def render_format(
    spec: OutputSpec, mode: OutputMode, capabilities: Capabilities
) -> dict[str, Any] | None:
    """Return the response format that asks for the value in this way."""
    if mode == "prompt_only":
        return None
    if mode == "json_object":
        return {"type": "json_object"}
    schema, is_strict = fit_schema(spec.schema, capabilities)
    form = {"name": spec.name, "schema": schema, "strict": is_strict}
    return {"type": "json_schema", "json_schema": form}


def fit_schema(schema: dict[str, Any], capabilities: Capabilities) -> tuple[dict[str, Any], bool]:
    """Return a schema as a provider takes it, and whether it can hold a reply to it strictly.

    An object with any members at all cannot be said in the strict form; it stays as it is then.
    """
    if capabilities.grammar:
        fitted = rewrite_schema(
            schema, "llama_cpp", max_string=MAX_GRAMMAR_CHARS, max_items=MAX_GRAMMAR_ITEMS
        )
        return fitted.schema, True
    fitted = rewrite_schema(schema, "openai_strict")
    for loss in fitted.losses:
        is_closed = loss.kind == "changed" and loss.keyword == "additionalProperties"
        if is_closed and _is_open_object(schema, loss.place):
            return schema, False
    return fitted.schema, True


def _is_open_object(schema: dict[str, Any], place: str) -> bool:
    try:
        part = as_fields(resolve_pointer(schema, place))
    except JSONTextError:
        return False
    return not as_fields(References(schema).join(part)).get("properties")


def _wrap(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object whose member `value` is the value."""
    inner = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    outer = {key: schema[key] for key in _DEFINITIONS if key in schema}
    return {
        "type": "object",
        "properties": {VALUE_KEY: inner},
        "required": [VALUE_KEY],
        "additionalProperties": False,
        **outer,
    }


_DEFINITIONS: Final = ("$defs", "definitions")
_MAX_NAME_CHARS: Final = 64


def _name_of(output: Any, schema: dict[str, Any]) -> str:
    title = schema.get("title")
    if isinstance(output, Mapping):
        return title if isinstance(title, str) else ""
    return getattr(output, "__name__", "")


def _clean_name(name: str) -> str:
    """Return a name that every provider takes."""
    clean = "".join(char if char.isascii() and char.isalnum() else "_" for char in name)
    return clean.strip("_")[:_MAX_NAME_CHARS] or "output"
