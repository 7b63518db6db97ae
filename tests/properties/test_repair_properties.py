"""What must hold for the repair of JSON text of any shape."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from surecall.text import ValueScanner, encode_text, repair_json

quick = settings(max_examples=100, deadline=None)
few = settings(max_examples=60, deadline=None)

any_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
plain_texts = st.text("abcxyz ÄßλЖ01_.-", max_size=12)
words = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
)


def values(texts: st.SearchStrategy[str], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Return JSON values made of these texts and keys."""
    return st.recursive(
        scalars | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )


any_values = values(any_texts, any_texts)
plain_values = st.dictionaries(words, values(plain_texts, words), min_size=1, max_size=4)


def equal(left: Any, right: Any) -> bool:
    """Compare by JSON, so that 1, 1.0 and True differ."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def is_nested_text(value: Any) -> bool:
    """Tell whether a value is text that is itself JSON, which is decoded on purpose."""
    return isinstance(value, str) and value.strip()[:1] in {"{", "[", '"'}


NOTATIONS = {
    "decode_nested_text",
    "drop_comment",
    "drop_parentheses",
    "escape_control_characters",
    "quote_key",
    "replace_literal",
    "replace_quotes",
    "strip_code_fence",
    "strip_invisible",
    "tuple_to_array",
    "unescape_entities",
}
"""Rules that write another notation as JSON; behind others, something may be lost."""


@quick
@given(any_values, st.sampled_from([None, 0, 2]), st.booleans())
def test_valid_json_is_never_altered(value: Any, indent: int | None, ascii_only: bool) -> None:
    """Valid JSON comes back equal and leaves no receipt, however it is written."""
    assume(not is_nested_text(value))
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for given_text in (text, text.encode(), f" \n{text}\t"):
        repaired = repair_json(given_text)
        assert equal(repaired.value, value)
        assert (repaired.state, repaired.receipts, repaired.errors) == ("whole", (), ())


json_like = st.lists(
    st.sampled_from([*"{}[]():,;=\"'`“”‘’«»/\\#*+-.0179eExtfnN_ab \n\t\r\0…", "\ufeff", "é"])
    | st.sampled_from(
        [
            "true",
            "True",
            "None",
            "null",
            "NaN",
            "Infinity",
            "```json\n",
            "```",
            "~~~",
            '"a"',
            '"b":',
            "//x\n",
            "/*",
            "*/",
            "...",
            "{{",
            "}}",
            "'''",
            '"""',
            "0x1F",
            "1e999",
            "\\u00e9",
            "\\x41",
            "Here it is: ",
            "undefined",
            "b'",
            "{'a': 1}",
            '{"a": 1}',
            "[1, 2]",
        ]
    ),
    max_size=24,
).map("".join)


@quick
@given(json_like, st.sampled_from(["refuse", "close"]), st.booleans())
def test_any_text_gives_a_result_that_holds_together(text: str, cut: Any, ended: bool) -> None:
    """Nothing raises; a refusal has a reason and no value; a value can be written as JSON."""
    repaired = repair_json(text, cut=cut, ended=ended)
    assert repaired.state in {"whole", "cut", "unreadable"}
    if repaired.state == "whole":
        assert repaired.errors == ()
        encode_text(repaired.value)
    else:
        assert repaired.errors
        assert repaired.state == "cut" or repaired.value is None
    lossy = {receipt.rule for receipt in repaired.receipts if not receipt.lossless}
    if cut == "refuse" and repaired.state == "whole":
        doubtful = lossy - {"extra_values"}
        assert repaired.certainty == ("likely" if doubtful else "certain")
        others = {receipt.rule for receipt in repaired.receipts} - NOTATIONS
        assert others - lossy <= {"strip_prose", "extra_values"}
    repair_json(text, cut=cut, non_finite="null")


@few
@given(any_values)
def test_a_cut_text_is_never_whole_with_another_value(value: Any) -> None:
    """Who says that the text may be cut gets no value from any start of it but the value."""
    assume(not is_nested_text(value))
    text = json.dumps(value)
    for end in range(len(text)):
        repaired = repair_json(text[:end], ended=False)
        assert repaired.state != "whole" or equal(repaired.value, value), text[:end]


@few
@given(plain_values)
def test_an_ended_text_without_any_closer_is_cut(value: Any) -> None:
    """Without a word about the end, only a text that ends with a bracket may be completed."""
    text = json.dumps(value)
    for end in range(len(text)):
        repaired = repair_json(text[:end])
        if repaired.state == "whole":
            assert text[:end][-1] in "}]"
            assert [receipt.rule for receipt in repaired.receipts] == ["close_missing_brackets"]


@few
@given(st.dictionaries(any_texts, any_values, max_size=4))
def test_closing_a_cut_text_is_marked_as_lossy(value: Any) -> None:
    """A cut value can be closed at every place; it is marked, and its start is kept."""
    text = json.dumps(value)
    for end in range(1, len(text)):
        repaired = repair_json(text[:end], cut="close", ended=False)
        assert repaired.state == "cut"
        saved: Any = repaired.value
        assert isinstance(saved, dict), text[:end]
        assert any(not receipt.lossless for receipt in repaired.receipts)
        assert saved.keys() <= value.keys()


# One corruption for each rule


def dumped(value: Any) -> str:
    """Return compact text with every character as itself."""
    return json.dumps(value, ensure_ascii=False)


STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
KEY = re.compile(r'"([a-z_][a-z0-9_]*)"(?=:)')


def single_quotes(value: Any) -> str:
    """Return text with single quotes around strings."""
    return STRING.sub(lambda match: f"'{match[1]}'", dumped(value))


def smart_quotes(value: Any) -> str:
    """Return text with smart quotes around strings."""
    return STRING.sub(lambda match: f"“{match[1]}”", dumped(value))


def before_closers(text: str, added: str) -> str:
    """Return text with something added before every closer of a container that is not empty."""
    return re.sub(r"(?<=[^\[{])([}\]])", rf"{added}\1", text)


def raw_line_breaks(value: Any) -> str:
    """Return text with line breaks and tabs inside a string."""
    return dumped({"k": value, "note": "one\ntwo\tthree"}).replace("\\n", "\n").replace("\\t", "\t")


def with_note(text: str) -> Callable[[Any], Any]:
    """Return what adds a note to a value."""
    return lambda value: {"k": value, "note": text}


def same(value: Any) -> Any:
    """Return the value."""
    return value


@dataclass(frozen=True)
class Corruption:
    id: str
    damage: Callable[[Any], str]
    rule: str
    meant: Callable[[Any], Any] = same


CORRUPTIONS = [
    Corruption("fence", lambda v: f"```json\n{dumped(v)}\n```", "strip_code_fence"),
    Corruption("fence-tilde", lambda v: f"~~~\n{dumped(v)}\n~~~", "strip_code_fence"),
    Corruption("fence-one-line", lambda v: f"```json {dumped(v)} ```", "strip_code_fence"),
    Corruption("fence-open", lambda v: f"```json\n{dumped(v)}", "strip_code_fence"),
    Corruption("prose", lambda v: f"Sure, here it is: {dumped(v)}\nOK?", "strip_prose"),
    Corruption(
        "line-comments", lambda v: dumped(v).replace(", ", ", // c, d: {\n"), "drop_comment"
    ),
    Corruption("block-comment", lambda v: "/* ' */" + dumped(v) + "# end", "drop_comment"),
    Corruption("single-quotes", single_quotes, "replace_quotes"),
    Corruption("smart-quotes", smart_quotes, "replace_quotes"),
    Corruption("bare-keys", lambda v: KEY.sub(r"\1", dumped(v)), "quote_key"),
    Corruption("trailing-commas", lambda v: before_closers(dumped(v), ", "), "drop_trailing_comma"),
    Corruption("leading-comma", lambda v: "{," + dumped(v)[1:], "drop_extra_comma"),
    Corruption(
        "doubled-comma",
        lambda v: dumped({"k": 1, "v": v}).replace(", ", ",, "),
        "drop_extra_comma",
        lambda v: {"k": 1, "v": v},
    ),
    Corruption(
        "semicolons",
        lambda v: dumped({"k": 1, "v": v}).replace(", ", "; "),
        "replace_comma",
        lambda v: {"k": 1, "v": v},
    ),
    Corruption(
        "no-commas",
        lambda v: json.dumps([v, v, 1], indent=1, ensure_ascii=False).replace(",\n", "\n"),
        "add_missing_comma",
        lambda v: [v, v, 1],
    ),
    Corruption(
        "equals", lambda v: KEY.sub(r'"\1" =', dumped(v)).replace("=:", "="), "replace_colon"
    ),
    Corruption(
        "arrows", lambda v: KEY.sub(r'"\1" =>', dumped(v)).replace("=>:", "=>"), "replace_colon"
    ),
    Corruption("doubled-colons", lambda v: KEY.sub(r'"\1":', dumped(v)), "drop_extra_colon"),
    Corruption(
        "python",
        lambda v: repr({"k": True, "n": None, "v": v}),
        "replace_literal",
        lambda v: {"k": True, "n": None, "v": v},
    ),
    Corruption(
        "raw-line-breaks",
        raw_line_breaks,
        "escape_control_characters",
        with_note("one\ntwo\tthree"),
    ),
    Corruption(
        "inner-quotes",
        lambda v: dumped({"k": v, "note": "he said @hi@ to her"}).replace("@", '"'),
        "escape_inner_quotes",
        with_note('he said "hi" to her'),
    ),
    Corruption(
        "odd-escapes",
        lambda v: dumped({"k": v, "note": "@"}).replace("@", r"it\'s \x41 \d+"),
        "fix_escapes",
        with_note("it's A \\d+"),
    ),
    Corruption("stray-closers", lambda v: dumped(v) + "}}]", "drop_stray_closer"),
    Corruption(
        "missing-closer",
        lambda v: dumped({"k": [v]})[:-1],
        "close_missing_brackets",
        lambda v: {"k": [v]},
    ),
    Corruption(
        "mismatched",
        lambda v: dumped({"k": [v]})[:-2] + "}}",
        "fix_mismatched_closer",
        lambda v: {"k": [v]},
    ),
    Corruption(
        "doubled-braces",
        lambda v: dumped(v).replace("{", "{{").replace("}", "}}"),
        "collapse_doubled_braces",
    ),
    Corruption("tuple", lambda v: f"({dumped(v)}, 1)", "tuple_to_array", lambda v: [v, 1]),
    Corruption("parentheses", lambda v: f"({dumped(v)})", "drop_parentheses"),
    Corruption("twice", lambda v: dumped(v) + dumped(v), "extra_values"),
    Corruption("double-encoding", lambda v: json.dumps(dumped(v)), "decode_nested_text"),
    Corruption(
        "triple-encoding", lambda v: json.dumps(json.dumps(dumped(v))), "decode_nested_text"
    ),
    Corruption(
        "hexadecimal",
        lambda v: f'{{"k": {dumped(v)}, "n": 0x1F}}',
        "rewrite_number",
        lambda v: {"k": v, "n": 31},
    ),
    Corruption("odd-space", lambda v: dumped(v).replace(": ", ":\u00a0"), "strip_invisible"),
]


def damage(case: Corruption, value: Any) -> str:
    """Write a value with the damage of one kind."""
    return case.damage(value)


damaged = st.builds(damage, st.sampled_from(CORRUPTIONS), plain_values)


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda case: case.id)
@settings(max_examples=50, deadline=None)
@given(value=plain_values)
def test_each_corruption_is_repaired_to_the_value(corruption: Corruption, value: Any) -> None:
    """Damage of one kind is undone exactly, and the rule leaves its receipt."""
    if corruption.id == "doubled-braces":
        assume("{}" not in dumped(value))
    text = corruption.damage(value)
    meant = corruption.meant(value)
    assume(text != dumped(meant))
    repaired = repair_json(text)
    assert repaired.state == "whole", (text, repaired.errors)
    assert equal(repaired.value, meant), text
    rules = {receipt.rule for receipt in repaired.receipts}
    assert corruption.rule in rules, text
    is_certain = rules <= NOTATIONS | {"extra_values"}
    assert repaired.certainty == ("certain" if is_certain else "likely")


@quick
@given(json_like | damaged)
def test_repair_is_idempotent(text: str) -> None:
    """What was repaired needs no repair when it is written again."""
    first = repair_json(text)
    if first.state == "whole":
        again = repair_json(encode_text(first.value), nested="keep")
        assert equal(again.value, first.value)
        assert again.receipts == ()


@quick
@given(any_values, st.lists(st.integers(0, 200), max_size=5), st.text("x ,}]\n", max_size=4))
def test_the_scanner_finds_the_same_end_for_every_split(
    value: Any, cuts: list[int], after: str
) -> None:
    """However the text arrives, the value ends where its text ends."""
    head = json.dumps(value)
    assume(isinstance(value, (dict, list, str)))
    text = head + after
    bounds = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    scanner = ValueScanner()
    found = [scanner.feed(text[a:b]) for a, b in pairwise(bounds)]
    assert found[-1] == len(head)
    assert scanner.state == "complete"
