"""`surecall mcp`, asked by the official client, and the commands that look at other servers."""

import json
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from mcp import Client, StdioServerParameters

import surecall
from surecall.cli import cli
from surecall.cli.console import ExitCode
from surecall.cli.mcp import FUNCTIONS
from surecall.tools.mcp.server import make_server

SOURCES = str(Path(surecall.__file__).parents[1])
TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}


def launch(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run the command as a process, in which nothing listens to logs."""
    return subprocess.run(
        [sys.executable, "-m", "surecall", *words],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "PYTHONPATH": SOURCES},
    )


async def ask(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a tool of the server and return its structured answer."""
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error
    return answer.structured_content


async def test_the_official_client_can_use_every_tool_over_stdio() -> None:
    """The command line serves until its input ends."""
    words = ["-m", "surecall", "mcp"]
    server = StdioServerParameters(command=sys.executable, args=words, env={"PYTHONPATH": SOURCES})
    async with Client(server) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == [
            "read_reply",
            "repair_json",
            "check_schema",
            "explain",
        ]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed)
        assert all("\nArgs:\n    " in (tool.description or "") for tool in listed)
        text = '<tool_call>{"name": "add", "arguments": {"a": "1",}}</tool_call>'
        reading = await ask(client, "read_reply", reply=text, tools=[TOOL])
        assert reading["calls"][0]["arguments"] == {"a": 1}
        assert reading["calls"][0]["receipts"]


async def test_text_that_is_nothing_but_json_is_read_as_text() -> None:
    """A bare call is a call; whole messages are still taken as text and as objects."""
    call = {"name": "add", "arguments": {"a": 1}}
    function = {"name": "add", "arguments": '{"a": 1}'}
    message = {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}
    async with Client(make_server("", FUNCTIONS)) as client:
        for reply in (json.dumps(call), json.dumps([call]), json.dumps(message), message):
            reading = await ask(client, "read_reply", reply=reply, tools=[TOOL])
            assert reading["calls"][0]["arguments"] == {"a": 1}


async def test_what_cannot_be_done_is_an_answer_with_a_code() -> None:
    """An agent reads the code and what to do; nothing is raised inside the server."""
    async with Client(make_server("", FUNCTIONS)) as client:
        assert (await ask(client, "repair_json", text="{'a': 1,}"))["value"] == {"a": 1}
        assert (await ask(client, "repair_json", text='{"a": "x'))["state"] == "cut"
        closed = await ask(client, "repair_json", text='{"a": "x', close_cut=True)
        assert closed["value"] == {"a": "x"}
        checked = await ask(client, "check_schema", parameters={"type": "object"}, name="a b")
        rules = [finding["rule"] for finding in checked["findings"]]
        assert rules == ["name_characters", "description_missing"]
        wrong = await ask(client, "check_schema", parameters={"type": "obj"})
        assert wrong["error"]["code"] == "INVALID_SCHEMA"
        found = await ask(client, "explain", name="tool_timeout")
        assert found["found"][0]["name"] == "TOOL_TIMEOUT"
        unknown = await ask(client, "explain", name="zzz")
        assert unknown["error"]["code"] == "UNKNOWN_CODE"
        nothing = await ask(client, "read_reply", reply={"choices": []})
        assert nothing["error"]["code"] == "UPSTREAM_NO_CHOICES"


def test_tools_of_a_server_are_listed_and_pinned(plain: list[str], tmp_path: Path) -> None:
    """The list compares with the pins, and `pin` approves what is there."""
    pins, target = str(tmp_path / "pins.json"), shlex.join(plain)
    invoke = CliRunner().invoke
    words = ["mcp", "tools", target, "--name", "s", "--pins", pins, "--json"]
    looked = invoke(cli, words)
    assert f"{pins} has no pins of s" in looked.stderr
    before = json.loads(looked.stdout)
    assert (before["tools"][0]["server_name"], before["tools"][0]["pinned"]) == ("say", None)
    assert list(before["left_out"]) == ["bad"]
    pinned = invoke(cli, ["mcp", "pin", target, "--name", "s", "--pins", pins])
    assert pinned.stdout.startswith("pinned 2 tools of s")
    assert json.loads(invoke(cli, words).stdout)["tools"][0]["pinned"] is True
    assert "s__say" in invoke(cli, words[:-1]).stdout


def test_the_first_use_of_pins_is_said(plain: list[str], tmp_path: Path) -> None:
    """A mistyped file would approve everything; the second run has nothing to say."""
    pins = tmp_path / "typo.json"
    flags = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--option", "max_turns=1"]
    words = ["run", "Hi", "--mcp", shlex.join(plain), "--mcp-pins", str(pins), *flags]
    said = f"pinned 2 tools of plain_server in {pins} (first use)"
    assert launch(*words).stderr.splitlines().count(said) == 1
    assert said not in launch(*words).stderr


def test_pins_are_for_a_server() -> None:
    """A flag is never ignored."""
    result = CliRunner().invoke(cli, ["run", "Hi", "--mcp-pins", "pins.json", "--json"])
    assert result.exit_code == ExitCode.USAGE
    assert "--mcp" in json.loads(result.stdout)["message"]
    result = CliRunner().invoke(cli, ["mcp", "--http", "9", "tools", "server", "--json"])
    assert result.exit_code == ExitCode.USAGE


def test_a_server_that_talks_nonsense_is_one_error() -> None:
    """What the SDK logs about it is for `--debug`."""
    target = shlex.join([sys.executable, "-c", "print(1)"])
    plainly = launch("mcp", "tools", target)
    assert plainly.returncode == ExitCode.PROVIDER
    assert plainly.stderr.startswith("✗ TOOL_SERVER_UNREACHABLE")
    assert "Traceback" not in plainly.stderr
    assert "JSONRPC" in launch("mcp", "tools", target, "--debug").stderr


def test_a_port_that_is_taken_is_an_error_with_a_code() -> None:
    """Before anything is served."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(cli, ["mcp", "--http", str(port), "--json"])
    error = json.loads(result.stdout)
    assert (result.exit_code, error["code"]) == (ExitCode.USAGE, "INVALID_OPTION")
    assert error["message"] == f"cannot listen on 127.0.0.1:{port}: Address already in use."


def test_a_description_of_several_lines_is_listed_as_words(plain: list[str]) -> None:
    """No escape stands for the lines and the indentation that a docstring has."""
    target = shlex.join(["env", "DESCRIPTION=Say it.\n\n    Args:\n        word: What.", *plain])
    shown = CliRunner().invoke(cli, ["mcp", "tools", target, "--name", "s"], env={"COLUMNS": "120"})
    assert "Say it. Args: word: What." in shown.stdout


def test_a_run_takes_tools_of_a_server_by_a_flag(plain: list[str]) -> None:
    """The run fails at the provider, which shows that the server was there; without it, before."""
    flags = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--option", "max_turns=1"]
    result = CliRunner().invoke(cli, ["run", "Hi", "--mcp", shlex.join(plain), *flags, "--json"])
    codes = [json.loads(line).get("code") for line in result.stdout.splitlines()]
    assert codes[-1] == "CONNECTION_REFUSED"
    result = CliRunner().invoke(
        cli, ["run", "Hi", "--mcp", "/nonexistent/server", *flags, "--json"]
    )
    assert json.loads(result.stdout.splitlines()[-1])["code"] == "TOOL_SERVER_UNREACHABLE"
    assert result.exit_code == ExitCode.PROVIDER
