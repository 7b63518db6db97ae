"""Tags in text: which are calls, which are only quoted, and what they say."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.transforms.tags import CLOSER, OPENER, TagCall, find_tags, parse_payload

TAG = "<tool_call>a</tool_call>"


@dataclass(frozen=True)
class Case:
    id: str
    text: str
    found: tuple[str, ...]


CASES = (
    Case("one", TAG, (TAG,)),
    Case("several", f"x{TAG}y{TAG}", (TAG, TAG)),
    Case("many-lines", "<tool_call>\na\n</tool_call>", ("<tool_call>\na\n</tool_call>",)),
    Case("unclosed", "<tool_call>a", ()),
    Case("closed-then-unclosed", f"{TAG} <tool_call>b", (TAG,)),
    Case("closer-first", f"</tool_call>{TAG}", (TAG,)),
    Case("fence", f"```\n{TAG}\n```", ()),
    Case("fence-with-language", f"see\n```xml\n{TAG}\n```\n{TAG}", (TAG,)),
    Case("fence-of-tildes", f"~~~\n{TAG}\n~~~", ()),
    Case("longer-fence-holds-shorter", f"````\n```\n{TAG}\n```\n{TAG}\n````\n", ()),
    Case("indented-fence", f"  ```\n{TAG}\n  ```\n", ()),
    Case("unclosed-fence", f"```\n{TAG}", ()),
    Case("fence-marks-inside-a-line-do-not-close", f"```\nx ```\n{TAG}\n```", ()),
    Case("inline-code", f"write `{TAG}` to call", ()),
    Case("inline-code-of-two", f"write ``{TAG}`` to call", ()),
    Case("inline-code-of-three", f"write ```{TAG}``` to call", ()),
    Case("inline-code-over-lines", "`<tool_call>\na\n</tool_call>`", ()),
    Case("stray-backtick", f"don`t {TAG}", (TAG,)),
    Case("stray-backtick-in-another-paragraph", f"don`t\n\n{TAG} won`t", (TAG,)),
    Case("escaped-backtick", rf"\` {TAG} `", (TAG,)),
    Case("after-inline-code", f"`x` {TAG}", (TAG,)),
    Case("template-braces", f"{{{{ {TAG} }}}}", ()),
    Case("template-percent", f"{{% raw %}}{{% {TAG} %}}", ()),
    Case("unclosed-template", f"{{{{ {TAG}", (TAG,)),
    Case("after-template", f"{{{{x}}}} {TAG}", (TAG,)),
    Case("escaped-opener", rf"\{TAG}", ()),
    Case("escaped-then-real", rf"\{TAG} {TAG}", (TAG,)),
    Case("other-tag", "<tool_calls>a</tool_calls>", ()),
    Case(
        "zone-marks-inside-the-payload",
        "<tool_call>```\n`{{{%</tool_call>" + TAG,
        ("<tool_call>```\n`{{{%</tool_call>", TAG),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_tags_are_found_unless_they_are_quoted(case: Case) -> None:
    """Only closed tags that start outside verbatim zones count."""
    assert tuple(case.text[tag.start : tag.end] for tag in find_tags(case.text)) == case.found


@dataclass(frozen=True)
class Payload:
    id: str
    text: str
    call: TagCall | None


PAYLOADS = (
    Payload("arguments", '{"name":"a","arguments":{"x":1}}', TagCall("a", '{"x":1}')),
    Payload("args", '{"name":"a","args":{"x":1}}', TagCall("a", '{"x":1}')),
    Payload("parameters", '{"name":"a","parameters":{"x":1}}', TagCall("a", '{"x":1}')),
    Payload("arguments-first", '{"arguments":{},"name":"a"}', TagCall("a", "{}")),
    Payload("function", '{"function":{"name":"a","arguments":{"x":1}}}', TagCall("a", '{"x":1}')),
    Payload(
        "beside-function", '{"function":{"name":"a"},"arguments":{"x":1}}', TagCall("a", '{"x":1}')
    ),
    Payload("text-arguments", '{"name":"a","arguments":"{bad"}', TagCall("a", "{bad")),
    Payload("no-arguments", '{"name":"a"}', TagCall("a", "{}")),
    Payload("null-arguments", '{"name":"a","arguments":null}', TagCall("a", "{}")),
    Payload("number-for-the-reader", '{"name":"a","arguments":5}', TagCall("a", "5")),
    Payload("array-for-the-reader", '{"name":"a","arguments":[1]}', TagCall("a", "[1]")),
    Payload(
        "template-in-arguments",
        '{"name":"a","arguments":{"t":"`b` {{c}}"}}',
        TagCall("a", '{"t":"`b` {{c}}"}'),
    ),
    Payload("bare-name", " find_it \n", TagCall("find_it", "{}")),
    Payload("bare-name-characters", "a.b-C_9", TagCall("a.b-C_9", "{}")),
    Payload("name-and-object", 'find {"q": 1}', TagCall("find", '{"q": 1}')),
    Payload("name-line-object", 'find\n{"q": 1}', TagCall("find", '{"q": 1}')),
    Payload("name-and-broken-object-for-the-reader", "find {q", TagCall("find", "{q")),
    Payload("blank", " ", None),
    Payload("prose", "call the find tool", None),
    Payload("odd-name", "find!", None),
    Payload("broken-object", '{"name":"a"', None),
    Payload("no-name", '{"arguments":{}}', None),
    Payload("blank-name", '{"name":" "}', None),
    Payload("number-name", '{"name":1}', None),
    Payload("unknown-argument-key", '{"name":"a","input":{"x":1}}', None),
    Payload("differing-duplicates", '{"name":"a","arguments":{"x":1,"x":2}}', None),
    Payload("array", '[{"name":"a"}]', None),
    Payload("lone-surrogate", '{"name":"a","arguments":{"x":"\\ud800"}}', None),
)


@pytest.mark.parametrize("case", PAYLOADS, ids=lambda case: case.id)
def test_payload_forms(case: Payload) -> None:
    """A payload is a call in one of the known forms, or none; arguments are never emptied."""
    assert parse_payload(case.text) == case.call


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param(OPENER * 95_000, 0, id="openers"),
        pytest.param(OPENER * 95_000 + CLOSER, 1, id="openers-and-one-closer"),
        pytest.param("{{" * 500_000 + TAG, 1, id="braces"),
        pytest.param("` " * 500_001 + TAG, 1, id="backticks"),
        pytest.param("``` " * 250_000 + TAG, 1, id="fence-marks-on-one-line"),
        pytest.param("".join("`" * n + " " for n in range(1, 1400)) + TAG, 1, id="growing-runs"),
        pytest.param(TAG * 43_000, 43_000, id="tags"),
    ],
)
def test_a_megabyte_of_marks_is_scanned(text: str, count: int) -> None:
    """The scan is one pass: it ends, whatever is repeated."""
    assert len(find_tags(text)) == count


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [OPENER, CLOSER, "`", "``", "```", "~~~", "{{", "}}", "{%", "%}", "\\", "\n", " ", "x"]
        ),
        max_size=40,
    ).map("".join)
)
def test_found_tags_are_ordered_whole_and_apart(text: str) -> None:
    """Every span begins with an opener, ends with the first closer and overlaps no other."""
    end = 0
    for tag in find_tags(text):
        assert tag.start >= end
        assert text.startswith(OPENER, tag.start)
        assert text.index(CLOSER, tag.start) + len(CLOSER) == tag.end
        end = tag.end
