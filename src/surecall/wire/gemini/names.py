"""Names as Gemini takes them, and back.

Members of objects come in two spellings. A name of a function that breaks the rules is written in a
form that can be read back without knowing the tools: `weather/today` becomes `_x_weather_2f_today`.
"""

import re
from functools import cache
from typing import Any, Final

from surecall.base.redaction import mask_known
from surecall.wire.substitutes import stand_in_name


@cache
def snake(name: str) -> str:
    """Return the other spelling of a name: `functionCall` becomes `function_call`."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def member(fields: dict[str, Any], name: str) -> Any:
    """Return a member by its name in camel case, however it is spelled."""
    value = fields.get(name)
    return fields.get(snake(name)) if value is None else value


def known_members(*names: str) -> frozenset[str]:
    """Return both spellings of all names."""
    return frozenset({*names, *(snake(name) for name in names)})


_MAX_CHARS: Final = 128
_MARK: Final = "_x_"
_FITS: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", re.ASCII)
_ESCAPED: Final = re.compile(r"_(_|[0-9a-f]{1,6}_)", re.ASCII)
_OTHER: Final = re.compile(r"[^A-Za-z0-9-]", re.ASCII)


def wire_name(name: str) -> str:
    """Return the name as the wire takes it."""
    if _stays(name):
        return name
    written = _MARK + _OTHER.sub(_escape, name)
    if name and len(written) <= _MAX_CHARS:
        return written
    return stand_in_name(name if name[:1].isalpha() else f"_{name}", _MAX_CHARS)


def own_name(name: str) -> str:
    """Return the name that was written, or the name itself when it was not changed."""
    if not name.startswith(_MARK) or len(name) > _MAX_CHARS:
        return name
    found = _ESCAPED.sub(_unescape, name[len(_MARK) :])
    is_ours = found and _MARK + _OTHER.sub(_escape, found) == name
    # What is written so does not look like a key until it is read.
    return mask_known(found) if is_ours and not _stays(found) else name


def _stays(name: str) -> bool:
    """Tell whether a name fits and could not be mistaken for a written one."""
    return bool(_FITS.fullmatch(name)) and own_name(name) == name


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return "__" if char == "_" else f"_{ord(char):x}_"


def _unescape(match: re.Match[str]) -> str:
    inner = match.group(1)
    if inner == "_":
        return "_"
    number = int(inner[:-1], 16)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else match.group()
