"""Damaged JSON is repaired when it can be read in one way, and refused when it cannot."""

from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import Code
from surecall.text import repair_json


@dataclass(frozen=True)
class Case:
    id: str
    text: str
    value: Any
    rules: tuple[str, ...]
    lossless: tuple[str, ...] = ()
    """Rules that lose nothing here, though they may elsewhere."""


ONE = {"a": 1}
NOTATIONS = {
    "decode_nested_text",
    "drop_comment",
    "drop_parentheses",
    "escape_control_characters",
    "extra_values",
    "quote_key",
    "replace_literal",
    "replace_quotes",
    "strip_code_fence",
    "strip_invisible",
    "tuple_to_array",
    "unescape_entities",
}
"""Rules that write another notation as JSON: nothing is missing, wrong or left over."""

ENTITIES = ("unescape_entities",)
REPAIRED = [
    # around the value
    Case("fence", '```json\n{"a": 1}\n```', ONE, ("strip_code_fence",)),
    Case(
        "fence-in-prose",
        'Hi:\n```\n{"a": 1}\n```\nok',
        ONE,
        ("strip_code_fence", "strip_prose"),
        ("strip_prose",),
    ),
    Case(
        "fence-tilde", '~~~json5\n{"a": 1,}\n~~~', ONE, ("strip_code_fence", "drop_trailing_comma")
    ),
    Case("fence-one-line", '```json {"a": 1} ```', ONE, ("strip_code_fence",)),
    Case("fence-without-end", '```json\n{"a": 1}', ONE, ("strip_code_fence",)),
    Case(
        "fence-around-a-scalar", "```json\nTrue\n```", True, ("strip_code_fence", "replace_literal")
    ),
    Case(
        "fence-proves-the-end",
        '```\n{"a": "x"\n```',
        {"a": "x"},
        ("strip_code_fence", "close_missing_brackets"),
    ),
    Case(
        "fence-in-a-string",
        '{"a": "```json\\n{}\\n```",}',
        {"a": "```json\n{}\n```"},
        ("drop_trailing_comma",),
    ),
    Case("prose", 'Here you go: {"a": 1}. Done!', ONE, ("strip_prose",)),
    Case("prose-with-brackets", 'As [see] and {x} say: {"a": 1}', ONE, ("strip_prose",)),
    Case("empty-object-after-colon", "Arguments: {}", {}, ("strip_prose",), ("strip_prose",)),
    Case("stray-closers", '{"a": 1}}]', ONE, ("drop_stray_closer",)),
    Case("semicolon-at-the-end", '{"a": 1};', ONE, ("drop_extra_comma",)),
    Case("javascript-parentheses", '({"a": 1})', ONE, ("drop_parentheses",)),
    Case("odd-blanks", '\u00a0{"a":\u200b1}', ONE, ("strip_invisible",)),
    # comments
    Case("comments", '{// x\n"a": /* y */ 1 # z\n}', ONE, ("drop_comment",)),
    Case("comment-before", '// c\n{"a": 1}', ONE, ("drop_comment",)),
    # quotes
    Case("single-quotes", "{'a': 'it\\'s'}", {"a": "it's"}, ("replace_quotes",)),
    Case(
        "apostrophe",
        "{'a': 'it's', 'b': 2}",
        {"a": "it's", "b": 2},
        ("replace_quotes", "escape_inner_quotes"),
    ),
    Case("smart-quotes", "{“a”: „x“, ‘b’: «y»}", {"a": "x", "b": "y"}, ("replace_quotes",)),
    Case(
        "backticks", "{`a`: `x\ny`}", {"a": "x\ny"}, ("replace_quotes", "escape_control_characters")
    ),
    Case(
        "bare-keys",
        "{a: 1, $b_2: 2, c-d: 3, 4: 5}",
        {"a": 1, "$b_2": 2, "c-d": 3, "4": 5},
        ("quote_key",),
    ),
    Case(
        "bare-text",
        "{a: hello world, b: [x, y z]}",
        {"a": "hello world", "b": ["x", "y z"]},
        ("quote_key", "quote_bare_text"),
    ),
    Case(
        "bare-dates",
        '{"a": 2024-01-31, "b": 1.2.3}',
        {"a": "2024-01-31", "b": "1.2.3"},
        ("quote_bare_text",),
    ),
    Case(
        "no-closing-quote-of-a-key",
        '{"a: 1, "b": 2}',
        {"a": 1, "b": 2},
        ("add_missing_closing_quote",),
    ),
    Case(
        "no-closing-quote", '{"a": "x, "b": 2}', {"a": "x", "b": 2}, ("add_missing_closing_quote",)
    ),
    Case("no-opening-quote-of-a-key", '{a": 1}', ONE, ("add_missing_opening_quote",)),
    Case("no-opening-quote", '{"a": x"}', {"a": "x"}, ("add_missing_opening_quote",)),
    Case(
        "inner-quotes",
        '{"a": "he said "hi" to me", "b": 2}',
        {"a": 'he said "hi" to me', "b": 2},
        ("escape_inner_quotes",),
    ),
    Case(
        "inner-quotes-and-comma",
        '{"a": "he said "x", then left"}',
        {"a": 'he said "x", then left'},
        ("escape_inner_quotes",),
    ),
    Case(
        "inner-quotes-at-the-end",
        '{"a": "echo "x y"", "b": 2}',
        {"a": 'echo "x y"', "b": 2},
        ("escape_inner_quotes",),
    ),
    Case(
        "inner-quotes-in-an-array",
        '["say "hi" now", "b"]',
        ['say "hi" now', "b"],
        ("escape_inner_quotes",),
    ),
    Case(
        "triple-quotes",
        '{"a": """x "y"\nz"""}',
        {"a": 'x "y"\nz'},
        ("replace_quotes", "escape_control_characters"),
    ),
    # inside strings
    Case(
        "raw-breaks", '{"a": "x\ny\tz\x01"}', {"a": "x\ny\tz\x01"}, ("escape_control_characters",)
    ),
    Case(
        "odd-escapes",
        r'{"a": "\x41 \' \d C:\Windows \u{1F600} \0"}',
        {"a": "A ' \\d C:\\Windows 😀 \0"},
        ("fix_escapes",),
    ),
    Case(
        "windows-path",
        r'{"a": "C:\Users\name\file"}',
        {"a": r"C:\Users\name\file"},
        ("fix_escapes",),
    ),
    Case("share", r'{"a": "\\host\share\new"}', {"a": r"\\host\share\new"}, ("fix_escapes",)),
    Case("word-boundary", r'{"a": "\bx\d+\b"}', {"a": r"\bx\d+\b"}, ("fix_escapes",)),
    Case("formula", r'{"a": "\frac{1}{2} \alpha"}', {"a": r"\frac{1}{2} \alpha"}, ("fix_escapes",)),
    Case(
        "code", r'{"a": "x\nre.match(r\"\d+\")"}', {"a": 'x\nre.match(r"\\d+")'}, ("fix_escapes",)
    ),
    Case("line-continuation", '{"a": "x\\\ny"}', {"a": "xy"}, ("fix_escapes",)),
    Case("long-escape", "['\\U0001F600']", ["😀"], ("replace_quotes", "fix_escapes")),
    # commas and colons
    Case(
        "trailing-commas",
        '{"a": [1, 2,], "b": 3,}',
        {"a": [1, 2], "b": 3},
        ("drop_trailing_comma",),
    ),
    Case("extra-commas", "[1,,2,,]", [1, 2], ("drop_extra_comma", "drop_trailing_comma")),
    Case(
        "missing-commas",
        '{"a": 1 "b": true\n"c": {} "d": "x" "e": 2}',
        {"a": 1, "b": True, "c": {}, "d": "x", "e": 2},
        ("add_missing_comma",),
    ),
    Case(
        "missing-commas-in-an-array",
        '[{"a": 1} {"b": 2}\n"x" "y"\n3\n4]',
        [{"a": 1}, {"b": 2}, "x", "y", 3, 4],
        ("add_missing_comma",),
    ),
    Case(
        "semicolons",
        '{"a": 1; "b": 2;}',
        {"a": 1, "b": 2},
        ("replace_comma", "drop_trailing_comma"),
    ),
    Case(
        "equals-and-arrows", '{"a" = 1, b => 2}', {"a": 1, "b": 2}, ("replace_colon", "quote_key")
    ),
    Case("extra-colon", '{"a":: 1}', ONE, ("drop_extra_colon",)),
    Case(
        "missing-colon",
        '{"a" 1, "b" "x", "c" [2]}',
        {"a": 1, "b": "x", "c": [2]},
        ("add_missing_colon",),
    ),
    # literals and numbers
    Case(
        "literals",
        "[True, FALSE, None, undefined, nil, NULL, Null]",
        [True, False] + [None] * 5,
        ("replace_literal",),
    ),
    Case(
        "numbers",
        "[0x1F, 0o17, -0b11, 1_000, +5, .5, 5., -007, 1E3]",
        [31, 15, -3, 1000, 5, 0.5, 5.0, -7, 1000.0],
        ("rewrite_number",),
    ),
    Case(
        "tuples",
        "{'a': (1, 'x'), 'b': (2,), 'c': (), 'd': (3)}",
        {"a": [1, "x"], "b": [2], "c": [], "d": 3},
        ("replace_quotes", "tuple_to_array", "drop_parentheses", "drop_trailing_comma"),
    ),
    # brackets
    Case("mismatched-tail", '{"a": [1, 2}', {"a": [1, 2]}, ("fix_mismatched_closer",)),
    Case(
        "mismatched-middle",
        '{"a": [1, 2}, "b": 3}',
        {"a": [1, 2], "b": 3},
        ("fix_mismatched_closer",),
    ),
    Case(
        "mismatched-object",
        '[{"a": 1], {"b": 2}]',
        [{"a": 1}, {"b": 2}],
        ("fix_mismatched_closer",),
    ),
    Case("missing-at-the-end", '{"a": {"b": [1]}', {"a": {"b": [1]}}, ("close_missing_brackets",)),
    Case("doubled-braces", '{{"a": {{"b": 1}}}}', {"a": {"b": 1}}, ("collapse_doubled_braces",)),
    # text with calls, addresses and times in it
    Case("call-in-text", '{"a": "print("x")"}', {"a": 'print("x")'}, ("escape_inner_quotes",)),
    Case(
        "arguments-in-text", '{"a": "f("x", "y")"}', {"a": 'f("x", "y")'}, ("escape_inner_quotes",)
    ),
    Case(
        "bare-address",
        '{"a": https://x.y/z?q=1#f, "b": [http://u.v] // c\n}',
        {"a": "https://x.y/z?q=1#f", "b": ["http://u.v"]},
        ("quote_bare_text", "drop_comment"),
    ),
    Case(
        "bare-time",
        '{"a": 2026-01-05T10:00:00+02:00, "b": 2026-01-05 10:00}',
        {"a": "2026-01-05T10:00:00+02:00", "b": "2026-01-05 10:00"},
        ("quote_bare_text",),
    ),
    # encoding
    Case("double-encoding", r'"{\"a\": 1}"', ONE, ("decode_nested_text",)),
    Case("triple-encoding", r'"\"{\\\"a\\\": 1}\""', ONE, ("decode_nested_text",)),
    Case("quoted-object", "'{\"a\": 1}'", ONE, ("replace_quotes", "decode_nested_text")),
    Case(
        "quoted-without-escapes", '"{"a": 1}"', ONE, ("escape_inner_quotes", "decode_nested_text")
    ),
    Case("escaped-quotes", r"{\"a\": 1}", ONE, ("decode_nested_text",)),
    Case("escaped-text", r"{\n\"a\": \"x\\ny\"}", {"a": "x\ny"}, ("decode_nested_text",)),
    Case("escaped-blanks", r'{\n "a": "x\ny"\n}', {"a": "x\ny"}, ("strip_invisible",)),
    Case("entities", "{&quot;a&quot;: &#34;x &amp;amp; y&quot;}", {"a": "x &amp; y"}, ENTITIES),
    # scalars
    Case("bare-literal", "True", True, ("replace_literal",)),
    Case("quoted-text", "'hello'", "hello", ("replace_quotes",)),
    Case("hexadecimal", "0x10", 16, ("rewrite_number",)),
]


@pytest.mark.parametrize("case", REPAIRED, ids=lambda case: case.id)
def test_damage_is_repaired_with_receipts(case: Case) -> None:
    """The value is the one that was meant, and each rule that was needed is named."""
    repaired = repair_json(case.text)
    assert repaired.state == "whole", repaired.errors
    assert repaired.value == case.value
    assert {receipt.rule for receipt in repaired.receipts} == set(case.rules)
    lossy = {receipt.rule for receipt in repaired.receipts if not receipt.lossless}
    assert lossy == set(case.rules) - NOTATIONS - set(case.lossless)
    assert repaired.certainty == ("likely" if lossy else "certain")
    assert bool(repaired.doubt) == bool(lossy)
    assert repaired.errors == ()


@dataclass(frozen=True)
class Refusal:
    id: str
    text: str
    reason: str
    code: str = Code.INVALID_JSON


REFUSED = [
    Refusal("empty", "", "empty"),
    Refusal("blank", " \n", "no value"),
    Refusal("prose", "I think the answer is 42.", "no JSON value"),
    Refusal("prose-in-brackets", "[see note]", "prose"),
    Refusal("one-word", "hello", "no JSON value"),
    Refusal("fences-that-end-alike", "```{}0```{", "several JSON values"),
    Refusal("ellipsis", "[1, 2, ...]", "ellipsis"),
    Refusal("ellipsis-member", '{"a": 1, ...}', "ellipsis"),
    Refusal("missing-value", '{"a": , "b": 1}', "value"),
    Refusal("bare-phrase-or-set", "{a: b c, d}", "clearly"),
    Refusal("set", '{"a", "b"}', "key"),
    Refusal("call", '{"a": date(2024)}', "clearly"),
    Refusal("template", "{a: `x${y}`}", "placeholder"),
    Refusal("thousands", "[1,000]", "one number, or two"),
    Refusal("thousands-in-an-object", '{"a": 1,000}', "':'"),
    Refusal("digits-apart", "[1 000]", "one number, or two"),
    Refusal("two-strings", '{"a": "x" "y"}', "joined"),
    Refusal("two-python-strings", "['x' 'y']", "joined"),
    Refusal("json-in-a-string", '{"a": "{"b": "c"}"}', "where this string ends"),
    Refusal("string-with-structure", '{"a": "x", :"b": "y", "c": 1}', "where this string ends"),
    Refusal("missing-quote-in-a-list", '["a", "b, "c", "d"]', "where this string ends"),
    Refusal("missing-single-quote-in-a-list", "['a, 'b']", "where this string ends"),
    Refusal("unpaired-quotes-in-a-list", '["a "b", "c" d", "e"]', "where this string ends"),
    Refusal("text-after-a-string", '{"a": "b" c}', "where this string ends"),
    Refusal("stray-parenthesis", '{"a": "b"), "c": 1}', "closes nothing"),
    Refusal("a-key-alone", '{"a": {"x"}}', "':'"),
    Refusal("line-break-or-letter", r'{"a": "\alpha \nu"}', "begins an escape"),
    Refusal("path-in-text", r'{"a": "dir C:\Users\name"}', "begins an escape"),
    Refusal("escaped-blank-and-backslash", r'{\n "a": "x\\ny"}', "key"),
    Refusal("half-of-the-entities", "{&quot;a&quot;: &quot;?x&copy=2&quot;}", "key"),
    Refusal("two-backticks", "``", "no JSON value"),
    Refusal("key-before", '"a": {"b": 1}', "key"),
    Refusal("ended-too-soon", '{"a": 1}, "b": 2}', "continues"),
    Refusal("several-in-prose", 'Use {"a": 1} or maybe {"a": 2}.', "several"),
    Refusal("quoted-prose", '"Sure" he said "no"', "quotes"),
    Refusal("doubled-brace-and-more", '{{"a": 1}, {"b": 2}}', "'}}'"),
    Refusal("repeated-key", "{a: 1, a: 2}", "more than once", Code.DUPLICATE_KEY),
    Refusal("repeated-key-in-valid-json", '{"a": 1, "a": 2}', "more than once", Code.DUPLICATE_KEY),
    Refusal("too-deep", "[" * 129 + "1," + "]" * 129, "nested", Code.JSON_TOO_DEEP),
    Refusal("nan", '{"a": NaN}', "not finite", Code.NON_FINITE_NUMBER),
    Refusal("overflow", "[1e999]", "not finite", Code.NON_FINITE_NUMBER),
    Refusal("digits", "[0x" + "f" * 5000 + "]", "digits", Code.NUMBER_TOO_LONG),
    Refusal("half-a-pair", "['\\ud800']", "surrogate", Code.LONE_SURROGATE),
    Refusal("too-many-repairs", "[" + "a," * 400_000 + "1]", "limit", Code.REPAIR_BUDGET_EXCEEDED),
    Refusal("too-many-quotes", "['" + "' " * 40_000, "limit", Code.REPAIR_BUDGET_EXCEEDED),
    Refusal("too-many-breaks", "['" + "a\n" * 60_000 + "']", "limit", Code.REPAIR_BUDGET_EXCEEDED),
    Refusal("too-many-brackets", "see {x " * 1000, "limit", Code.REPAIR_BUDGET_EXCEEDED),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_could_mean_two_things_is_refused(case: Refusal) -> None:
    """There is no value, and the error says why."""
    repaired = repair_json(case.text)
    assert (repaired.state, repaired.value) == ("unreadable", None)
    assert repaired.errors[0].code == case.code
    assert case.reason in repaired.errors[0].message


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1, 2",
        "\n[",
        '{"a": 12',
        '{"a": "x',
        '{"a": "x"',
        '{"a":',
        '{"a',
        '{"a": tru',
        '{"a": true',
        '{"a": 1, ',
        '"abc',
        "tru",
        '{"a": 1 /* x',
        "{'a': 'x",
        'Sure: {"a": 1, "b',
        "[-",
        "[1e+",
        '{"a": 1} {"b": ',
    ],
)
def test_a_text_that_ends_inside_its_value_is_cut(text: str) -> None:
    """It has no value, and the error shows the end of the text."""
    repaired = repair_json(text)
    assert (repaired.state, repaired.value) == ("cut", None)
    assert "the text ends" in repaired.errors[0].message


@pytest.mark.parametrize(
    ("text", "value", "rules"),
    [
        ('{"a": "x', {"a": "x"}, {"close_cut_string", "close_cut_brackets"}),
        ('{"a": "x\\u00', {"a": "x"}, {"close_cut_string", "close_cut_brackets"}),
        ('{"a": "x\\ud83d\\ud', {"a": "x"}, {"close_cut_string", "close_cut_brackets"}),
        ('{"a": 1, "b": 2', {"a": 1}, {"drop_cut_member", "close_cut_brackets"}),
        ('{"a": 1, "b": tru', {"a": 1, "b": True}, {"complete_cut_literal", "close_cut_brackets"}),
        ('{"a": 1, "b": N', {"a": 1, "b": None}, {"complete_cut_literal", "close_cut_brackets"}),
        ('{"a": 1, "b"', {"a": 1}, {"drop_cut_member", "close_cut_brackets"}),
        ('{"a": 1, ', {"a": 1}, {"drop_trailing_comma", "close_cut_brackets"}),
        ('{"a": [1, {"b": 2}', {"a": [1, {"b": 2}]}, {"close_cut_brackets"}),
        (
            '{"a": 1, /* x',
            {"a": 1},
            {"drop_cut_comment", "drop_trailing_comma", "close_cut_brackets"},
        ),
        ('"ab', "ab", {"close_cut_string"}),
    ],
)
def test_closing_a_cut_value_is_marked_as_lossy(text: str, value: Any, rules: set[str]) -> None:
    """Asked to, repair saves what is there; the state stays `cut`."""
    repaired = repair_json(text, cut="close", ended=False)
    assert (repaired.state, repaired.value) == ("cut", value)
    assert {receipt.rule for receipt in repaired.receipts} == rules
    assert any(not receipt.lossless for receipt in repaired.receipts)
    assert repaired.errors


@pytest.mark.parametrize("text", ['{"a": {"b": 1}', '[{"a": 1}', '{"a": [1]', "12", "-1.5"])
def test_only_an_ended_text_may_lack_its_end(text: str) -> None:
    """The same text is whole when it is known to have ended, and cut when it is not."""
    assert repair_json(text).state == "whole"
    assert repair_json(text, ended=False).state == "cut"


def test_brackets_are_not_added_when_more_than_that_is_wrong() -> None:
    """A comma missing as well makes it unclear what else is missing."""
    assert repair_json('{"a": [1\n2], "b": {}').state == "cut"


@pytest.mark.parametrize(
    ("policy", "value", "lossless"), [("null", None, False), ("text", "-Infinity", True)]
)
def test_numbers_that_are_not_finite_follow_the_policy(
    policy: Any, value: Any, lossless: bool
) -> None:
    """They become null, which loses them, or their name."""
    for text in ('{"a": -Infinity}', '{"a": -1e999}', "{'a': -inf}"):
        repaired = repair_json(text, non_finite=policy)
        assert repaired.value == {"a": value}
        (receipt,) = [one for one in repaired.receipts if one.rule == "replace_non_finite"]
        assert receipt.lossless is lossless


def test_of_several_values_the_first_is_taken_and_the_others_are_listed() -> None:
    """The receipt is lossless only when the others say the same."""
    repaired = repair_json('{"a": 1}\n{"b": 2}\n[3]')
    assert (repaired.state, repaired.value, repaired.rest) == ("whole", {"a": 1}, ({"b": 2}, [3]))
    assert [(one.rule, one.lossless) for one in repaired.receipts] == [("extra_values", False)]
    again = repair_json('{"a": 1} {"a": 1}')
    assert [(one.rule, one.lossless) for one in again.receipts] == [("extra_values", True)]


def test_a_fenced_value_wins_over_values_in_prose() -> None:
    """The fence says which one is meant; the other is listed."""
    repaired = repair_json('Not {"a": 0} but\n```json\n{"a": 1}\n```\n')
    assert (repaired.value, repaired.rest) == ({"a": 1}, ({"a": 0},))


def test_text_in_text_is_kept_when_asked() -> None:
    """A string that holds JSON is a string, unless the caller wants what is in it."""
    assert repair_json('"{}"').value == {}
    assert repair_json('"{}"', nested="keep").value == "{}"
    assert repair_json('"[see note]"').value == "[see note]"


def test_a_receipt_shows_the_place_and_the_change() -> None:
    """The place is a span of the text as it was given."""
    text = '{"a": True}'
    (receipt,) = repair_json(text).receipts
    assert (receipt.place, receipt.before, receipt.after) == ("6:10", "True", "true")
    assert text[6:10] == "True"


def test_many_receipts_of_one_rule_are_summed_up() -> None:
    """Twenty of a rule are listed; the last one tells how many followed."""
    repaired = repair_json("{" + "".join(f"k{number}: 1, " for number in range(50)) + '"z": 1}')
    keys = [receipt for receipt in repaired.receipts if receipt.rule == "quote_key"]
    assert len(keys) == 20
    assert keys[-1].why == "and 30 more of the same after it"


def test_size_and_encoding_are_checked_first() -> None:
    """Too long a text and bytes that are not UTF-8 are refused with their own codes."""
    assert repair_json("{a: 1}", max_bytes=3).errors[0].code == Code.JSON_TOO_LARGE
    assert repair_json(b"\xff{}").errors[0].code == Code.INVALID_UTF8
    assert repair_json("{'a': 'é'}".encode()).value == {"a": "é"}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200000,
        '{"a":' * 50000,
        '"' * 200000,
        '{"a": "' + 'b", "c' * 30000,
        "\\" * 99999,
        "{" + "/*" * 99999,
        '{"a"' + ": " * 99999,
        "[}{]" * 50000,
        "(" * 99999,
        "```json\n" * 9999,
        "[" * 100 + "1" + "}" * 99999,
        "{" * 99999 + "}" * 99999,
    ],
    ids=range(12),
)
def test_hostile_text_is_refused_without_recursion(text: str) -> None:
    """No text exhausts the stack, whatever it is made of."""
    found = repair_json(text)
    assert found.state != "whole" or found.certainty == "likely"


CUT_ANYWHERE = (
    '{"a": [[1, [2, {"b": "x\\\\y\\"z\\n, {["}]], {}], "c": {"d": {"e": []}, "f": "g"}}',
    '[{"a": "\\u00e9\\ud83d\\ude00", "b": [true, null, -1.5e3]}, "é😀", {"k,{[": "v,]}"}]',
)


@pytest.mark.parametrize("cut", ["refuse", "close"])
@pytest.mark.parametrize("text", CUT_ANYWHERE)
def test_a_cut_text_is_read_from_its_last_entry_as_from_its_start(text: str, cut: Any) -> None:
    """The quick way, which a blank in front switches off, gives the same value and rules."""
    for end in range(1, len(text)):
        quick = repair_json(text[:end], cut=cut, ended=False)
        slow = repair_json(" " + text[:end], cut=cut, ended=False)
        assert (quick.state, quick.value) == (slow.state, slow.value), text[:end]
        assert [one.rule for one in quick.receipts] == [one.rule for one in slow.receipts]


def test_a_cut_text_that_nested_too_deep_before_is_refused() -> None:
    """What was closed again counts as well."""
    repaired = repair_json("[" + "[" * 200 + "]" * 200 + ', "x', cut="close")
    assert (repaired.state, repaired.value) == ("unreadable", None)
    assert repaired.errors[0].code == Code.JSON_TOO_DEEP


def test_steps_of_a_repair_can_be_limited() -> None:
    """A caller that has less time sets a lower limit, which strict JSON does not count towards."""
    text = "[" + "a," * 100 + "1]"
    assert repair_json(text, max_steps=300).state == "whole"
    assert repair_json(text, max_steps=50).errors[0].code == Code.REPAIR_BUDGET_EXCEEDED
    assert repair_json("[" + "1," * 10_000 + "1]", max_steps=0).state == "whole"


def test_strings_in_a_row_have_as_many_receipts_as_others() -> None:
    """They are changed together, and counted one by one."""
    repaired = repair_json("[" + "'a' , " * 30 + "'b',]")
    assert repaired.value == ["a"] * 30 + ["b"]
    receipts = [one for one in repaired.receipts if one.rule == "replace_quotes"]
    assert len(receipts) == 20
    assert (receipts[0].place, receipts[0].before, receipts[0].after) == ("1:4", "'a'", '"a"')
    assert receipts[-1].why == "and 11 more of the same after it"


@pytest.mark.parametrize("end", ["{", "'c", "", "'c', "])
def test_strings_in_a_row_before_a_cut_are_kept(end: str) -> None:
    """What was cut behind them is closed or left out as anywhere else."""
    repaired = repair_json("[" + "'a', " * 30 + end, cut="close")
    assert repaired.state == "cut"
    assert repaired.value[:30] == ["a"] * 30


def test_bare_text_before_many_blanks_ends_at_its_last_word() -> None:
    """Blanks behind it are no part of it, and a comment may follow them."""
    blanks = " " * 2_000
    assert repair_json(f'{{"city": a b{blanks}}}').value == {"city": "a b"}
    assert repair_json(f'{{"city": a b{blanks}# c\n}}').value == {"city": "a b"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[042]", id="zero-before-a-number"),
        pytest.param('{"a": {"b": {"c": 1}}, "d": 2}}', id="closer-doubled-inside-or-at-the-end"),
    ],
)
def test_a_slip_with_two_meanings_leaves_a_value_likely_at_most(text: str) -> None:
    """It is read, but not certain, and says why."""
    found = repair_json(text)
    assert (found.state, found.certainty) == ("whole", "likely")
    assert found.doubt


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a": 5 // five,\n "b": 1}', id="comment-that-ends-with-a-comma"),
        pytest.param('{"a"[["x"false],[false,-7,"no"]]}', id="literal-behind-an-inner-quote"),
    ],
)
def test_text_that_may_have_lost_a_quote_is_never_certain(text: str) -> None:
    """Nobody can tell what was a string there."""
    found = repair_json(text)
    assert found.state != "whole" or (found.certainty == "likely" and found.doubt)
