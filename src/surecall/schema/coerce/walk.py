"""A walk over a value and its schema together that changes what clearly stands for something else.

Whatever fits its part of the schema is left alone. Values are never changed in place, so what a
receipt holds stays as it was. Nesting is followed on a stack of generators, not by recursion.
"""

import re
from collections.abc import Generator
from typing import Any, Final, TypeAlias, cast

from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.records import ErrorDetail, Receipt
from surecall.schema.explain import (
    REPEATS_SCHEMA,
    detail_at,
    explain_list,
    explain_name,
    explain_same,
    explain_value,
)
from surecall.text import encode, render_pointer

from .parts import PartView, SchemaParts
from .values import (
    NULL_TEXTS,
    Ambiguous,
    Change,
    DecodedText,
    change_scalar,
    decode_text,
    is_schema_echo,
    match_name,
    match_option,
)

# Each unit of work takes about half a microsecond; all of it together stays under 30 ms.
_MAX_WORK: Final = 64_000
_WORK_PER_CHANGE: Final = 2
_WORK_PER_VISIT: Final = 8
_WORK_PER_ATTEMPT: Final = 16
_WORK_PER_CHECK: Final = 4
_WORK_PER_TEXT: Final = 40
_CHARACTERS_PER_WORK: Final = 64
_MAX_NOTES: Final = 20
_MAX_RENAMED: Final = 200
_MAX_LISTED: Final = 20
_LISTING: Final = re.compile(r"[,;\n]")

_CONTAINERS: Final[dict[str | None, type]] = {"array": list, "object": dict}

_Path: TypeAlias = tuple[str | int, ...]
_Steps: TypeAlias = Generator["_Steps", Any, Any]


class TooMuchWorkError(Exception):
    """The forms a value may take multiply; it is left as it is."""


class Log:
    """What was changed, in order, and what could not be because it was not clear."""

    __slots__ = ("notes", "receipts")

    def __init__(self, other: "Log | None" = None) -> None:
        self.receipts: list[Receipt] = list(other.receipts) if other else []
        self.notes: list[ErrorDetail] = list(other.notes) if other else []

    def change(self, rule: str, path: _Path, before: Any, after: Any, why: str = "") -> None:
        """Write a receipt."""
        self.receipts.append(Receipt(rule, render_pointer(path), before, after, why=why))

    def decode(self, path: _Path, before: str, after: DecodedText) -> None:
        """Write the receipts of a text that was decoded: one for all, one for each repair."""
        self.change("decode_json_text", path, before, after.value)
        pointer = render_pointer(path)
        for repair in after.repairs:
            self.receipts.append(replace(repair, place=f"{pointer}@{repair.place}"))

    def note(self, path: _Path, sentence: str) -> None:
        """Write down why something was left as it is."""
        if len(self.notes) < _MAX_NOTES:
            self.notes.append(detail_at(path, sentence))

    def extend(self, other: "Log") -> None:
        """Take over what another log says."""
        self.receipts += other.receipts
        self.notes += other.notes[: _MAX_NOTES - len(self.notes)]


class Walk:
    """Walks values of one schema; the work of all its walks together is bounded."""

    __slots__ = ("_left", "_parts", "_texts")

    def __init__(self, parts: SchemaParts) -> None:
        self._parts = parts
        self._left = _MAX_WORK
        self._texts: dict[str, DecodedText | None] = {}

    def run(self, value: Any, part: Any, log: Log, path: _Path = ()) -> Any:
        """Return a value that does not fit a part, changed where that is clear.

        Raises:
            TooMuchWorkError: the branches of the schema multiply.
        """
        stack = [self._visit(value, part, path, log)]
        result: Any = None
        while stack:
            try:
                step = stack[-1].send(result)
            except StopIteration as end:
                result = end.value
                stack.pop()
            else:
                stack.append(step)
                result = None
        return result

    def _visit(self, value: Any, part: Any, path: _Path, log: Log, *, exact: bool = True) -> _Steps:
        """Change a value that does not fit; `exact` says that no other part could be meant."""
        self._spend(_WORK_PER_VISIT)
        view = self._parts.view(part)
        if view.branches:
            return (yield self._choose(value, part, path, log, exact=exact))
        if is_schema_echo(value) and "type" not in view.properties:
            log.note(path, REPEATS_SCHEMA)
            return value
        if view.options is not None:
            return _match(value, view.options, path, log)
        if view.kind in _CONTAINERS and isinstance(value, str):
            value = self._decode(value, view, path, log)
            if not isinstance(value, str) and self._parts.fits(part, value):
                return value
        if view.kind == "array" and not isinstance(value, list):
            return (yield self._wrap(value, view, path, log)) if exact else value
        if isinstance(value, dict):
            return (yield self._members(cast("dict[Any, Any]", value), view, path, log))
        if isinstance(value, list):
            return (yield self._elements(cast("list[Any]", value), view, path, log))
        if view.kind is not None:
            change = change_scalar(value, view.kind, view.format_name, exact=exact)
            if change is not None and not same_json(change.after, value):
                log.change(change.rule, path, value, change.after)
                return change.after
        return value

    # A choice between parts

    def _choose(self, value: Any, part: Any, path: _Path, log: Log, *, exact: bool) -> _Steps:
        view = self._parts.view(part)
        if value in NULL_TEXTS and _takes(view, "null") and not _takes(view, "string"):
            log.change("parse_null_text", path, value, None)
            return None
        meant = [item for item in view.branches if self._parts.view(item).types != {"null"}]
        if len(meant) == 1:
            return (yield self._visit(value, meant[0], path, log, exact=exact))
        if any(self._parts.fits(branch, value) for branch in meant):
            return value
        found: list[tuple[Any, Log]] = []
        for branch in meant:
            self._spend(_WORK_PER_ATTEMPT)
            attempt = Log()
            changed = yield self._visit(value, branch, path, attempt, exact=False)
            if (
                attempt.receipts
                and self._parts.fits(part, changed)
                and not any(_same_value(changed, other) for other, _ in found)
            ):
                found.append((changed, attempt))
        if len(found) == 1:
            log.extend(found[0][1])
            return found[0][0]
        if found:
            log.note(path, explain_value(value, [changed for changed, _ in found]))
        return value

    # Objects and arrays

    def _members(self, value: dict[Any, Any], view: PartView, path: _Path, log: Log) -> _Steps:
        self._spend(_WORK_PER_CHECK * len(value))
        value, disputed = self._rename(value, view, path, log)
        result = value
        for key, item in value.items():
            schema = view.properties.get(key, view.open_names)
            if isinstance(schema, bool) and (schema or key not in view.properties):
                continue
            if key not in view.properties and view.pattern_names:
                continue
            if self._parts.fits(schema, item):
                continue
            changed = item
            if (
                key in view.properties
                and key not in view.required
                and key not in disputed
                and self._means_absence(item, schema)
            ):
                result = dict(result) if result is value else result
                del result[key]
                why = "null means that the argument is left out"
                log.change("drop_null", (*path, key), item, None, why)
            else:
                changed = yield self._visit(item, schema, (*path, key), log)
            if changed is not item:
                result = dict(result) if result is value else result
                result[key] = changed
        return result

    def _elements(self, value: list[Any], view: PartView, path: _Path, log: Log) -> _Steps:
        items = None if view.items is None else self._parts.view(view.items)
        kind = items.kind if items and items.is_plain and items.kind not in _CONTAINERS else None
        self._spend(_WORK_PER_CHECK * len(value) if kind is None and items else len(value))
        result = value
        pointer = render_pointer(path)
        for index, item in enumerate(value):
            first = index < len(view.first_items)
            schema = view.first_items[index] if first else view.items
            if schema is None or self._parts.fits(schema, item):
                continue
            if kind and not first and not isinstance(item, (dict, list)):
                changed = self._scalar(item, kind, f"{pointer}/{index}", log)
            else:
                changed = yield self._visit(item, schema, (*path, index), log)
            if changed is not item:
                result = list(result) if result is value else result
                result[index] = changed
        return result

    def _scalar(self, value: Any, kind: str, place: str, log: Log) -> Any:
        """Do what a visit would do for a scalar of which only the type is asked, at less cost."""
        self._spend(_WORK_PER_CHANGE)
        change = change_scalar(value, kind, None, exact=True)
        if change is None or (change.after.__class__ is value.__class__ and change.after == value):
            return value
        log.receipts.append(Receipt(change.rule, place, value, change.after))
        return change.after

    def _means_absence(self, item: Any, schema: Any) -> bool:
        if item is None:
            return True
        view = self._parts.view(schema)
        return item in NULL_TEXTS and not _takes(view, "string") and not _takes(view, "null")

    def _decode(self, text: str, view: PartView, path: _Path, log: Log) -> Any:
        decoded = self._decode_text(text)
        if decoded is None or decoded.value.__class__ is not _CONTAINERS[view.kind]:
            return text
        log.decode(path, text, decoded)
        return decoded.value

    def _decode_text(self, text: str) -> DecodedText | None:
        """Return what a text holds; whoever asks again, for another branch, gets the same."""
        if text not in self._texts:
            self._spend(_WORK_PER_TEXT + len(text) // _CHARACTERS_PER_WORK)
            self._texts[text] = decode_text(text)
        return self._texts[text]

    def _wrap(self, value: Any, view: PartView, path: _Path, log: Log) -> _Steps:
        """Make a list of one value, when the value fits as its element."""
        items = True if view.items is None else view.items
        attempt = Log()
        element = value
        if isinstance(value, str):
            text = value.strip()
            if not text or text in NULL_TEXTS or text[0] == "[":
                return value
            if self._parts.fits(items, value):
                if self._may_be_list(text, items):
                    log.note(path, explain_list(value))
                    return value
            elif (decoded := self._decode_text(text)) is not None:
                element = decoded.value
                attempt.decode(path, value, decoded)
        if element is None or view.first_items:
            return value
        if is_schema_echo(element):
            log.note(path, REPEATS_SCHEMA)
            return value
        attempt.change("wrap_in_array", path, element, [element])
        if not self._parts.fits(items, element):
            element = yield self._visit(element, items, (*path, 0), attempt)
            if not self._parts.fits(items, element):
                return value
        log.extend(attempt)
        return [element]

    def _may_be_list(self, text: str, items: Any) -> bool:
        """Tell whether a text could also be items with commas between them."""
        listed = [part.strip() for part in _LISTING.split(text, _MAX_LISTED)]
        return len(listed) > 1 and all(part and self._parts.fits(items, part) for part in listed)

    # Keys

    def _rename(
        self, value: dict[Any, Any], view: PartView, path: _Path, log: Log
    ) -> tuple[dict[Any, Any], set[str]]:
        """Give unknown keys the names they clearly mean; return the names that are in dispute."""
        targets: dict[str, list[str]] = {}
        disputed: set[str] = set()
        if not view.properties:
            return value, disputed
        for key in list(value)[:_MAX_RENAMED]:
            if not isinstance(key, str) or key in view.properties:
                continue
            self._spend(2 * (1 + len(view.properties)))
            found = match_name(key, view.properties, quoted=True)
            if not found or self._may_stay(key, view, found, value):
                continue
            if len(found) > 1:
                log.note(path, explain_name(key, found))
                disputed.update(found)
            else:
                targets.setdefault(found[0], []).append(key)
        names: dict[str, str] = {}
        for target, keys in targets.items():
            given = [*keys, target] if target in value else keys
            if len(given) > 1:
                log.note(path, explain_same(given, target))
                disputed.add(target)
            elif target not in disputed:
                names[keys[0]] = target
        if not names:
            return value, disputed
        for key, target in names.items():
            log.change("rename_key", (*path, key), key, target)
        return {names.get(key, key): item for key, item in value.items()}, disputed

    def _may_stay(self, key: str, view: PartView, found: list[str], value: dict[Any, Any]) -> bool:
        """Tell whether an unknown key is allowed, and no required one is missing in its place."""
        if any(name in view.required and name not in value for name in found):
            return False
        if view.open_names is not False:
            return True
        patterns = view.pattern_names
        return patterns is not None and self._parts.fits(patterns, {key: None})

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TooMuchWorkError


def _match(value: Any, options: list[Any], path: _Path, log: Log) -> Any:
    match match_option(value, options):
        case Ambiguous(candidates=candidates):
            log.note(path, explain_value(value, candidates))
            return value
        case Change() as change if not same_json(change.after, value):
            log.change(change.rule, path, value, change.after)
            return change.after
        case _:
            return value


def _takes(view: PartView, name: str) -> bool:
    return view.types is None or name in view.types


def same_json(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON, with 3 and 3.0 taken as different."""
    try:
        return encode(one) == encode(other)
    except JSONTextError:
        return False


def _same_value(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other and isinstance(one, bool) == isinstance(other, bool)
    return same_json(one, other)
