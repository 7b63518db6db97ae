"""Schemas rewritten for what a provider or an engine understands, with a note of every loss."""

from typing import Any, Final, Literal, get_args

from msgspec import Struct

from surecall.base.errors import Code, RequestError, did_you_mean
from surecall.text import encode

from .gemini import write_gemini
from .llama_cpp import write_llama_cpp
from .nodes import Loss, Losses, LossKind, SchemaReader
from .openai_strict import write_openai_strict

__all__ = ["Dialect", "Loss", "LossKind", "Rewritten", "rewrite_schema"]

_MAX_PASSES: Final = 4
"""Choices that became equal and definitions that lost their circle take one more pass."""

Dialect = Literal["gemini", "openai_strict", "llama_cpp"]
"""A subset of JSON Schema that a provider accepts."""
_DIALECTS: Final = get_args(Dialect)


class Rewritten(Struct, frozen=True):
    """A schema in another dialect, and what it could not take along."""

    schema: dict[str, Any]
    losses: tuple[Loss, ...] = ()


def rewrite_schema(
    schema: dict[str, Any],
    dialect: Dialect,
    *,
    max_string: int | None = None,
    max_items: int | None = None,
) -> Rewritten:
    """Return a schema that uses only what a dialect knows; the given one is left as it is.

    What was valid stays valid, except at places with a loss of kind `changed`. Annotations such as
    `examples` are left out without a loss: they never decide what is valid.

    Args:
        schema: A JSON Schema; local references are written out.
        dialect: `gemini`, `openai_strict` (structured outputs and strict tools) or `llama_cpp`
            (its converter from schema to grammar).
        max_string: For `llama_cpp`, the length of texts that have no upper limit.
        max_items: For `llama_cpp`, the length of arrays that have no upper limit.

    Raises:
        RequestError: There is no such dialect.
    """
    if dialect not in _DIALECTS:
        raise RequestError(
            Code.INVALID_OPTION,
            f"there is no schema dialect {dialect!r}.",
            hint=did_you_mean(dialect, _DIALECTS),
        )
    losses = Losses()
    written = _rewrite(schema, dialect, losses, max_string, max_items)
    for _ in range(_MAX_PASSES):
        if not (written.keys() & {"$defs", "anyOf"} or b'"anyOf"' in encode(written)):
            break
        again = _rewrite(written, dialect, Losses(), max_string, max_items)
        if again == written:
            break
        written = again
    return Rewritten(written, losses.list_all())


def _rewrite(
    schema: dict[str, Any],
    dialect: Dialect,
    losses: Losses,
    max_string: int | None,
    max_items: int | None,
) -> dict[str, Any]:
    node, definitions = SchemaReader(schema, losses, keeps_refs=dialect != "gemini").read()
    if dialect == "gemini":
        return write_gemini(node, losses)
    if dialect == "openai_strict":
        return write_openai_strict(node, definitions, losses)
    return write_llama_cpp(node, definitions, losses, max_string=max_string, max_items=max_items)
