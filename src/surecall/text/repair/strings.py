"""Strings as models write them: any quotes, raw line breaks, inner quotes, odd escapes."""

import re
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from . import patterns
from .outcome import CutShortError, RefusedError, Steps

Role: TypeAlias = Literal["key", "object", "array", "top"]
"""Where a string is; that decides what may follow it."""


class StringRead(NamedTuple):
    """A string that was read."""

    end: int
    written: str | None
    """Its JSON; None when it is strict JSON as it is."""
    rules: tuple[str, ...]


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
_COMMA_AND_LINE: Final = re.compile(r",[ \t]*+[\n\r]")
_DOUBLED: Final = re.compile(r"\"[^\"\\]*+\"?+|[^\"\\]*+\"")
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
    joint = _find_joint(text, first.end, text[start], role)
    if joint is None:
        return first
    contents = [_read_content(text, start, first)]
    rules = [*first.rules, "join_strings"]
    end = first.end
    while joint is not None:
        match = _PREFIX.match(text, joint)
        start = match.end() if match else joint
        steps.take(2, start)
        part = _read_one(text, start, role, steps, text[joint:start])
        contents.append(_read_content(text, start, part))
        rules.extend(part.rules)
        end = part.end
        joint = _find_joint(text, end, text[start], role)
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


def _read_content(text: str, start: int, read: StringRead) -> str:
    return text[start + 1 : read.end - 1] if read.written is None else read.written[1:-1]


def _find_joint(text: str, end: int, quote: str, role: Role) -> int | None:
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
        match = patterns.STRICT_STRING.match(text, start)
        if match and _is_end(text, match.end(), role):
            return StringRead(match.end(), None, ())
    elif quote in _SIMPLE and not prefix:
        match = _SIMPLE[quote].match(text, start)
        if match and _is_end(text, match.end(), role):
            return StringRead(match.end(), f'"{match[0][1:-1]}"', ("replace_quotes",))
    is_raw = "r" in prefix.lower()
    rules = ["drop_string_prefix"] if prefix else []
    if quote in "\"'" and text.startswith(quote * 3, start):
        end = text.find(quote * 3, start + 3)
        if end >= 0 and _is_end(text, end + 3, role):
            rules.append("replace_quotes")
            return _finish(text, start + 3, end, 3, steps, rules, is_raw=is_raw)
    close, length, more = _find_close(text, start, role, steps, prefix)
    content = text[start + 1 : close]
    steps.take((content.count("\\") + content.count(quote)) // _COUNTED_PER_STEP, start)
    if quote == "`" and "${" in content:
        raise RefusedError("a template with a placeholder is not a fixed value", start)
    if quote != '"':
        rules.append("replace_quotes")
    elif '"' in content and (is_raw or _count_inner(content, '"')):
        rules.append("escape_inner_quotes")
    if quote in _STRUCTURE and role != "top":
        _refuse_structure(content, start, quote, role, is_open=length == 0)
    return _finish(text, start + 1, close, length, steps, rules + more, is_raw=is_raw)


def _finish(
    text: str, start: int, close: int, length: int, steps: Steps, rules: list[str], *, is_raw: bool
) -> StringRead:
    is_other = "replace_quotes" in rules
    written, found = write_content(text[start:close], steps, is_raw=is_raw, is_other=is_other)
    return StringRead(close + length, written, tuple(dict.fromkeys((*rules, *found))))


def _is_end(text: str, end: int, role: Role) -> bool:
    if patterns.AFTER_FIRST_QUOTE[role].match(text, end):
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
    after = patterns.AFTER_LATER_QUOTE[role]
    raw = _TO_RAW_QUOTE.get(quote) if "r" in prefix.lower() else None
    opened = 0
    is_first = True
    counted = start + 1
    for end in _find_quote_ends(raw or _TO_QUOTE[quote], text, start + 1):
        steps.take(1, end)
        if is_first:
            if role in _AMBIGUOUS_NEIGHBOUR and _AMBIGUOUS_NEIGHBOUR[role].match(text, end):
                raise RefusedError("two strings side by side: joined, or a comma left out?", end)
            is_end = _is_end(text, end, role)
        else:
            is_end = after.match(text, end) is not None
        if text.startswith(")", end):
            opened += text.count("(", counted, end) - text.count(")", counted, end)
            counted = end
            is_end = is_end and opened <= 0
        if is_end:
            return end - 1, 1, [] if is_first else ["escape_inner_quotes"]
        if quote == '"' and role == "object" and _KEY_AFTER_COMMA.match(text, end - 1):
            comma = _comma_before(text, start, end - 1)
            if comma is not None:
                return comma, 0, ["add_missing_closing_quote"]
        is_first = False
    if not is_first and _IS_CLOSED.search(text, len(text) - _LOOK_BACK):
        raise RefusedError("it is not clear where this string ends", start)
    raise CutShortError("string", start, "inside a string", prefix=prefix)


def _find_key_close(text: str, start: int, steps: Steps) -> tuple[int, int, list[str]]:
    """Find the end of a key; a key with inner quotes has no colon, comma or line break in it."""
    quote = text[start]
    has_end = False
    rules: list[str] = []
    for end in _find_quote_ends(_TO_QUOTE[quote], text, start + 1):
        steps.take(1, start)
        rules = ["escape_inner_quotes"] if has_end else []
        has_end = True
        between = text[start + 1 : end - 1]
        if patterns.AFTER_LATER_QUOTE["key"].match(text, end):
            if not _KEY_WITHOUT_END.match(text, start) or not set(between) & set(",\n"):
                return end - 1, 1, rules
            break
        if patterns.GAP_ANY.fullmatch(text, end):
            raise CutShortError("member", start, "after a key")
        if len(between) > 200 or set(between) & set(":,\n{}[]"):
            break
        if _VALUE_AFTER_KEY.match(text, end):
            return end - 1, 1, rules
    else:
        is_open = not (has_end and _IS_CLOSED.search(text, len(text) - _LOOK_BACK))
        if is_open and not _KEY_WITHOUT_END.match(text, start):
            raise CutShortError("member", start, "inside a key")
    match = _KEY_WITHOUT_END.match(text, start)
    if match is None:
        raise RefusedError("a key is not followed by ':'", start)
    return match.end(), 0, ["add_missing_closing_quote"]


def _find_quote_ends(to_quote: re.Pattern[str], text: str, at: int) -> Iterator[int]:
    """Yield the ends of the quotes that may close a string, none of them escaped."""
    while match := to_quote.match(text, at):
        at = match.end()
        yield at


def _refuse_structure(content: str, start: int, quote: str, role: Role, *, is_open: bool) -> None:
    """Refuse text that holds quotes and brackets as JSON would: it is more than one string."""
    if quote == '"' and not is_open and _DOUBLED.fullmatch(content):
        raise RefusedError("quotes written twice: do they belong to the text?", start)
    if role == "array" and _COMMA_AND_LINE.search(content):
        raise RefusedError("a comma and a line break in a string: one item, or two?", start)
    is_unpaired = role == "array" and quote in content and _count_inner(content, quote) % 2
    if is_unpaired or _STRUCTURE[quote].search(content) or (is_open and _BRACKET.search(content)):
        raise RefusedError("it is not clear where this string ends", start)


def _count_inner(content: str, quote: str) -> int:
    return sum(1 for match in _INNER[quote].finditer(content) if match[1])


def _comma_before(text: str, start: int, position: int) -> int | None:
    before = text[max(start + 1, position - _LOOK_BACK) : position].rstrip()
    if not before.endswith(","):
        return None
    return text.rindex(",", start, position)


# What is between the quotes

# What needs no change is passed over together with what comes behind it, up to the end.
_TO_WRITE: Final = re.compile(
    r"(?P<keep>(?:[^\x00-\x1f\"\\]++|\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}))*+)"
    r"(?:(?P<control>[\x00-\x1f]++)|(?P<quote>\"++)"
    r"|\\(?:x(?P<hex>[0-9a-fA-F]{2})|U(?P<long>[0-9a-fA-F]{8})|u\{(?P<braced>[0-9a-fA-F]{1,6})\}"
    r"|(?P<nul>0)(?![0-9])|(?P<line>\r\n|[\n\r\u2028\u2029])|(?P<tab>v)|(?P<plain>['`“”„‘’«»])"
    r"|(?P<other>))|\Z)"
)
_RAW: Final = re.compile(
    r"(?P<keep>[^\x00-\x1f\"\\]*+)"
    r"(?:(?P<control>[\x00-\x1f]++)|(?P<quote>\"++)|(?P<back>\\++)|\Z)"
)
_SPECIAL: Final = re.compile(r"[\x00-\x1f\"\\]")
_NAMED: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_CONTROLS: Final = {one: _NAMED.get(chr(one)) or f"\\u{one:04x}" for one in range(0x20)}
_MAX_CODE_POINT: Final = 0x10FFFF
_CHANGES_PER_STEP: Final = 2

_ESCAPE: Final = re.compile(
    r"\\(?:(?P<sign>[bf])|(?P<blank>[nrt](?=[a-zA-Z]))|(?P<known>[nrt\"\\/]|u[0-9a-fA-F]{4})"
    r"|(?P<word>[a-zA-Z]{2})|.)",
    re.DOTALL,
)
_HOST: Final = r"[\w.$\-]{2,}+"
_NAME: Final = r"[^\\/:*?\"<>|\x00-\x1f]++"
_PATH: Final = re.compile(
    rf"[a-zA-Z]:(?:\\{{1,2}}+(?:{_NAME})?+)++|\\\\{_HOST}(?:\\(?:{_NAME})?+)++"
)
_BACKSLASHES: Final = re.compile(r"\\\\?+")


def write_content(
    content: str, steps: Steps, *, is_raw: bool, is_cut: bool = False, is_other: bool = False
) -> tuple[str, list[str]]:
    """Return the JSON of what is between quotes, and the rules that it took.

    Strings in other quotes (`is_other`) may escape these.
    """
    if not _SPECIAL.search(content):
        return f'"{content}"', []
    written, kinds = _rewrite(content, steps, _RAW if is_raw else _TO_WRITE)
    if "other" in kinds and (plain := _double_backslashes(content, is_cut)) is not None:
        written, kinds = _rewrite(plain, steps, _TO_WRITE)
        kinds["other"] = None
    rules: list[str] = []
    for kind in kinds:
        rule = _RULES.get(kind, "fix_escapes")
        if is_other and kind == "plain":
            continue
        if rule and rule not in rules:
            rules.append(rule)
    return f'"{written}"', rules


_RULES: Final = {"keep": "", "quote": "", "back": "", "control": "escape_control_characters"}


def _rewrite(content: str, steps: Steps, pattern: re.Pattern[str]) -> tuple[str, dict[str, None]]:
    """Return the content with what JSON does not take replaced, and what kinds that were."""
    kinds: dict[str, None] = {}

    def write(match: re.Match[str]) -> str:
        kind = match.lastgroup or ""
        kinds[kind] = None
        return match["keep"] + _WRITERS[kind](match)

    written, count = pattern.subn(write, content, 1 + _CHANGES_PER_STEP * (steps.left + 1))
    steps.take(count // _CHANGES_PER_STEP, 0)
    return written, kinds


def _double_backslashes(content: str, is_cut: bool) -> str | None:
    r"""Double the backslashes of text that shows, by `\d` or `\alpha`, that it escapes none.

    A path is all plain. Nobody means a backspace or a form feed next to `\d`: that is `\b` or
    `\frac`. A line break next to `\alpha` may be one, or the start of `\nu`.
    """
    if _PATH.fullmatch(content.strip()):
        is_share = content.lstrip().startswith("\\\\")
        return _BACKSLASHES.sub(
            lambda match: "\\" * (4 if is_share and len(match[0]) == 2 else 2), content
        )
    kinds = {match.lastgroup for match in _ESCAPE.finditer(content)}
    if not kinds & {"sign", "word"}:
        return None
    if "blank" in kinds and not is_cut:
        raise RefusedError("it is not clear whether a backslash begins an escape", 0)
    if "sign" not in kinds:
        return None
    return _ESCAPE.sub(
        lambda match: f"\\{match[0]}" if match.lastgroup == "sign" else match[0], content
    )


def _code_point(match: re.Match[str]) -> str:
    number = int(match[match.lastgroup or 0], 16)
    if number > _MAX_CODE_POINT:
        raise RefusedError("an escape names a character that does not exist", match.end("keep"))
    if number < 0x20 or chr(number) in '"\\' or 0xD800 <= number <= 0xDFFF:
        return f"\\u{number:04x}"
    return chr(number)


_WRITERS: Final[dict[str, Callable[[re.Match[str]], str]]] = {
    "keep": lambda _: "",
    "quote": lambda match: '\\"' * len(match["quote"]),
    "control": lambda match: match["control"].translate(_CONTROLS),
    "back": lambda match: "\\\\" * len(match["back"]),
    "hex": _code_point,
    "long": _code_point,
    "braced": _code_point,
    "nul": lambda _: "\\u0000",
    "line": lambda _: "",
    "tab": lambda _: "\\u000b",
    "plain": lambda match: match["plain"],
    "other": lambda _: "\\\\",
}
