"""What a request of one format becomes in another, as the types of the official SDKs have it."""

from typing import Any, get_args

import pytest
from anthropic.types import OutputConfigParam
from google.genai.types import ThinkingLevel
from openai.types.shared.reasoning_effort import ReasoningEffort

from surecall.base.records import WireRequest
from surecall.wire import Translated, find_protocol, translate_request

PATHS = {"gemini": "/models/m:generateContent"}
ASKED: dict[str, dict[str, Any]] = {
    "chat_completions": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"model": "m", "input": "Hi"},
    "messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
}


def translated(source: str, target: str, **fields: Any) -> Translated:
    """Translate a plain request with some more fields."""
    wire = WireRequest(path=PATHS.get(source, ""), body={**ASKED[source], **fields})
    return translate_request(wire, find_protocol(source), find_protocol(target))


# settings


def test_alternatives_of_tokens_are_asked_for_as_the_format_wants_it() -> None:
    """Responses say only how many; the others have a switch, which has to be on."""
    body = translated("responses", "chat_completions", top_logprobs=3).request.body
    assert (body["top_logprobs"], body["logprobs"]) == (3, True)
    config = translated("responses", "gemini", top_logprobs=3).request.body["generationConfig"]
    assert config == {"logprobs": 3, "responseLogprobs": True}
    assert translated("responses", "messages", top_logprobs=3).dropped == ("top_logprobs",)


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@pytest.mark.parametrize("effort", EFFORTS)
def test_every_effort_becomes_one_that_the_format_knows(effort: str) -> None:
    """The words are those of the SDKs."""
    asked = {"reasoning_effort": effort}
    body = translated("chat_completions", "responses", **asked).request.body
    assert body["reasoning"] == {"effort": effort}
    known = {word for part in get_args(ReasoningEffort) for word in get_args(part)}
    assert effort in known
    body = translated("chat_completions", "gemini", **asked).request.body
    level = body["generationConfig"]["thinkingConfig"]["thinkingLevel"]
    assert level in {item.value for item in ThinkingLevel}
    body = translated("chat_completions", "messages", **asked).request.body
    known = _words_in(OutputConfigParam.__annotations__["effort"])
    if effort == "none":
        assert body["thinking"] == {"type": "disabled"}
    else:
        assert body["output_config"]["effort"] in known


def _words_in(annotation: Any) -> set[str]:
    """Return the words of a type that is kept as text."""
    written = getattr(annotation, "__forward_arg__", str(annotation))
    return {
        part.strip(" \"'") for part in written.partition("Literal[")[2].split("]")[0].split(",")
    }


def test_the_most_effort_is_the_most_that_gemini_has() -> None:
    """Its scale ends earlier."""
    for effort in ("xhigh", "max"):
        body = translated("messages", "gemini", output_config={"effort": effort}).request.body
        assert body["generationConfig"]["thinkingConfig"] == {"thinkingLevel": "HIGH"}


# what was said before


@pytest.mark.parametrize("target", ["messages", "responses", "gemini"])
def test_a_refusal_of_the_history_is_said_again_as_text(target: str) -> None:
    """The model should know what it did not do."""
    no = "I cannot help with that."
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "refusal": no},
        {"role": "user", "content": "And now?"},
    ]
    asked = translated("chat_completions", target, messages=messages)
    wire = WireRequest(path=PATHS.get(target, ""), body=asked.request.body)
    said = [message.text for message in find_protocol(target).parse_request(wire).messages]
    assert said == ["Hi", no, "And now?"]
    assert asked.dropped == ()


def test_a_refusal_among_parts_is_text_too() -> None:
    """A format without such a part would otherwise have to leave it out."""
    no = {"type": "refusal", "refusal": "No."}
    parts = [{"type": "output_text", "text": "Well. "}, no]
    items = [
        {"role": "user", "content": "Hi"},
        {"type": "message", "role": "assistant", "content": parts},
        {"role": "user", "content": "Why?"},
    ]
    asked = translated("responses", "messages", input=items)
    said = [part["text"] for part in asked.request.body["messages"][1]["content"]]
    assert (said, asked.dropped) == (["Well. ", "No."], ())
