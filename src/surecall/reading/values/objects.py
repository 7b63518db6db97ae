"""Objects: keys that are spelled otherwise, members that need a change, lines of text, wrappers."""

import re
from typing import Any, Final, cast

from surecall.reading import wording
from surecall.schema.coerce.parts import PartView
from surecall.schema.coerce.values import NULL_TEXTS, match_name

from . import lines, words
from .arrays import ArrayWalker
from .fit import CHEAP, LINES, MAX_MEMBERS, SHAPE, UNFIT, Fit, Path, Steps, Total, make_change
from .scalars import MAX_BRANCHES, MAX_LABEL_CHARS, NONE_WORDS

_ALIASES: Final = ("title", "description", "alias", "aliases", "x-alias", "x-aliases")
_MAX_RENAMED: Final = 200
_DROPPED: Final = object()
_LABEL: Final = re.compile(r"\s*+[^\W\d][\w -]{0,40}+:\s")


class Fitter(ArrayWalker):
    """Fits values of any schema."""

    __slots__ = ()

    def _visit(self, value: Any, part: Any, path: Path) -> Steps:
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

    def _choose(self, value: Any, part: Any, view: PartView, path: Path) -> Steps:
        fits: list[Fit] = []
        for branch in view.branches[:MAX_BRANCHES]:
            self._spend(8)
            fit: Fit = yield self._visit(value, branch, path)
            if self._is_discriminated(value, branch):
                fit = fit._replace(cost=max(0, fit.cost - 1))
            fits.append(self._check(fit, part))
        types = view.types
        is_null = types is not None and "null" in types and "string" not in types
        if is_null and isinstance(value, str) and value.strip().casefold() in NONE_WORDS:
            return make_change("parse_null_text", path, value, None, CHEAP, wording.NONE_WORD)
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

    # Objects

    def _object(self, value: Any, part: Any, view: PartView, path: Path) -> Steps:
        if isinstance(value, dict):
            return (yield self._mapping(cast("dict[str, Any]", value), part, view, path))
        if isinstance(value, list):
            return (yield self._from_list(cast("list[Any]", value), part, view, path))
        fits: list[Fit] = []
        if isinstance(value, str):
            decoded = self._decode_text(value, path)
            if decoded is not None:
                return (yield self._visit(decoded.value, part, path)).after(decoded)
            pairs = self._pairs(value, view)
            if pairs:
                fit = yield self._members(pairs, part, view, path)
                step = make_change(
                    "object_from_lines", path, value, pairs, LINES, wording.OBJECT_IN_LINES
                )
                fits.append(fit.after(step))
                if fits[-1].fits:
                    return fits[-1]
        name = _only_name(view)
        if name is not None and value is not None and not _looks_structured(value):
            item: Fit = yield self._visit(value, view.properties[name], (*path, name))
            named = {name: item.value}
            # Text with a label of its own rather says what another property is.
            cost = SHAPE + LINES if isinstance(value, str) and _LABEL.match(value) else SHAPE
            step = make_change("name_single_value", path, value, named, cost, wording.SINGLE_FIELD)
            fits.append(self._check(item._replace(value=named).after(step), part))
        return self._best(value, fits, path)

    def _pairs(self, text: str, view: PartView) -> dict[str, Any] | None:
        """Return what lines or a table of keys and values say."""
        self._spend(len(text) // 20)

        def knows(key: str) -> bool:
            self._spend(2)
            return bool(self._names(key, view)) if view.properties else len(key.split()) <= 4

        tagged = lines.read_tags(text, knows) if view.properties and "</" in text else None
        if tagged:
            return dict(tagged)
        pairs = lines.read_pairs(text, knows)
        table = lines.read_table(text) if not pairs or len(pairs) < 2 else None
        if table is not None:
            if len(table) == 1 and any(knows(key) for key in table[0]):
                return dict(table[0])
            if all(len(row) == 2 for row in table):
                rows = [list(row.values()) for row in table]
                listed = {row[0]: row[1] for row in rows if knows(row[0])}
                return listed or None
            return None
        return dict(pairs) if pairs else None

    def _from_list(self, value: list[Any], part: Any, view: PartView, path: Path) -> Steps:
        fits: list[Fit] = []
        name = _only_name(view)
        if name is not None:
            schema = view.properties[name]
            kind = self._parts.view(schema).kind
            if kind == "array" or (self._parts.fits(schema, value)):
                item: Fit = yield self._visit(value, schema, (*path, name))
                named = {name: item.value}
                step = make_change(
                    "name_single_value", path, value, named, SHAPE, wording.SINGLE_FIELD
                )
                fits.append(self._check(item._replace(value=named).after(step), part))
        pairs = _join_pairs(value)
        if pairs is not None:
            fit = yield self._mapping(pairs, part, view, path)
            step = make_change("merge_objects", path, value, pairs, SHAPE + 1, wording.MERGED)
            fits.append(fit.after(step))
        fits.append((yield self._unwrap(value, part, path)))
        return self._best(value, fits, path)

    def _mapping(self, value: dict[str, Any], part: Any, view: PartView, path: Path) -> Steps:
        """Fit an object by its members or, failing that, by what it is wrapped around."""
        direct: Fit = yield self._members(value, part, view, path)
        if direct.fits:
            return direct
        nested = [key for key, item in value.items() if isinstance(item, (dict, list))]
        known = [key for key in value if key in view.properties]
        texts = [key for key, item in value.items() if _looks_structured(item)]
        if (nested or texts) and not known and len(value) <= MAX_MEMBERS:
            inner: Fit = yield self._unwrap(value, part, path)
            if inner.fits or inner.notes or not direct.value:
                return inner
        name = _only_name(view)
        if name is not None and not known:
            item: Fit = yield self._visit(value, view.properties[name], (*path, name))
            if item.fits and not item.is_forced and not item.loses:
                named = {name: item.value}
                step = make_change(
                    "name_single_value", path, value, named, SHAPE, wording.SINGLE_FIELD
                )
                return self._check(item._replace(value=named).after(step), part)
        return direct

    def _members(self, value: dict[str, Any], part: Any, view: PartView, path: Path) -> Steps:
        self._spend(4 * len(value))
        renamed = self._rename(value, part, view, path)
        total, result = Total(renamed), dict[str, Any]()
        for key, item in renamed.value.items():
            fit: Fit = yield self._member(key, item, view, path)
            if fit.value is not _DROPPED:
                result[key] = fit.value
            total.add(fit)
        for name in sorted(view.required - result.keys()):
            total.add(self._fill(name, view, result, path))
        return self._check(total.as_fit(result), part)

    def _member(self, key: str, item: Any, view: PartView, path: Path) -> Steps:
        """Fit one member; one that has no place in the object is dropped."""
        is_known = key in view.properties
        schema = view.properties.get(key, view.open_names)
        patterns = None if is_known else view.pattern_names
        if patterns is not None and self._parts.fits(patterns, {key: None}):
            return Fit(item)
        if schema is False and not is_known:
            step = make_change(
                "drop_extra_key", (*path, key), item, None, CHEAP, wording.EXTRA_KEY, lossless=False
            )
            return step._replace(value=_DROPPED)
        if isinstance(schema, bool):
            return Fit(item)
        if is_known and key not in view.required and self._is_absent(item, schema):
            step = make_change("drop_null", (*path, key), item, None, CHEAP, wording.ABSENT)
            return step._replace(value=_DROPPED)
        return (yield self._visit(item, schema, (*path, key)))

    def _is_absent(self, item: Any, schema: Any) -> bool:
        """Tell whether a value says that an optional property has none."""
        if item is not None and not (isinstance(item, str) and item in NULL_TEXTS):
            return False
        return not self._parts.fits(schema, item)

    def _fill(self, name: str, view: PartView, result: dict[str, Any], path: Path) -> Fit:
        """Fill a required property that has one possible value, or may be null; no other."""
        schema = view.properties.get(name)
        if schema is None:
            return Fit(None, UNFIT)
        options = self._parts.view(schema).options
        if options is not None and len(options) == 1:
            result[name] = options[0]
            return make_change(
                "fill_constant", (*path, name), None, options[0], SHAPE, wording.ONLY_VALUE
            )
        if self._parts.fits(schema, None):
            result[name] = None
            return make_change("fill_null", (*path, name), None, None, CHEAP, wording.LEFT_OUT)
        return Fit(None, UNFIT)

    # Keys

    def _match_property_names(self, value: dict[str, Any], part: Any) -> dict[str, str]:
        """Return the names that keys mean where only some names are allowed."""
        fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
        names = fields.get("propertyNames")
        options = self._parts.view(names).options if isinstance(names, dict) else None
        known = [item for item in options or () if isinstance(item, str)]
        found: dict[str, str] = {}
        for key in list(value)[:MAX_MEMBERS] if known else ():
            meant = [] if key in known else match_name(key, known, quoted=True)
            if len(meant) == 1 and meant[0] not in value and meant[0] not in found.values():
                found[key] = meant[0]
        return found

    def _rename(self, value: dict[str, Any], part: Any, view: PartView, path: Path) -> Fit:
        """Give unknown keys the names they mean, where one name is meant by one key."""
        targets: dict[str, str] = {}
        taken = {key for key in value if key in view.properties}
        for key in list(value)[:_MAX_RENAMED]:
            if key in view.properties or not view.properties:
                continue
            self._spend(1 + len(view.properties))
            found = [name for name in self._names(key, view) if name not in taken]
            if len(found) == 1:
                targets[key] = found[0]
                taken.add(found[0])
        for key, name in self._match_property_names(value, part).items():
            targets.setdefault(key, name)
        if not targets:
            return Fit(value)
        total = Total(Fit(value))
        for key, name in targets.items():
            is_clear = match_name(key, [name], quoted=True)
            doubt = "" if is_clear else wording.KEY_MEANS
            total.add(make_change("rename_key", (*path, key), key, name, CHEAP, doubt))
        return total.as_fit({targets.get(key, key): item for key, item in value.items()})

    def _names(self, key: str, view: PartView) -> list[str]:
        """Return the properties that a key may mean, by name, title, alias or description."""
        if key in view.properties:
            return [key]
        found = match_name(key, view.properties, quoted=True)
        if found:
            return found
        # `age (years)` means the age.
        form = words.squash(key.partition("(")[0][:MAX_LABEL_CHARS])
        if not form:
            return []
        found = [name for name in view.properties if words.squash(name) == form]
        return found or [
            name for name, schema in view.properties.items() if form in _list_labels(schema)
        ]


def _list_labels(schema: Any) -> list[str]:
    fields = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    found: list[str] = []
    for keyword in _ALIASES:
        label: Any = fields.get(keyword)
        listed = cast("list[Any]", label) if isinstance(label, list) else [label]
        found += [
            words.squash(item)
            for item in listed
            if isinstance(item, str) and len(item) <= MAX_LABEL_CHARS
        ]
    return [item for item in found if item]


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
