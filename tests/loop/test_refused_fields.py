"""A field that surecall adds to a request, and that the provider does not take."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import surecall
from surecall.base.errors import ProviderStatusError
from surecall.models.transport import ScriptedReply, ScriptedTransport, assistant, tool_call
from surecall.models.transport.retry import find_refused_field
from surecall.wire.errors import parse_error

from .toolbox import look

FIELD = "parallel_tool_calls"
OPENAI = {
    "error": {
        "message": f"Unsupported parameter: '{FIELD}' is not supported with this model.",
        "type": "invalid_request_error",
        "param": FIELD,
        "code": "unsupported_parameter",
    }
}
GLM, PROFILE = "z-ai/glm-4.7:nitro", "glm_4_7_recommended"
WORDINGS: dict[str, Any] = {
    "openai": OPENAI,
    "openai, by the structure alone": {
        "error": {"message": "No.", "param": FIELD, "code": "unsupported_value"}
    },
    "azure": {"error": {"message": f"Unrecognized request argument supplied: {FIELD}"}},
    "vllm": {
        "object": "error",
        "message": f"[{{'type': 'extra_forbidden', 'loc': ('body', '{FIELD}'), 'input': False}}]",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    },
    "fastapi": {"detail": [{"type": "extra_forbidden", "loc": ["body", FIELD], "msg": "No"}]},
    "groq": {"error": {"message": f"property '{FIELD}' is unsupported"}},
    "not to be set": {"error": {"message": f"Invalid parameter: {FIELD} must not be set."}},
    "not accepted": {"error": {"message": f"This model doesn't accept '{FIELD}'."}},
    "groq, in backticks": {"error": {"message": f"`{FIELD}` is not supported with this model"}},
    "anthropic": {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "tool_choice.disable_parallel_tool_use: Extra inputs are not permitted",
        },
    },
    "gemini": {
        "error": {
            "code": 400,
            "message": 'Invalid JSON payload received. Unknown name "parallelToolCalls".',
            "status": "INVALID_ARGUMENT",
            "details": [{"fieldViolations": [{"field": "parallel_tool_calls"}]}],
        }
    },
    "openrouter": {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": json.dumps(OPENAI), "provider_name": "OpenAI"},
        }
    },
}


@pytest.fixture(autouse=True)
def own_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test finds out is not known to the next."""
    monkeypatch.setenv("SURECALL_CACHE_DIR", str(tmp_path))


class Provider:
    """Refuses a request as long as it has a field, and answers any other."""

    def __init__(self, *fields: str, body: Any = None, status: int = 400) -> None:
        self.fields, self.body, self.status = fields, body, status
        self.sent: list[dict[str, Any]] = []
        self.transport = ScriptedTransport(self._answer)
        self.transport.address = "http://127.0.0.1:9/v1"  # pyright: ignore[reportAttributeAccessIssue]

    def _answer(self, request: Any) -> Any:
        self.sent.append(request.body)
        for field in self.fields:
            if field in request.body:
                body = self.body or {"error": {"message": f"Unknown parameter: '{field}'."}}
                return ScriptedReply(status=self.status, body=body)
        if any(message["role"] == "tool" for message in request.body["messages"]):
            return "Done."
        return assistant(None, *(tool_call("look", {"what": n}, n) for n in ("a", "b")))

    async def run(self, **arguments: Any) -> surecall.RunResult:
        """Run a prompt with one tool."""
        arguments = {"model": "m", "preset": "original", **arguments}
        return await surecall.run("Look.", tools=[look], transport=self.transport, **arguments)


@pytest.mark.parametrize("name", WORDINGS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_field_of_a_preset_is_left_out_once_it_is_refused(name: str, stream: bool) -> None:
    """The request is sent once more without it, and later requests go without it."""
    status = 422 if name == "fastapi" else 400
    provider = Provider(FIELD, body=WORDINGS[name], status=status)
    result = await provider.run(stream=stream)
    assert result.text == "Done."
    assert [FIELD in body for body in provider.sent] == [True, False, False]
    assert [turn.left_out for turn in result.trace.turns] == [(FIELD,)] * 2
    assert result.trace.turns[0].attempts == 2


async def test_a_field_of_the_caller_stays_and_the_error_says_whose_it_is() -> None:
    """What somebody asked for is never taken back in silence."""
    provider = Provider(FIELD, body=OPENAI)
    with pytest.raises(ProviderStatusError) as caught:
        await provider.run(preset=(), request_overrides={FIELD: True})
    assert len(provider.sent) == 1
    assert caught.value.code == "BAD_REQUEST"
    assert FIELD in str(caught.value.hint)
    assert "leave it out" in str(caught.value.hint)


async def test_a_field_of_a_profile_and_one_of_the_format_are_left_out() -> None:
    """Sampling parameters and `stream_options` are defaults of surecall as well."""
    provider = Provider("temperature", "stream_options", "tool_choice")
    result = await provider.run(profile=PROFILE, stream=True, preset="auto", model=GLM)
    assert result.text == "Done."
    assert len(provider.sent) == 2 + 3
    assert set(result.trace.turns[-1].left_out) == {"stream_options", "temperature", "tool_choice"}


async def test_a_refusal_that_names_nothing_of_ours_is_passed_on() -> None:
    """A refusal of something else is not answered by guessing."""
    body = {"error": {"message": "'messages' must not be empty", "param": "messages"}}
    provider = Provider("messages", body=body)
    with pytest.raises(ProviderStatusError):
        await provider.run()
    assert len(provider.sent) == 1


async def test_the_next_run_does_not_send_the_field() -> None:
    """What was refused is kept with the facts that probes find out."""
    first, second = Provider(FIELD, body=OPENAI), Provider(FIELD, body=OPENAI)
    await first.run()
    result = await second.run()
    assert [FIELD in body for body in second.sent] == [False, False]
    assert result.trace.capabilities["unsupported_fields"] == [FIELD]
    assert result.trace.capability_origins["unsupported_fields"].startswith("probe:")
    assert [turn.left_out for turn in result.trace.turns] == [(FIELD,)] * 2
    assert len(result.calls) == 1, "the limit itself was wanted"


async def test_a_run_has_the_same_fingerprint_before_and_after() -> None:
    """A journal that was begun before the refusal can be resumed after it."""
    first, second = Provider(FIELD, body=OPENAI), Provider(FIELD, body=OPENAI)
    before = await first.run()
    after = await second.run()
    assert before.trace.fingerprint == after.trace.fingerprint


@given(
    field=st.sampled_from(["parallel_tool_calls", "temperature", "top_k", "stop"]),
    other=st.sampled_from(["seed", "user"]),
    quote=st.sampled_from("\"'`"),
    before=st.text("abc .:,!", max_size=30),
)
def test_a_quoted_name_is_found_and_no_other(
    field: str, other: str, quote: str, before: str
) -> None:
    """Whatever the sentence says around it."""
    message = f"{before} {quote}{field}{quote} cannot be used; the user knows."
    error = parse_error(400, {}, json.dumps({"error": {"message": message}}).encode())
    assert find_refused_field(error, [other, field]) == field
    assert find_refused_field(error, [other]) is None


NAMED = [
    ("stop", "Unrecognized request argument supplied: stop"),
    ("temperature", "Unrecognized request arguments supplied: temperature, top_p"),
    ("temperature", "Unsupported parameter: temperature"),
    ("temperature", "temperature is not supported with this model"),
    ("temperature", "Unsupported value: 'temperature' does not support 0.2 with this model."),
    ("stop", "Model grok-4 does not support parameter stop."),
    ("presence_penalty", "Argument not supported on this model: presencePenalty"),
    ("tool_choice", "deepseek-reasoner does not support this tool_choice"),
    ("seed", {"detail": "Unsupported parameters: ['seed']"}),
    ("top_k", "Unknown name \"topK\" at 'generation_config': Cannot find field."),
    (
        "stop",
        {"message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "stop"], "input": 1}]}},
    ),
    (None, "'max_tokens' or 'max_completion_tokens' is too large: 20000."),
    (None, "max_tokens: 300000 > 8192, which is the maximum allowed number of output tokens"),
    (None, "Invalid schema for function 'stop': schema must be an object"),
    (None, "Please stop. The temperature was fine; the model does not support images."),
    (None, "content filter: 'stop' was flagged"),
    (None, {"error": {"message": "Unknown 'stop' in a tool.", "param": "tools[0].function"}}),
    (
        None,
        {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "mode"],
                    "input": {"messages": "Is 'temperature' unknown, or the parameter stop?"},
                }
            ]
        },
    ),
    (None, "[{'type': 'missing', 'loc': ('body', 'n'), 'input': {'temperature': 'unknown'}}]"),
]


@pytest.mark.parametrize(("field", "body"), NAMED)
def test_a_field_is_found_only_where_it_is_the_field_that_is_refused(
    field: str | None, body: Any
) -> None:
    """A wrong value, a tool or a message of that name, and what is quoted back do not count."""
    sent = [
        "temperature",
        "top_p",
        "top_k",
        "stop",
        "max_tokens",
        "tool_choice",
        "seed",
        "presence_penalty",
    ]
    document = {"error": {"message": body}} if isinstance(body, str) else body
    error = parse_error(400, {}, json.dumps(document).encode())
    assert find_refused_field(error, sent) == field


@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_other_failures_are_not_about_a_field(status: int) -> None:
    """Only a request that is refused as such can be wrong in a field."""
    error = parse_error(status, {}, json.dumps(OPENAI).encode())
    assert find_refused_field(error, [FIELD]) is None
