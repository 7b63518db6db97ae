"""Calls in Python syntax among text, as models write them by hand: read value by value.

The strict reader refuses a whole call for one value that it cannot read. This one finds where each
argument ends first, and then asks what each of them is: a literal, JSON, arithmetic, or words
whose quotes are missing.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.limits import MAX_VALUE_DEPTH
from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt
from surecall.text import repair_json

from .formats import MAX_CANDIDATES, Budget, Candidate, TextCall, text_receipt
from .names import Name, ToolNames, begin_of_name, parameter_names
from .python_calls import name_values, read_python_calls

_AFTER_NAME: Final = lazy_pattern(r"[`\"'*]{0,3}+[ \t]?+\(")
_FIRST_ARGUMENT: Final = lazy_pattern(r"\s*+(?:[\"'{\[)]|-?+\d++\s*+[,)]|\w++\s*+[=:])")
MAX_CALL_CHARS: Final = 65_536
"""How far the end of a call is looked for."""
_MAX_LOOK_AHEAD: Final = 400
_NEXT_MARK: Final = lazy_pattern(r"[^\"'()\[\]{},]*+")
_SPACE: Final = lazy_pattern(r"\s*+")
_CLOSERS: Final = {"(": ")", "[": "]", "{": "}"}
_OPENS_STRING: Final = frozenset("([{,=:+%")
_STRING_PREFIX: Final = lazy_pattern(r"(?:^|[([{,=:+%\s])[rRbBuUfF]{1,2}\Z")
_AFTER_STRING: Final = frozenset(",)]}:")
_OPERATOR_AFTER: Final = frozenset("+%*/[.")
_KEYWORD: Final = lazy_pattern(r"\s*+([\"'`]?+)([^\W\d][\w.-]*+)\1\s*+(=(?!=)|:)")
_PLACEHOLDER: Final = lazy_pattern(
    r"\.\.\.|…|<[^<>]{0,80}+>|\{\{[^{}]{0,80}+\}\}|\[[A-Z_ ]{2,40}+\]|\$\w++"
    r"|(?:some|your|any)_\w++|value|\w++(?:(?<=_value)|(?<=_here))"
)
_BARE_RULE: Final = "quote_bare_words"
_BARE: Final = lazy_pattern(r"\s*+[^\W_][^\"'()\[\]{}=<>]*+\Z")
_IDENTIFIER: Final = lazy_pattern(r"[^\W\d]\w*+")


class LooseCall(Struct, frozen=True, kw_only=True):
    """What stands between the parentheses of a call, and where it ends."""

    end: int
    keywords: dict[str, Any]
    positional: tuple[Any, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    names: frozenset[str] = frozenset()
    """Words that may be the names of variables: nothing shows that they are values."""


class _Arguments(NamedTuple):
    """The texts between the commas of a call, where it ends, and the closers that it lacks."""

    texts: list[str]
    end: int
    missing: str = ""


class _Refused(Exception):  # noqa: N818 - a signal, not an error
    """What stands here is not an argument."""


def find_python_calls(
    text: str, tools: ToolNames, names: list[Name], budget: Budget
) -> Iterator[Candidate]:
    """Yield names of tools with arguments in parentheses behind them."""
    done = tried = 0
    for start, end, name in names:
        opened = _AFTER_NAME.match(text, end)
        if start < done or opened is None:
            continue
        if text[opened.end() - 2] in " \t" and not _FIRST_ARGUMENT.match(text, opened.end()):
            continue  # an aside, as in `email (or call) us`
        begun = begin_of_name(text, start)
        if begun < start and tools.resolve(text[begun:end]) != name:
            continue
        tried += 1
        if tried > MAX_CANDIDATES or budget.is_spent:
            return
        call = read_loose_call(text, opened.end() - 1)
        if call is None:
            budget.spend(min(len(text) - opened.end(), MAX_CALL_CHARS))
            continue
        made = bind_arguments(name, call, tools)
        if made is not None:
            done = call.end
            yield Candidate(
                start=begun, end=call.end, calls=(made,), format="pythonic", names=call.names
            )


def bind_arguments(name: str, call: LooseCall, tools: ToolNames) -> TextCall | None:
    """Return a call with its arguments by name; values without one go by the tool's signature."""
    declared = parameter_names(tools.parameters(name))
    if call.names and call.names <= set(declared):  # a signature, as in `search(query, limit)`
        return None
    placed = name_values(call.keywords, call.positional, declared)
    if placed is None:
        return None
    return TextCall(name=name, arguments=placed[0], receipts=(*call.receipts, *placed[1]))


def read_loose_call(text: str, at: int) -> LooseCall | None:
    """Read the arguments of a call whose parenthesis opens at `at`; None when it is not one."""
    window = text[at : at + MAX_CALL_CHARS]
    pieces = _split_arguments(window)
    if pieces is None:
        return None
    arguments, end, missing = pieces
    if missing:
        return _build_unclosed(pieces, at)
    strict = read_python_calls("f" + window[:end], 0)
    if strict.state == "whole" and len(strict.calls) == 1:
        call = strict.calls[0]
        return LooseCall(
            end=at + end,
            keywords=call.keywords,
            positional=call.positional,
            receipts=call.receipts,
        )
    try:
        return _build(arguments, at + end)
    except _Refused:
        return None


def _build_unclosed(pieces: _Arguments, at: int) -> LooseCall | None:
    """Return a call whose parenthesis closes while a bracket in it is open."""
    *whole, last = pieces.texts
    try:
        call = _build([*whole, f"{last}{pieces.missing}"], at + pieces.end)
    except _Refused:
        return None
    why = "a bracket was missing before the parenthesis"
    receipt = text_receipt("fix_mismatched_closer", ")", pieces.missing, why, lossless=False)
    return replace(call, receipts=(*call.receipts, receipt))


def _split_arguments(text: str) -> _Arguments | None:
    """Return the texts between the commas of a call, and where its parenthesis closes."""
    closers: list[str] = []
    arguments: list[str] = []
    begun = here = 1
    while match := _NEXT_MARK.match(text, here):
        here = match.end()
        if here >= len(text):
            return None
        char = text[here]
        if char in "\"'":
            here = _skip_string(text, here)
            continue
        here += 1
        if char in _CLOSERS:
            closers.append(_CLOSERS[char])
            if len(closers) > MAX_VALUE_DEPTH:
                return None
        elif char == ",":
            if not closers:
                arguments.append(text[begun : here - 1])
                begun = here
        elif closers and closers[-1] == char:
            closers.pop()
        elif char == ")" and ")" not in closers:
            arguments.append(text[begun : here - 1])
            texts = [argument for argument in arguments if argument.strip()]
            return _Arguments(texts, here, "".join(reversed(closers)))
        else:
            return None
    return None


def _skip_string(text: str, at: int) -> int:
    """Return where the string that begins here is over; an apostrophe begins none."""
    before = text[max(at - 40, 0) : at]
    opens = before.rstrip()[-1:] in _OPENS_STRING or _STRING_PREFIX.search(before)
    if not opens:
        return at + 1
    quote = text[at]
    if text.startswith(quote * 3, at):
        end = text.find(quote * 3, at + 3)
        return len(text) if end < 0 else end + 3
    here = at + 1
    while True:
        end = text.find(quote, here)
        if end < 0:
            return len(text)
        if _is_escaped(text, end):
            here = end + 1
            continue
        if _closes_string(text, end):
            return end + 1
        here = end + 1


def _is_escaped(text: str, at: int) -> bool:
    slashes = 0
    while slashes < at and text[at - slashes - 1] == "\\" and slashes < _MAX_LOOK_AHEAD:
        slashes += 1
    return slashes % 2 == 1


def _closes_string(text: str, at: int) -> bool:
    """Tell whether a quote ends its string: something that may follow a value follows."""
    after = _after_space(text, at + 1)
    if after >= len(text) or text[after] in _AFTER_STRING or text[after] in _OPERATOR_AFTER:
        return True
    # An inner quote, if another one is there that can end the string.
    limit = min(len(text), at + _MAX_LOOK_AHEAD)
    here = text.find(text[at], at + 1, limit)
    while here >= 0:
        follows = _after_space(text, here + 1)
        if follows >= len(text) or text[follows] in _AFTER_STRING:
            return False
        here = text.find(text[at], here + 1, limit)
    return True


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _build(arguments: list[str], end: int) -> LooseCall:
    keywords: dict[str, Any] = {}
    positional: list[Any] = []
    receipts: list[Receipt] = []
    names: set[str] = set()
    for keyword, written in _join_bare_words(arguments):
        value = _read_value(written, receipts, names)
        if keyword is None:
            if keywords:
                raise _Refused
            positional.append(value)
        elif keyword in keywords:
            raise _Refused
        else:
            keywords[keyword] = value
    return LooseCall(
        end=end,
        keywords=keywords,
        positional=tuple(positional),
        receipts=tuple(receipts),
        names=frozenset(names),
    )


def _join_bare_words(arguments: list[str]) -> Iterator[tuple[str | None, str]]:
    """Yield keywords and values; what follows a comma inside words without quotes belongs to them.

    As in `location=Boston, MA, cuisine=Sushi`.
    """
    waiting: tuple[str | None, str] | None = None
    for argument in arguments:
        keyword = _KEYWORD.match(argument)
        written = argument[keyword.end() :] if keyword else argument
        if (
            keyword is None
            and waiting
            and waiting[0]
            and _is_bare(waiting[1])
            and _is_bare(written)
        ):
            waiting = waiting[0], f"{waiting[1]},{written.rstrip()}"
            continue
        if waiting:
            yield waiting
        waiting = (keyword[2] if keyword else None), written.strip()
    if waiting:
        yield waiting


def _is_bare(text: str) -> bool:
    return bool(_BARE.match(text))


def _read_value(text: str, receipts: list[Receipt], names: set[str]) -> Any:
    if not text or _PLACEHOLDER.fullmatch(text):
        raise _Refused
    for nested_quotes in (False, True):
        found = read_python_calls(f"f({text})", 0, nested_quotes=nested_quotes)
        call = found.calls[0] if found.state == "whole" and len(found.calls) == 1 else None
        if call is not None and len(call.positional) == 1 and not call.keywords:
            receipts.extend(call.receipts)
            return call.positional[0]
    if text[0] in "{[":
        repaired = repair_json(text, ended=True, nested="keep")
        if repaired.state == "whole" and not repaired.rest:
            receipts.extend(repaired.receipts)
            return repaired.value
    if text[0] == "[" and text[-1] == "]" and (items := _read_bare_list(text[1:-1], receipts)):
        names.update(filter(_IDENTIFIER.fullmatch, items))
        return items
    if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
        text = text[1:-1]
        why = "quotes inside the string were not escaped"
        receipts.append(text_receipt("nested_quotes", text, text, why, lossless=False))
        return text
    if _IDENTIFIER.fullmatch(text):
        names.add(text)
    receipts.append(_note_bare(text))
    return text


def _note_bare(text: str) -> Receipt:
    why = "the value had no quotes"
    return text_receipt(_BARE_RULE, text, text, why, lossless=False)


def _read_bare_list(text: str, receipts: list[Receipt]) -> list[str] | None:
    """Return the entries of a list of words without quotes."""
    entries = [entry.strip() for entry in text.split(",")]
    if not all(map(_is_bare, entries)):
        return None
    receipts.append(_note_bare(text))
    return entries
