"""When a streamed reply began, and how fast it was written."""

from pathlib import Path

from support.completion_server import CompletionServer
from surecall.evals import evaluate, plan
from surecall.models.transport import ScriptedReply

CASES = """
[[cases]]
id = "hello"
prompt = "Say hello."
[cases.checks]
text_contains = ["hello"]
"""


async def test_streamed_trials_have_a_first_token_and_a_speed(tmp_path: Path) -> None:
    """Whole replies have neither, because nobody knows when they began."""
    (tmp_path / "cases.toml").write_text(CASES)
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    replies = [ScriptedReply(message="hello there", usage=usage) for _ in range(2)]
    rows = []
    async with CompletionServer(replies) as server:
        for streams in (True, False):
            experiment = plan(
                f"m@{server.url}",
                suites=f"custom:{tmp_path / 'cases.toml'}",
                options={"stream": streams},
            )
            run = await evaluate(experiment, store=tmp_path / "evals.db")
            rows += run.rows()
    streamed, whole = rows

    assert [body.get("stream", False) for body in server.bodies] == [True, False]
    assert (streamed.strict_ok, whole.strict_ok) == (True, True)
    assert streamed.first_token_ms is not None
    assert 0 < streamed.first_token_ms <= streamed.elapsed_ms
    assert streamed.tokens_per_s is not None
    assert streamed.tokens_per_s > 0
    assert (whole.first_token_ms, whole.tokens_per_s) == (None, None)
