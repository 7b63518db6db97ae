"""Names of tools as models write them: prefixed, misspelled, or passed on by a wrapper."""

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, Final
from unicodedata import normalize

from surecall.base.json_values import as_fields, as_list

LOOKALIKES: Final = str.maketrans(
    "аеорсухіјѕԁһкмтвнԛԝοαερτυικνχѵɑɡıł",
    "aeopcyxijsdhkmtbhqwoaeptuikvxvagil",
)
"""Letters of other scripts that are read as Latin letters."""
_DIGITS: Final = str.maketrans("0135", "oles")
"""Digits that are read as letters."""
_MIN_LIKENESS: Final = 0.86
_NAME_KEYS: Final = frozenset({"name", "tool", "toolname", "function", "functionname", "recipient"})
_MAX_NAME_CHARS: Final = 200


def plain_name(name: str) -> str:
    """Return a name without case, marks, separators and letters that only look like others."""
    return _fold_name(name[:_MAX_NAME_CHARS])


@lru_cache(maxsize=4096)
def _fold_name(name: str) -> str:
    folded = normalize("NFKD", name).casefold().translate(LOOKALIKES).translate(_DIGITS)
    return "".join(char for char in folded if char.isascii() and char.isalnum())


def is_same_name(name: str, other: str) -> bool:
    """Tell whether two names are one, spelled differently."""
    return name == other or plain_name(name) == plain_name(other)


def means_tool(name: str, tool: str) -> bool:
    """Tell whether a name means a tool: prefixed, in another case or order, or misspelled."""
    mine, wanted = plain_name(name), plain_name(tool)
    if not mine:
        return False
    if wanted in mine or _sorted_words(name) == _sorted_words(tool):
        return True
    tail = mine[-len(wanted) :]
    return max(_likeness(mine, wanted), _likeness(tail, wanted)) >= _MIN_LIKENESS


_READING_NAMES: Final = """
    get read list show find search look lookup view fetch describe check status see inspect query
"""
_READING_WORDS: Final = frozenset(_READING_NAMES.split())
_SPEAKING_NAMES: Final = """
    help think thought plan answer finish final done respond reply response wait ask question stop
    end user task turn message result to the
"""
_SPEAKING_WORDS: Final = frozenset(_SPEAKING_NAMES.split())
"""A name of these alone only ends or thinks; next to another word they act: `stop_server`."""
_ACTING_NAMES: Final = """
    approve commit create delete drop erase exec overwrite propose publish remove reset send shell
    unlock update wipe write
"""
_ACTING_PARTS: Final = tuple(_ACTING_NAMES.split())
"""Wherever they are in a name, it acts."""
_ACTING_VERBS: Final = """
    accept add apply cancel clear close confirm edit execute insert kill merge modify move pay put
    refund rename replace run save set sign start stop submit transfer trigger
"""
_ACTING_WORDS: Final = frozenset(_ACTING_VERBS.split())
"""As a word of their own they act, whatever else the name reads."""
_PARTICLES: Final = ({"in"}, {"out"})
"""After its verb it makes another one: `check_in` checks nothing."""


def sounds_acting(name: str) -> bool:
    """Tell whether a tool of this name might change something: all that does not just read."""
    lowered, plain = name[:_MAX_NAME_CHARS].lower(), split_name(name)
    if plain and _SPEAKING_WORDS.issuperset(plain):
        return False
    if any(part in lowered for part in _ACTING_PARTS) or set(plain[1:2]) in _PARTICLES:
        return True
    return not _ACTING_WORDS.isdisjoint(plain) or _READING_WORDS.isdisjoint(plain)


def _likeness(name: str, other: str) -> float:
    return SequenceMatcher(None, name, other, autojunk=False).ratio()


def _sorted_words(name: str) -> str:
    """Return the words of a name in alphabetical order."""
    return "".join(sorted(split_name(name)))


def split_name(name: str) -> list[str]:
    """Return the words of a name without case, `commitFacts` being two."""
    spaced = "".join(
        f" {char}" if char.isupper() and place and name[place - 1].islower() else char
        for place, char in enumerate(name[:_MAX_NAME_CHARS])
    )
    words = "".join(char if char.isalnum() else " " for char in spaced).split()
    return [plain_name(word) for word in words]


def names_passed_on(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tools that the arguments of a wrapper name."""
    return tuple(_nested_names(arguments, depth=4))


def _nested_names(value: Any, depth: int) -> Iterable[str]:
    if depth <= 0:
        return
    if isinstance(value, Mapping):
        for key, item in as_fields(value).items():
            if isinstance(item, str) and plain_name(key) in _WRAPPER_KEYS:
                yield item
            yield from _nested_names(item, depth - 1)
    elif isinstance(value, list):
        for item in as_list(value):
            yield from _nested_names(item, depth - 1)


_WRAPPER_KEYS: Final = frozenset({*map(plain_name, _NAME_KEYS), plain_name("recipient_name")})
