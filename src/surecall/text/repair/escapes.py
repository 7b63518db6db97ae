"""What is between quotes: odd escapes, raw line breaks, quotes without a backslash."""

import re
from collections.abc import Callable
from typing import Final

from .repaired import RefusedError, Steps


def close_string(text: str, start: int, steps: Steps) -> str:
    """Return the JSON of a string that the end of the text cut; half an escape is left out."""
    content = text[start + 1 :]
    # The last few characters hold half an escape, or the first half of a surrogate pair.
    start = max(0, len(content) - _ESCAPE_CHARACTERS)
    cut = _HALF_ESCAPE.search(content, start) if "\\" in content[start:] else None
    content = content[: cut.start(1)] if cut else content
    return write_content(content, steps, is_raw=False, is_cut=True)[0]


_ESCAPE_CHARACTERS: Final = 64
_HALF_ESCAPE: Final = re.compile(
    r"(?<!\\)(?:\\\\)*+((?:\\u[dD][89abAB][0-9a-fA-F]{2})?+"
    r"(?:\\(?:u[0-9a-fA-F]{0,3}+|x[0-9a-fA-F]?+|U[0-9a-fA-F]{0,7}+)?+)?+)\Z"
)


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
