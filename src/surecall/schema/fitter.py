"""A walk over a value and its schema together that changes what stands for something else.

Both entrances use it: the arguments of a call, and a value in an answer. A certain walk makes only
the changes that leave one meaning; a likely one makes all in the table of conversions, and of
several fits takes the one that costs least. Where two are as good and differ, none is taken, and a
note names them. Whatever fits its part of the schema is left alone. Values are never changed in
place. Nesting is followed on a stack of generators, not by recursion.
"""

import re
from collections.abc import Generator, Iterable
from typing import Any, Final, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.limits import MAX_VALUE_DEPTH
from surecall.base.records import ErrorDetail, Receipt, clip
from surecall.text import encode, encode_text, render_pointer

from . import conversions as to
from . import prose
from .conversions import Conversion
from .mismatches import (
    REPEATS_SCHEMA,
    detail_at,
    explain_list,
    explain_name,
    explain_same,
    explain_value,
)
from .scalars import (
    NULL_TEXTS,
    Ambiguous,
    Amount,
    Change,
    DecodedText,
    change_scalar,
    decode_text,
    find_amounts,
    is_near,
    is_schema_echo,
    match_name,
    match_option,
    read_amount,
    read_named_month,
)
from .subschemas import PartView, SchemaParts

UNFIT: Final = 10_000
"""The cost of a value that does not fit."""
NONE_WORDS: Final = frozenset({"", "-", "n/a", "na", "nil", "none", "null", "undefined", "unknown"})
"""What says that there is nothing."""

# Each unit of work takes about half a microsecond; all of it together stays under 30 ms.
_MAX_WORK: Final = 64_000
_PER_CHANGE: Final = 2
_PER_MEMBER: Final = 4
_PER_VISIT: Final = 8
_PER_ATTEMPT: Final = 16
_PER_TEXT: Final = 40
_CHARACTERS_PER_WORK: Final = 64
_MAX_FRAMES: Final = 6 * MAX_VALUE_DEPTH
_MAX_BRANCHES: Final = 64
_MAX_MEMBERS: Final = 40
_MAX_NOTES: Final = 20
_MAX_RENAMED: Final = 200
_MAX_LISTED: Final = 20
_LISTING: Final = re.compile(r"[,;\n]")
_JSON_SIGNS: Final = frozenset('{}[]"')
_LABEL: Final = re.compile(r"\s*+[^\W\d][\w -]{0,40}+:\s")
_ALIASES: Final = ("title", "description", "alias", "aliases", "x-alias", "x-aliases")

Path: TypeAlias = tuple[str | int, ...]
Steps: TypeAlias = Generator["Steps", Any, Any]


class TooMuchWorkError(Exception):
    """The forms that a value may take multiply; it is left as it is."""


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

    @property
    def is_forced(self) -> bool:
        """Whether a value was taken as text, or something was left out."""
        return any(item.rule == "write_as_text" or not item.lossless for item in self.receipts)

    def after(self, other: "Fit") -> "Fit":
        """Return this fit with the changes of another before it."""
        if not (other.cost or other.receipts or other.notes):
            return self
        return Fit(
            self.value,
            self.cost + other.cost,
            other.receipts + self.receipts,
            other.doubts + self.doubts,
            other.notes + self.notes,
        )


class _Total:
    """The sum of what the parts of a value cost."""

    __slots__ = ("cost", "doubts", "notes", "receipts")

    def __init__(self, first: Fit) -> None:
        self.cost = first.cost
        self.receipts = list(first.receipts)
        self.doubts = list(first.doubts)
        self.notes = list(first.notes)

    def add(self, fit: Fit) -> None:
        self.cost += fit.cost
        self.receipts += fit.receipts
        self.doubts += fit.doubts
        self.notes += fit.notes[: _MAX_NOTES - len(self.notes)]

    def as_fit(self, value: Any) -> Fit:
        return Fit(value, self.cost, tuple(self.receipts), tuple(self.doubts), tuple(self.notes))


class _Keys:
    """What the unknown keys of one object mean."""

    __slots__ = ("disputed", "meant", "notes", "targets")

    def __init__(self) -> None:
        self.targets: dict[str, list[str]] = {}
        self.meant: dict[str, str] = {}
        self.disputed: set[str] = set()
        self.notes: list[str] = []


class Fitter:
    """Fits values to one schema; the work of all its walks together is bounded."""

    __slots__ = ("_in_answer", "_index", "_left", "_likely", "_parts", "_texts", "null_word")

    def __init__(
        self, parts: SchemaParts, *, likely: bool = False, in_answer: bool = False
    ) -> None:
        self.null_word = ""
        """The word that stood wherever an answer has null, if it is not JSON's."""
        self._parts = parts
        self._likely = likely
        self._in_answer = in_answer
        self._left = _MAX_WORK
        self._texts: dict[str, DecodedText | None] = {}
        # By the identity of views, which their parts keep.
        self._index: dict[int, dict[str, list[str]]] = {}

    def fit(self, value: Any) -> Fit:
        """Return the best fit of a value.

        Raises:
            TooMuchWorkError: the forms that the value may take multiply.
        """
        stack = [self._visit(value, self._parts.root, ())]
        result: Any = None
        while stack:
            try:
                step = stack[-1].send(result)
            except StopIteration as end:
                result = end.value
                stack.pop()
            else:
                if len(stack) > _MAX_FRAMES:
                    raise TooMuchWorkError
                stack.append(step)
                result = None
        return result

    def view(self) -> PartView:
        """Return what the schema says."""
        return self._parts.view(self._parts.root)

    def change(self, conversion: Conversion, path: Path, before: Any, after: Any) -> Fit:
        """Return the fit of a value that one conversion changes, where it applies."""
        entrance = "answer" if self._in_answer else "arguments"
        if conversion.entrance not in ("both", entrance) or (conversion.doubt and not self._likely):
            return Fit(before, UNFIT)
        receipt = Receipt(
            conversion.rule,
            render_pointer(path),
            before,
            after,
            lossless=conversion.lossless,
            why=conversion.doubt or conversion.why,
        )
        doubt = conversion.doubt
        if doubt and path:
            doubt = f"{doubt.removesuffix('.')}: {clip(receipt.place, 80)}."
        return Fit(after, conversion.cost, (receipt,), (doubt,) if doubt else ())

    def decode(self, text: str, path: Path) -> Fit | None:
        """Return the object or array that a text holds, with the receipts of its repairs."""
        if text not in self._texts:
            self._spend(_PER_TEXT + len(text) // _CHARACTERS_PER_WORK)
            self._texts[text] = decode_text(text, likely=self._likely and self._in_answer)
        decoded = self._texts[text]
        if decoded is None:
            return None
        step = self.change(to.DECODE, path, text, decoded.value)
        pointer = render_pointer(path)
        repairs = tuple(replace(item, place=f"{pointer}@{item.place}") for item in decoded.repairs)
        doubts = (decoded.doubt,) if decoded.doubt else ()
        return step._replace(receipts=step.receipts + repairs, doubts=doubts)

    def _decoded(self, value: Any, path: Path, kind: type) -> Fit | None:
        """Return what a text holds, if it is of the kind asked for, or may be made to be."""
        found = self.decode(value, path) if isinstance(value, str) else None
        return found if found and (self._likely or isinstance(found.value, kind)) else None

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TooMuchWorkError

    def _check(self, fit: Fit, part: Any) -> Fit:
        """Return a fit, as unfit if what it gives does not fit."""
        if fit.fits and not self._parts.fits(part, fit.value):
            return fit._replace(cost=fit.cost + UNFIT)
        return fit

    def _best(self, value: Any, fits: Iterable[Fit], path: Path) -> Fit:
        """Return the cheapest fit; none when others that differ are as good."""
        fits = list(fits)
        found = sorted((fit for fit in fits if fit.fits), key=lambda fit: fit.cost)
        if not found:
            closest = min(fits, key=lambda fit: fit.cost, default=None)
            return closest if closest is not None and self._likely else Fit(value, UNFIT)
        best = found[0]
        rivals = [fit.value for fit in found[1:] if fit.cost == best.cost or not self._likely]
        others = [item for item in rivals if not _same_value(item, best.value)]
        if others:
            return _note(value, path, explain_value(value, [best.value, *others]))
        return best

    # Any value

    def _visit(self, value: Any, part: Any, path: Path, exact: bool = True) -> Steps:
        """Return the best fit of a value; `exact` says that no other part could be meant."""
        self._spend(_PER_VISIT)
        if self._parts.fits(part, value):
            return Fit(value)
        view = self._parts.view(part)
        if not view.branches and is_schema_echo(value) and "type" not in view.properties:
            return _note(value, path, REPEATS_SCHEMA)
        options = self._options(part, view)
        if options is not None:
            return (yield self._option(value, part, options, path))
        if view.branches:
            return (yield self._choose(value, part, view, path, exact))
        match view.kind:
            case "object":
                return (yield self._object(value, part, view, path))
            case "array":
                return (yield self._array(value, part, view, path, exact))
            case None if isinstance(value, dict):
                return (yield self._mapping(cast("dict[Any, Any]", value), part, view, path))
            case None if isinstance(value, list):
                return (yield self._elements(cast("list[Any]", value), part, view, path))
            case None:
                return Fit(value, UNFIT)
            case _:
                return (yield self._scalar(value, part, view, path, exact))

    def _choose(self, value: Any, part: Any, view: PartView, path: Path, exact: bool) -> Steps:
        """Fit one of several parts."""
        if isinstance(value, str) and _takes(view, "null") and not _takes(view, "string"):
            if value in NULL_TEXTS:
                return self.change(to.PARSE_NULL, path, value, None)
            if self._likely and value.strip().casefold() in NONE_WORDS:
                return self.change(to.NOTHING, path, value, None)
        branches = view.branches[:_MAX_BRANCHES]
        if not self._likely:
            branches = [item for item in branches if self._parts.view(item).types != {"null"}]
            if len(branches) == 1:
                return (yield self._visit(value, branches[0], path, exact))
            if any(self._parts.fits(branch, value) for branch in branches):
                return Fit(value, UNFIT)
        fits: list[Fit] = []
        for branch in branches:
            self._spend(_PER_ATTEMPT)
            fit: Fit = yield self._visit(value, branch, path, self._likely)
            if self._likely and self._is_discriminated(value, branch):
                fit = fit._replace(cost=max(0, fit.cost - 1))
            fits.append(self._check(fit, part))
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

    def _unwrap(self, value: Any, part: Any, path: Path) -> Steps:
        """Take the one value that fits from the object or list around it."""
        is_list = isinstance(value, list)
        members = list(
            enumerate(cast("list[Any]", value))
            if is_list
            else cast("dict[str, Any]", value).items()
        )
        several = len(members) > 1
        conversion = to.TAKE_ONE if several else to.TAKE_ONLY
        allowed = self.change(conversion, path, value, None)
        if not members or len(members) > _MAX_MEMBERS or not allowed.fits:
            return Fit(value, UNFIT)
        fits: list[Fit] = []
        for key, item in members:
            self._spend(_PER_MEMBER)
            if several and not isinstance(item, (dict, list)):
                # Several members: only what fits as it is can be told from the others.
                fit = Fit(item, 3) if self._parts.fits(part, item) else Fit(item, UNFIT)
            else:
                fit = yield self._visit(item, part, (*path, key))
            fits.append(self._check(fit, part))
        best = self._best(value, fits, path)
        if not best.fits and (several or best.notes):
            return Fit(value, UNFIT, notes=best.notes)
        return best.after(self.change(conversion, path, value, best.value))

    # Scalars and options

    def _options(self, part: Any, view: PartView) -> list[prose.Option] | None:
        """Return the values that are allowed, when they are listed."""
        if view.options is not None:
            return [_as_option(value, part) for value in view.options]
        if not view.branches or len(view.branches) > _MAX_BRANCHES:
            return None
        found: list[prose.Option] = []
        for branch in view.branches:
            inner = self._parts.view(branch)
            if inner.options is None:
                return None
            single = branch if len(inner.options) == 1 else None
            found += [_as_option(value, single) for value in inner.options]
        return found

    def _option(self, value: Any, part: Any, options: list[prose.Option], path: Path) -> Steps:
        values = [item.value for item in options]
        match match_option(value, values):
            case Ambiguous(candidates=candidates):
                return _note(value, path, explain_value(value, candidates))
            case Change() as change if not same_json(change.after, value):
                return self._check(self.change(change.conversion, path, value, change.after), part)
            case _:
                pass
        if not self._likely:
            return Fit(value, UNFIT)
        if isinstance(value, (dict, list)):
            return (yield self._unwrap(value, part, path))
        if not isinstance(value, str):
            return Fit(value, UNFIT)
        self._spend(len(value) // 40)
        alike = prose.find_alike(value, options)
        if alike is None and self._in_answer:
            alike = prose.find_option(value, options)
            if alike is None and any(type(item) in (int, float) for item in values):
                known = [item for item in find_amounts(value, 200) if item.value in values]
                mentions = [prose.Mention(item.start, item.end, item.value) for item in known]
                alike = prose.pick_mention(mentions, value, by_first=False)
            return self._take(alike, to.OPTION_IN_TEXT, value, path)
        return self._take(alike, to.MATCH_LABEL, value, path)

    def _take(
        self, named: prose.Named | None, conversion: Conversion, value: Any, path: Path
    ) -> Fit:
        """Return the one value that a text names, or what it names as a note."""
        if named is None:
            return Fit(value, UNFIT)
        if len(named.values) != 1:
            return _note(value, path, explain_value(clip(value, 60), named.values[:8]))
        fit = self.change(conversion, path, value, named.values[0])
        if not named.stood_out:
            return fit
        return fit._replace(cost=fit.cost + 1, doubts=(to.STOOD_OUT,))

    def _scalar(self, value: Any, part: Any, view: PartView, path: Path, exact: bool) -> Steps:
        kind = view.kind or ""
        found = Fit(value, UNFIT)
        change = change_scalar(value, kind, view.format_name, exact=exact)
        if change is not None and not same_json(change.after, value):
            found = self._check(self.change(change.conversion, path, value, change.after), part)
        if found.fits or not self._likely:
            return found
        if isinstance(value, str):
            self._spend(len(value) // 40)
            named = self._check(self._in_text(value, part, view, path), part)
            return named if named.fits or named.notes else found
        if isinstance(value, (dict, list)):
            single: Fit = yield self._unwrap(value, part, path)
            is_text = any(item.rule == "write_as_text" for item in single.receipts)
            if kind == "string" and (not single.fits or is_text):
                return self._json_text(value, part, path)
            return single
        if kind == "boolean" and type(value) in (int, float) and value in (0, 1):
            return self.change(to.ONE_ZERO, path, value, bool(value))
        if value is None and kind == "string" and self.null_word:
            return self._check(self.change(to.WRITE_NULL, path, value, self.null_word), part)
        return found

    def _json_text(self, value: Any, part: Any, path: Path) -> Fit:
        """Write an object or list as text; a list of scalars rather means several values."""
        try:
            text = encode_text(value)
        except JSONTextError:  # half of a surrogate pair
            return Fit(value, UNFIT)
        is_list = isinstance(value, list)
        has_inner = not is_list or any(isinstance(item, (dict, list)) for item in value)  # pyright: ignore[reportUnknownVariableType] - any JSON
        conversion = to.WRITE_JSON if has_inner else to.WRITE_LIST
        return self._check(self.change(conversion, path, value, text), part)

    def _in_text(self, value: str, part: Any, view: PartView, path: Path) -> Fit:
        """Return the scalar that a text names."""
        match view.kind:
            case "integer" | "number":
                return self._number(value, part, path)
            case "boolean" if self._in_answer:
                return self._take(prose.find_boolean(value), to.BOOLEAN_IN_TEXT, value, path)
            case "null" if value.strip().casefold() in NONE_WORDS:
                return self.change(to.NOTHING, path, value, None)
            case "string":
                return self._token(value, part, view, path)
            case _:
                return Fit(value, UNFIT)

    def _token(self, value: str, part: Any, view: PartView, path: Path) -> Fit:
        def spell(text: str) -> str:
            self._spend(1)
            change = change_scalar(text, "string", view.format_name, exact=True)
            return text if change is None else change.after

        def fits(text: str) -> bool:
            return self._parts.fits(part, spell(text))

        bare = prose.unmark(value)
        if bare != value and fits(bare):
            return self.change(to.UNMARK, path, value, spell(bare))
        day = read_named_month(value) if view.format_name == "date" else None
        if day is not None:
            return self.change(to.NAMED_MONTH, path, value, day)
        if not self._in_answer:
            return Fit(value, UNFIT)
        named = prose.find_date(value) if view.format_name == "date" else None
        found = self._take(named or prose.find_token(value, fits), to.TEXT_IN_TEXT, value, path)
        return found._replace(value=spell(found.value)) if found.fits else found

    def _number(self, value: str, part: Any, path: Path) -> Fit:
        written = read_amount(value)
        if written is not None:
            amount, unit = written
            number = self._as_number(amount, part)
            if number is None or not (self._in_answer or _has_unit(unit, part, path)):
                return Fit(value, UNFIT)
            conversion = to.PERCENT if amount.is_percent else to.FORMATTED_NUMBER
            return self.change(conversion, path, value, number)
        if not self._in_answer or len(value) > prose.MAX_WORDS_CHARS:
            return Fit(value, UNFIT)
        named = prose.pick_mention(_as_mentions(find_amounts(value, 200)), value, by_first=False)
        if named is None:
            return Fit(value, UNFIT)
        is_percent = any(item.is_percent for item in named.values)
        numbers = [self._as_number(item, part) for item in named.values]
        named = named._replace(values=tuple(item for item in numbers if item is not None))
        conversion = to.PERCENT_IN_TEXT if is_percent else to.NUMBER_IN_TEXT
        return self._take(named if named.values else None, conversion, value, path)

    def _as_number(self, amount: Amount, part: Any) -> int | float | None:
        """Return an amount as the schema wants it: a share of one where it allows no more."""
        number = amount.value
        forms = [int(number), number] if float(number).is_integer() else [number]
        if amount.is_percent:
            forms.append(number / 100)
        return next((form for form in forms if self._parts.fits(part, form)), None)

    # Arrays

    def _array(self, value: Any, part: Any, view: PartView, path: Path, exact: bool) -> Steps:
        if isinstance(value, list):
            return (yield self._elements(cast("list[Any]", value), part, view, path))
        if decoded := self._decoded(value, path, list):
            return (yield self._visit(decoded.value, part, path)).after(decoded)
        if not exact or value is None:
            return Fit(value, UNFIT)
        if self._likely and isinstance(value, str):
            return (yield self._list_in_text(value, part, view, path))
        single: Fit = yield self._wrap(value, part, view, path)
        if single.fits or not self._likely:
            return single
        if isinstance(value, dict):
            return (yield self._list_in_object(cast("dict[str, Any]", value), part, view, path))
        return single

    def _wrap(self, value: Any, part: Any, view: PartView, path: Path) -> Steps:
        """Make a list of one value, where it is clear that it is one."""
        items = True if view.items is None else view.items
        element, before = value, Fit(value)
        if isinstance(value, str):
            text = value.strip()
            if not text or text in NULL_TEXTS or text[0] == "[":
                return Fit(value, UNFIT)
            if self._parts.fits(items, value):
                if self._may_be_list(text, items):
                    return _note(value, path, explain_list(value))
            elif (decoded := self.decode(text, path)) is not None:
                element, before = decoded.value, decoded
        if element is None or view.first_items:
            return Fit(value, UNFIT)
        if is_schema_echo(element):
            return _note(value, path, REPEATS_SCHEMA)
        item: Fit = yield self._visit(element, items, (*path, 0))
        if not item.fits or (item.doubts and not before.receipts):
            return Fit(value, UNFIT)
        step = self.change(to.WRAP, path, element, [element]).after(before)
        return self._check(item._replace(value=[item.value]).after(step), part)

    def _may_be_list(self, text: str, items: Any) -> bool:
        """Tell whether a text could also be items with commas between them."""
        listed = [part.strip() for part in _LISTING.split(text, _MAX_LISTED)]
        return len(listed) > 1 and all(part and self._parts.fits(items, part) for part in listed)

    def _put(
        self, value: Any, schema: Any, key: str | int, conversion: Conversion, part: Any, path: Path
    ) -> Steps:
        """Fit a value as the one property that an object needs, or the one item of a list."""
        item: Fit = yield self._visit(value, schema, (*path, key))
        around = {key: item.value} if isinstance(key, str) else [item.value]
        step = self.change(conversion, path, value, around if isinstance(key, str) else [value])
        return self._check(item._replace(value=around).after(step), part)

    def _wrap_likely(self, value: Any, part: Any, view: PartView, path: Path) -> Steps:
        if view.first_items:
            return Fit(value, UNFIT)
        items = True if view.items is None else view.items
        return (yield self._put(value, items, 0, to.WRAP_LIKELY, part, path))

    def _list_in_text(self, value: str, part: Any, view: PartView, path: Path) -> Steps:
        if value.strip().casefold() in NONE_WORDS:
            return self._check(self.change(to.EMPTY_LIST, path, value, []), part)
        items = True if view.items is None else view.items
        if self._parts.fits(items, value) and not _LISTING.search(value.strip()):
            return (yield self._wrap(value, part, view, path))
        if not self._is_plain(value):
            return Fit(value, UNFIT)
        fits: list[Fit] = []
        for found, cost in self._list_forms(value, items):
            self._spend(len(found))
            fit: Fit = yield self._elements(found, part, view, path)
            step = self.change(to.LIST_IN_TEXT, path, value, found)
            fits.append(fit.after(step._replace(cost=step.cost + cost)))
            if fits[-1].fits:
                return fits[-1]
        single: Fit = yield self._wrap_likely(value, part, view, path)
        return self._best(value, [*fits, single], path)

    def _list_in_object(
        self, value: dict[str, Any], part: Any, view: PartView, path: Path
    ) -> Steps:
        """Make a list of an object: of what it wraps, or of it."""
        fits: list[Fit] = []
        inner: Any = next(iter(value.values()), None) if len(value) == 1 else None
        if isinstance(inner, list):
            key = next(iter(value))
            fit: Fit = yield self._visit(cast("Any", inner), part, (*path, key))
            fits.append(fit.after(self.change(to.TAKE_ONLY, path, value, inner)))
        single: Fit = yield self._wrap_likely(value, part, view, path)
        if not any(item.rule == "write_as_text" for item in single.receipts):
            fits.append(single)
        found = self._best(value, fits, path)
        if found.fits:
            return found
        other: Fit = yield self._unwrap(value, part, path)
        return other if other.fits else found

    def _list_forms(self, text: str, items: Any) -> Iterable[tuple[list[Any], int]]:
        """Yield the lists that a text may be, the clearest first, and what they cost more."""
        view = self._parts.view(items)
        table = prose.read_table(text)
        if table is not None:
            yield list(table), 0
        bullets = prose.read_items(text)
        if bullets is not None and (len(bullets) > 1 or view.kind != "object"):
            yield list(bullets), 0
        options = self._options(items, view)
        if view.kind == "object" or (view.branches and options is None):
            blocks = [block for block in text.split("\n\n") if block.strip()]
            if len(blocks) > 1 and view.kind == "object":
                yield list(blocks), 1
            return
        if options is not None and self._in_answer:
            mentions = prose.find_options(text, [(one.value, one.spellings) for one in options])
            if mentions:
                yield [mention.value for mention in mentions], 0
            return
        rows = prose.read_lines(text)
        if len(rows) > 1 and not (rows[0].endswith(":") and len(rows) == 2):
            yield rows[1:] if rows[0].endswith(":") else rows, 0
        listing = prose.read_listing(text)
        if listing is not None:
            yield list(listing), 0
        if view.kind in {"integer", "number"} and self._in_answer:
            found = [amount.value for amount in find_amounts(text, 200)]
            if found:
                yield list(found), 1

    def _elements(self, value: list[Any], part: Any, view: PartView, path: Path) -> Steps:
        items = None if view.items is None else self._parts.view(view.items)
        kind = items.kind if items and items.is_plain else None
        if kind in {"array", "object"}:
            kind = None
        self._spend(_PER_MEMBER * len(value) if kind is None and items else len(value))
        pointer = render_pointer(path)
        total, result = _Total(Fit(value)), value
        for index, item in enumerate(value):
            is_first = index < len(view.first_items)
            schema = view.first_items[index] if is_first else view.items
            if schema is None or self._parts.fits(schema, item):
                continue
            changed, is_scalar = item, bool(kind) and not is_first
            if is_scalar and not isinstance(item, (dict, list)):
                # What a visit would do for a scalar of which only the type is asked, at less cost.
                self._spend(_PER_CHANGE)
                change = change_scalar(item, kind or "", None, exact=True)
                if change is not None and not _is_same(item, change.after):
                    changed = change.after
                    rule = change.conversion.rule
                    total.cost += change.conversion.cost
                    total.receipts.append(Receipt(rule, f"{pointer}/{index}", item, changed))
            if changed is item and is_scalar and not self._likely:
                total.cost += UNFIT
            elif changed is item:
                fit: Fit = yield self._visit(item, schema, (*path, index))
                changed = fit.value
                total.add(fit)
            if changed is not item:
                result = list(result) if result is value else result
                result[index] = changed
        fit = self._check(total.as_fit(result), part)
        if self._likely and not fit.fits and len(value) == 1 and isinstance(value[0], list):
            inner: Fit = yield self._visit(cast("Any", value[0]), part, (*path, 0))
            if inner.fits:
                return inner.after(self.change(to.TAKE_ONLY, path, value, inner.value))
        return fit

    # Objects

    def _object(self, value: Any, part: Any, view: PartView, path: Path) -> Steps:
        if isinstance(value, dict):
            return (yield self._mapping(cast("dict[Any, Any]", value), part, view, path))
        if decoded := self._decoded(value, path, dict):
            return (yield self._visit(decoded.value, part, path)).after(decoded)
        if not self._likely:
            return Fit(value, UNFIT)
        if isinstance(value, list):
            return (yield self._object_in_list(cast("list[Any]", value), part, view, path))
        fits: list[Fit] = []
        if isinstance(value, str) and self._is_plain(value) and (pairs := self._pairs(value, view)):
            fit = yield self._members(pairs, part, view, path)
            fits.append(fit.after(self.change(to.OBJECT_IN_LINES, path, value, pairs)))
            if fits[-1].fits:
                return fits[-1]
        name = only_name(view)
        if name is not None and value is not None and not _looks_structured(value):
            # Text with a label of its own rather says what another property is.
            is_labeled = isinstance(value, str) and _LABEL.match(value)
            conversion = to.NAME_LABELED if is_labeled else to.NAME_SINGLE
            schema = view.properties[name]
            fits.append((yield self._put(value, schema, name, conversion, part, path)))
        return self._best(value, fits, path)

    def _is_plain(self, text: str) -> bool:
        """Tell whether lines of a text may be read: those of damaged JSON in a call say less."""
        return self._in_answer or _JSON_SIGNS.isdisjoint(text)

    def _pairs(self, text: str, view: PartView) -> dict[str, Any] | None:
        """Return what lines or a table of keys and values say."""
        self._spend(len(text) // 20)

        def knows(key: str) -> bool:
            self._spend(2)
            return bool(self._names(key, view)) if view.properties else len(key.split()) <= 4

        tagged = prose.read_tags(text, knows) if view.properties and "</" in text else None
        if tagged:
            return dict(tagged)
        pairs = prose.read_pairs(text, knows)
        table = prose.read_table(text) if not pairs or len(pairs) < 2 else None
        if table is not None:
            if len(table) == 1 and any(knows(key) for key in table[0]):
                return dict(table[0])
            if all(len(row) == 2 for row in table):
                rows = [list(row.values()) for row in table]
                listed = {row[0]: row[1] for row in rows if knows(row[0])}
                return listed or None
            return None
        return dict(pairs) if pairs else None

    def _object_in_list(self, value: list[Any], part: Any, view: PartView, path: Path) -> Steps:
        fits: list[Fit] = []
        name = only_name(view)
        if name is not None:
            schema = view.properties[name]
            if self._parts.view(schema).kind == "array" or self._parts.fits(schema, value):
                fits.append((yield self._put(value, schema, name, to.NAME_SINGLE, part, path)))
        fits.append((yield self._unwrap(value, part, path)))
        return self._best(value, fits, path)

    def _mapping(self, value: dict[Any, Any], part: Any, view: PartView, path: Path) -> Steps:
        """Fit an object by its members or, failing that, by what it is wrapped around."""
        direct: Fit = yield self._members(value, part, view, path)
        if direct.fits or not self._likely:
            return direct
        known = [key for key in value if key in view.properties]
        if not known and any(map(_holds_more, value.values())) and len(value) <= _MAX_MEMBERS:
            inner: Fit = yield self._unwrap(value, part, path)
            if inner.fits or inner.notes or not direct.value:
                return inner
        name = only_name(view)
        if name is not None and not known:
            schema = view.properties[name]
            item: Fit = yield self._put(value, schema, name, to.NAME_SINGLE, part, path)
            if item.fits and not item.is_forced:
                return item
        return direct

    def _members(self, value: dict[Any, Any], part: Any, view: PartView, path: Path) -> Steps:
        self._spend(_PER_MEMBER * len(value))
        renamed, disputed = self._rename(value, part, view, path)
        total, members = _Total(renamed), cast("dict[Any, Any]", renamed.value)
        result = members
        for key, item in members.items():
            is_known = key in view.properties
            schema = view.properties.get(key, view.open_names)
            if not is_known and (schema is True or self._has_pattern(key, view)):
                continue
            if (is_known or schema is not False) and self._parts.fits(schema, item):
                continue
            step = None if key in disputed else self._drop(key, item, members, view, path)
            if result is members:
                result = dict(members)
            if step is not None:
                del result[key]
                total.add(step)
            elif is_known or schema is not False:
                fit: Fit = yield self._visit(item, schema, (*path, key))
                result[key] = fit.value
                total.add(fit)
        if self._likely:
            if not any(key in view.properties for key in members) and view.properties and members:
                total.cost += UNFIT if view.open_names is False else 0
            for name in sorted(view.required - result.keys()):
                filled = self._fill(name, view, path)
                total.add(filled)
                if filled.fits:
                    result = {**result, name: filled.value}
        is_same = len(result) == len(value) and all(
            result.get(key, total) is item for key, item in value.items()
        )
        return self._check(total.as_fit(value if is_same else result), part)

    def _has_pattern(self, key: Any, view: PartView) -> bool:
        """Tell whether patterns speak of a name; at the certain level they may of any."""
        if view.pattern_names is None or not isinstance(key, str):
            return False
        return not self._likely or self._parts.fits(view.pattern_names, {key: None})

    def _drop(
        self, key: Any, item: Any, members: dict[Any, Any], view: PartView, path: Path
    ) -> Fit | None:
        """Return the step of leaving out a member, where that is what it means."""
        place = (*path, key)
        if key not in view.properties:
            if view.open_names is not False or not self._likely:
                return None
            if self._is_of_use(key, item, view, members):
                return None
            return self.change(to.DROP_EXTRA, place, item, None)
        if key in view.required:
            return None
        types = self._parts.view(view.properties[key])
        is_text = item in NULL_TEXTS if isinstance(item, str) else False
        if item is None or (is_text and not _takes(types, "string") and not _takes(types, "null")):
            return self.change(to.DROP_NULL, place, item, None)
        return self.change(to.DROP_ABSENT, place, item, None) if is_text and self._likely else None

    def _is_of_use(self, key: Any, item: Any, view: PartView, members: dict[Any, Any]) -> bool:
        """Tell whether a forbidden member may hold what a property should: by name, or inside."""
        if isinstance(item, dict) and view.properties.keys() & cast("dict[str, Any]", item).keys():
            return True
        free = [name for name in view.properties if name not in members]
        self._spend(_PER_TEXT * len(free))
        return isinstance(key, str) and any(is_near(key, name) for name in free)

    def _fill(self, name: str, view: PartView, path: Path) -> Fit:
        """Fill a required property that has one possible value, or may be null; no other."""
        schema = view.properties.get(name)
        if schema is None:
            return Fit(None, UNFIT)
        options = self._parts.view(schema).options
        if options is not None and len(options) == 1:
            return self.change(to.FILL_CONSTANT, (*path, name), None, options[0])
        if self._parts.fits(schema, None):
            return self.change(to.FILL_NULL, (*path, name), None, None)
        return Fit(None, UNFIT)

    # Keys

    def _rename(
        self, value: dict[Any, Any], part: Any, view: PartView, path: Path
    ) -> tuple[Fit, set[str]]:
        """Give unknown keys the names they mean; return the names that are in dispute."""
        keys = _Keys()
        unknown = [key for key in list(value)[:_MAX_RENAMED] if key not in view.properties]
        for key in unknown if view.properties else ():
            if isinstance(key, str):
                self._spend(2 * (1 + len(view.properties)))
                self._match_key(key, value, view, keys)
        names: dict[str, str] = {}
        for target, given in keys.targets.items():
            same = [*given, target] if target in value else given
            if len(same) > 1:
                keys.notes.append(explain_same(same, target))
                keys.disputed.update(same, (target,))
            elif target not in keys.disputed:
                names[given[0]] = target
        steps = _Total(Fit(value))
        steps.notes += [detail_at(path, note) for note in keys.notes[:_MAX_NOTES]]
        for key, target in names.items():
            steps.add(self.change(to.RENAME_KEY, (*path, key), key, target))
        taken = {*value, *names.values(), *keys.disputed}
        for target, key in keys.meant.items():
            if target not in taken:
                names[key] = target
                steps.add(self.change(to.RENAME_BY_MEANING, (*path, key), key, target))
        if not names:
            return steps.as_fit(value), keys.disputed
        renamed = {names.get(key, key): item for key, item in value.items()}
        return steps.as_fit(renamed), keys.disputed

    def _match_key(self, key: str, value: dict[Any, Any], view: PartView, keys: "_Keys") -> None:
        """Find the property that an unknown key means."""
        found = match_name(key, view.properties, quoted=True)
        if not found:
            alike = self._names(key, view) if self._likely else []
            if len(alike) == 1 and not self._may_stay(key, view, alike, value):
                keys.meant.setdefault(alike[0], key)
        elif self._may_stay(key, view, found, value):
            return
        elif len(found) > 1:
            keys.notes.append(explain_name(key, found))
            keys.disputed.update(found, (key,))
        else:
            keys.targets.setdefault(found[0], []).append(key)

    def _may_stay(self, key: str, view: PartView, found: list[str], value: dict[Any, Any]) -> bool:
        """Tell whether an unknown key is allowed, and no required one is missing in its place."""
        if any(name in view.required and name not in value for name in found):
            return False
        if view.open_names is not False:
            return True
        patterns = view.pattern_names
        return patterns is not None and self._parts.fits(patterns, {key: None})

    def _names(self, key: str, view: PartView) -> list[str]:
        """Return the properties that a key may mean, by name, title, alias or description."""
        if key in view.properties:
            return [key]
        found = match_name(key, view.properties, quoted=True)
        if found:
            return found
        # `age (years)` means the age.
        form = prose.squash(key.partition("(")[0][: prose.MAX_LABEL_CHARS])
        if not form:
            return []
        index = self._index.get(id(view))
        if index is None:
            index = self._index[id(view)] = _index_names(view)
        return index.get(form, [])


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


def _is_same(one: Any, other: Any) -> bool:
    return one.__class__ is other.__class__ and one == other


def _note(value: Any, path: Path, sentence: str) -> Fit:
    return Fit(value, UNFIT, notes=(detail_at(path, sentence),))


def _takes(view: PartView, name: str) -> bool:
    return view.types is None or name in view.types


def _as_mentions(amounts: Iterable[Amount]) -> list[prose.Mention]:
    return [prose.Mention(item.start, item.end, item) for item in amounts]


def _as_option(value: Any, part: Any) -> prose.Option:
    spellings = (value,) if isinstance(value, str) else ()
    if isinstance(value, bool):
        spellings = ("true", "yes") if value else ("false", "no")
    labels: list[str] = []
    fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    if "const" in fields or len(cast("list[Any]", fields.get("enum") or [])) == 1:
        for keyword in ("title", "description"):
            label: Any = fields.get(keyword)
            if isinstance(label, str) and 0 < len(label) <= prose.MAX_LABEL_CHARS:
                labels.append(label)
    return prose.Option(value, spellings, tuple(labels))


def _has_unit(unit: str, part: Any, path: Path) -> bool:
    """Tell whether a unit is the one that the name or description of a value says."""
    if not unit:
        return True
    fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    said = [name for name in reversed(path) if isinstance(name, str)][:1]
    said += [item for item in (fields.get("title"), fields.get("description")) if item]
    known = {word.removesuffix("s") for item in said for word in prose.fold(str(item)).split()}
    words = prose.fold(unit).split()
    return bool(words) and all(word.removesuffix("s") in known for word in words)


def _index_names(view: PartView) -> dict[str, list[str]]:
    """Return the properties by the letters of their names and, behind these, of their labels."""
    found: dict[str, list[str]] = {}
    for name in view.properties:
        found.setdefault(prose.squash(name), []).append(name)
    by_name = frozenset(found)
    for name, schema in view.properties.items():
        fields = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
        for keyword in _ALIASES:
            label: Any = fields.get(keyword)
            for item in cast("list[Any]", label) if isinstance(label, list) else [label]:
                if isinstance(item, str) and len(item) <= prose.MAX_LABEL_CHARS:
                    form = prose.squash(item)
                    if form and form not in by_name and name not in found.get(form, ()):
                        found.setdefault(form, []).append(name)
    return found


def only_name(view: PartView) -> str | None:
    """Return the one required property, or the one there is."""
    required = [name for name in view.properties if name in view.required]
    names = required or list(view.properties)
    return names[0] if len(names) == 1 else None


def _looks_structured(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip()[:1] in ("{", "[")


def _holds_more(value: Any) -> bool:
    return isinstance(value, (dict, list)) or _looks_structured(value)
