"""Tags and the language of final texts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import surecall
from surecall import ScriptedTransport
from surecall.base.errors import Code, ConfigError
from surecall.reading.final_text import LanguagePolicy, OutputTags, canonical_language
from surecall.reading.transforms import TransformRegistry

TAGS = OutputTags({"think": "drop", "b": "strip", "em": "rename:i"}, lang_spans=True)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a <b>bold</b> word", "a bold word"),
        ("<think>hm <b>x</b></think>Yes", "Yes"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ('<EM class="x">a</EM>', '<i class="x">a</i>'),
        ("<u>stays</u>", "<u>stays</u>"),
        ("`<b>code</b>` <b>x</b>", "`<b>code</b>` x"),
        ("```\n<think>x</think>\n```", "```\n<think>x</think>\n```"),
        ("{{<b>}} <b>x</b>", "{{<b>}} x"),
        ("<think>never closed", "never closed"),
        ("\\<b>literally\\</b>", "&lt;b&gt;literally&lt;/b&gt;"),
        ('<lang code="jp" x="1">はい</lang>', '<lang code="ja-JP">はい</lang>'),
        ('<lang code="xx">hm</lang>', "hm"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
    ],
)
def test_tags_are_treated_by_their_rules(text: str, result: str) -> None:
    """Code and placeholders are never touched, and nothing is lost without its other half."""
    assert TAGS(text)[0] == result


@pytest.mark.parametrize(
    ("mode", "result"),
    [("html_entity", "&lt;b&gt;"), ("literal", "<b>"), ("keep_backslash", "\\<b>")],
)
def test_escaped_tags(mode: Any, result: str) -> None:
    """A backslash keeps a tag as text, in one of three ways."""
    assert OutputTags({"b": "strip"}, escape=mode)("\\<b>")[0] == result


def test_every_change_leaves_a_receipt() -> None:
    """What was dropped is not lossless."""
    _, receipts = TAGS("<think>x</think><b>y</b>")
    assert [(item.rule, item.lossless) for item in receipts] == [
        ("drop_tag", False),
        ("strip_tag", True),
        ("strip_tag", True),
    ]
    with pytest.raises(ConfigError):
        OutputTags({"b": "explode"})


@given(st.text(alphabet='<>/\\`{} bthinkem="', max_size=80))
def test_no_text_raises_and_no_rule_adds_tags(text: str) -> None:
    """Stripping twice is stripping once, where nothing is escaped."""
    tags = OutputTags({"b": "strip"}, escape="keep_backslash")
    changed, receipts = tags(text)
    assert (changed == text) == (not receipts)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("zh_Hans", "zh-CN"),
        ("English", "en-US"),
        ("JP", "ja-JP"),
        ("hk", "yue-HK"),
        ("fr", None),
    ],
)
def test_languages_have_aliases(name: str, code: str | None) -> None:
    """Names are canonicalized; others are not known."""
    assert canonical_language(name) == code


@pytest.mark.parametrize(
    ("target", "text", "shape"),
    [
        ("en-US", "The draft was saved.", "ok"),
        ("en-US", "草稿已经保存了。", "drift"),
        ("zh-CN", "草稿已经保存，请问还要修改吗？", "ok"),
        ("zh-CN", "草稿已經儲存，請問還要修改嗎？這個時候", "drift"),
        ("zh-TW", "這個草稿已經儲存，請問還要修改嗎？", "ok"),
        ("zh-CN", "The draft was saved for you.", "drift"),
        ("zh-CN", "草稿已经保存 `The draft was saved for you, see the code`", "ok"),
        ("ja-JP", "下書きを保存しました。", "ok"),
        ("ja-JP", "The draft was saved.", "drift"),
        ("ja-JP", "了解", "unknown"),
        ("ko-KR", "초안이 저장되었습니다.", "ok"),
        ("ko-KR", "下書きを保存しました。", "drift"),
        ("zh-CN", "下書きを保存しました。", "drift"),
        ("en-US", "12345 !", "unknown"),
        ("zh-CN", '好的，已经保存。<lang code="en">The draft was saved for you.</lang>', "ok"),
    ],
)  # fmt: skip
def test_the_language_is_judged_by_script(target: str, text: str, shape: str) -> None:
    """Code and marked passages do not count."""
    assert LanguagePolicy(target).check(text).shape == shape


def test_only_a_strict_policy_fails_on_drift() -> None:
    """The shape is the same either way."""
    text = "The draft was saved."
    assert LanguagePolicy("ko").check(text).ok
    strict = LanguagePolicy("ko", strict=True).check(text)
    assert [error.code for error in strict.errors] == [Code.LANGUAGE_DRIFT]


def test_a_language_that_is_not_supported_switches_the_policy_off() -> None:
    """There is a warning, and nothing is sent or judged."""
    policy = LanguagePolicy("Klingon", strict=True)
    assert policy.warning
    assert (policy.block, policy.add_block([]), policy.check("x").ok) == ("", [], True)


def test_the_block_comes_before_the_last_messages() -> None:
    """Results stay behind their calls."""
    policy = LanguagePolicy("ja")
    user = {"role": "user", "content": "hi"}
    call: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
    result = {"role": "tool", "content": "x", "tool_call_id": "c"}
    block = {"role": "system", "content": policy.block}
    assert "Japanese (ja-JP)" in policy.block
    assert policy.add_block([user]) == [block, user]
    assert policy.add_block([user, call, result]) == [user, block, call, result]


async def test_both_work_in_a_run() -> None:
    """The block is sent, the text is cleaned, and the history keeps what was written."""
    registry = TransformRegistry.builtin()
    registry.register("messages", "in_english", LanguagePolicy("en").add_block)
    registry.register("answers", "tags", TAGS)
    transport = ScriptedTransport(["<think>hm</think>Yes"])
    result = await surecall.run(
        "hi",
        model="m",
        preset=(),
        transport=transport,
        transforms=registry,
        tool_use_mode="disabled",
        text_formats="off",
        message_transforms=["in_english"],
        answer_transforms=["tags"],
    )
    sent = transport.requests[0].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user"]
    assert result.text == "Yes"
    assert [item.rule for item in result.text_receipts] == ["drop_tag"]
    assert result.history[-1].text == "<think>hm</think>Yes"
    assert result.trace.answer == "<think>hm</think>Yes"
