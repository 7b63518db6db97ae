"""One codec decides what is JSON and what is not."""

import datetime
import inspect
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
import pytest

from surecall.base.errors import Code, JSONTextError
from surecall.text import decode, decode_noting, encode, encode_text, repair_surrogates


def refused(call: Callable[[], object]) -> JSONTextError:
    """Return the error that the call raises."""
    with pytest.raises(JSONTextError) as caught:
        call()
    return caught.value


@dataclass(frozen=True)
class Valid:
    id: str
    text: bytes
    value: Any


VALID = [
    Valid("null", b"null", None),
    Valid("true", b"true", True),
    Valid("false", b"false", False),
    Valid("zero", b"0", 0),
    Valid("minus-zero", b"-0", 0),
    Valid("integer", b"-17", -17),
    Valid("beyond-64-bits", b"184467440737095516160", 184467440737095516160),
    Valid("fraction", b"0.25", 0.25),
    Valid("exponent", b"1E5", 100000.0),
    Valid("exponent-plus", b"25e+2", 2500.0),
    Valid("exponent-minus", b"5e-1", 0.5),
    Valid("zero-with-exponent", b"0e999", 0.0),
    Valid("tiny-becomes-zero", b"1e-999", 0.0),
    Valid("largest-float", b"1.7976931348623157e308", 1.7976931348623157e308),
    Valid("empty-string", b'""', ""),
    Valid("simple-escapes", rb'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t'),
    Valid("unicode-escape", rb'"\u00e9"', "é"),
    Valid("unicode-escape-upper-case", rb'"\u00E9"', "é"),
    Valid("escaped-nul", rb'"\u0000"', "\0"),
    Valid("escaped-pair", rb'"\uD83D\ude00"', "😀"),
    Valid("escaped-noncharacter", rb'"\uFFFF"', "\uffff"),
    Valid("raw-noncharacter", b'"\xef\xbf\xbf"', "\uffff"),
    Valid("delete-character", b'"\x7f"', "\x7f"),
    Valid("raw-two-three-four-bytes", '"é€😀"'.encode(), "é€😀"),
    Valid("line-separator", '"\u2028"'.encode(), "\u2028"),
    Valid("inner-byte-order-mark", '"\ufeff"'.encode(), "\ufeff"),
    Valid("empty-array", b"[]", []),
    Valid("spaced-empty-array", b"[ \t\r\n]", []),
    Valid("array", b'[1,"a",null]', [1, "a", None]),
    Valid("empty-object", b"{}", {}),
    Valid("empty-key", b'{"":1}', {"": 1}),
    Valid("escaped-key", rb'{"\u0061":1}', {"a": 1}),
    Valid("nested", b'{"a":[{"b":[]}]}', {"a": [{"b": []}]}),
    Valid("last-key-wins", b'{"a":1,"a":2}', {"a": 2}),
    Valid("whitespace-around", b" \t\r\n[1 , 2]\n", [1, 2]),
    Valid("byte-order-mark", b"\xef\xbb\xbf[1]", [1]),
    Valid("deepest", b"[" * 128 + b"]" * 128, None),
    Valid("deepest-objects", b'{"a":' * 128 + b"1" + b"}" * 128, None),
    Valid("many-flat-containers", b"[" + b"[]," * 300 + b"[]]", [[]] * 301),
    Valid("brackets-in-text", b'"' + b"[" * 300 + b'"', "[" * 300),
]


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.id)
@pytest.mark.parametrize("kind", ["bytes", "text"])
def test_valid_json_is_read(case: Valid, kind: str) -> None:
    """Every form the standard allows gives its value, from bytes and from text."""
    value = decode(case.text if kind == "bytes" else case.text.decode())
    if case.value is None and case.text != b"null":
        assert encode(value) == case.text
        return
    assert value == case.value
    assert type(value) is type(case.value)


@dataclass(frozen=True)
class Invalid:
    id: str
    text: bytes
    code: Code = Code.INVALID_JSON
    position: int | None = None


FAR_IN = b'["' + b"a" * 300_000 + b'",' + b"[" * 200 + b"]" * 201

INVALID = [
    Invalid("empty", b"", position=0),
    Invalid("blank", b" \n\t\r", position=0),
    Invalid("only-a-mark", b"\xef\xbb\xbf", position=3),
    Invalid("two-marks", b"\xef\xbb\xbf\xef\xbb\xbf1", position=3),
    Invalid("mark-inside", b"[\xef\xbb\xbf1]", position=1),
    Invalid("two-values", b"1 2", position=2),
    Invalid("extra-bracket", b"[1]]", position=3),
    Invalid("trailing-nul", b"[1]\0", position=3),
    Invalid("open-array", b"[1", position=2),
    Invalid("open-object", b'{"a":1', position=6),
    Invalid("open-string", b'["abc', position=1),
    Invalid("open-escape", b'"abc\\', position=0),
    Invalid("wrong-closer", b"[1}", position=2),
    Invalid("trailing-comma-array", b"[1,]"),
    Invalid("trailing-comma-object", b'{"a":1,}'),
    Invalid("leading-comma", b"[,1]", position=1),
    Invalid("double-comma", b"[1,,2]", position=3),
    Invalid("missing-comma", b"[1 2]", position=3),
    Invalid("missing-colon", b'{"a" 1}', position=5),
    Invalid("missing-value", b'{"a":}', position=5),
    Invalid("double-colon", b'{"a"::1}', position=5),
    Invalid("bare-key", b"{a:1}", position=1),
    Invalid("number-key", b"{1:2}", position=1),
    Invalid("single-quotes", b"{'a':1}", position=1),
    Invalid("comment", b"[1] // one", position=4),
    Invalid("block-comment", b"[/* one */1]", position=1),
    Invalid("leading-zero", b"01", position=1),
    Invalid("minus-leading-zero", b"-012", position=2),
    Invalid("plus", b"+1", position=0),
    Invalid("bare-minus", b"-", position=0),
    Invalid("bare-point", b".5", position=0),
    Invalid("ending-point", b"1.", position=1),
    Invalid("point-before-exponent", b"1.e5", position=1),
    Invalid("empty-exponent", b"1e", position=1),
    Invalid("hexadecimal", b"0x1F", position=1),
    Invalid("underscore", b"1_000", position=1),
    Invalid("full-width-digit", "１".encode(), position=0),
    Invalid("arabic-digit-inside", "1٢".encode(), position=1),
    Invalid("python-none", b"None", position=0),
    Invalid("upper-case-true", b"True", position=0),
    Invalid("lower-case-nan", b"nan", position=0),
    Invalid("cut-literal", b"nul", position=0),
    Invalid("glued-literal", b"nullx", position=4),
    Invalid("undefined", b'{"a":undefined}', position=5),
    Invalid("form-feed", b"\x0c1", position=0),
    Invalid("no-break-space", "\u00a01".encode(), position=0),
    Invalid("raw-newline", b'"a\nb"', position=2),
    Invalid("raw-tab", b'"\t"', position=1),
    Invalid("raw-nul", b'"ab\0"', position=3),
    Invalid("raw-escape-character", b'"\x1b[0m"', position=1),
    Invalid("unknown-escape", rb'"\x41"', position=1),
    Invalid("short-unicode-escape", rb'"\u12"'),
    Invalid("bad-unicode-escape", rb'"\u00g0"'),
    Invalid("position-counts-bytes", '["é" x]'.encode(), position=6),
    Invalid("lone-continuation", b'"\x80"', Code.INVALID_UTF8, 1),
    Invalid("overlong-slash", b'"\xc0\xaf"', Code.INVALID_UTF8, 1),
    Invalid("overlong-nul", b'"a\xc0\x80"', Code.INVALID_UTF8, 2),
    Invalid("encoded-surrogate", b'"\xed\xa0\x80"', Code.INVALID_UTF8, 1),
    Invalid("above-unicode", b'"\xf4\x90\x80\x80"', Code.INVALID_UTF8, 1),
    Invalid("cut-sequence", b'"\xe2\x82"', Code.INVALID_UTF8, 1),
    Invalid("latin-1", b'"caf\xe9"', Code.INVALID_UTF8, 4),
    Invalid("bad-byte-in-key", b'{"\xff":1}', Code.INVALID_UTF8, 2),
    Invalid("bad-byte-outside", b"[1]\xff", Code.INVALID_UTF8, 3),
    Invalid("utf-16", "[1]".encode("utf-16"), Code.INVALID_UTF8, 0),
    Invalid("nan", b'{"a":NaN}', Code.NON_FINITE_NUMBER, 5),
    Invalid("infinity", b"[Infinity]", Code.NON_FINITE_NUMBER, 1),
    Invalid("minus-infinity", b'["NaN", -Infinity]', Code.NON_FINITE_NUMBER, 8),
    Invalid("too-large", b"[1, 1e400]", Code.NON_FINITE_NUMBER, 4),
    Invalid("too-small", b"-1e400", Code.NON_FINITE_NUMBER, 0),
    Invalid("too-large-by-digits", b"9" * 400 + b".0", Code.NON_FINITE_NUMBER, 0),
    Invalid("just-too-large", b"1.7976931348623159e308", Code.NON_FINITE_NUMBER, 0),
    Invalid("4301-digits", b"[" + b"9" * 4301 + b"]", Code.NUMBER_TOO_LONG, 1),
    Invalid("minus-4301-digits", b"-" + b"9" * 4301, Code.NUMBER_TOO_LONG, 0),
    Invalid("million-digits", b"7" * 1_000_000, Code.NUMBER_TOO_LONG, 0),
    Invalid("too-deep", b"[" * 129 + b"]" * 129, Code.JSON_TOO_DEEP, 128),
    Invalid("too-deep-objects", b'{"a":' * 129 + b"1" + b"}" * 129, Code.JSON_TOO_DEEP, 640),
    Invalid("too-deep-and-open", b"[" * 129, Code.JSON_TOO_DEEP, 128),
    Invalid("floods-of-brackets", b"[" * 100_000, Code.JSON_TOO_DEEP, 128),
    Invalid("floods-closed", b"[" * 100_000 + b"]" * 100_000, Code.JSON_TOO_DEEP, 128),
    Invalid("floods-of-objects", b'{"a":' * 100_000, Code.JSON_TOO_DEEP, 640),
    Invalid("too-deep-after-text", b'["[[[",' + b"[" * 129, Code.JSON_TOO_DEEP, 134),
    Invalid("too-deep-far-in", FAR_IN, Code.JSON_TOO_DEEP),
    Invalid("lone-high", rb'"a\ud800"', Code.LONE_SURROGATE, 2),
    Invalid("lone-low", rb'"\uDE00"', Code.LONE_SURROGATE, 1),
    Invalid("two-highs", rb'"\ud83d\ud83d\ude00"', Code.LONE_SURROGATE, 1),
    Invalid("swapped-pair", rb'"\ude00\ud83d"', Code.LONE_SURROGATE, 1),
    Invalid("lone-in-key", rb'{"\ud800":1}', Code.LONE_SURROGATE, 2),
    Invalid("lone-after-backslash", rb'"\\ud83d\ude00"', Code.LONE_SURROGATE, 8),
]


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.id)
def test_invalid_json_is_refused_with_code_and_place(case: Invalid) -> None:
    """Everything else is refused; the code says why and the position where."""
    error = refused(lambda: decode(case.text))
    assert error.code == case.code
    if case.position is not None:
        assert error.position == case.position
    assert len(str(error)) < 300
    str(error).encode("utf-8")


@pytest.mark.parametrize("case", [case for case in INVALID if case.code != Code.INVALID_UTF8])
def test_text_and_bytes_are_refused_alike(case: Invalid) -> None:
    """The same text as `str` is refused with the same code."""
    assert refused(lambda: decode(case.text.decode())).code == case.code


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"", "the text is empty.", id="empty"),
        pytest.param(b"  ", "the text is only whitespace.", id="blank"),
        pytest.param(
            b"[1,2,x]", "found 'x' where a value should be, at byte 5 near '[1,2,x]'.", id="value"
        ),
        pytest.param(
            "é x", "found 'é' where a value should be, at character 0 near 'é x'.", id="text"
        ),
        pytest.param(
            b"[1", "the text ends where a ',' or a closing bracket should be, at byte 2 near '[1'.",
            id="end",
        ),
        pytest.param(
            b'{"a" 1}', "found '1' where a ':' should be, at byte 5 near '{\"a\" 1}'.", id="colon"
        ),
        pytest.param(
            b"{x}", "found 'x' where a key in double quotes should be, at byte 1 near '{x}'.",
            id="key",
        ),
        pytest.param(
            b"[] x", "found 'x' after the end of the value, at byte 3 near '[] x'.", id="more"
        ),
        pytest.param(
            b'"\n"',
            "a raw control character U+000A inside a string, at byte 1 near '\"\\n\"'.",
            id="control",
        ),
        pytest.param(
            b'"ab', "a string starts here and never ends, at byte 0 near '\"ab'.", id="open-string"
        ),
        pytest.param(b"\xff", "byte 0 (0xFF) is not valid UTF-8.", id="utf-8"),
    ],
)  # fmt: skip
def test_messages_are_plain_words(text: bytes | str, message: str) -> None:
    """A message says what was found, what should be there, and where."""
    assert refused(lambda: decode(text)).message == message


def test_snippets_are_short() -> None:
    """Only the surroundings of the fault are shown, however long the text."""
    error = refused(lambda: decode("[" + '"aaaa",' * 10_000 + "x" + ',"bbbb"' * 10_000))
    assert error.message.count("aaaa") < 6
    assert "…" in error.message
    assert error.position == 70_001


def test_position_counts_the_dropped_mark() -> None:
    """Positions refer to the input as given, with its byte order mark."""
    assert refused(lambda: decode(b"\xef\xbb\xbf[x]")).position == 4
    assert refused(lambda: decode("\ufeff[x]")).position == 2


def test_text_may_start_with_a_mark() -> None:
    """U+FEFF at the start of text is dropped like the bytes are."""
    assert decode('\ufeff{"a":1}') == {"a": 1}


@pytest.mark.parametrize("digits", [23, 640, 4300])
def test_long_integers_are_exact(digits: int) -> None:
    """Integers up to 4,300 digits survive both ways, with either sign."""
    number = int("1234567890" * 430) % 10**digits
    for value in (number, -number, 10**digits - 1, 1 - 10**digits):
        assert decode(encode(value)) == value


def test_a_lower_digit_limit_of_the_program_is_a_coded_refusal() -> None:
    """A program that allows fewer digits gets our error, not a bare one."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert refused(lambda: decode(b"9" * 700)).code == Code.NUMBER_TOO_LONG
    finally:
        sys.set_int_max_str_digits(before)


def test_numbers_keep_their_kind() -> None:
    """A number with a point or an exponent is a float, any other an int."""
    assert [type(item) for item in decode(b"[1, 1.0, 1e0, -0, -0.0]")] == [
        int,
        float,
        float,
        int,
        float,
    ]


@pytest.mark.parametrize(
    ("data", "max_bytes", "is_refused"),
    [
        pytest.param(b'"abc"', 5, False, id="bytes-at-the-limit"),
        pytest.param(b'"abc"', 4, True, id="bytes-over"),
        pytest.param('"abc"', 5, False, id="text-at-the-limit"),
        pytest.param('"abc"', 4, True, id="text-over"),
        pytest.param('"éé"', 6, False, id="wide-text-at-the-limit"),
        pytest.param('"éé"', 5, True, id="wide-text-over"),
        pytest.param('"😀"', 6, False, id="widest-text-at-the-limit"),
        pytest.param('"😀"', 5, True, id="widest-text-over"),
        pytest.param('"' + "😀" * 10 + '"', 42, False, id="many-wide-at-the-limit"),
        pytest.param('"' + "😀" * 10 + '"', 41, True, id="many-wide-over"),
        pytest.param("not json", 3, True, id="size-comes-before-syntax"),
    ],
)
def test_size_is_measured_in_bytes_before_reading(
    data: bytes | str, max_bytes: int, is_refused: bool
) -> None:
    """`max_bytes` counts UTF-8 bytes, whatever the input is."""
    if is_refused:
        error = refused(lambda: decode(data, max_bytes=max_bytes))
        assert error.code == Code.JSON_TOO_LARGE
        assert f"{max_bytes} bytes" in error.message
    else:
        assert isinstance(decode(data, max_bytes=max_bytes), str)


@dataclass(frozen=True)
class Halves:
    id: str
    text: bytes | str
    replaced: Any
    kept: Any


HALVES = [
    Halves("lone-high", rb'"a\ud83d"', "a\ufffd", "a\ud83d"),
    Halves("lone-low", rb'"\ude00b"', "\ufffdb", "\ude00b"),
    Halves("low-high", rb'"\ude00\ud83d"', "\ufffd\ufffd", "\ude00\ud83d"),
    Halves("high-pair", rb'"\ud83d\ud83d\ude00"', "\ufffd😀", "\ud83d😀"),
    Halves("backslash-then-low", rb'"\\ud83d\ude00"', "\\ud83d\ufffd", "\\ud83d\ude00"),
    Halves("key", rb'{"\ud800":[1]}', {"\ufffd": [1]}, {"\ud800": [1]}),
    Halves("question-mark", rb'["?\ud83d?"]', ["?\ufffd?"], ["?\ud83d?"]),
    Halves("raw-in-text", '"x\ud83d"', "x\ufffd", "x\ud83d"),
    Halves("raw-pair-in-text", '"\ud83d\ude00"', "😀", "\ud83d\ude00"),
    Halves("whole-pair", rb'"\ud83d\ude00"', "😀", "😀"),
    Halves("escaped-backslash-only", rb'"\\ud83d"', "\\ud83d", "\\ud83d"),
    Halves("with-a-mark", '\ufeff"\\ud800"', "\ufffd", "\ud800"),
]


@pytest.mark.parametrize("case", HALVES, ids=lambda case: case.id)
def test_lone_surrogates_are_replaced_or_kept_on_request(case: Halves) -> None:
    """The caller decides what becomes of half a pair; whole pairs are always joined."""
    assert decode(case.text, surrogates="replace") == case.replaced
    assert decode(case.text, surrogates="keep") == case.kept


def test_replaced_keys_that_collide_are_noted() -> None:
    """Two keys that become the same by replacement do not vanish unseen."""
    noted = decode_noting(rb'{"\ud800":1,"\ud801":2}', surrogates="replace")
    assert noted == ({"\ufffd": 2}, ("/\ufffd",))


@pytest.mark.parametrize("policy", ["replace", "keep"])
def test_other_rules_hold_whatever_the_surrogate_policy(policy: Any) -> None:
    """Asking for surrogates does not open another door."""
    half = rb'"\ud800"'
    for text, code in [
        (b"[" * 129 + half + b"]" * 129, Code.JSON_TOO_DEEP),
        (b"[" + half + b",NaN]", Code.NON_FINITE_NUMBER),
        (b"[" + half + b"," + b"1" * 4301 + b"]", Code.NUMBER_TOO_LONG),
        (b"[" + half + b",]", Code.INVALID_JSON),
        (b"[" + half + b',"\xff"]', Code.INVALID_UTF8),
    ]:
        assert refused(lambda text=text: decode(text, surrogates=policy)).code == code


_NONCHARACTERS = "".join(map(chr, range(0xFDD0, 0xFDF0)))


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        pytest.param("plain", "plain", id="ascii"),
        pytest.param("é😀", "é😀", id="whole"),
        pytest.param("\ud83d\ude00", "😀", id="pair"),
        pytest.param("a\ud83d", "a\ufffd", id="high"),
        pytest.param("\ude00\ud83d\ud83d\ude00", "\ufffd\ufffd😀", id="mixed"),
        pytest.param("\ufdd0?\ud83d", "\ufdd0?\ufffd", id="question-mark"),
        pytest.param(_NONCHARACTERS + "?\ud83d", _NONCHARACTERS + "?\ufffd", id="noncharacters"),
    ],
)
def test_mending_joins_pairs_and_replaces_the_rest(text: str, mended: str) -> None:
    """Text put together from stream deltas becomes writable text."""
    assert repair_surrogates(text) == mended
    mended.encode("utf-8")


def test_a_pair_cut_between_two_events_is_whole_again() -> None:
    """Kept halves of two deltas join when the deltas are put together."""
    text = decode(rb'"\ud83d"', surrogates="keep") + decode(rb'"\ude00"', surrogates="keep")
    assert repair_surrogates(text) == "😀"


@dataclass(frozen=True)
class Duplicates:
    id: str
    text: str
    value: Any
    pointers: tuple[str, ...]


DUPLICATES = [
    Duplicates("none", '{"a":1,"b":2}', {"a": 1, "b": 2}, ()),
    Duplicates("scalar", '"a:b:c"', "a:b:c", ()),
    Duplicates("top", '{"a":1,"a":2}', {"a": 2}, ("/a",)),
    Duplicates("same-value", '{"a":1,"a":1}', {"a": 1}, ()),
    Duplicates("same-object-other-order", '{"a":{"x":1,"y":2},"a":{"y":2,"x":1}}',
               {"a": {"y": 2, "x": 1}}, ()),
    Duplicates("int-and-float-differ", '{"a":1,"a":1.0}', {"a": 1.0}, ("/a",)),
    Duplicates("number-and-boolean-differ", '{"a":1,"a":true}', {"a": True}, ("/a",)),
    Duplicates("three-times", '{"a":1,"a":2,"a":1}', {"a": 1}, ("/a",)),
    Duplicates("nested", '[{"x":{"b/c":1,"b/c":2}}]', [{"x": {"b/c": 2}}], ("/0/x/b~1c",)),
    Duplicates("escaped-key", r'{"a":1,"\u0061":2}', {"a": 2}, ("/a",)),
    Duplicates("colons-in-text", '{"a":"::","b:c":":"}', {"a": "::", "b:c": ":"}, ()),
    Duplicates("escaped-colon-hides-the-loss", r'{"a":"x","a":"\u003a"}', {"a": ":"}, ("/a",)),
    Duplicates("escaped-colon-upper-case", r'{"a":"x","a":"\u003A"}', {"a": ":"}, ("/a",)),
    Duplicates("escaped-colon-alone", r'"\u003a"', ":", ()),
    Duplicates("colon-key-dropped", '{"a:b":1,"a:b":2}', {"a:b": 2}, ("/a:b",)),
    Duplicates("in-an-overwritten-value", '{"a":{"x":1,"x":2},"a":{"x":2}}', {"a": {"x": 2}},
               ("/a/x",)),
    Duplicates("in-order", '{"b":{"c":1,"c":2},"a":1,"a":2}', {"b": {"c": 2}, "a": 2},
               ("/a", "/b/c")),
    Duplicates("with-a-mark", '\ufeff{"a":1,"a":2}', {"a": 2}, ("/a",)),
    Duplicates("empty-key", '{"":1,"":2}', {"": 2}, ("/",)),
]  # fmt: skip


@pytest.mark.parametrize("case", DUPLICATES, ids=lambda case: case.id)
@pytest.mark.parametrize("kind", ["bytes", "text"])
def test_keys_with_differing_values_are_noted(case: Duplicates, kind: str) -> None:
    """The last value wins, and the pointer of each contradicted key is told."""
    data = case.text.encode() if kind == "bytes" else case.text
    assert decode_noting(data) == (case.value, case.pointers)


def test_kept_surrogates_do_not_hide_duplicates() -> None:
    """Halves of pairs in values are compared like any text."""
    text = r'{"a":"\ud800","b":"\ud800","a":"\ud801","b":"\ud800"}'
    noted = decode_noting(text, surrogates="keep")
    assert noted.value == {"a": "\ud801", "b": "\ud800"}
    assert noted.duplicates == ("/a",)


def test_noting_refuses_what_decoding_refuses() -> None:
    """Both doors have the same lock."""
    assert refused(lambda: decode_noting(b"[1,]")).code == Code.INVALID_JSON
    assert refused(lambda: decode_noting(b"[1]", max_bytes=2)).code == Code.JSON_TOO_LARGE
    assert refused(lambda: decode_noting(rb'"\ud800"')).code == Code.LONE_SURROGATE


def test_no_recursion_error_leaves_when_the_stack_is_nearly_used_up() -> None:
    """A caller deep in its own recursion gets a coded error for a value that needs more."""

    def descend(levels: int) -> str:
        if levels:
            return descend(levels - 1)
        try:
            return type(decode(b"[" * 120 + b"]" * 120)).__name__
        except JSONTextError as error:
            return error.code

    depth = len(inspect.stack(0))
    outcomes = {descend(sys.getrecursionlimit() - depth - spare) for spare in (40, 60, 80, 100)}
    # Newer interpreters count the stack of C code apart, and read the value.
    assert outcomes in ({Code.JSON_TOO_DEEP}, {"list"})


@pytest.mark.parametrize("data", [None, 5, ["[]"], memoryview(b"[]")])
def test_only_bytes_and_text_are_read(data: Any) -> None:
    """Anything else is a mistake of the program."""
    with pytest.raises(TypeError, match="must be bytes or str"):
        decode(data)


class Colour(Enum):
    RED = "red"


class Point(msgspec.Struct):
    x: Any


@dataclass
class Place:
    name: Any


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(None, "null", id="null"),
        pytest.param({"a": [1, 2.5, "é", True]}, '{"a":[1,2.5,"é",true]}', id="compact"),
        pytest.param({"b": 1, "a": 2}, '{"b":1,"a":2}', id="order-is-kept"),
        pytest.param((1, 2), "[1,2]", id="tuple"),
        pytest.param({1: "a"}, '{"1":"a"}', id="number-key"),
        pytest.param("\0\n\"\\", r'"\u0000\n\"\\"', id="escapes"),
        pytest.param(1.0, "1.0", id="float-stays-float"),
        pytest.param(Point([Place("x")]), '{"x":[{"name":"x"}]}', id="records"),
        pytest.param(Colour.RED, '"red"', id="enum"),
        pytest.param(uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"', id="uuid"),
        pytest.param(datetime.date(2024, 2, 29), '"2024-02-29"', id="date"),
        pytest.param([None, "null", Point(None)], '[null,"null",{"x":null}]', id="honest-nulls"),
    ],
)  # fmt: skip
def test_values_are_written_compactly(value: Any, text: str) -> None:
    """Bytes and text are the same compact JSON."""
    assert encode_text(value) == text
    assert encode(value) == text.encode("utf-8")


def loop() -> list[Any]:
    """Return a list that contains itself."""
    items: list[Any] = [1]
    items.append({"again": items})
    return items


def tower(height: int) -> Any:
    """Return that many lists in one another."""
    value: Any = 1
    for _ in range(height):
        value = [value]
    return value


@dataclass(frozen=True)
class Unwritable:
    id: str
    value: Any
    code: Code
    words: str


SHARED: list[int] = [1]

UNWRITABLE = [
    Unwritable("nan", float("nan"), Code.NON_FINITE_NUMBER, "the number is nan"),
    Unwritable("infinity", {"a": [1, float("inf")]}, Code.NON_FINITE_NUMBER, "at '/a/1' is inf"),
    Unwritable("in-a-struct", [Point(float("nan"))], Code.NON_FINITE_NUMBER, "at '/0/x' is nan"),
    Unwritable(
        "in-a-dataclass", Place(-float("inf")), Code.NON_FINITE_NUMBER, "at '/name' is -inf"
    ),
    Unwritable("in-a-set", {float("nan")}, Code.NON_FINITE_NUMBER, "is nan"),
    Unwritable("surrogate", ["a", "\ud800"], Code.LONE_SURROGATE, "the text at '/1' has half"),
    Unwritable("surrogate-key", {"a": {"\ud800": 1}}, Code.LONE_SURROGATE, "the text at '/a' has"),
    Unwritable("object", {"a": [object()]}, Code.NOT_SERIALIZABLE, "type object at '/a/0' cannot"),
    Unwritable("function", len, Code.NOT_SERIALIZABLE, "type builtin_function_or_method cannot"),
    Unwritable(
        "in-a-record", [Point(object())], Code.NOT_SERIALIZABLE, "type Point at '/0' cannot"
    ),
    Unwritable("tuple-key", {"a": {(1, 2): 3}}, Code.NOT_SERIALIZABLE, "type tuple at '/a' cannot"),
    Unwritable("none-key", {None: 3}, Code.NOT_SERIALIZABLE, "type NoneType cannot"),
    Unwritable("long-integer", [10**4300], Code.NUMBER_TOO_LONG, "the integer at '/0' has more"),
    Unwritable("loop", loop(), Code.JSON_TOO_DEEP, "contains itself"),
    Unwritable("shared-then-loop", [[[]] * 2, loop()], Code.JSON_TOO_DEEP, "contains itself"),
    Unwritable("tower", tower(100_000), Code.JSON_TOO_DEEP, "nested too deep"),
    Unwritable("shared-tower", [*[SHARED] * 2, tower(50_000)], Code.JSON_TOO_DEEP, "too deep"),
]


@pytest.mark.parametrize("case", UNWRITABLE, ids=lambda case: case.id)
def test_unwritable_values_are_refused_with_code_and_place(case: Unwritable) -> None:
    """What JSON cannot say is never written as something else."""
    for write in (encode, encode_text):
        error = refused(lambda write=write: write(case.value))
        assert error.code == case.code
        assert case.words in error.message
        assert error.hint


def test_values_met_twice_are_no_loop() -> None:
    """The same container in two places is written twice."""
    shared = [1]
    assert encode([shared, shared]) == b"[[1],[1]]"


def test_repeated_keys_around_repeated_keys_are_told_apart() -> None:
    """A value is the same JSON or it is not, however deep the difference stands."""
    same = '{"a": {"b": [1, {"c": 2.5}]}, "a": {"b": [1, {"c": 2.5}]}}'
    assert decode_noting(same).duplicates == ()
    other = '{"a": {"b": [1, {"c": 2.5}]}, "a": {"b": [1, {"c": 2}]}, "d": 1, "d": true}'
    assert decode_noting(other).duplicates == ("/a", "/d")
    inner = '{"a": {"b": 1, "b": 2}, "a": {"b": 2}, "c": [{"x": 1, "x": 1.0}]}'
    assert decode_noting(inner).duplicates == ("/a/b", "/c/0/x")


def test_very_many_repeated_keys_are_still_noted() -> None:
    """The first are named, and those around them are among them."""
    text = '{"a": {"b": 1, "b": 2},' + '"c": {"b": 1, "b": 2},' * 300 + '"c": 3}'
    found = decode_noting(text).duplicates
    assert found[:3] == ("/c", "/a/b", "/c/b")
