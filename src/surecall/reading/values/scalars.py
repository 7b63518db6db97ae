"""Scalars and options: one that is written otherwise, or named in words."""

from typing import Any, Final, cast

from surecall.base.errors import JSONTextError
from surecall.base.records import clip
from surecall.reading import wording
from surecall.schema.coerce.parts import PartView
from surecall.schema.coerce.values import Ambiguous, Change, change_scalar, match_option
from surecall.schema.explain import detail_at, explain_value
from surecall.text import encode_text

from . import lines, numbers, words
from .fit import CHEAP, LINES, LOOSE, SHAPE, UNFIT, Fit, Path, Steps, Walker, make_change

NONE_WORDS: Final = frozenset(
    {
        "", "-", "n/a", "na", "nil", "none", "not applicable", "not available", "not given",
        "not mentioned", "not provided", "not specified", "null", "undefined", "unknown",
    }
)  # fmt: skip
"""What says that there is nothing."""
MAX_BRANCHES: Final = 64
"""How many forms of one value are tried."""
MAX_LABEL_CHARS: Final = 200
"""How long a title or description may be that a value is looked up by."""


class ScalarWalker(Walker):
    """Fits scalars and options."""

    __slots__ = ()

    def _options(self, part: Any, view: PartView) -> list[words.Option] | None:
        """Return the values that are allowed, when they are listed."""
        if view.options is not None:
            return [_as_option(value, part) for value in view.options]
        if not view.branches or len(view.branches) > MAX_BRANCHES:
            return None
        found: list[words.Option] = []
        for branch in view.branches:
            inner = self._parts.view(branch)
            if inner.options is None:
                return None
            single = branch if len(inner.options) == 1 else None
            found += [_as_option(value, single) for value in inner.options]
        return found

    def _option(self, value: Any, part: Any, options: list[words.Option], path: Path) -> Steps:
        values = [item.value for item in options]
        match match_option(value, values):
            case Ambiguous(candidates=candidates):
                note = detail_at(path, explain_value(value, candidates))
                return Fit(value, UNFIT, notes=(note,))
            case Change() as change:
                return make_change(change.rule, path, value, change.after, CHEAP)
            case None:
                pass
        if isinstance(value, str):
            self._spend(len(value) // 40)
            named = words.find_option(value, options)
            if named is None and any(type(item) in (int, float) for item in values):
                named = _find_listed_number(value, values)
            return self._take(named, "find_option", wording.OPTION_IN_TEXT, value, path)
        if isinstance(value, (dict, list)):
            return (yield self._unwrap(value, part, path))
        return Fit(value, UNFIT)

    def _take(
        self, named: words.Named | None, rule: str, doubt: str, value: Any, path: Path
    ) -> Fit:
        """Return the one value that a text names, or what it names as a note."""
        if named is None:
            return Fit(value, UNFIT)
        if len(named.values) != 1:
            note = detail_at(path, explain_value(clip(value, 60), named.values[:8]))
            return Fit(value, UNFIT, notes=(note,))
        if named.stood_out:
            doubt = wording.STOOD_OUT
        return make_change(rule, path, value, named.values[0], LOOSE + named.stood_out, doubt)

    def _scalar(self, value: Any, part: Any, view: PartView, path: Path) -> Steps:
        kind = view.kind or ""
        change = change_scalar(value, kind, view.format_name, exact=True)
        if change is not None and self._parts.fits(part, change.after):
            return make_change(change.rule, path, value, change.after, CHEAP)
        if isinstance(value, str):
            self._spend(len(value) // 40)
            return self._check(self._in_text(value, part, view, path), part)
        if kind == "string" and isinstance(value, (dict, list)):
            single = yield self._unwrap(value, part, path)
            if single.fits and not any(item.rule == "write_as_text" for item in single.receipts):
                return single
            try:
                text = encode_text(value)
            except JSONTextError:  # half of a surrogate pair
                return Fit(value, UNFIT)
            fit = make_change("write_as_text", path, value, text, LINES, wording.JSON_AS_TEXT)
            return self._check(fit, part)
        if isinstance(value, (dict, list)):
            return (yield self._unwrap(value, part, path))
        if kind == "boolean" and value in (0, 1):
            return make_change(
                "parse_boolean_text", path, value, bool(value), SHAPE, wording.ONE_ZERO
            )
        return Fit(value, UNFIT)

    def _in_text(self, value: str, part: Any, view: PartView, path: Path) -> Fit:
        """Return the scalar that a text names."""
        match view.kind:
            case "integer" | "number":
                return self._number(value, part, path)
            case "boolean":
                named = words.find_boolean(value)
                return self._take(named, "find_boolean", wording.WORD_IN_TEXT, value, path)
            case "null" if value.strip().casefold() in NONE_WORDS:
                return make_change("parse_null_text", path, value, None, SHAPE, wording.NONE_WORD)
            case "string":

                def fits(text: str) -> bool:
                    self._spend(1)
                    change = change_scalar(text, "string", view.format_name, exact=True)
                    return self._parts.fits(part, text if change is None else change.after)

                bare = lines.unmark(value)
                if bare != value and fits(bare):
                    return make_change("find_text", path, value, bare, CHEAP, wording.FITTING_WORD)
                named = words.find_date(value) if view.format_name == "date" else None
                if named is None:
                    named = words.find_token(value, fits)
                found = self._take(named, "find_text", wording.FITTING_WORD, value, path)
                if found.fits and view.format_name:
                    change = change_scalar(found.value, "string", view.format_name, exact=True)
                    if change is not None:
                        return found._replace(value=change.after)
                return found
            case _:
                return Fit(value, UNFIT)

    def _number(self, value: str, part: Any, path: Path) -> Fit:
        named = numbers.find_number(value)
        if named is None:
            return Fit(value, UNFIT)
        is_percent = any(item.is_percent for item in named.values)
        amounts = [self._as_number(item, part) for item in named.values]
        named = named._replace(values=tuple(item for item in amounts if item is not None))
        if not named.values:
            return Fit(value, UNFIT)
        doubt = wording.PERCENT if is_percent else wording.NUMBER_IN_TEXT
        return self._take(named, "find_number", doubt, value, path)

    def _as_number(self, amount: numbers.Amount, part: Any) -> int | float | None:
        """Return an amount as the schema wants it: a share of one where it allows no more."""
        number = amount.value
        forms = [int(number), number] if float(number).is_integer() else [number]
        if amount.is_percent:
            forms.append(number / 100)
        return next((form for form in forms if self._parts.fits(part, form)), None)


def _as_option(value: Any, part: Any) -> words.Option:
    spellings = (value,) if isinstance(value, str) else ()
    if isinstance(value, bool):
        spellings = ("true", "yes") if value else ("false", "no")
    labels: list[str] = []
    fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    if "const" in fields or len(cast("list[Any]", fields.get("enum") or [])) == 1:
        for keyword in ("title", "description"):
            label: Any = fields.get(keyword)
            if isinstance(label, str) and 0 < len(label) <= MAX_LABEL_CHARS:
                labels.append(label)
    return words.Option(value, spellings, tuple(labels))


def _find_listed_number(text: str, values: list[Any]) -> words.Named | None:
    """Return the one number that is allowed and that a text names."""
    known = [item for item in values if type(item) in (int, float)]
    mentions = [
        mention._replace(value=mention.value.value)
        for mention in numbers.find_numbers(text)
        if mention.value.value in known
    ]
    return words.settle(mentions, text, by_first=False)
