"""Strings as models write them: any quotes, raw line breaks, inner quotes, odd escapes."""

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from .repair_contents import write_content
from .repair_patterns import (
    AFTER_ARRAY_STRING,
    AFTER_KEY,
    AFTER_LATER_ARRAY_QUOTE,
    AFTER_LATER_OBJECT_QUOTE,
    AFTER_OBJECT_STRING,
    AFTER_TOP_STRING,
    GAP_ANY,
    STRICT_STRING,
)
from .repair_signals import CutShortError, RefusedError, Steps

__all__ = ["Role", "StringRead", "close_string", "read_string"]

Role: TypeAlias = Literal["key", "object", "array", "top"]
"""Where a string stands; that decides what may follow it."""


class StringRead(NamedTuple):
    """A string that was read."""

    end: int
    written: str | None
    """Its JSON; None when it is strict JSON as it stands."""
    rules: tuple[str, ...]


_FIRST: Final = {
    "key": AFTER_KEY,
    "object": AFTER_OBJECT_STRING,
    "array": AFTER_ARRAY_STRING,
    "top": AFTER_TOP_STRING,
}
_LATER: Final = {
    "key": AFTER_KEY,
    "object": AFTER_LATER_OBJECT_QUOTE,
    "array": AFTER_LATER_ARRAY_QUOTE,
    "top": AFTER_TOP_STRING,
}
_TO_QUOTE: Final = {
    opening: re.compile(rf"(?:[^\\{closing}]++|\\.)*+[{closing}]", re.DOTALL)
    for opening, closing in {
        '"': '"',
        "'": "'",
        "`": "`",
        "“": '”“"',
        "”": '”"',
        "„": "“”",
        "‘": "’‘'",
        "’": "’'",
        "«": "»",
        "»": "«»",
    }.items()
}
_TO_RAW_QUOTE: Final = {quote: re.compile(f"[^{quote}]*+{quote}") for quote in "\"'"}
_SIMPLE: Final = {
    "'": re.compile(r"'[ !#-&(-\[\]-\U0010ffff]*+'"),
    "“": re.compile(r'“[^“”"\\\x00-\x1f]*+”'),
}
_AMBIGUOUS_NEIGHBOUR: Final = {
    "object": re.compile(r"[ \t]*+(?:\"[^\"\\\n]*+\"|'[^'\\\n]*+')\s*+[,}\]]"),
    "array": re.compile(r"\s*+'[^'\\\n]*+'\s*+[,\]]"),
}
# A quote that is not escaped, next to a colon or a bracket.
_STRUCTURE: Final = {
    quote: re.compile(
        rf"\A\s*+,|(?<!\\){quote}\s*+(?:[:}}\]{{\[]|[,;]\s*+[{{\[:])|[{{\[]\s*+{quote}|[}}\]]\s*+,\s*+{quote}"
    )
    for quote in "\"'"
}
_BRACKET: Final = re.compile(r"[{}\[\]\"]")
# Quotes inside a string that are neither escaped nor apostrophes: in an array, where nothing but
# commas tells strings apart, they come in pairs or belong to other strings.
_INNER: Final = {
    '"': re.compile(r"\\.|(\")", re.DOTALL),
    "'": re.compile(r"\\.|((?<!\w)'|'(?!\w))", re.DOTALL),
}
_KEY_WITHOUT_END: Final = re.compile(r"[\"'“]([\w$][\w$.\-]*+)(?=\s*+:)")
_KEY_AFTER_COMMA: Final = re.compile(r"\"[\w$][\w$ .\-]*+\"\s*+:")
_VALUE_AFTER_KEY: Final = re.compile(
    r"\s*+(?:\"(?:[^\"\\]++|\\.)*+\"\s*+[,}]|'(?:[^'\\]++|\\.)*+'\s*+[,}]|[{\[]|-?[0-9]"
    r"|(?:[tT]rue|[fF]alse|null|None)\b)",
    re.DOTALL,
)
_JOINT: Final = re.compile(r"\s*+\+\s*+(?=[\"'`])")
_JOINT_BY_LINE: Final = re.compile(
    r"[ \t]*+[\n\r]\s*+(?=(?:\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+')"
    r"\s*+(?:[,}\])]|[\"'+]))"
)
_PREFIX: Final = re.compile(r"[bBrRuU]{0,2}+")
_LOOK_BACK: Final = 64
_COUNTED_PER_STEP: Final = 8
_IS_CLOSED: Final = re.compile(r"[}\])](?=\s*+\Z)")


def read_string(text: str, start: int, role: Role, steps: Steps, prefix: str = "") -> StringRead:
    """Read the string whose quote is at `start`; strings joined to it are read with it."""
    first = _read_one(text, start, role, steps, prefix)
    joint = _joint(text, first.end, text[start], role)
    if joint is None:
        return first
    contents = [_content(text, start, first)]
    rules = [*first.rules, "join_strings"]
    end = first.end
    while joint is not None:
        match = _PREFIX.match(text, joint)
        start = match.end() if match else joint
        steps.take(2, start)
        part = _read_one(text, start, role, steps, text[joint:start])
        contents.append(_content(text, start, part))
        rules.extend(part.rules)
        end = part.end
        joint = _joint(text, end, text[start], role)
    return StringRead(end, f'"{"".join(contents)}"', tuple(dict.fromkeys(rules)))


def close_string(text: str, start: int, steps: Steps, *, is_raw: bool = False) -> str:
    """Return the JSON of a string that the end of the text cut; half an escape is left out."""
    content = text[start + 1 :]
    if not is_raw:
        # The last few characters hold half an escape, or the first half of a surrogate pair.
        start = max(0, len(content) - _ESCAPE_CHARACTERS)
        cut = _HALF_ESCAPE.search(content, start) if "\\" in content[start:] else None
        content = content[: cut.start(1)] if cut else content
    return write_content(content, steps, is_raw=is_raw, is_cut=True)[0]


_ESCAPE_CHARACTERS: Final = 64
_HALF_ESCAPE: Final = re.compile(
    r"(?<!\\)(?:\\\\)*+((?:\\u[dD][89abAB][0-9a-fA-F]{2})?+"
    r"(?:\\(?:u[0-9a-fA-F]{0,3}+|x[0-9a-fA-F]?+|U[0-9a-fA-F]{0,7}+)?+)?+)\Z"
)


def _content(text: str, start: int, read: StringRead) -> str:
    return text[start + 1 : read.end - 1] if read.written is None else read.written[1:-1]


def _joint(text: str, end: int, quote: str, role: Role) -> int | None:
    if role == "key":
        return None
    match = _JOINT.match(text, end)
    if match is None and role == "object" and quote in "\"'":
        match = _JOINT_BY_LINE.match(text, end)
    return match.end() if match else None


def _read_one(text: str, start: int, role: Role, steps: Steps, prefix: str) -> StringRead:
    quote = text[start]
    if quote == '"' and role != "key" and text.find('"', start + 1) < 0:
        raise CutShortError("string", start, "inside a string", prefix=prefix)
    if quote == '"' and not prefix:
        match = STRICT_STRING.match(text, start)
        if match and _ends(text, match.end(), role):
            return StringRead(match.end(), None, ())
    elif quote in _SIMPLE and not prefix:
        match = _SIMPLE[quote].match(text, start)
        if match and _ends(text, match.end(), role):
            return StringRead(match.end(), f'"{match[0][1:-1]}"', ("replace_quotes",))
    is_raw = "r" in prefix.lower()
    rules = ["drop_string_prefix"] if prefix else []
    if quote in "\"'" and text.startswith(quote * 3, start):
        end = text.find(quote * 3, start + 3)
        if end >= 0 and _ends(text, end + 3, role):
            rules.append("replace_quotes")
            return _finished(text, start + 3, end, 3, steps, rules, is_raw=is_raw)
    close, length, more = _find_close(text, start, role, steps, prefix)
    content = text[start + 1 : close]
    steps.take((content.count("\\") + content.count(quote)) // _COUNTED_PER_STEP, start)
    if quote == "`" and "${" in content:
        raise RefusedError("a template with a placeholder has no value of its own", start)
    if quote != '"':
        rules.append("replace_quotes")
    elif '"' in content and (is_raw or _count_inner(content, '"')):
        rules.append("escape_inner_quotes")
    if quote in _STRUCTURE and role != "top":
        _refuse_structure(content, start, quote, role, is_open=length == 0)
    return _finished(text, start + 1, close, length, steps, rules + more, is_raw=is_raw)


def _finished(
    text: str, start: int, close: int, length: int, steps: Steps, rules: list[str], *, is_raw: bool
) -> StringRead:
    written, found = write_content(text[start:close], steps, is_raw=is_raw)
    return StringRead(close + length, written, tuple(dict.fromkeys((*rules, *found))))


def _ends(text: str, end: int, role: Role) -> bool:
    if _FIRST[role].match(text, end):
        return not (role == "array" and _AMBIGUOUS_NEIGHBOUR["array"].match(text, end))
    if role == "object":
        return _JOINT_BY_LINE.match(text, end) is not None
    return role == "key" and _VALUE_AFTER_KEY.match(text, end) is not None


def _find_close(
    text: str, start: int, role: Role, steps: Steps, prefix: str
) -> tuple[int, int, list[str]]:
    """Return where the closing quote is, its length (0 when it is missing), and rules."""
    if role == "key":
        return _find_key_close(text, start, steps)
    quote = text[start]
    after = _LATER[role]
    raw = _TO_RAW_QUOTE.get(quote) if "r" in prefix.lower() else None
    opened = 0
    is_first = True
    counted = start + 1
    for end in _quote_ends(raw or _TO_QUOTE[quote], text, start + 1):
        steps.take(1, end)
        if is_first:
            _refuse_ambiguous(text, end, role)
            is_end = _ends(text, end, role)
        else:
            is_end = after.match(text, end) is not None
        if text.startswith(")", end):
            opened += text.count("(", counted, end) - text.count(")", counted, end)
            counted = end
            is_end = is_end and opened <= 0
        if is_end:
            return end - 1, 1, []
        if quote == '"' and role == "object" and _KEY_AFTER_COMMA.match(text, end - 1):
            comma = _comma_before(text, start, end - 1)
            if comma is not None:
                return comma, 0, ["add_missing_closing_quote"]
        is_first = False
    if not is_first and _IS_CLOSED.search(text, len(text) - _LOOK_BACK):
        raise RefusedError("it cannot be told where this string ends", start)
    raise CutShortError("string", start, "inside a string", prefix=prefix)


def _find_key_close(text: str, start: int, steps: Steps) -> tuple[int, int, list[str]]:
    """Find the end of a key; a key with inner quotes has no colon, comma or line break in it."""
    quote = text[start]
    has_end = False
    for end in _quote_ends(_TO_QUOTE[quote], text, start + 1):
        steps.take(1, start)
        has_end = True
        between = text[start + 1 : end - 1]
        if AFTER_KEY.match(text, end):
            if not _KEY_WITHOUT_END.match(text, start) or not set(between) & set(",\n"):
                return end - 1, 1, []
            break
        if GAP_ANY.fullmatch(text, end):
            raise CutShortError("member", start, "after a key")
        if len(between) > 200 or set(between) & set(":,\n{}[]"):
            break
        if _VALUE_AFTER_KEY.match(text, end):
            return end - 1, 1, []
    else:
        is_open = not (has_end and _IS_CLOSED.search(text, len(text) - _LOOK_BACK))
        if is_open and not _KEY_WITHOUT_END.match(text, start):
            raise CutShortError("member", start, "inside a key")
    match = _KEY_WITHOUT_END.match(text, start)
    if match is None:
        raise RefusedError("a key is not followed by ':'", start)
    return match.end(), 0, ["add_missing_closing_quote"]


def _quote_ends(to_quote: re.Pattern[str], text: str, at: int) -> Iterator[int]:
    """Yield the ends of the quotes that may close a string, none of them escaped."""
    while match := to_quote.match(text, at):
        at = match.end()
        yield at


def _refuse_ambiguous(text: str, end: int, role: Role) -> None:
    neighbour = _AMBIGUOUS_NEIGHBOUR.get(role)
    if neighbour and neighbour.match(text, end):
        raise RefusedError("two strings side by side: joined, or a comma left out?", end)


def _refuse_structure(content: str, start: int, quote: str, role: Role, *, is_open: bool) -> None:
    """Refuse text that holds quotes and brackets as JSON would: it is more than one string."""
    is_unpaired = role == "array" and quote in content and _count_inner(content, quote) % 2
    if is_unpaired or _STRUCTURE[quote].search(content) or (is_open and _BRACKET.search(content)):
        raise RefusedError("it cannot be told where this string ends", start)


def _count_inner(content: str, quote: str) -> int:
    return sum(1 for match in _INNER[quote].finditer(content) if match[1])


def _comma_before(text: str, start: int, position: int) -> int | None:
    before = text[max(start + 1, position - _LOOK_BACK) : position].rstrip()
    if not before.endswith(","):
        return None
    return text.rindex(",", start, position)
