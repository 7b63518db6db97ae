"""What a request of one format becomes in another, as the types of the official SDKs have it."""

from typing import Any, get_args

import pytest
from anthropic.types import OutputConfigParam
from google.genai.types import ThinkingLevel
from openai.types.shared.reasoning_effort import ReasoningEffort

from surecall.protocols import Translated, find_protocol, translate_request
from surecall.records import WireRequest

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
