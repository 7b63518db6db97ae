"""Calls in Python syntax among text, as models write them by hand: read value by value.

The strict reader refuses a whole call for one value that it cannot read. This one finds where each
argument ends first, and then asks what each of them is: a literal, JSON, arithmetic, or words
whose quotes are missing.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from surecall.base.limits import MAX_VALUE_DEPTH
from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt
from surecall.schema import property_schema
from surecall.text import repair_json

from .formats import MAX_CANDIDATES, Budget, Candidate, TextCall, text_receipt
from .names import Name, ToolNames, begin_of_name, parameter_names
from .python_calls import (
    PythonCall,
    PythonCalls,
    PythonSteps,
    name_values,
    read_python_calls,
)
from .source import NeedMore, Source

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
_UNESCAPED: Final = {quote: lazy_pattern(rf"(?<!\\){quote}") for quote in "'\""}
_NONE: Final = object()
"""No value, where `None` is one."""
_BARE: Final = lazy_pattern(r"\s*+[^\W_][^\"'()\[\]{}=<>]*+\Z")
_CODE: Final = lazy_pattern(r"\s[^\W\d]\w*+\s*+=(?!=)|\w\(")
"""The keyword of another value, when the comma before it is missing, or a call."""
_ONE_IS_LOOSE: Final = "A value in these calls is not written as Python writes it."
_IDENTIFIER: Final = lazy_pattern(r"[^\W\d]\w*+")


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
        read = read_loose_call(text, opened.end() - 1, name)
        if read is None:
            budget.spend(min(len(text) - opened.end(), MAX_CALL_CHARS))
            continue
        call, over = read
        made = bind_arguments(call, tools)
        if made is not None:
            done = over
            yield Candidate(
                start=begun, end=over, calls=(made,), format="pythonic", names=call.variables
            )


def read_calls_in_python(
    source: Source, at: int, *, statements: bool = False, loose: bool = False
) -> PythonCalls:
    """Read calls in Python syntax, as soon as more text cannot change what they are.

    Args:
        source: The text.
        at: Where to begin.
        statements: Accept what `read_python_calls` calls statements.
        loose: Read the arguments of a tool value by value when they are no literals.
    """
    steps = PythonSteps() if statements or loose else source.once(_make_steps, 0)
    while True:
        found = read_python_calls(
            source.text, at, statements=statements, steps=steps, spend=source.spend_on_marks
        )
        if not source.final and (found.state == "cut" or found.may_grow):
            raise NeedMore
        if not loose or found.state != "not_calls" or found.cut_name is None:
            return replace(found, doubt=_ONE_IS_LOOSE) if steps.mended else found
        if not source.final:
            raise NeedMore
        read = read_loose_call(source.text, found.cut_from - 1, found.cut_name)
        if read is None or read[0].variables:
            return found
        steps.mended[found.cut_from] = read


def _make_steps(_source: Source, _at: int) -> PythonSteps:
    return PythonSteps()


def text_calls_of(
    source: Source, found: PythonCalls, *, by_position: bool = False
) -> tuple[TextCall, ...] | None:
    """Return calls with their arguments by name; `None` when a value cannot be given a name.

    Args:
        source: Where the calls were read.
        found: What was read.
        by_position: Whether values without a keyword are given names in the order of the schema.
    """
    calls: list[TextCall] = []
    for call in found.calls:
        made = _name_arguments(call, source.tools, by_position=by_position)
        if made is None:
            return None
        calls.append(replace(made, doubt=found.doubt) if found.doubt else made)
    if found.state == "cut" and found.cut_name is not None:
        rest = source.text[found.cut_from :]
        calls.append(TextCall(name=found.cut_name, arguments=rest, state="cut"))
    return tuple(calls)


def bind_arguments(call: PythonCall, tools: ToolNames) -> TextCall | None:
    """Return a call with its arguments by name; values without one go by the tool's signature."""
    declared = parameter_names(tools.parameters(call.name))
    if call.variables and call.variables <= set(declared):  # a signature: `search(query, limit)`
        return None
    return _name_arguments(call, tools, by_position=True)


def _name_arguments(call: PythonCall, tools: ToolNames, *, by_position: bool) -> TextCall | None:
    parameters = tools.parameters(call.name)
    keywords = dict(call.keywords)
    for key, text in call.padded.items():
        schema = None if parameters is None else property_schema(parameters, key)
        if schema is not None and schema.get("type") == "string":
            keywords[key] = text
    declared = parameter_names(parameters) if by_position else ()
    placed = name_values(keywords, call.positional, declared)
    if placed is None:
        return None
    receipts = (*call.receipts, *placed[1])
    return TextCall(name=call.name, arguments=placed[0], receipts=receipts)


def read_loose_call(text: str, at: int, name: str) -> tuple[PythonCall, int] | None:
    """Read the call of a tool whose parenthesis opens at `at`, and where it ends."""
    window = text[at : at + MAX_CALL_CHARS]
    pieces = _split_arguments(window)
    if pieces is None:
        return None
    if not pieces.missing:
        strict = read_python_calls("f" + window[: pieces.end], 0)
        if strict.state == "whole" and len(strict.calls) == 1:
            return replace(strict.calls[0], name=name), at + pieces.end
    *whole, last = pieces.texts or [""]
    try:
        call = _build([*whole, f"{last}{pieces.missing}"] if pieces.missing else pieces.texts, name)
    except _Refused:
        return None
    if pieces.missing:
        why = "a bracket was missing before the parenthesis"
        receipt = text_receipt("fix_mismatched_closer", ")", pieces.missing, why, lossless=False)
        call = replace(call, receipts=(*call.receipts, receipt))
    return call, at + pieces.end


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


def _build(arguments: list[str], name: str) -> PythonCall:
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
    return PythonCall(
        name=name,
        keywords=keywords,
        positional=tuple(positional),
        receipts=tuple(receipts),
        variables=frozenset(names),
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
    if (value := _read_literal(text, receipts)) is not _NONE:
        return value
    if text[0] in "{[":
        repaired = repair_json(text, ended=True, nested="keep")
        drops = any(receipt.rule == "strip_prose" for receipt in repaired.receipts)
        if repaired.state == "whole" and not repaired.rest and not drops:
            receipts.extend(repaired.receipts)
            return repaired.value
    if text[0] == "[" and text[-1] == "]" and (items := _read_bare_list(text[1:-1], receipts)):
        names.update(filter(_IDENTIFIER.fullmatch, items))
        return items
    if _CODE.search(text):
        raise _Refused
    if text[0] in "\"'":
        why = "quotes inside the string were not escaped"
        escaped = _UNESCAPED[text[0]].sub(rf"\\{text[0]}", text[1:-1])
        value = _read_literal(f"{text[0]}{escaped}{text[-1]}", receipts)
        if value is _NONE:
            raise _Refused
        receipts.append(text_receipt("nested_quotes", text, value, why, lossless=False))
        return value
    if _IDENTIFIER.fullmatch(text):
        names.add(text)
    receipts.append(_note_bare(text))
    return text


def _read_literal(text: str, receipts: list[Receipt]) -> Any:
    found = read_python_calls(f"f({text})", 0)
    call = found.calls[0] if found.state == "whole" and len(found.calls) == 1 else None
    if call is None or len(call.positional) != 1 or call.keywords:
        return _NONE
    receipts.extend(call.receipts)
    return call.positional[0]


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
