"""Programs are pointed at a gateway: shown, written into their settings, or for one session."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from surecall.gateway.programs import GatewayAddress, find_program, list_programs

from .test_serve_command import run_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it needs a shell and signals")

URL = "http://127.0.0.1:9000"


def run_surecall(
    *words: str, home: Path, environ: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command in an empty home, without anybody's keys."""
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, "-m", "surecall", *words],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        env=plain | {"HOME": str(home)} | (environ or {}),
    )


def ask_shell(script: str, *words: str, home: Path, environ: dict[str, str] | None = None) -> str:
    """Run a script whose $0 is Python, and return what it prints."""
    return subprocess.run(
        ["sh", "-u", "-c", script, sys.executable, *words],
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | (environ or {}),
    ).stdout


@pytest.mark.parametrize("name", list_programs())
def test_every_row_says_something_and_leaves_no_place_open(name: str) -> None:
    """With a model and without, with a key and without."""
    program = find_program(name)
    for at in (GatewayAddress(URL), GatewayAddress(URL, "qwen3", "sk-1")):
        shown = at.lines(program)
        assert shown
        filled = " ".join((shown, *at.arguments(program), at.fill(program.content)))
        assert URL in filled
        assert not any(f"<{place}>" in filled for place in ("url", "model", "key", "own_key"))
    if program.content:
        assert program.file.endswith((".json", ".toml"))
    if "<own_key>" in program.text:
        assert program.keys[0][0] in GatewayAddress(URL).lines(program)
        assert '"sk-1"' in GatewayAddress(URL, key="sk-1").lines(program)


def test_a_shell_takes_every_export_as_it_is(tmp_path: Path) -> None:
    """Whatever a key or a host has in it, nothing of it is run."""
    key = "a b'$(touch made)"
    script = 'eval "$("$0" -m surecall connect shell --url "$1" --key "$2")"; '
    script += 'printf "%s %s" "$OPENAI_API_KEY" "$OPENAI_BASE_URL"'
    shown = ask_shell(script, "http://[::1]:8787/$(touch made)", key, home=tmp_path)
    assert shown == f"{key} http://[::1]:8787/$(touch made)/v1"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"])
def test_exports_leave_the_keys_of_a_shell_alone(tmp_path: Path, name: str) -> None:
    """A stand-in is only for a shell without a key."""
    script = f'eval "$("$0" -m surecall connect shell)"; printf "%s" "${name}"'
    for key in ("sk-of-mine", ""):
        shown = ask_shell(script, home=tmp_path, environ={name: key})
        assert shown == (key or "unused")


def test_a_login_of_another_kind_needs_no_stand_in() -> None:
    """Of several variables that take a key, one is enough."""
    claude, at = find_program("claude"), GatewayAddress(URL, key="unused")
    assert at.environment(claude, {})["ANTHROPIC_AUTH_TOKEN"] == "unused"
    for name in ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"):
        assert "ANTHROPIC_AUTH_TOKEN" not in at.environment(claude, {name: "mine"})


def test_settings_are_added_to_a_file_once_and_the_rest_stays(tmp_path: Path) -> None:
    """Comments, order and other settings of a file are the user's."""
    path = tmp_path / ".codex/config.toml"
    path.parent.mkdir()
    earlier = '# mine\nsandbox_mode = "read-only"\n\n[tools]\nweb_search = true\n'
    path.write_text(earlier)
    done = run_surecall("connect", "codex", "--url", URL, "--write", home=tmp_path)
    assert done.returncode == 0, done.stderr
    text = path.read_text()
    assert earlier.strip() in text
    settings = tomllib.loads(text)
    assert settings["model_provider"] == "surecall"
    assert settings["model_providers"]["surecall"]["base_url"] == f"{URL}/v1"
    assert settings["tools"] == {"web_search": True}
    assert (tmp_path / ".codex/config.toml.before-surecall").read_text() == earlier
    again = run_surecall("connect", "codex", "--url", URL, "--write", home=tmp_path)
    assert "has it" in again.stdout
    assert path.read_text() == text


def test_what_a_user_has_set_is_not_written_over(tmp_path: Path) -> None:
    """Another provider in the file is named, and the file stays."""
    path = tmp_path / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('model_provider = "mine"\n')
    done = run_surecall("connect", "codex", "--write", home=tmp_path)
    assert done.returncode == 4
    assert "'mine'" in done.stderr
    assert path.read_text() == 'model_provider = "mine"\n'


def test_json_settings_are_joined(tmp_path: Path) -> None:
    """Members beside the written ones stay; a file that is no object is refused."""
    path = tmp_path / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text('{"env": {"MINE": "1"}, "theme": "dark"}')
    assert run_surecall("connect", "claude", "--write", home=tmp_path).returncode == 0
    assert json.loads(path.read_text()) == {
        "env": {"MINE": "1", "ANTHROPIC_BASE_URL": "http://127.0.0.1:8787"},
        "theme": "dark",
    }
    path.write_text("[1]")
    assert run_surecall("connect", "claude", "--write", home=tmp_path).returncode == 4
    assert path.read_text() == "[1]"


_ASKS = """
import json, os, sys, urllib.request
tool = {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}}}
body = {
    "model": "faults:arguments_single_quotes",
    "messages": [{"role": "user", "content": 'call get_weather with {"city": "Rome"}'}],
    "tools": [{"type": "function", "function": tool}],
}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
head = {"content-type": "application/json"}
reply = urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head))
call = json.load(reply)["choices"][0]["message"]["tool_calls"][0]["function"]
print(json.loads(call["arguments"]), os.environ["OPENAI_API_KEY"])
sys.exit(int(sys.argv[1]))
"""


def test_a_program_runs_with_a_gateway_of_its_own(tmp_path: Path) -> None:
    """Its calls come right, its exit code is kept, and the end says what was done."""
    with run_command("faults", "serve", "--port", "0", cwd=tmp_path) as (_, upstream):
        words = ("with", sys.executable, "--upstream", upstream, "--", "-c", _ASKS, "7")
        done = run_surecall(*words, home=tmp_path)
    assert done.returncode == 7, done.stderr
    assert done.stdout == "{'city': 'Rome'} unused\n"
    told = done.stderr.splitlines()
    assert told[0] == "surecall: 1 request: 1 repaired"
    assert "replace_quotes" in told[1]
    assert "surecall requests list" in told[2]
    listed = run_surecall("requests", "list", "--json", home=tmp_path)
    assert json.loads(listed.stdout)["requests"][0]["outcome"] == "repaired"


def test_the_end_names_the_codes_of_requests_that_failed(tmp_path: Path) -> None:
    """A program may show nothing of an error, such as one about its key."""
    words = ("with", sys.executable, "--upstream", "http://127.0.0.1:9/v1", "--", "-c", _ASKS, "0")
    done = run_surecall(*words, home=tmp_path)
    assert "surecall: 1 request: 1 failed" in done.stderr
    assert "most often: CONNECT" in done.stderr


def test_a_signal_reaches_the_program_and_the_gateway_ends_with_it(tmp_path: Path) -> None:
    """SIGTERM is the program's to answer."""
    script = "import signal, sys, time\n"
    script += "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
    script += "print('up', flush=True)\ntime.sleep(60)\n"
    words = ("with", sys.executable, "--upstream", "http://127.0.0.1:9/v1", "--", "-c", script)
    with run_command(*words, cwd=tmp_path) as (process, line):
        assert line == "up"
        process.terminate()
        assert process.wait(timeout=100) == 9


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("with", "no-such-program"), "no command 'no-such-program'"),
        (("with", "opencode"), ""),
        (("connect", "codx"), "'codex'"),
        (("connect", "opencode"), "--model"),
        (("connect", "curl", "--write"), "no file"),
    ],
    ids=[
        " ".join(words)
        for words in ("with unknown", "with opencode", "codx", "no model", "no file")
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """In a sentence that names the way out."""
    done = run_surecall(*words, home=tmp_path)
    assert done.returncode == 4
    assert said in done.stderr
    assert "fix" in done.stderr
