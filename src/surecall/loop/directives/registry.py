"""The types of directives that an application knows, given to each use and never global."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, cast

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.records import ErrorDetail
from surecall.schema import SchemaChecker, ValueBinder, infer_schema
from surecall.text import encode_text

_NO_TYPES: Final = "There are no types of directives here: `directives` is an empty list."
_TYPES: Final = "The types of directives, and no others:"
_OTHER: Final = re.compile(r"[\W_]++")


class PayloadCheck(Protocol):
    """Says what is wrong with a payload: reasons, errors with codes of your own, or nothing."""

    def __call__(self, payload: dict[str, Any], /) -> Any:
        """Look at one payload."""
        ...


def tokenize(name: str) -> str:
    """Return a name without what models spell differently: case, dots, dashes, blanks."""
    return _OTHER.sub("_", name).strip("_").lower()


class DirectiveType(Struct, frozen=True, kw_only=True):
    """One type of directives.

    `payload` is a JSON schema, a dataclass, Struct, TypedDict or pydantic model, or a function that
    says what is wrong with a payload.
    """

    type: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    payload: Any = None
    check: Callable[..., Any] | None = None
    """A function that looks at payloads that fit, besides a schema or type."""


class KnownType:
    """A registered type, ready for use: its schema is compiled."""

    __slots__ = ("bind", "check", "checker", "definition", "schema")

    def __init__(self, definition: DirectiveType) -> None:
        self.definition = definition
        self.schema: dict[str, Any] | None = None
        self.bind: ValueBinder | None = None
        self.check: PayloadCheck | None = definition.check
        payload = definition.payload
        if isinstance(payload, Mapping):
            self.schema = dict(cast("Mapping[str, Any]", payload))
        elif isinstance(payload, type):
            self.schema = infer_schema(payload)
            self.bind = ValueBinder(payload)
        elif callable(payload):
            if self.check is not None:
                raise _refuse(definition, "has two functions that check its payload")
            self.check = payload
        elif payload is not None:
            raise _refuse(definition, f"has a payload of kind {type(payload).__name__}")
        self.checker = None if self.schema is None else SchemaChecker(self.schema)
        if self.checker is not None:
            self.checker.compile()


class DirectiveRegistry:
    """Types of directives by name and alias."""

    def __init__(self, types: Iterable[DirectiveType | Mapping[str, Any]] = ()) -> None:
        self._known: dict[str, KnownType] = {}
        self._names: dict[str, str] = {}
        for item in types:
            self._add(item if isinstance(item, DirectiveType) else DirectiveType(**item))

    def add(
        self,
        type: str,  # noqa: A002 - the member of a directive is called so
        *,
        description: str = "",
        aliases: Iterable[str] = (),
        payload: Any = None,
        check: Callable[..., Any] | None = None,
    ) -> "DirectiveRegistry":
        """Register a type and return the registry.

        Args:
            type: Its name, such as `ui.toast`.
            description: What it does, for the model.
            aliases: Other names that models use for it.
            payload: A JSON schema, a type with a schema, or a function that checks payloads.
            check: A function that looks at payloads that fit, besides a schema or type.

        Raises:
            ConfigError: the name or an alias is taken or blank.
        """
        self._add(
            DirectiveType(
                type=type,
                description=description,
                aliases=tuple(aliases),
                payload=payload,
                check=check,
            )
        )
        return self

    @property
    def types(self) -> tuple[str, ...]:
        """The names, in the order in which they were registered."""
        return tuple(self._known)

    @property
    def aliases(self) -> dict[str, str]:
        """The type that each alias stands for."""
        return {
            alias: name for name, known in self._known.items() for alias in known.definition.aliases
        }

    def find(self, name: str) -> KnownType | None:
        """Return the type of a name or alias, however it is spelled."""
        exact = self._known.get(name)
        if exact is not None:
            return exact
        found = self._names.get(tokenize(name))
        return None if found is None else self._known[found]

    def select(self, allowed: Iterable[str] | None) -> tuple[KnownType, ...]:
        """Return the types that are allowed, in order; all of them without a list.

        Raises:
            ConfigError: the list names a type that does not exist.
        """
        if allowed is None:
            return tuple(self._known.values())
        wanted: set[str] = set()
        for name in allowed:
            known = self.find(name)
            if known is None:
                raise ConfigError(
                    Code.UNKNOWN_DIRECTIVE_TYPE,
                    f"there is no type of directives {name!r}.",
                    hint=did_you_mean(name, self._known),
                )
            wanted.add(known.definition.type)
        return tuple(known for name, known in self._known.items() if name in wanted)

    def instructions(self, allowed: Iterable[str] | None = None) -> str:
        """Return the text that explains the types to a model."""
        chosen = self.select(allowed)
        return "\n".join((_TYPES, *map(_describe, chosen))) if chosen else _NO_TYPES

    def schema(self, allowed: Iterable[str] | None = None) -> dict[str, Any]:
        """Return the schema of an envelope with directives of these types."""
        chosen = self.select(allowed)
        directives: dict[str, Any] = {"type": "array"}
        if chosen:
            forms = [_directive_schema(known) for known in chosen]
            directives["items"] = forms[0] if len(forms) == 1 else {"anyOf": forms}
        else:
            directives |= {"items": _closed({"type": {"type": "string"}}), "maxItems": 0}
        return _closed({"assistant_text": {"type": "string"}, "directives": directives})

    def _add(self, definition: DirectiveType) -> None:
        known = KnownType(definition)
        for name in (definition.type, *definition.aliases):
            token = tokenize(name)
            if not token:
                raise _refuse(definition, f"cannot be called {name!r}")
            if self._names.setdefault(token, definition.type) != definition.type:
                raise _refuse(definition, f"has the name {name!r}, which {self._names[token]} has")
        if definition.type in self._known:
            raise _refuse(definition, "is registered already")
        self._known[definition.type] = known


def read_reasons(said: Any, place: str) -> tuple[ErrorDetail, ...]:
    """Return what a check of payloads said as errors; nothing when the payload is right."""
    if said is None or said is True or said == "":
        return ()
    if said is False:
        said = "The payload was refused."
    items = cast("Iterable[Any]", said) if isinstance(said, list | tuple) else (said,)
    return tuple(_as_error(item, place) for item in items)


def _as_error(item: Any, place: str) -> ErrorDetail:
    if isinstance(item, ErrorDetail):
        return ErrorDetail(item.code, item.message, item.hint, f"{place}{item.path or ''}")
    if isinstance(item, Mapping):
        fields = cast("Mapping[str, Any]", item)
        code = str(fields.get("code") or Code.PAYLOAD_INVALID)
        return ErrorDetail(code, str(fields.get("message") or code), path=place)
    return ErrorDetail(Code.PAYLOAD_INVALID, str(item), path=place)


def _describe(known: KnownType) -> str:
    definition = known.definition
    line = f"- {definition.type}"
    if definition.description:
        line += f": {definition.description}"
    return line if known.schema is None else f"{line} Payload: {encode_text(known.schema)}"


def _directive_schema(known: KnownType) -> dict[str, Any]:
    payload = {"type": "object"} if known.schema is None else known.schema
    return _closed(
        {"type": {"type": "string", "enum": [known.definition.type]}, "payload": payload}
    )


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _refuse(definition: DirectiveType, problem: str) -> ConfigError:
    return ConfigError(
        Code.INVALID_CONFIG,
        f"the type of directives {definition.type!r} {problem}.",
        hint="Case, dots, dashes and blanks do not tell names apart.",
    )
