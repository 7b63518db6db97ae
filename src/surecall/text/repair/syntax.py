"""The regular expressions of the repairer.

None can backtrack: every repetition is possessive, and a look-ahead ends at the next quote but
one, so that reading a text from its start to its end looks at each character a bounded number of
times.
"""

import re
from typing import Final

QUOTES: Final = "\"'`“”„‘’«»"
"""Everything a string may begin with."""

_WS: Final = r"[ \t\n\r]*+"
ANY_WS: Final = r"[\s\ufeff\u200b\u2060]*+"
# Ranges of what is allowed are matched faster than of what is not.
_STRING: Final = r'"(?:[ !#-\[\]-\U0010ffff]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
# At most two digits of exponent: a number that may be beyond a float is looked at one by one.
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]{1,2})?+"
_SCALAR: Final = f"(?:{_STRING}|{_NUMBER}|true|false|null)"
_FLAT_ARRAY: Final = rf"\[{_WS}(?:{_SCALAR}{_WS}(?:,{_WS}(?!\])|(?=\])))*+\]"
_FLAT_OBJECT: Final = (
    rf"\{{{_WS}(?:{_STRING}{_WS}:{_WS}{_SCALAR}{_WS}(?:,{_WS}(?!\}})|(?=\}})))*+\}}"
)
_VALUE: Final = f"(?:{_SCALAR}|{_FLAT_ARRAY}|{_FLAT_OBJECT})"
_BARE_KEY: Final = r"[\w$][\w$.\-]*+"
_MEMBER_END: Final = rf"(?={_WS}(?:\}}|,{_WS}(?:[\"'}}]|{_BARE_KEY}{_WS}[:=])))"
_MEMBER: Final = f"{_STRING}{_WS}:{_WS}{_VALUE}{_MEMBER_END}"
_ITEM: Final = rf"{_VALUE}(?={_WS}[,\]])"

MEMBERS: Final = re.compile(rf"{_WS}{_MEMBER}(?:{_WS},{_WS}{_MEMBER})*+")
"""Members of an object that are strict JSON and hold at most one level more."""
LAST_MEMBER: Final = re.compile(rf"{_STRING}{_WS}:{_WS}({_VALUE}){_WS},?+{_WS}")
"""One of them after the other; group 1 is the value."""
ITEMS: Final = re.compile(rf"{_WS}{_ITEM}(?:{_WS},{_WS}{_ITEM})*+")
"""Items of an array that are strict JSON and hold at most one level more."""
_SINGLE: Final = r"[ !#-&(-\[\]-\U0010ffff]*+"
LOOSE_MEMBER: Final = re.compile(
    rf"{_WS}(?:{_STRING}|(?P<bare>{_BARE_KEY})|'(?P<key>{_SINGLE})'){_WS}:{_WS}(?![:=])"
    rf"(?:(?P<value>{_VALUE}){_MEMBER_END}|(?P<word>True|False|None){_MEMBER_END}"
    rf"|'(?P<text>{_SINGLE})'{_MEMBER_END})?+"
)
"""A key and a colon; and the value, if it is strict JSON, a Python literal or a plain string."""
LOOSE_ITEM: Final = re.compile(
    rf"{_WS}(?:(?P<word>True|False|None)|'(?P<text>{_SINGLE})')(?={_WS}[,\]])"
)
"""An item that is a Python literal or a plain string in single quotes."""
PLAIN_ITEMS: Final = re.compile(rf"{_WS}(?:'{_SINGLE}'{_WS},{_WS}(?='))++")
"""Items that are plain strings in single quotes, each with the comma behind it."""
PLAIN_ITEM: Final = re.compile(rf"'({_SINGLE})'")
STRICT_STRING: Final = re.compile(_STRING)
STRICT_NUMBER: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+(?![\w.])"
)

GAP: Final = re.compile(rf"{_WS}([/#]|[^\S \t\n\r]|[\ufeff\u200b\u2060]|`(?=``)|~(?=~~))?+")
"""Blanks; group 1 is what may be a comment, a fence or a blank that JSON does not know."""
BLANKS: Final = re.compile(r"[ \t\n\r]++")
BLANKS_TO_END: Final = re.compile(r"\s*+\Z")
GAP_ANY: Final = re.compile(ANY_WS)
LINE_COMMENT: Final = re.compile(r"(?://|#(?![0-9a-fA-F]{3,8}+\s*+[,}\]]))[^\n\r]*+")
"""A comment up to the end of its line, but not a colour."""
EXTRA_COLON: Final = re.compile(r"[ \t\n\r]*+[:=](?![ \t\n\r]*+[:=])")
EXTRA_COMMAS: Final = re.compile(r"[,;][,; \t\n\r]*+")
FENCE: Final = re.compile(r"`{3,}+|~{3,}+")

NUMBER: Final = re.compile(r"[+-]?+(?:[0-9]|\.[0-9])[\w.]*+(?:(?<=[eE])[+-][0-9]++)?+")
NUMBER_TO_END: Final = re.compile(r"[+-]?+[\w.]*+[+-]?+\Z")
WORD: Final = re.compile(r"[+-]?+[^\W\d][\w$]*+")
BARE_KEY: Final = re.compile(_BARE_KEY)
BARE_KEY_AHEAD: Final = re.compile(rf"[\"'”’]?+{ANY_WS}[:=]")
BARE_TEXT: Final = re.compile(
    r"[a-zA-Z][a-zA-Z0-9+.\-]*+://[^\s,;\"'`{}\[\]()<>\\\x00-\x1f]++"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9:.]++(?:Z|[+-][0-9:]++)?+"
    r"|[\w$](?:[\w$.@%&!?\-]|/(?![/*])|[ \t]++(?!#))*+"
)
"""Text without quotes: an address, a date with its time, or words."""
_BARE_KEY_NEXT: Final = rf"{_BARE_KEY}[\"']?+{ANY_WS}[:=]"
BARE_TEXT_END: Final = {
    True: re.compile(
        rf"[\"']?+(?:[\n\r]|[}}\])]|{ANY_WS}(?:/[/*]|\#)"
        rf"|[,;]{ANY_WS}(?:[}}\])\"'“„‘«`]|/[/*]|\#|{_BARE_KEY_NEXT}))"
    ),
    False: re.compile(rf"[\"']?+(?:[\n\r]|[}}\]),;]|{ANY_WS}(?:/[/*]|\#))"),
}
"""What may follow bare text, in an object (True) and in an array."""
LITERAL_END: Final = re.compile(rf"{ANY_WS}(?:[,;}}\])]|/[/*]|\#|`{{3}}|~~~|\Z)|[ \t]*+[\n\r]")

# What may follow a closing quote. A quote that something else follows belongs to the text.

_OPEN: Final = r"[\"'`“„‘«]"
_COMMENT: Final = r"/[/*]|\#"
_KEY_QUOTED: Final = (
    r"(?:\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'|[“„‘«][^“”„‘’«»\n]*+[”’»“])"
)
_KEY_NEXT: Final = rf"(?:{_KEY_QUOTED}{ANY_WS}[:=]|{_BARE_KEY_NEXT})"
_KEY_AT_ONCE: Final = rf"(?:{_KEY_QUOTED}{ANY_WS}[:=]|{_BARE_KEY}{ANY_WS}[:=])"
_WORDS: Final = r"(?:[tT]rue|[fF]alse|[nN]ull|None|TRUE|FALSE|NULL|NaN|nil|undefined|Infinity)\b"
_VALUE_NEXT: Final = rf"(?:{_OPEN}|[{{\[(]|[+-]?+\.?+[0-9]|[+-]?+{_WORDS})"
_JOIN: Final = rf"\+{ANY_WS}[\"'`]"

_AFTER_KEY: Final = re.compile(rf"{ANY_WS}[:=]")
_AFTER_TOP: Final = re.compile(rf"{ANY_WS}(?:\Z|;{ANY_WS}\Z|`{{3}}|~~~|{_COMMENT}|{_JOIN}|[)])")
AFTER_FIRST_QUOTE: Final = {
    "key": _AFTER_KEY,
    "object": re.compile(
        rf"[ \t]*+[\n\r]{ANY_WS}{_BARE_KEY}{ANY_WS}[:=]"
        rf"|{ANY_WS}(?:[}}\])]|\Z|{_COMMENT}|{_JOIN}|{_KEY_QUOTED}{ANY_WS}[:=]|`{{3}}|~~~"
        rf"|[,;]{ANY_WS}(?:{_OPEN}|[}}\]),;]|\Z|{_COMMENT}|{_BARE_KEY_NEXT}))"
    ),
    "array": re.compile(
        rf"[ \t]*+[\n\r]{ANY_WS}{_VALUE_NEXT}"
        rf"|{ANY_WS}(?:[}}\])]|\Z|{_COMMENT}|{_JOIN}|[{{\[\"'“„‘«]|`{{3}}(?!`)|~~~"
        rf"|[,;]{ANY_WS}(?:{_VALUE_NEXT}|[}}\]),;]|\Z|{_COMMENT}|[\w$][\w$ .@%\-]*+[,\]\n]))"
    ),
    "top": _AFTER_TOP,
}
"""What may follow the first quote that may close a string, by where the string is."""

KEY_AHEAD: Final = re.compile(_KEY_AT_ONCE)
VALUE_AHEAD: Final = re.compile(
    rf"(?:{_KEY_QUOTED}(?!{ANY_WS}[:=])|[`{{\[(]|[+-]?+\.?+[0-9]|[+-]?+{_WORDS})"
)
# The likely level: more may follow, so that one of two possible ends is taken.

_LIKELY_QUOTED: Final = (
    r"(?:\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'|`[^`\n]*+`|[“„‘«][^“”„‘’«»\n]*+[”’»“])"
)
_LIKELY_COLON: Final = r"(?:[:：]|=>?+(?!=))"
_KEY: Final = (
    rf"(?:{_LIKELY_QUOTED}\"?+|{_BARE_KEY}[\"']?+|\"{{1,2}}+{_BARE_KEY}\"{{0,2}}+)"
    rf"{ANY_WS}{_LIKELY_COLON}"
)
_DOTS: Final = r"\.\.\.|…"
_STOP: Final = rf"[}}\]]|\Z|{_COMMENT}|`{{3}}|\+{ANY_WS}[\"'`]"
_LITERALS: Final = r"(?:[tT]rue|[fF]alse|[nN]ull|None|TRUE|FALSE|NULL|undefined)\b"
_VALUE_LIKELY: Final = rf"(?:{_OPEN}|[{{\[(]|[+-]?+\.?+[0-9]|{_LITERALS})"
_LINE_KEY: Final = rf"[ \t]*+[\n\r]{ANY_WS}{_KEY}"

LIKELY_KEY: Final = re.compile(_KEY)
QUOTED_KEY: Final = re.compile(rf"{_LIKELY_QUOTED}{ANY_WS}{_LIKELY_COLON}")
QUOTED_ITEM: Final = re.compile(rf"{_LIKELY_QUOTED}{ANY_WS}[,\]]")
ITEM_KEY: Final = re.compile(rf"(?:{_LIKELY_QUOTED}|{_BARE_KEY}(?=: ?[\"\[{{\d])){ANY_WS}:")
"""A key where an item should be."""
FIRST: Final = {
    "key": re.compile(
        rf"{ANY_WS}(?:{_LIKELY_COLON}|->|[,}}\]]|\Z|{_OPEN}|[{{\[]|-?+[0-9]|{_LITERALS})"
    ),
    "object": re.compile(
        rf"{_LINE_KEY}|[ \t]++{_LIKELY_QUOTED}{ANY_WS}[,}}]|{ANY_WS}(?:{_STOP}"
        rf"|{_LIKELY_QUOTED}{ANY_WS}{_LIKELY_COLON}|:"
        rf"|[,;，]{ANY_WS}(?:{_OPEN}|[}}\],;{{]|\Z|{_COMMENT}|{_DOTS}|{_KEY}"
        rf"|{_BARE_KEY}(?:[ ]{_BARE_KEY}){{1,3}}+:|[\w$]++(?:\Z|{ANY_WS}[,}}])))"
    ),
    "array": re.compile(
        rf"[ \t]*+[\n\r]{ANY_WS}{_VALUE_LIKELY}|{ANY_WS}(?:{_STOP}|[{{\[]|:)|[ \t]++{_OPEN}"
        rf"|{ANY_WS}[,;，]{ANY_WS}(?:{_VALUE_LIKELY}|[}}\],;]|\Z|{_COMMENT}|{_DOTS}"
        rf"|[\w$<][^,\"'\n\]]*+[\"']?+[,\]\n]|[\w$]++\Z)|[\"'](?=\w)"
    ),
    "top": re.compile(rf"{ANY_WS}(?:{_STOP}|[,;:)])|[ \t]*+[\n\r]"),
}
"""What most likely follows the first quote that may close a string."""
LATER: Final = {
    "key": re.compile(rf"{ANY_WS}(?:{_LIKELY_COLON}|->)"),
    "object": re.compile(
        rf"{_LINE_KEY}|{ANY_WS}(?:{_STOP}|{_LIKELY_QUOTED}{ANY_WS}{_LIKELY_COLON}"
        rf"|[,;，]{ANY_WS}(?:[}}\]]|\Z|{_COMMENT}|{_DOTS}|{_KEY}|\"[^\"\n]*+\Z))"
    ),
    "array": re.compile(
        rf"{ANY_WS}(?:{_STOP}|[,;，]{ANY_WS}(?:{_VALUE_LIKELY}|[}}\]]|\Z|{_COMMENT}|{_DOTS}))"
    ),
    "top": re.compile(rf"{ANY_WS}(?:\Z|[,;]{ANY_WS}(?:{_OPEN}|\Z)|`{{3}}|\))"),
}
"""The same for every quote after it."""
