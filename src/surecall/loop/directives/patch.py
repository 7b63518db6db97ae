"""Operations of a patch as a model writes them, made into those that a workspace takes."""

from collections.abc import Sequence
from typing import Any, Final, cast

from msgspec import Struct

from surecall.base.errors import Code
from surecall.base.records import ErrorDetail, Receipt, clip
from surecall.reading import read_value

DRAFT: Final = "/draft/"
PATCH_PREFIXES: Final = (DRAFT, "/ui_state/")
"""What a patch may change unless the application says otherwise."""

_OPS: Final = ("set", "delete", "append", "insert")
_ALIASES: Final = {
    "add": "set",
    "replace": "set",
    "remove": "delete",
    "rm": "delete",
    "push": "append",
}
_QUOTES: Final = " \t\r\n\"'`"
_OPS_SCHEMA: Final[dict[str, Any]] = {"type": "array", "items": {"type": "object"}}


class PatchReading(Struct, frozen=True, kw_only=True):
    """The operations of a patch, or why it is refused."""

    ops: tuple[dict[str, Any], ...] = ()
    """Each with `op` and `path`, and with `value` and `index` where the operation has them."""
    errors: tuple[ErrorDetail, ...] = ()
    receipts: tuple[Receipt, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every operation can be used."""
        return not self.errors


def read_patch(value: Any, *, prefixes: Sequence[str] = PATCH_PREFIXES) -> PatchReading:
    """Read a list of operations, a single one, or either as JSON text; all of them or none.

    As `payload` of a type of directives it checks payloads `{ops: [...]}`, and `value` of such a
    directive is what it returns.

    Args:
        value: What the model wrote for `ops`, or an object with the member `ops`.
        prefixes: Paths must begin with one of these; a relative path is taken below the first.
    """
    reader = _Reader(tuple(prefixes))
    items = reader.list_items(value)
    if not items:
        wrong = ErrorDetail(Code.MISSING_OPS, "The patch has no operations.", path="/ops")
        return PatchReading(errors=(wrong,))
    ops = [reader.read(item, at) for at, item in enumerate(items)]
    errors = tuple(reader.errors)
    kept = () if errors else tuple(op for op in ops if op is not None)
    return PatchReading(ops=kept, errors=errors, receipts=tuple(reader.receipts))


class _Reader:
    def __init__(self, prefixes: tuple[str, ...]) -> None:
        self._prefixes = prefixes
        self.errors: list[ErrorDetail] = []
        self.receipts: list[Receipt] = []

    def list_items(self, value: Any) -> list[Any]:
        if isinstance(value, dict) and "ops" in value:
            value = cast("dict[str, Any]", value)["ops"]
        if isinstance(value, str):
            found = read_value(value, _OPS_SCHEMA)
            if found.state == "whole" and not found.errors:
                self.receipts.append(Receipt("decode_json_text", "/ops", clip(value), ""))
                value = found.value
        if isinstance(value, dict) and ("op" in value or "path" in value):
            self.receipts.append(Receipt("wrap_in_array", "/ops", 1, 1))
            return [value]
        return cast("list[Any]", value) if isinstance(value, list) else []

    def read(self, item: Any, at: int) -> dict[str, Any] | None:
        place = f"/ops/{at}"
        if not isinstance(item, dict):
            return self._refuse(Code.INVALID_PATCH_OP, place, "An operation must be an object.")
        fields = cast("dict[str, Any]", item)
        name = self._name(fields, place)
        path = self._path(fields.get("path"), f"{place}/path")
        if name is None or path is None:
            return None
        if name == "delete":
            return {"op": name, "path": path}
        if "value" not in fields:
            message = f"{name} needs a value."
            return self._refuse(Code.MISSING_PATCH_VALUE, f"{place}/value", message)
        read = {"op": name, "path": path, "value": fields["value"]}
        if name == "insert":
            index = fields.get("index")
            if not isinstance(index, int) or isinstance(index, bool):
                message = "insert needs an index that is a whole number."
                return self._refuse(Code.INVALID_PATCH_INDEX, f"{place}/index", message)
            read["index"] = index
        return read

    def _name(self, fields: dict[str, Any], place: str) -> str | None:
        said: Any = fields.get("op")
        if said is None:
            meant = "set" if "value" in fields else "delete"
            self.receipts.append(Receipt("fill_patch_op", f"{place}/op", None, meant))
            return meant
        word = said.strip().lower() if isinstance(said, str) else ""
        name = word if word in _OPS else _ALIASES.get(word)
        if name is None:
            message = f"There is no operation {clip(str(said), 40)!r}."
            hint = f"Use {', '.join(_OPS)}."
            return self._refuse(Code.INVALID_PATCH_OP, f"{place}/op", message, hint)
        if name != said:
            self.receipts.append(Receipt("match_enum", f"{place}/op", clip(str(said)), name))
        return name

    def _path(self, said: Any, place: str) -> str | None:
        path = said.strip(_QUOTES) if isinstance(said, str) else ""
        path = path.removeprefix("#") if path.startswith("#/") else path
        if path and not path.startswith("/"):
            is_whole = any(f"/{path}".startswith(prefix) for prefix in self._prefixes)
            path = f"/{path}" if is_whole or not self._prefixes else self._prefixes[0] + path
        if not _is_below(path, self._prefixes):
            message = f"The path {clip(str(said), 80)!r} cannot be changed."
            hint = f"Paths begin with {' or '.join(self._prefixes)}."
            return self._refuse(Code.INVALID_PATCH_PATH, place, message, hint)
        if path != said:
            self.receipts.append(Receipt("spell_pointer", place, clip(str(said)), path))
        return path

    def _refuse(self, code: str, place: str, message: str, hint: str | None = None) -> None:
        self.errors.append(ErrorDetail(code, message, hint, place))


def _is_below(path: str, prefixes: tuple[str, ...]) -> bool:
    """Tell whether a pointer leads to something below one of the prefixes."""
    return any(path.startswith(prefix) and len(path) > len(prefix) for prefix in prefixes)
