"""Definitions of a server's tools: their digests, their names in a run, and their effects."""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, SurecallError, ToolDefinitionError
from surecall.base.json_values import as_fields, pick_fields, text_or_none
from surecall.base.limits import MAX_TOOL_DESCRIPTION_CHARACTERS
from surecall.base.records import Effect, ToolSpec, clip
from surecall.schema import clean_parameters, compile_foreign
from surecall.text import canonical_hash

_PINNED_FIELDS: Final = (
    *("name", "title", "description", "inputSchema", "outputSchema", "annotations"),
)
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME_CHARACTERS: Final = 64
_HASH_CHARACTERS: Final = 8
_SEPARATOR: Final = "__"
_RUNNERS: Final = frozenset(
    {"bun", "bunx", "deno", "node", "npx", "pipx", "poetry", "pnpm", "python", "python3", "uv"}
    | {"uvx", "exec", "run", "tool", "dlx", "docker", "py", "env"}
)


class Definition(Struct, frozen=True):
    """A tool as its server defines it."""

    name: str
    """Its name at the server."""
    fields: dict[str, Any]
    digest: str
    """Over everything that a model or this program reads of it."""

    @property
    def effect(self) -> Effect:
        """`read` when the server says that nothing changes; otherwise something may."""
        hints = self.hints
        if hints.get("readOnlyHint") is True:
            return "read"
        return "write" if hints.get("openWorldHint") is False else "external"

    @property
    def hints(self) -> dict[str, Any]:
        """The server's hints about the behaviour of the tool."""
        return as_fields(self.fields.get("annotations"))

    def describe(self, name: str, timeout_s: float | None) -> ToolSpec:
        """Return the tool as a model sees it, or raise when its schema cannot be used."""
        parameters = clean_parameters(as_fields(self.fields.get("inputSchema")))
        if parameters.get("type", "object") != "object":
            raise ToolDefinitionError(
                Code.INVALID_SCHEMA, f"Its arguments are of type {parameters['type']!r:.80}."
            )
        parameters = compile_foreign(parameters)
        text = text_or_none(self.fields.get("description")) or self.fields.get("title")
        return ToolSpec(
            name=name,
            description=clip(str(text or ""), MAX_TOOL_DESCRIPTION_CHARACTERS),
            parameters={"type": "object", **parameters},
            effect=self.effect,
            idempotent=self.hints.get("idempotentHint") is True,
            timeout_s=timeout_s,
        )


def read_definition(fields: Mapping[str, Any]) -> Definition | None:
    """Return a definition with its digest; `None` when it has no name or is not plain JSON."""
    name = text_or_none(fields.get("name"))
    if name is None:
        return None
    own = pick_fields(fields, _PINNED_FIELDS)
    try:
        return Definition(name, own, f"sha256:{canonical_hash(own)}")
    except SurecallError:
        return None


def name_server(target: str | Iterable[str]) -> str:
    """Return a short name for a server: of its program, or of its host."""
    if isinstance(target, str):
        host = re.match(r"https?://(?:[^/@]*@)?([^/:?#]+)", target, re.IGNORECASE)
        if host:
            return clean_name(host[1].removeprefix("www.").removeprefix("mcp.").split(".")[0])
        target = target.split()
    kept = (word for word in target if not word.startswith("-") and "=" not in word)
    words = [re.split(r"[/\\]", word)[-1] for word in kept]
    stems = [re.sub(r"(?:@[^@]*)?(?:\.(?:exe|py|js|mjs|ts))?$", "", word) for word in words]
    chosen = [stem for stem in stems if stem and stem.rstrip(".0123456789") not in _RUNNERS]
    return clean_name(chosen[0] if chosen else "mcp")


def clean_name(name: str) -> str:
    """Return a name with only what every provider takes in names of tools."""
    return _NOT_IN_NAMES.sub("_", name).strip("_") or "mcp"


def name_tools(server: str, names: Iterable[str]) -> dict[str, str]:
    """Return for each name in a run the one that the server knows.

    A name that had to be changed or cut ends in a digest of the original one, so that no two
    become equal and a tool keeps its name whatever else the server has. Only where the server has
    a tool of that very name, the digest is longer.
    """
    given = tuple(names)
    plain = {f"{server}{_SEPARATOR}{name}": name for name in given if _fits(server, name)}
    found: dict[str, str] = {}
    for name in given:
        if _fits(server, name):
            found[f"{server}{_SEPARATOR}{name}"] = name
            continue
        length = _HASH_CHARACTERS
        while (marked := _mark_name(server, name, length)) in plain or marked in found:
            length += _HASH_CHARACTERS
        found[marked] = name
    return found


def _fits(server: str, name: str) -> bool:
    is_short = len(server) + len(_SEPARATOR) + len(name) <= _MAX_NAME_CHARACTERS
    return is_short and not _NOT_IN_NAMES.search(name)


def _mark_name(server: str, name: str, length: int) -> str:
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:length]
    whole = f"{server}{_SEPARATOR}{_NOT_IN_NAMES.sub('_', name)}"
    return f"{whole[: _MAX_NAME_CHARACTERS - len(mark) - 1]}_{mark}"
