"""A value fitted to a schema by the cheapest changes that a careful reader would make.

Value and schema are walked together. Each change has a cost, a receipt and, where it takes a
judgement, a doubt. Of several forms that a schema allows, the one that costs least is meant; when
two cost the same and differ, none is, and the value is left as it is with a note.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, NamedTuple, TypeAlias, cast

from surecall.jsontext import render_pointer
from surecall.limits import MAX_VALUE_DEPTH
from surecall.records import ErrorDetail, Receipt, clip
from surecall.schema.coerce.parts import PartView, SchemaParts
from surecall.schema.coerce.values import (
    NULL_TEXTS,
    Ambiguous,
    Change,
    change_scalar,
    match_name,
    match_option,
)
from surecall.schema.coerce.walk import same_json
from surecall.schema.explain import detail_at, explain_value

from . import lines, words
from .. import wording

_MAX_WORK: Final = 40_000
_MAX_BRANCHES: Final = 64
_MAX_MEMBERS: Final = 40
_MAX_LABEL_CHARS: Final = 200
UNFIT: Final = 10_000
"""The cost of a value that does not fit."""

_CHEAP: Final = 1
_LOOSE: Final = 4
_SHAPE: Final = 3
_LINES: Final = 6
_NONE_WORDS: Final = frozenset({"", "-", "n/a", "na", "nil", "none", "not applicable", "null"})
_ALIASES: Final = ("title", "description", "alias", "aliases", "x-alias", "x-aliases")

_Path: TypeAlias = tuple[str | int, ...]
_Steps: TypeAlias = Generator["_Steps", Any, Any]


class TooMuchWorkError(Exception):
    """The forms a value may take multiply."""


class Fit(NamedTuple):
    """What became of a value, and what that cost."""

    value: Any
    cost: int = 0
    receipts: tuple[Receipt, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[ErrorDetail, ...] = ()
    """What could be two things."""

    @property
    def fits(self) -> bool:
        """Whether the value fits its schema."""
        return self.cost < UNFIT

    def after(self, other: "Fit", value: Any = None) -> "Fit":
        """Return this fit with the changes of another before it."""
        return Fit(
            self.value,
            self.cost + other.cost,
            other.receipts + self.receipts,
            other.doubts + self.doubts,
            other.notes + self.notes,
        )


def _change(
    rule: str, path: _Path, before: Any, after: Any, cost: int, doubt: str = "", **more: Any
) -> Fit:
    shown = clip(before) if isinstance(before, str) else before
    receipt = Receipt(rule, render_pointer(path), shown, after, why=doubt, **more)
    return Fit(after, cost, (receipt,), (doubt,) if doubt else ())


class Fitter:
    """Fits values to one schema; the work of all its fits together is bounded."""

    __slots__ = ("_decode", "_left", "_parts", "root")

    def __init__(
        self, root: Any, parts: SchemaParts, decode: Callable[[str], "Fit | None"]
    ) -> None:
        self.root = root
        self._parts = parts
        self._decode = decode
        self._left = _MAX_WORK

    def fit(self, value: Any) -> Fit:
        """Return the best fit of a value.

        Raises:
            TooMuchWorkError: the forms that the value may take multiply.
        """
        stack = [self._visit(value, self.root, ())]
        result: Any = None
        while stack:
            try:
                step = stack[-1].send(result)
            except StopIteration as end:
                result = end.value
                stack.pop()
            else:
                if len(stack) > 6 * MAX_VALUE_DEPTH:
                    raise TooMuchWorkError
                stack.append(step)
                result = None
        return result

    def view(self) -> PartView:
        """Return what the schema says."""
        return self._parts.view(self.root)

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TooMuchWorkError

    # One value

    def _visit(self, value: Any, part: Any, path: _Path) -> _Steps:
        self._spend(4)
        if self._parts.fits(part, value):
            return Fit(value)
        view = self._parts.view(part)
        options = self._options(part, view)
        if options is not None:
            return (yield self._option(value, part, options, path))
        if view.branches:
            return (yield self._choose(value, part, view, path))
        match view.kind:
            case "object":
                found = yield self._object(value, part, view, path)
            case "array":
                found = yield self._array(value, part, view, path)
            case None:
                found = Fit(value, UNFIT)
                if isinstance(value, dict) and (view.properties or view.required):
                    found = yield self._object(value, part, view, path)
            case _:
                found = yield self._scalar(value, part, view, path)
        return found

    def _check(self, fit: Fit, part: Any) -> Fit:
        """Return a fit, as unfit if what it gives does not fit."""
        if fit.fits and not self._parts.fits(part, fit.value):
            return fit._replace(cost=fit.cost + UNFIT)
        return fit

    def _best(self, value: Any, fits: Iterable[Fit], path: _Path) -> Fit:
        """Return the cheapest fit; none when others that differ cost the same."""
        fits = [fit for fit in fits]
        found = sorted((fit for fit in fits if fit.fits), key=lambda fit: fit.cost)
        if not found:
            return min(fits, key=lambda fit: fit.cost, default=Fit(value, UNFIT))
        best = found[0]
        rivals = [fit.value for fit in found[1:] if fit.cost == best.cost]
        others = [item for item in rivals if not same_json(item, best.value)]
        if others:
            note = detail_at(path, explain_value(value, [best.value, *others]))
            return Fit(value, UNFIT, notes=(note,))
        return best

    # Options

    def _options(self, part: Any, view: PartView) -> list[words.Option] | None:
        """Return the values that are allowed, when they are listed."""
        if view.options is not None:
            return [_as_option(value, part) for value in view.options]
        if not view.branches or len(view.branches) > _MAX_BRANCHES:
            return None
        found: list[words.Option] = []
        for branch in view.branches:
            inner = self._parts.view(branch)
            if inner.options is None:
                return None
            single = branch if len(inner.options) == 1 else None
            found += [_as_option(value, single) for value in inner.options]
        return found

    def _option(self, value: Any, part: Any, options: list[words.Option], path: _Path) -> _Steps:
        values = [item.value for item in options]
        match match_option(value, values):
            case Ambiguous(candidates=candidates):
                note = detail_at(path, explain_value(value, candidates))
                return Fit(value, UNFIT, notes=(note,))
            case Change() as change:
                return _change(change.rule, path, value, change.after, _CHEAP)
            case None:
                pass
        if isinstance(value, str):
            self._spend(len(value) // 40)
            named = words.find_option(value, options)
            if named is None and any(type(item) in (int, float) for item in values):
                named = _find_listed_number(value, values)
            if named is None and set(values) <= {True, False} if _are_plain(values) else False:
                named = words.find_boolean(value)
                if named and not all(item in values for item in named.values):
                    named = None
            return self._take(named, "find_option", wording.OPTION_IN_TEXT, value, path)
        if isinstance(value, (dict, list)):
            return (yield self._unwrap(value, part, path))
        return Fit(value, UNFIT)

    def _take(
        self, named: words.Named | None, rule: str, doubt: str, value: Any, path: _Path
    ) -> Fit:
        """Return the one value that a text names, or what it names as a note."""
        if named is None:
            return Fit(value, UNFIT)
        if len(named.values) > 1:
            note = detail_at(path, explain_value(clip(value, 60), named.values[:8]))
            return Fit(value, UNFIT, notes=(note,))
        if named.stood_out:
            doubt = wording.STOOD_OUT
        return _change(rule, path, value, named.values[0], _LOOSE + named.stood_out, doubt)

    # A choice between parts

    def _choose(self, value: Any, part: Any, view: PartView, path: _Path) -> _Steps:
        fits: list[Fit] = []
        for branch in view.branches[:_MAX_BRANCHES]:
            self._spend(8)
            fit: Fit = yield self._visit(value, branch, path)
            if self._is_discriminated(value, branch):
                fit = fit._replace(cost=max(0, fit.cost - 1))
            fits.append(self._check(fit, part))
        types = view.types
        if isinstance(value, str) and types is not None and "null" in types:
            if value.strip().casefold() in _NONE_WORDS and "string" not in types:
                return _change("parse_null_text", path, value, None, _CHEAP, wording.NONE_WORD)
        return self._best(value, fits, path)

    def _is_discriminated(self, value: Any, branch: Any) -> bool:
        """Tell whether a member of an object says that it is meant for this branch."""
        if not isinstance(value, dict):
            return False
        members = cast("dict[str, Any]", value)
        for name, schema in self._parts.view(branch).properties.items():
            options = self._parts.view(schema).options
            if options is not None and len(options) == 1 and members.get(name) == options[0]:
                return True
        return False

    # Scalars

    def _scalar(self, value: Any, part: Any, view: PartView, path: _Path) -> _Steps:
        kind = view.kind or ""
        change = change_scalar(value, kind, view.format_name, exact=True)
        if change is not None and self._parts.fits(part, change.after):
            return _change(change.rule, path, value, change.after, _CHEAP)
        if isinstance(value, str):
            self._spend(len(value) // 40)
            return self._check(self._in_text(value, part, view, path), part)
        if kind == "string" and isinstance(value, (dict, list)):
            single = yield self._unwrap(value, part, path)
            if single.fits and not any(item.rule == "write_as_text" for item in single.receipts):
                return single
            text = self._decode_back(value)
            fit = _change("write_as_text", path, value, text, _LINES, wording.JSON_AS_TEXT)
            return self._check(fit, part)
        if isinstance(value, (dict, list)):
            return (yield self._unwrap(value, part, path))
        if kind == "boolean" and value in (0, 1):
            return _change("parse_boolean_text", path, value, bool(value), _SHAPE, wording.ONE_ZERO)
        return Fit(value, UNFIT)

    def _decode_back(self, value: Any) -> str:
        from surecall.jsontext import encode_text

        return encode_text(value)

    def _in_text(self, value: str, part: Any, view: PartView, path: _Path) -> Fit:
        """Return the scalar that a text names."""
        match view.kind:
            case "integer" | "number":
                return self._number(value, part, path)
            case "boolean":
                named = words.find_boolean(value)
                return self._take(named, "find_boolean", wording.WORD_IN_TEXT, value, path)
            case "null" if value.strip().casefold() in _NONE_WORDS:
                return _change("parse_null_text", path, value, None, _SHAPE, wording.NONE_WORD)
            case "string":

                def fits(text: str) -> bool:
                    self._spend(1)
                    change = change_scalar(text, "string", view.format_name, exact=True)
                    return self._parts.fits(part, text if change is None else change.after)

                bare = lines.unmark(value)
                if bare != value and fits(bare):
                    return _change("find_text", path, value, bare, _CHEAP, wording.TOKEN_IN_TEXT)
                named = words.find_date(value) if view.format_name == "date" else None
                if named is None:
                    named = words.find_token(value, fits)
                found = self._take(named, "find_text", wording.TOKEN_IN_TEXT, value, path)
                if found.fits and view.format_name:
                    change = change_scalar(found.value, "string", view.format_name, exact=True)
                    if change is not None:
                        return found._replace(value=change.after)
                return found
            case _:
                return Fit(value, UNFIT)

    def _number(self, value: str, part: Any, path: _Path) -> Fit:
        named = words.find_number(value)
        if named is None:
            return Fit(value, UNFIT)
        amounts = [self._as_number(item, part) for item in named.values]
        named = named._replace(values=tuple(item for item in amounts if item is not None))
        if not named.values:
            return Fit(value, UNFIT)
        doubt = wording.NUMBER_IN_TEXT
        if len(amounts) == 1 and any(item.is_percent for item in words_values(value)):
            doubt = wording.PERCENT
        return self._take(named, "find_number", doubt, value, path)

    def _as_number(self, amount: words.Amount, part: Any) -> int | float | None:
        """Return an amount as the schema wants it: a share of one where it allows no more."""
        number = amount.value
        forms = [number, int(number)] if float(number).is_integer() else [number]
        if amount.is_percent:
            forms.append(number / 100)
        return next((form for form in forms if self._parts.fits(part, form)), None)

    # What is wrapped

    def _unwrap(self, value: Any, part: Any, path: _Path) -> _Steps:
        """Take the one value that fits from the object or list around it."""
        is_list = isinstance(value, list)
        members = list(
            enumerate(cast("list[Any]", value))
            if is_list
            else cast("dict[str, Any]", value).items()
        )
        if not members or len(members) > _MAX_MEMBERS:
            return Fit(value, UNFIT)
        fits: list[Fit] = []
        for key, item in members:
            self._spend(4)
            if len(members) > 1 and not isinstance(item, (dict, list)):
                # Several members: only what fits as it is can be told from the others.
                fit = Fit(item) if self._parts.fits(part, item) else Fit(item, UNFIT)
                fit = fit._replace(cost=fit.cost + 3)
            else:
                fit = yield self._visit(item, part, (*path, key))
            fits.append(self._check(fit, part))
        best = self._best(value, fits, path)
        if not best.fits:
            return Fit(value, UNFIT, notes=best.notes)
        step = _change(
            "unwrap_value",
            path,
            value,
            best.value,
            _SHAPE + (len(members) > 1),
            wording.UNWRAPPED,
            lossless=len(members) == 1,
        )
        return best.after(step)

    # Arrays

    def _array(self, value: Any, part: Any, view: PartView, path: _Path) -> _Steps:
        items = True if view.items is None else view.items
        if isinstance(value, list):
            return (yield self._elements(cast("list[Any]", value), part, view, path))
        if value is None:
            return Fit(value, UNFIT)
        fits: list[Fit] = []
        if isinstance(value, str):
            decoded = self._decode(value)
            if decoded is not None and isinstance(decoded.value, (dict, list)):
                step = _change("decode_json_text", path, value, decoded.value, _CHEAP)
                inner = yield self._visit(decoded.value, part, path)
                return inner.after(decoded.after(step))
            for found, cost in self._list_forms(value, items):
                fit: Fit = yield self._listed(value, found, cost, part, view, path)
                if fit.fits:
                    return fit
                fits.append(fit)
        elif isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            lists = [key for key, item in members.items() if isinstance(item, list)]
            if len(members) == 1 and lists and not self._parts.fits(items, value):
                fit = yield self._visit(members[lists[0]], part, (*path, lists[0]))
                step = _change(
                    "unwrap_value", path, value, members[lists[0]], _SHAPE, wording.UNWRAPPED
                )
                fits.append(fit.after(step))
        if not view.first_items:
            item: Fit = yield self._visit(value, items, (*path, 0))
            step = _change("wrap_in_array", path, value, [item.value], _SHAPE, wording.SINGLE_ITEM)
            fits.append(self._check(item._replace(value=[item.value]).after(step), part))
        found = self._best(value, fits, path)
        if not found.fits and isinstance(value, dict):
            inner = yield self._unwrap(value, part, path)
            return inner if inner.fits else found
        return found

    def _list_forms(self, text: str, items: Any) -> Iterable[tuple[list[Any], int]]:
        """Yield the lists that a text may be, the clearest first."""
        view = self._parts.view(items)
        table = lines.read_table(text)
        if table is not None:
            yield list(table), _LINES
        bullets = lines.read_items(text)
        if bullets is not None and (len(bullets) > 1 or view.kind != "object"):
            yield list(bullets), _LINES
        if view.kind == "object" or (view.branches and self._options(items, view) is None):
            blocks = [block for block in text.split("\n\n") if block.strip()]
            if len(blocks) > 1 and view.kind == "object":
                yield list(blocks), _LINES + 1
            return
        options = self._options(items, view)
        if options is not None:
            mentions = words.find_options(text, [(item.value, item.spellings) for item in options])
            if mentions:
                yield [mention.value for mention in mentions], _LINES
            return
        rows = lines.read_lines(text)
        if len(rows) > 1 and not (rows[0].endswith(":") and len(rows) == 2):
            yield rows[1:] if rows[0].endswith(":") else rows, _LINES
        listing = lines.read_listing(text)
        if listing is not None:
            yield list(listing), _LINES
        if view.kind in {"integer", "number"}:
            numbers = [mention.value.value for mention in words.find_numbers(text)]
            if numbers:
                yield list(numbers), _LINES + 1

    def _listed(
        self, value: str, found: list[Any], cost: int, part: Any, view: PartView, path: _Path
    ) -> _Steps:
        self._spend(len(found))
        fit: Fit = yield self._elements(found, part, view, path)
        step = _change("list_from_text", path, value, found, cost, wording.LIST_IN_TEXT)
        return fit.after(step)

    def _elements(self, value: list[Any], part: Any, view: PartView, path: _Path) -> _Steps:
        total = Fit(value)
        result: list[Any] = []
        for index, item in enumerate(value):
            is_first = index < len(view.first_items)
            schema = view.first_items[index] if is_first else view.items
            fit = Fit(item)
            if schema is not None:
                fit = yield self._visit(item, schema, (*path, index))
            result.append(fit.value)
            total = fit.after(total)
        fit = self._check(total._replace(value=result), part)
        if not fit.fits and len(value) == 1 and isinstance(value[0], list):
            inner: Fit = yield self._visit(value[0], part, (*path, 0))
            if inner.fits:
                step = _change(
                    "unwrap_value", path, value, cast("Any", value[0]), _SHAPE, wording.UNWRAPPED
                )
                return inner.after(step)
        return fit

    # Objects

    def _object(self, value: Any, part: Any, view: PartView, path: _Path) -> _Steps:
        if isinstance(value, dict):
            return (yield self._mapping(cast("dict[str, Any]", value), part, view, path))
        if isinstance(value, list):
            return (yield self._from_list(cast("list[Any]", value), part, view, path))
        fits: list[Fit] = []
        if isinstance(value, str):
            decoded = self._decode(value)
            if decoded is not None and isinstance(decoded.value, (dict, list)):
                step = _change("decode_json_text", path, value, decoded.value, _CHEAP)
                inner = yield self._visit(decoded.value, part, path)
                return inner.after(decoded.after(step))
            pairs = self._pairs(value, view)
            if pairs:
                fit = yield self._members(pairs, part, view, path)
                step = _change(
                    "object_from_lines", path, value, pairs, _LINES, wording.OBJECT_IN_LINES
                )
                fits.append(fit.after(step))
                if fits[-1].fits:
                    return fits[-1]
        name = _only_name(view)
        if name is not None and value is not None and not _looks_structured(value):
            item: Fit = yield self._visit(value, view.properties[name], (*path, name))
            named = {name: item.value}
            step = _change("name_single_value", path, value, named, _SHAPE, wording.SINGLE_FIELD)
            fits.append(self._check(item._replace(value=named).after(step), part))
        return self._best(value, fits, path)

    def _pairs(self, text: str, view: PartView) -> dict[str, Any] | None:
        """Return what lines or a table of keys and values say."""
        self._spend(len(text) // 20)

        def knows(key: str) -> bool:
            self._spend(2)
            return bool(self._names(key, view)) if view.properties else len(key.split()) <= 4

        table = lines.read_table(text)
        if table is not None:
            if len(table) == 1 and any(knows(key) for key in table[0]):
                return dict(table[0])
            if all(len(row) == 2 for row in table):
                rows = [list(row.values()) for row in table]
                pairs = {row[0]: row[1] for row in rows if knows(row[0])}
                return pairs or None
            return None
        return lines.read_pairs(text, knows)

    def _from_list(self, value: list[Any], part: Any, view: PartView, path: _Path) -> _Steps:
        fits: list[Fit] = []
        name = _only_name(view)
        if name is not None:
            schema = view.properties[name]
            kind = self._parts.view(schema).kind
            if kind == "array" or (self._parts.fits(schema, value)):
                item: Fit = yield self._visit(value, schema, (*path, name))
                named = {name: item.value}
                step = _change(
                    "name_single_value", path, value, named, _SHAPE, wording.SINGLE_FIELD
                )
                fits.append(self._check(item._replace(value=named).after(step), part))
        pairs = _join_pairs(value)
        if pairs is not None:
            fit = yield self._mapping(pairs, part, view, path)
            step = _change("merge_objects", path, value, pairs, _SHAPE + 1, wording.MERGED)
            fits.append(fit.after(step))
        fits.append((yield self._unwrap(value, part, path)))
        return self._best(value, fits, path)

    def _mapping(self, value: dict[str, Any], part: Any, view: PartView, path: _Path) -> _Steps:
        """Fit an object by its members or, failing that, by what it is wrapped around."""
        direct: Fit = yield self._members(value, part, view, path)
        if direct.fits:
            return direct
        nested = [key for key, item in value.items() if isinstance(item, (dict, list))]
        known = [key for key in value if key in view.properties]
        texts = [key for key, item in value.items() if _looks_structured(item)]
        if (nested or texts) and not known and len(value) <= _MAX_MEMBERS:
            inner: Fit = yield self._unwrap(value, part, path)
            if inner.fits or inner.notes:
                return inner
        name = _only_name(view)
        if name is not None and not known:
            schema = view.properties[name]
            if self._parts.fits(schema, value):
                named = {name: value}
                step = _change(
                    "name_single_value", path, value, named, _SHAPE, wording.SINGLE_FIELD
                )
                return self._check(step, part)
        return direct

    def _members(self, value: dict[str, Any], part: Any, view: PartView, path: _Path) -> _Steps:
        self._spend(4 * len(value))
        total, result = self._rename(value, view, path), dict[str, Any]()
        for key, item in total.value.items():
            is_known = key in view.properties
            schema = view.properties.get(key, view.open_names)
            if (
                not is_known
                and view.pattern_names
                and self._parts.fits(view.pattern_names, {key: None})
            ):
                schema = True
            if schema is False and not is_known:
                step = _change(
                    "drop_extra_key",
                    (*path, key),
                    item,
                    None,
                    _CHEAP,
                    wording.EXTRA_KEY,
                    lossless=False,
                )
                total = step.after(total)
                continue
            fit = Fit(item)
            if not isinstance(schema, bool):
                if is_known and key not in view.required and self._is_absent(item, schema):
                    step = _change("drop_null", (*path, key), item, None, _CHEAP, wording.ABSENT)
                    total = step.after(total)
                    continue
                fit = yield self._visit(item, schema, (*path, key))
            result[key] = fit.value
            total = fit.after(total)
        for name in view.required:
            if name not in result:
                total = self._fill(name, view, result, path).after(total)
        ordered = {name: result[name] for name in view.properties if name in result}
        ordered = (
            {**{name: result[name] for name in result}, **{}}
            if ordered.keys() != result.keys()
            else result
        )
        return self._check(total._replace(value=ordered), part)

    def _is_absent(self, item: Any, schema: Any) -> bool:
        """Tell whether a value says that an optional property has none."""
        if item is not None and not (isinstance(item, str) and item in NULL_TEXTS):
            return False
        return not self._parts.fits(schema, item)

    def _fill(self, name: str, view: PartView, result: dict[str, Any], path: _Path) -> Fit:
        """Fill a required property that has one possible value, or may be null; no other."""
        schema = view.properties.get(name)
        if schema is None:
            return Fit(None, UNFIT)
        options = self._parts.view(schema).options
        if options is not None and len(options) == 1:
            result[name] = options[0]
            return _change(
                "fill_constant", (*path, name), None, options[0], _SHAPE, wording.ONLY_VALUE
            )
        if self._parts.fits(schema, None):
            result[name] = None
            return _change("fill_null", (*path, name), None, None, _CHEAP, wording.LEFT_OUT)
        return Fit(None, UNFIT)

    # Keys

    def _rename(self, value: dict[str, Any], view: PartView, path: _Path) -> Fit:
        """Give unknown keys the names they mean, where one name is meant by one key."""
        targets: dict[str, str] = {}
        taken = {key for key in value if key in view.properties}
        for key in list(value)[: _MAX_MEMBERS * 5]:
            if key in view.properties or not view.properties:
                continue
            self._spend(1 + len(view.properties))
            found = [name for name in self._names(key, view) if name not in taken]
            if len(found) == 1:
                targets[key] = found[0]
                taken.add(found[0])
        total = Fit(value)
        if not targets:
            return total
        for key, name in targets.items():
            is_clear = match_name(key, [name], quoted=True)
            doubt = "" if is_clear else wording.KEY_MEANS
            step = _change("rename_key", (*path, key), key, name, _CHEAP, doubt)
            total = step.after(total)
        return total._replace(value={targets.get(key, key): item for key, item in value.items()})

    def _names(self, key: str, view: PartView) -> list[str]:
        """Return the properties that a key may mean, by name, title, alias or description."""
        if key in view.properties:
            return [key]
        found = match_name(key, view.properties, quoted=True)
        if found:
            return found
        form = words.squash(key[:_MAX_LABEL_CHARS])
        if not form:
            return []
        found = [name for name in view.properties if words.squash(name) == form]
        return found or [
            name for name, schema in view.properties.items() if form in _list_labels(schema)
        ]


def words_values(text: str) -> list[words.Amount]:
    """Return the amounts that a text names."""
    return [mention.value for mention in words.find_numbers(text)]


def _list_labels(schema: Any) -> list[str]:
    fields = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    found: list[str] = []
    for keyword in _ALIASES:
        label: Any = fields.get(keyword)
        listed = cast("list[Any]", label) if isinstance(label, list) else [label]
        found += [
            words.squash(item)
            for item in listed
            if isinstance(item, str) and len(item) <= _MAX_LABEL_CHARS
        ]
    return [item for item in found if item]


def _as_option(value: Any, part: Any) -> words.Option:
    spellings = (value,) if isinstance(value, str) else ()
    if isinstance(value, bool):
        spellings = ("true", "yes") if value else ("false", "no")
    labels: list[str] = []
    fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    if "const" in fields or len(cast("list[Any]", fields.get("enum") or [])) == 1:
        for keyword in ("title", "description"):
            label: Any = fields.get(keyword)
            if isinstance(label, str) and 0 < len(label) <= _MAX_LABEL_CHARS:
                labels.append(label)
    return words.Option(value, spellings, tuple(labels))


def _are_plain(values: list[Any]) -> bool:
    return all(isinstance(item, bool) for item in values)


def _find_listed_number(text: str, values: list[Any]) -> words.Named | None:
    """Return the one number that is allowed and that a text names."""
    known = [item for item in values if type(item) in (int, float)]
    mentions = [
        mention._replace(value=mention.value.value)
        for mention in words.find_numbers(text)
        if mention.value.value in known
    ]
    return words.settle(mentions, text, by_first=False)


def _only_name(view: PartView) -> str | None:
    """Return the one required property, or the one there is."""
    required = [name for name in view.properties if name in view.required]
    names = required or list(view.properties)
    return names[0] if len(names) == 1 else None


def _looks_structured(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip()[:1] in ("{", "[")


def _join_pairs(value: list[Any]) -> dict[str, Any] | None:
    """Return one object for a list of objects with one member each, or of keys and values."""
    found: dict[str, Any] = {}
    for item in cast("list[dict[str, Any]]", value):
        if not isinstance(item, dict) or not item:
            return None
        pair = item
        if len(item) == 2 and "value" in item and ({"key", "name"} & item.keys()):
            key: Any = item.get("key", item.get("name"))
            if not isinstance(key, str):
                return None
            pair = {key: item["value"]}
        elif len(item) != 1:
            return None
        if pair.keys() & found.keys():
            return None
        found.update(pair)
    return found if len(value) > 1 or any("value" in item for item in value) else None
