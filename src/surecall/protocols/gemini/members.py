"""Members of objects, whose names come in two spellings and whose values may be anything."""

from typing import Any, cast

from surecall.records import clip

__all__ = ["as_dict", "as_list", "known_members", "member", "shown", "snake"]


def snake(name: str) -> str:
    """Return the other spelling of a name: `functionCall` becomes `function_call`."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def member(fields: dict[str, Any], name: str) -> Any:
    """Return a member by its name in camel case, however it is spelled."""
    value = fields.get(name)
    return fields.get(snake(name)) if value is None else value


def known_members(*names: str) -> frozenset[str]:
    """Return both spellings of all names."""
    return frozenset({*names, *(snake(name) for name in names)})


def as_dict(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list, or an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def shown(value: Any) -> str:
    """Show a value without walking through it."""
    if value is None or isinstance(value, str | bool):
        return repr(clip(value, 80) if isinstance(value, str) else value)
    return f"a value of type {type(value).__name__}"
