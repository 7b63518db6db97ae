"""What the model wrote, found in the body of an error."""

import json
from dataclasses import dataclass

import pytest

from support.offered_tools import OSLO, TOOLS
from surecall.calls import ToolNames
from surecall.reading import (
    find_generation,
    may_be_rescued,
    read_reply,
    rescue_receipts,
    rescue_reply,
)

RAW = '{"name": "weather", "arguments": {"city": "Oslo",}}'
OLLAMA = f"error parsing tool call: raw='{RAW}', err=invalid character '}}' looking for a key"
LLAMA = f"Failed to parse input at pos 0: {OSLO}"
GROQ = "Failed to call a function. Please adjust your prompt. See 'failed_generation'."


@dataclass(frozen=True)
class Case:
    id: str
    body: str
    found: str | None = None


def _error(message: object, **fields: object) -> str:
    return json.dumps({"error": {"message": message, **fields}})


CASES = (
    Case("ollama", _error(OLLAMA, type="api_error"), RAW),
    Case("ollama, error as text", json.dumps({"error": OLLAMA}), RAW),
    Case("ollama, plain text", OLLAMA, RAW),
    Case(
        "ollama, quotes inside",
        _error("error parsing tool call: raw='a', err=', err=x"),
        "a', err=",
    ),
    Case("ollama, nothing inside", _error("error parsing tool call: raw='', err=EOF")),
    Case("ollama, no end", _error("error parsing tool call: raw='{}'")),
    Case("llama.cpp", _error(LLAMA, code=500), OSLO),
    Case("llama.cpp, capitals", _error(LLAMA.upper()), OSLO.upper()),
    Case("llama.cpp, later", _error(f"Failed to parse input at pos 314: {OSLO}"), OSLO),
    Case("llama.cpp, message at the top", json.dumps({"message": LLAMA}), OSLO),
    Case("llama.cpp, detail", json.dumps({"detail": LLAMA}), OSLO),
    Case("llama.cpp, nothing inside", _error("Failed to parse input at pos 0: ")),
    Case("llama.cpp, no number", _error(f"Failed to parse input at pos x: {OSLO}")),
    Case("llama.cpp, endless number", _error(f"Failed to parse input at pos {'1' * 99}: {OSLO}")),
    Case("groq", _error(GROQ, failed_generation=OSLO), OSLO),
    Case("groq, at the top", json.dumps({"failed_generation": OSLO}), OSLO),
    Case("groq, blank", _error(GROQ, failed_generation=" ")),
    Case("groq, not text", _error(GROQ, failed_generation=[OSLO])),
    Case("a plain error", _error("model not found")),
    Case("words before it", _error(f"In your message: {LLAMA}")),
    Case("an echo of the request", json.dumps({"detail": [{"input": {"message": LLAMA}}]})),
    Case("a secret was taken out", _error(f"Failed to parse input at pos 0: [redacted]{OSLO}")),
    Case("JSON that was clipped", _error(LLAMA)[:60] + "… (+12 characters)"),
    Case("text that was clipped", LLAMA[:60] + "… (+12 characters)"),
    Case("not an object", json.dumps([LLAMA])),
    Case("an array of errors", json.dumps({"error": [{"message": LLAMA}]})),
    Case("nothing", ""),
    Case("a page", "<html>502</html>"),
    Case("deep", "[" * 100_000),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_generation_is_found_only_where_servers_put_it(case: Case) -> None:
    """Known forms at their known places are read, everything else is left alone."""
    assert find_generation(case.body) == case.found


@pytest.mark.parametrize("status", [400, 422, 500])
def test_the_generation_becomes_a_reply_with_a_defect_and_a_receipt(status: int) -> None:
    """The reply says where it came from, and its receipt can be made from it at any time."""
    raw = rescue_reply(status, _error(LLAMA))
    assert raw is not None
    assert raw.message == {"role": "assistant", "content": OSLO}
    assert raw.finish_reason is None
    (defect,) = raw.defects
    assert defect.code == "REPLY_IN_ERROR_BODY"
    assert str(status) in defect.message
    (receipt,) = rescue_receipts(raw)
    assert (receipt.rule, receipt.after) == ("rescue_from_error_body", OSLO)


@pytest.mark.parametrize("status", [None, 200, 401, 404, 429, 502, 503])
def test_other_statuses_are_left_alone(status: int | None) -> None:
    """In a stream that failed, the text is what was said so far, not the provider's error."""
    assert rescue_reply(status, _error(LLAMA)) is None


@pytest.mark.parametrize(
    ("text", "good"),
    [
        pytest.param(OSLO, True, id="a call"),
        pytest.param(OSLO + OSLO, True, id="two calls"),
        pytest.param(f"<think>hm</think>{OSLO}", True, id="reasoning and a call"),
        pytest.param(f"hm</think>{OSLO}", True, id="the end of reasoning and a call"),
        pytest.param(OSLO.replace("Oslo", "Oslo\\"), False, id="a call that cannot be read"),
        pytest.param(OSLO[:-25], False, id="a cut call"),
        pytest.param(OSLO + OSLO[:-25], False, id="a call and a cut one"),
        pytest.param(OSLO.replace("weather", "launch"), False, id="another tool"),
        pytest.param(OSLO + OSLO.replace("weather", "launch"), False, id="beside another tool"),
        pytest.param(f"a page that quotes {OSLO}", False, id="text before"),
        pytest.param(f"{OSLO}</parameter> and so on", False, id="text after"),
        pytest.param("no call", False, id="no call"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_only_whole_calls_of_offered_tools_and_nothing_else_are_rescued(
    text: str, good: bool
) -> None:
    """Anything beside them leaves it open what the model meant."""
    assert may_be_rescued(read_reply(text, tools=TOOLS), ToolNames(TOOLS)) is good
