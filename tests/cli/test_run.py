"""`surecall run` against a server on loopback."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from support.upstream import (
    HANG,
    FaultyUpstream,
    Received,
    completion_bytes,
    http_response,
    reply,
    unused_port,
)
from surecall.cli import ExitCode

from .harness import documents, invoke

TOOLS = '''
from surecall.tools import tool

@tool(effect="read")
def weather(city: str, days: int = 1) -> dict:
    """Tell the weather of a city."""
    print("the tool prints")
    return {"city": city, "sky": "clear"}
'''
FENCED = '```json\n{"city": "Oslo"}\n```'


def called(arguments: str, call_id: str = "c1") -> dict[str, Any]:
    """Build a message with one call of the tool."""
    function = {"name": "weather", "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answering(*messages: str | dict[str, Any]) -> FaultyUpstream:
    """Build a server that gives these messages, one a request."""
    scripts = [
        reply(
            message,
            finish_reason="stop" if isinstance(message, str) else "tool_calls",
            usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        )
        for message in messages
    ]
    return FaultyUpstream(scripts)


async def ask(upstream: FaultyUpstream, *words: str, **settings: Any) -> Result:
    """Run the command beside the server."""
    base = ("run", "--model", "m", "--base-url", upstream.url)
    return await asyncio.to_thread(invoke, *base, *words, **settings)


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """Write a file with one tool."""
    path = tmp_path / "tools.py"
    path.write_text(TOOLS, "utf-8")
    return str(path)


async def test_the_answer_is_all_there_is_on_standard_output(tools: str) -> None:
    """What happens on the way, and what a tool prints, goes to standard error."""
    async with answering(called('{"city": "Oslo"}'), "It is clear.") as upstream:
        result = await ask(upstream, "--tools", tools, "Weather?")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "It is clear.\n"
    assert "the tool prints" in result.stderr
    assert "turn 0   · answered" in result.stderr
    assert "✓ ok" in result.stderr
    assert "✓ done      2 turns · 1 call · 30 tokens" in result.stderr


async def test_changes_and_refusals_are_shown_as_they_happen(tools: str) -> None:
    """Arguments, each change and the reason of a refusal stand with the call."""
    async with answering(called(FENCED), called('{"town": 3}', "c2"), "Clear.") as upstream:
        result = await ask(upstream, "--tools", tools, "Weather?")
    lines = [line.strip() for line in result.stderr.splitlines()]
    changed = '```json\\n{"city": "Oslo"}\\n``` → {"city": "Oslo"}'
    assert f"~ changed   strip_code_fence 0:28  {changed}" in lines
    assert '→ call      weather(city="Oslo")' in lines
    assert "✗ refused   ARGUMENTS_INVALID  not run; the model is told why" in lines
    assert "~ changes   1 in what the model sent" in lines


@pytest.mark.parametrize("option", ["likely_calls=never", "text_formats=off"])
async def test_a_call_that_is_not_read_is_a_line(tools: str, option: str) -> None:
    """What looks like a call and stays text is not passed over in silence."""
    text = 'I look.\n{"name": "weather", "arguments": {"city": "Oslo"}}\nDone.'
    async with answering(text) as upstream:
        result = await ask(upstream, "--tools", tools, "--option", option, "Weather?")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"{text}\n"
    assert "! not run   weather" in result.stderr
    assert "CALL_IN_TEXT_NOT_READ" in result.stderr


async def test_quiet_leaves_only_the_answer(tools: str) -> None:
    """`-q` shows no progress."""
    async with answering("Hello.") as upstream:
        result = await ask(upstream, "-q", "Hi")
    assert (result.stdout, result.stderr) == ("Hello.\n", "")


async def test_json_is_lines_of_events_and_a_result(tools: str) -> None:
    """Each event is a document, the last one is the result, and nothing else is there."""
    async with answering(called(FENCED), "Clear.") as upstream:
        result = await ask(upstream, "--json", "--tools", tools, "Weather?")
    *events, last = documents(result)
    assert [event["type"] for event in events] == [
        "run_start",
        "llm_request_start",
        "llm_request_end",
        "tool_call_start",
        "tool_call_end",
        "llm_request_start",
        "llm_request_end",
        "final",
        "run_end",
    ]
    assert last["type"] == "result"
    assert last["text"] == "Clear."
    assert last["usage"]["total_tokens"] == 30
    (call,) = last["calls"]
    assert call["arguments"] == {"city": "Oslo"}
    assert (call["ok"], call["executed"]) == (True, True)
    assert [receipt["rule"] for receipt in call["receipts"]] == ["strip_code_fence"]


async def test_escape_sequences_of_the_model_are_neutralised() -> None:
    """Neither the answer nor JSON carries a control character to the terminal."""
    evil = "\x1b[2Jgone \x9b31m [bold]x[/bold]\nnext"
    async with answering(evil) as upstream:
        plain = await ask(upstream, "Hi")
        as_json = await ask(upstream, "--json", "Hi")
    assert plain.stdout == "\\x1b[2Jgone \\x9b31m [bold]x[/bold]\nnext\n"
    assert "\x1b" not in plain.stderr + as_json.stdout
    assert "\x9b" not in as_json.stdout
    assert documents(as_json)[-1]["text"] == evil


async def test_the_question_may_come_from_standard_input() -> None:
    """`-` reads it; flags and options reach the request."""
    async with answering("Yes.") as upstream:
        words = ("--system", "Be brief.", "--option", "request_overrides.temperature=0", "-")
        result = await ask(upstream, *words, stdin="Is it?\n")
        body = upstream.requests[0].json
    assert result.exit_code == 0
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["messages"][1]["content"] == "Is it?\n"
    assert body["temperature"] == 0


async def test_settings_of_file_and_variables_apply(tmp_path: Path) -> None:
    """The file names the model, a variable the address, and the trace goes to its folder."""
    (tmp_path / "surecall.toml").write_text('model = "from-file"\ntrace_dir = "traces"\n')
    async with answering("Yes.") as upstream:
        result = await asyncio.to_thread(invoke, "run", "Hi", SURECALL_BASE_URL=upstream.url)
        assert upstream.requests[0].json["model"] == "from-file"
    assert result.stdout == "Yes.\n"
    (saved,) = (tmp_path / "traces").iterdir()
    assert json.loads(saved.read_text())["model"] == "from-file"


async def test_streaming_gives_the_same_answer() -> None:
    """With `--stream` the request asks for a stream; one whole body is an answer too."""
    async with answering("Streamed.") as upstream:
        result = await ask(upstream, "--stream", "Hi")
        assert upstream.requests[0].json["stream"] is True
    assert result.stdout == "Streamed.\n"


async def test_a_run_without_an_answer_is_exit_code_1_and_saves_its_trace(
    tools: str, tmp_path: Path
) -> None:
    """The error has a code, and the trace tells what happened until then."""
    trace = tmp_path / "deep" / "trace.json"
    async with answering(called('{"city": "Oslo"}')) as upstream:
        words = ("--tools", tools, "--max-turns", "1", "--trace", str(trace), "Weather?")
        result = await ask(upstream, *words)
    assert result.exit_code == ExitCode.NO_ANSWER
    assert result.stdout == ""
    assert "✗ MAX_TURNS_REACHED  " in result.stderr
    assert "surecall docs MAX_TURNS_REACHED" in result.stderr
    assert json.loads(trace.read_text())["error"]["code"] == "MAX_TURNS_REACHED"


async def test_a_provider_that_refuses_is_exit_code_6(tmp_path: Path) -> None:
    """Words of the provider are shown without its control characters."""
    body = json.dumps({"error": {"message": "\x1b[31mbad key", "code": "invalid_api_key"}})
    trace = tmp_path / "trace.json"
    async with FaultyUpstream([http_response(body.encode(), 401)]) as upstream:
        result = await ask(upstream, "--trace", str(trace), "Hi")
        as_json = await ask(upstream, "--json", "Hi")
    assert result.exit_code == ExitCode.PROVIDER
    assert "✗ AUTH  " in result.stderr
    assert "\x1b" not in result.stderr
    assert "Traceback" not in result.stderr
    assert json.loads(trace.read_text())["error"]["code"] == "AUTH"
    last = documents(as_json)[-1]
    assert (last["type"], last["code"]) == ("error", "AUTH")


def test_nobody_there_is_exit_code_6() -> None:
    """A refused connection says so and how to go on."""
    url = f"http://127.0.0.1:{unused_port()}"
    result = invoke("run", "--model", "m", "--base-url", url, "--option", "max_turns=1", "Hi")
    assert result.exit_code == ExitCode.PROVIDER
    assert "CONNECTION_REFUSED" in result.stderr


async def test_a_trace_that_cannot_be_written_is_exit_code_7(tmp_path: Path) -> None:
    """The answer is given all the same."""
    (tmp_path / "file").write_text("")
    async with answering("Yes.") as upstream:
        result = await ask(upstream, "--trace", str(tmp_path / "file" / "trace.json"), "Hi")
    assert result.exit_code == ExitCode.PARTIAL
    assert result.stdout == "Yes.\n"
    assert "cannot be written" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--option", "max_turn=3", "Hi"), "UNKNOWN_OPTION", "Did you mean 'max_turns'?"),
        (("--option", "max_turns=many", "Hi"), "INVALID_OPTION", "max_turns"),
        (("--preset", "opnerouter", "Hi"), "UNKNOWN_PRESET", "openrouter"),
        (("--tools", "absent.py", "Hi"), "INVALID_TOOL", "absent.py"),
        (("   ",), "INVALID_OPTION", "the question is empty"),
    ],
    ids=["unknown option", "wrong value", "unknown preset", "no file", "no question"],
)
def test_what_is_wrong_before_the_run_is_exit_code_4(
    words: tuple[str, ...], code: str, says: str
) -> None:
    """Nothing is sent, and the error suggests what was meant."""
    url = f"http://127.0.0.1:{unused_port()}"
    result = invoke("run", "--model", "m", "--base-url", url, "--json", *words)
    last = documents(result)[-1]
    assert result.exit_code == ExitCode.USAGE
    assert last["code"] == code
    assert says.lower() in f"{last['message']} {last['hint']}".lower()


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("journal=1", "Use --journal."),
        ("model=y", "Use --model."),
        ("base_url=y", "Use --base-url."),
        ("system=y", "Use --system."),
        ("preset=y", "Use --preset."),
        ("headers.a=y", "Use --header."),
        ("tools=y", "Use --tools."),
        ("api_key=y", "SURECALL_API_KEY"),
        ("on_event=y", "cannot be set on the command line"),
        ("run_id=y", "cannot be set on the command line"),
        ("prompt=y", "There is no option 'prompt'"),
        ("top_p=1", "request_overrides.top_p"),
        ('response_transforms=["absent"]', "absent"),
    ],
)
def test_what_is_not_an_option_says_where_it_belongs(option: str, says: str) -> None:
    """A flag, a variable, or nowhere; nothing is sent and nothing fails inside."""
    url = f"http://127.0.0.1:{unused_port()}"
    result = invoke("run", "--model", "m", "--base-url", url, "--option", option, "Hi")
    assert result.exit_code == ExitCode.USAGE
    assert says in result.stderr
    assert "INTERNAL_ERROR" not in result.stderr


@pytest.mark.parametrize("model", ["zoo:steady", "faults:text_hermes"])
def test_simulated_models_answer_without_a_server(model: str, tools: str) -> None:
    """They are named as in an eval."""
    question = 'call weather with {"city": "Oslo"}'
    found = documents(invoke("run", "--json", "--model", model, "--tools", tools, question))[-1]
    assert (found["type"], [call["name"] for call in found["calls"]]) == ("result", ["weather"])


async def test_common_parameters_are_options_of_a_file(tmp_path: Path) -> None:
    """A file and a variable take the same names as flags."""
    (tmp_path / "surecall.toml").write_text("[options]\ntemperature = 0.5\nseed = 3\n")
    async with answering("Yes.") as upstream:
        result = await ask(upstream, "Hi", SURECALL_OPTIONS__MAX_TOKENS="7")
        assert result.exit_code == ExitCode.OK, result.stderr
    body = json.loads(upstream.requests[0].body)
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.5, 3, 7)


@pytest.mark.parametrize("missing", ["model", "base_url"])
def test_what_is_not_set_is_named(missing: str) -> None:
    """Without a model or an address the error says how to give one."""
    words = {"model": ("--base-url", "http://127.0.0.1:9"), "base_url": ("--model", "m")}
    result = invoke("run", *words[missing], "Hi")
    assert result.exit_code == ExitCode.USAGE
    assert f"SURECALL_{missing.upper()}" in result.stderr


async def test_an_interrupted_run_says_how_to_resume(tmp_path: Path) -> None:
    """Ctrl-C ends with exit code 2, names the journal, and shows no traceback."""
    arrived = asyncio.Event()

    def hang(_request: Received) -> Any:
        arrived.set()
        return HANG

    journal = tmp_path / "run.jsonl"
    async with FaultyUpstream(hang) as upstream:
        words = ("run", "--model", "m", "--base-url", upstream.url, "--journal", str(journal), "Hi")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "surecall",
            *words,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        await asyncio.wait_for(arrived.wait(), 30)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == ExitCode.INTERRUPTED
    assert out == b""
    assert f"--journal {journal}" in err.decode()
    assert "Traceback" not in err.decode()


async def test_a_run_is_resumed_from_its_journal(tools: str, tmp_path: Path) -> None:
    """The same command with the same journal asks only what was not answered yet."""
    words = ("--tools", tools, "--journal", str(tmp_path / "run.jsonl"), "Weather?")
    scripts = [
        reply(called('{"city": "Oslo"}'), finish_reason="tool_calls"),
        http_response(b'{"error": {"message": "no"}}', 400),
        http_response(completion_bytes("Clear.")),
    ]
    async with FaultyUpstream(scripts) as upstream:
        first = await ask(upstream, *words)
        second = await ask(upstream, *words)
        calls = upstream.calls
    assert first.exit_code == ExitCode.PROVIDER
    assert (second.exit_code, second.stdout) == (0, "Clear.\n")
    assert "resumed from its journal" in second.stderr
    assert calls == 3


async def test_an_answer_without_text_is_no_answer(tools: str) -> None:
    """A script that goes on with the answer is told by the exit code, people by a line."""
    async with answering(called('{"city": "Oslo"}'), "", "") as upstream:
        result = await ask(upstream, "--tools", tools, "Weather?")
    assert result.exit_code == ExitCode.NO_ANSWER
    assert "! empty     the answer has no text" in result.stderr
    async with answering("") as upstream:
        result = await ask(upstream, "--json", "Weather?")
    assert result.exit_code == ExitCode.NO_ANSWER
    last = documents(result)[-1]
    assert (last["type"], last["text"], last["empty"]) == ("result", "", True)


async def test_what_strict_schemas_lose_is_shown(tools: str, tmp_path: Path) -> None:
    """The run and its replay name the tool, and JSON has every loss."""
    kept = str(tmp_path / "trace.json")
    words = ("--option", "tool_prompting=strict", "--tools", tools, "--trace", kept)
    async with answering("Clear.", "Clear.") as upstream:
        result = await ask(upstream, *words, "Weather?")
        found = await ask(upstream, *words, "--json", "Weather?")
    line = "! schema    weather, strict: 1 changed  / required"
    assert line in result.stderr
    (loss,) = documents(found)[-1]["schema_losses"]
    assert (loss["tool"], loss["mode"], loss["keyword"]) == ("weather", "strict", "required")
    assert line in invoke("replay", kept).stdout
    assert documents(invoke("replay", kept, "--json"))[-1]["schema_losses"] == [loss]


async def test_common_parameters_are_flags(tools: str) -> None:
    """They reach the request; a header without a value is refused."""
    flags = ("--temperature", "0", "--max-tokens", "9", "--seed", "4", "--stop", "END")
    async with answering("ok") as upstream:
        result = await ask(upstream, *flags, "--header", "x-team=blue", "--timeout", "9", "Hi?")
        refused = await ask(upstream, "--header", "x-team", "Hi?")
    assert result.exit_code == 0, result.stderr
    sent = upstream.requests[0]
    body = json.loads(sent.body)
    assert {name: body[name] for name in ("temperature", "max_tokens", "seed", "stop")} == {
        "temperature": 0.0,
        "max_tokens": 9,
        "seed": 4,
        "stop": ["END"],
    }
    assert sent.headers["x-team"] == "blue"
    assert refused.exit_code == ExitCode.USAGE
    assert "NAME=VALUE" in refused.stderr
