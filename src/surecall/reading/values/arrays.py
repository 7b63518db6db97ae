"""Arrays: of items that need a change each, of one item, or of the parts of a text."""

from collections.abc import Iterable
from typing import Any, cast

from surecall.reading import wording
from surecall.schema.coerce.parts import PartView

from . import lines, numbers, words
from .fit import LINES, LOOSE, SHAPE, UNFIT, Fit, Path, Steps, Total, make_change
from .scalars import NONE_WORDS, ScalarWalker


class ArrayWalker(ScalarWalker):
    """Fits arrays."""

    __slots__ = ()

    def _array(self, value: Any, part: Any, view: PartView, path: Path) -> Steps:
        if isinstance(value, list):
            return (yield self._elements(cast("list[Any]", value), part, view, path))
        if isinstance(value, str):
            return (yield self._from_text(value, part, view, path))
        if isinstance(value, dict):
            return (yield self._from_object(cast("dict[str, Any]", value), part, view, path))
        if value is None:
            return Fit(value, UNFIT)
        return (yield self._wrap(value, part, view, path))

    def _wrap(self, value: Any, part: Any, view: PartView, path: Path) -> Steps:
        """Make a list of one value."""
        if view.first_items:
            return Fit(value, UNFIT)
        items = True if view.items is None else view.items
        item: Fit = yield self._visit(value, items, (*path, 0))
        step = make_change("wrap_in_array", path, value, [item.value], SHAPE, wording.SINGLE_ITEM)
        return self._check(item._replace(value=[item.value]).after(step), part)

    def _from_text(self, value: str, part: Any, view: PartView, path: Path) -> Steps:
        decoded = self._decode_text(value, path)
        if decoded is not None:
            return (yield self._visit(decoded.value, part, path)).after(decoded)
        if value.strip().casefold() in NONE_WORDS:
            empty = make_change("list_from_text", path, value, [], LINES, wording.EMPTY_LIST)
            return self._check(empty, part)
        items = True if view.items is None else view.items
        fits: list[Fit] = []
        for found, cost in self._list_forms(value, items):
            fit: Fit = yield self._listed(value, found, cost, part, view, path)
            if fit.fits:
                return fit
            fits.append(fit)
        single: Fit = yield self._wrap(value, part, view, path)
        return self._best(value, [*fits, single], path)

    def _from_object(self, value: dict[str, Any], part: Any, view: PartView, path: Path) -> Steps:
        """Make a list of an object: of its members if they are counted, of what it wraps, of it."""
        if _is_numbered(value):
            listed = list(value.values())
            fit: Fit = yield self._elements(listed, part, view, path)
            step = make_change("list_from_text", path, value, listed, LOOSE, wording.LIST_IN_TEXT)
            return fit.after(step)
        fits: list[Fit] = []
        inner: Any = next(iter(value.values()), None) if len(value) == 1 else None
        if isinstance(inner, list):
            key = next(iter(value))
            fit = yield self._visit(cast("Any", inner), part, (*path, key))
            step = make_change(
                "unwrap_value", path, value, cast("Any", inner), SHAPE, wording.UNWRAPPED
            )
            fits.append(fit.after(step))
        single: Fit = yield self._wrap(value, part, view, path)
        if not single.is_forced:
            fits.append(single)
        found = self._best(value, fits, path)
        if found.fits:
            return found
        other: Fit = yield self._unwrap(value, part, path)
        return other if other.fits else found

    def _list_forms(self, text: str, items: Any) -> Iterable[tuple[list[Any], int]]:
        """Yield the lists that a text may be, the clearest first."""
        view = self._parts.view(items)
        table = lines.read_table(text)
        if table is not None:
            yield list(table), LINES
        bullets = lines.read_items(text)
        if bullets is not None and (len(bullets) > 1 or view.kind != "object"):
            yield list(bullets), LINES
        if view.kind == "object" or (view.branches and self._options(items, view) is None):
            blocks = [block for block in text.split("\n\n") if block.strip()]
            if len(blocks) > 1 and view.kind == "object":
                yield list(blocks), LINES + 1
            return
        options = self._options(items, view)
        if options is not None:
            mentions = words.find_options(text, [(item.value, item.spellings) for item in options])
            if mentions:
                yield [mention.value for mention in mentions], LINES
            return
        rows = lines.read_lines(text)
        if len(rows) > 1 and not (rows[0].endswith(":") and len(rows) == 2):
            yield rows[1:] if rows[0].endswith(":") else rows, LINES
        listing = lines.read_listing(text)
        if listing is not None:
            yield list(listing), LINES
        if view.kind in {"integer", "number"}:
            found = [mention.value.value for mention in numbers.find_numbers(text)]
            if found:
                yield list(found), LINES + 1

    def _listed(
        self, value: str, found: list[Any], cost: int, part: Any, view: PartView, path: Path
    ) -> Steps:
        self._spend(len(found))
        fit: Fit = yield self._elements(found, part, view, path)
        step = make_change("list_from_text", path, value, found, cost, wording.LIST_IN_TEXT)
        return fit.after(step)

    def _elements(self, value: list[Any], part: Any, view: PartView, path: Path) -> Steps:
        total = Total(Fit(value))
        result: list[Any] = []
        for index, item in enumerate(value):
            is_first = index < len(view.first_items)
            schema = view.first_items[index] if is_first else view.items
            fit = Fit(item)
            if schema is not None:
                fit = yield self._visit(item, schema, (*path, index))
            result.append(fit.value)
            total.add(fit)
        fit = self._check(total.as_fit(result), part)
        if not fit.fits and len(value) == 1 and isinstance(value[0], list):
            inner: Fit = yield self._visit(value[0], part, (*path, 0))
            if inner.fits:
                step = make_change(
                    "unwrap_value", path, value, cast("Any", value[0]), SHAPE, wording.UNWRAPPED
                )
                return inner.after(step)
        return fit


def _is_numbered(value: dict[str, Any]) -> bool:
    """Tell whether the keys of an object only count its members."""
    keys = list(value)
    return len(keys) > 1 and any(
        keys == [str(at) for at in range(first, first + len(keys))] for first in (0, 1)
    )
