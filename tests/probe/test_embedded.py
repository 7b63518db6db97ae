"""A real small model is asked what it can do."""

from surecall.models.probe import probe_model, select_questions
from surecall.models.profiles import find_weights
from surecall.models.transport import EmbeddedTransport
from surecall.wire import ChatCompletions


async def test_a_real_model_is_known_after_a_few_requests() -> None:
    """Its template leaves tools out, and its engine holds it to a schema and a grammar."""
    questions = select_questions(["tools_seen", "json_schema", "grammar"])
    async with EmbeddedTransport(find_weights("smollm2-135m"), n_ctx=1024) as transport:
        report = await probe_model(transport, ChatCompletions(), "m", questions=questions)
    assert report.fields == {"supports_tool_use": False, "json_schema": True, "grammar": True}
    assert report.cost.requests == 2
