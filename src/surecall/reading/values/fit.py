"""A value fitted to a schema: what that costs, and the walk through value and schema together.

Each change has a cost, a receipt and, where it takes a judgement, a doubt. Of several fits the
one that costs least is meant; when two cost the same and differ, none is, and the value is left
as it is with a note.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from surecall.base.limits import MAX_VALUE_DEPTH
from surecall.base.records import ErrorDetail, Receipt, clip
from surecall.reading import wording
from surecall.schema.coerce.parts import PartView, SchemaParts
from surecall.schema.coerce.walk import same_json
from surecall.schema.explain import detail_at, explain_value
from surecall.text import render_pointer

MAX_MEMBERS: Final = 40
"""How many members or items of a value are tried one by one."""
CHEAP: Final = 1
"""The cost of another spelling."""
SHAPE: Final = 3
"""The cost of another shape around the same value."""
LOOSE: Final = 4
"""The cost of a value that is found in words."""
LINES: Final = 6
"""The cost of an object or list that is found in words."""
UNFIT: Final = 10_000
"""The cost of a value that does not fit."""

_MAX_WORK: Final = 40_000
_FRAMES_PER_LEVEL: Final = 6

Path: TypeAlias = tuple[str | int, ...]
Steps: TypeAlias = Generator["Steps", Any, Any]


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

    @property
    def is_forced(self) -> bool:
        """Whether an object or list was taken as text, or one of its members for all of it."""
        return any(
            item.rule == "write_as_text" if item.lossless else item.rule == "unwrap_value"
            for item in self.receipts
        )

    @property
    def loses(self) -> bool:
        """Whether something was left out."""
        return not all(item.lossless for item in self.receipts)

    def after(self, other: "Fit") -> "Fit":
        """Return this fit with the changes of another before it."""
        return Fit(
            self.value,
            self.cost + other.cost,
            other.receipts + self.receipts,
            other.doubts + self.doubts,
            other.notes + self.notes,
        )


def make_change(
    rule: str, path: Path, before: Any, after: Any, cost: int, doubt: str = "", **more: Any
) -> Fit:
    """Return the fit of a value that one rule changes into another."""
    shown = clip(before) if isinstance(before, str) else before
    receipt = Receipt(rule, render_pointer(path), shown, after, why=doubt, **more)
    return Fit(after, cost, (receipt,), (doubt,) if doubt else ())


class Total:
    """The sum of what the parts of a value cost."""

    __slots__ = ("_doubts", "_notes", "_receipts", "cost")

    def __init__(self, first: Fit) -> None:
        self.cost = first.cost
        self._receipts = list(first.receipts)
        self._doubts = list(first.doubts)
        self._notes = list(first.notes)

    def add(self, fit: Fit) -> None:
        """Add what one part cost."""
        self.cost += fit.cost
        self._receipts += fit.receipts
        self._doubts += fit.doubts
        self._notes += fit.notes

    def as_fit(self, value: Any) -> Fit:
        """Return the fit of the whole value."""
        return Fit(value, self.cost, tuple(self._receipts), tuple(self._doubts), tuple(self._notes))


class Walker(ABC):
    """Walks values of one schema; the work of all its walks together is bounded."""

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

    @abstractmethod
    def _visit(self, value: Any, part: Any, path: Path) -> Steps:
        """Return the best fit of one value to one part."""

    def view(self) -> PartView:
        """Return what the schema says."""
        return self._parts.view(self.root)

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
        """Return the cheapest fit; none when others that differ cost the same."""
        fits = list(fits)
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

    def _decode_text(self, text: str, path: Path) -> Fit | None:
        """Return the object or array that a text is, with the receipts of its repair."""
        self._spend(len(text) // 40)
        decoded = self._decode(text)
        if decoded is None:
            return None
        step = make_change("decode_json_text", path, text, decoded.value, CHEAP)
        pointer = render_pointer(path)
        repairs = [replace(item, place=f"{pointer}@{item.place}") for item in decoded.receipts]
        return decoded._replace(receipts=tuple(repairs)).after(step)

    def _unwrap(self, value: Any, part: Any, path: Path) -> Steps:
        """Take the one value that fits from the object or list around it."""
        is_list = isinstance(value, list)
        members = list(
            enumerate(cast("list[Any]", value))
            if is_list
            else cast("dict[str, Any]", value).items()
        )
        if not members or len(members) > MAX_MEMBERS:
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
        if not best.fits and (len(members) > 1 or best.notes):
            return Fit(value, UNFIT, notes=best.notes)
        step = make_change(
            "unwrap_value",
            path,
            value,
            best.value,
            SHAPE + (len(members) > 1),
            wording.UNWRAPPED,
            lossless=len(members) == 1,
        )
        return best.after(step)
