"""Values that fit a schema, always the same for the same schema."""

from typing import Any, Final, cast

from surecall.schema import References

__all__ = ["sample_arguments", "sample_value"]

_MAX_DEPTH: Final = 8
_BY_TYPE: Final[dict[str, Any]] = {
    "array": [],
    "boolean": True,
    "integer": 1,
    "null": None,
    "number": 1,
    "object": {},
    "string": "sample",
}


def sample_arguments(schema: dict[str, Any], texts: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return arguments with the required fields, and texts where the schema takes any text."""
    value = sample_value(schema, texts=texts)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def sample_value(schema: Any, *, texts: tuple[str, ...] = ()) -> Any:
    """Return a value that fits the schema, as far as its usual keywords tell."""
    return _Sampler(schema, list(texts)).sample(schema, 0)


class _Sampler:
    def __init__(self, root: Any, texts: list[str]) -> None:
        self._references = References(root)
        self._texts = texts

    def sample(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            return "sample"
        fields = self._references.join(schema)
        for name in ("const", "default"):
            if name in fields:
                return fields[name]
        if isinstance(fields.get("enum"), list) and fields["enum"]:
            return fields["enum"][0]
        for name in ("anyOf", "oneOf"):
            if isinstance(fields.get(name), list) and fields[name]:
                return self.sample(fields[name][0], depth + 1)
        return self._typed(fields, depth)

    def _typed(self, fields: dict[str, Any], depth: int) -> Any:
        kind: Any = fields.get("type")
        if isinstance(kind, list):
            kind = next(iter(cast("list[Any]", kind)), None)
        if kind == "object" or "properties" in fields:
            return self._object(fields, depth)
        if kind == "array":
            items = max(int(fields.get("minItems") or 0), 0)
            return [self.sample(fields.get("items", {}), depth + 1) for _ in range(min(items, 16))]
        if kind in {"integer", "number"}:
            return max(1, fields.get("minimum") or 1)
        if kind == "string" or kind is None:
            text = self._texts.pop(0) if self._texts else "sample"
            return text.ljust(min(int(fields.get("minLength") or 0), 1000), "x")
        return _BY_TYPE.get(str(kind), "sample")

    def _object(self, fields: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = fields.get("properties")
        known = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
        required = fields.get("required")
        wanted = cast("list[Any]", required) if isinstance(required, list) else []
        return {str(name): self.sample(known.get(str(name), {}), depth + 1) for name in wanted}
