"""`surecall serve` as a process: it says when it is ready, reloads, drains, and shares its work."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from surecall.gateway.programs import SHELL, GatewayAddress, find_program, render_snippets
from surecall.gateway.settings.load import load_settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it needs signals")


@contextmanager
def run_command(
    *words: str, cwd: Path, env: Mapping[str, str] = os.environ
) -> Generator[tuple["subprocess.Popen[str]", str]]:
    """Run a command that serves, and return it with the address it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "surecall", *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**env, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line, process.stderr.read() if process.stderr else ""
        yield process, line.removeprefix("ready on ")
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=100)


def ask(url: str, model: str = "faults:arguments_single_quotes") -> Any:
    """Return the reply to a request that should give a call."""
    tool = {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}}}
    body = {
        "model": model,
        "messages": [{"role": "user", "content": 'call get_weather with {"city": "Rome"}'}],
        "tools": [{"type": "function", "function": tool}],
    }
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=100) as answer:
        return json.load(answer)


def read_metrics(url: str) -> str:
    """Return the metrics, as whichever worker gives them."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=100) as answer:
        return answer.read().decode()


def call_of(document: Any) -> Any:
    """Return the arguments of the call in a reply."""
    function = document["choices"][0]["message"]["tool_calls"][0]["function"]
    return json.loads(function["arguments"])


def test_serve_from_start_to_end(tmp_path: Path) -> None:
    """Ready, a repaired call, a reload that is refused, an orderly end, and a record."""
    with run_command("faults", "serve", cwd=tmp_path) as (_, upstream):
        config = tmp_path / "gateway.toml"
        config.write_text(f'[upstreams.a]\nurl = "{upstream}"\n')
        words = ("serve", "--config", "gateway.toml", "--port", "0", "--store", "kept/requests.db")
        with run_command(*words, cwd=tmp_path) as (process, url):
            assert url.startswith("http://127.0.0.1:")
            assert process.stdout is not None
            assert any("surecall connect NAME" in process.stdout.readline() for _ in range(8))
            assert call_of(ask(url)) == {"city": "Rome"}
            config.write_text("[upstreams]\na = 1\n")
            process.send_signal(signal.SIGHUP)
            time.sleep(0.2)
            assert call_of(ask(url)) == {"city": "Rome"}
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=100)
            assert process.returncode == 0
            assert "the old ones stay" in err
    listed = subprocess.run(
        [
            sys.executable,
            "-m",
            "surecall",
            "requests",
            "list",
            "--store",
            "kept/requests.db",
            "--json",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.count('"repaired"') == 2


def test_several_workers_share_one_address(tmp_path: Path) -> None:
    """Each has its own file, one that dies is replaced, and all end together."""
    with run_command("faults", "serve", cwd=tmp_path) as (_, upstream):
        words = (
            "serve",
            "--upstream",
            upstream,
            "--port",
            "0",
            "--workers",
            "2",
            "--store",
            "r.db",
        )
        with run_command(*words, cwd=tmp_path) as (process, url):
            for _ in range(4):
                assert call_of(ask(url)) == {"city": "Rome"}
            end = time.monotonic() + 60
            while 'outcome="repaired"} 4' not in read_metrics(url):  # of all workers together
                assert time.monotonic() < end
                time.sleep(0.05)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            if children.exists():
                before = children.read_text().split()
                assert len(before) == 2
                os.kill(int(before[0]), signal.SIGKILL)
                end = time.monotonic() + 60
                while set(children.read_text().split()) <= set(before):
                    assert time.monotonic() < end
                    time.sleep(0.02)
                assert call_of(ask(url)) == {"city": "Rome"}
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=100)
            assert process.returncode == 0
    assert (tmp_path / "r.db").exists()


def test_serve_refuses_to_be_reached_without_a_key(tmp_path: Path) -> None:
    """Off loopback there must be a key; a port in use is said so."""
    words = [sys.executable, "-m", "surecall", "serve", "--upstream", "http://127.0.0.1:1"]
    done = subprocess.run(
        [*words, "--host", "0.0.0.0"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert "no key" in done.stderr


_ASKS = """
import os, urllib.error, urllib.request
body = b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}'
key = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
key["content-type"] = "application/json"
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
try:
    urllib.request.urlopen(urllib.request.Request(url, body, key))
except urllib.error.HTTPError:
    pass
"""


@pytest.mark.parametrize("protocol", ["chat_completions", "responses", "messages", "gemini"])
def test_a_recipe_reaches_an_upstream_that_demands_a_key(tmp_path: Path, protocol: str) -> None:
    """The user's key arrives, or else the gateway's own, whatever the upstream speaks."""
    with demand_key("sk-of-mine") as (url, seen):
        (tmp_path / "gateway.toml").write_text(
            f'[upstreams.up]\nurl = "{url}"\nprovider = "groq"\nprotocol = "{protocol}"\n'
            'probe = "off"\n'
        )
        for serving, asking in (
            ({}, {"OPENAI_API_KEY": "sk-of-mine"}),
            (
                {"GROQ_API_KEY": "sk-of-mine"},
                {},
            ),
        ):
            script = 'eval "$("$0" -m surecall connect shell --url "$1")"; exec "$0" -c "$2"'
            words = ("serve", "--config", "gateway.toml", "--port", "0", "--store", "off")
            plain = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
            with run_command(*words, cwd=tmp_path, env=plain | serving) as (_, served):
                subprocess.run(
                    ["sh", "-c", script, sys.executable, served, _ASKS],
                    cwd=tmp_path,
                    capture_output=True,
                    check=True,
                    env=plain | asking,
                )
        assert seen == ["sk-of-mine", "sk-of-mine"]


@contextmanager
def demand_key(key: str) -> Generator[tuple[str, list[str]]]:
    """Serve an upstream that refuses every other key, and note the keys that it sees."""
    seen: list[str] = []

    class Demanding(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            bearer = (self.headers["authorization"] or "").removeprefix("Bearer ")
            given = bearer or self.headers["x-api-key"] or self.headers["x-goog-api-key"]
            seen.append(given)
            self.send_response(400 if given == key else 401)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:  # pyright: ignore
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Demanding)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", None),
        ('provider = "ollama"\nkey = "none"', "unused"),
        ('provider = "groq"', "unused"),
        ('provider = "mistral"', None),
        ('provider = "groq"\nkey = "none"', "unused"),
    ],
)
def test_snippets_offer_a_stand_in_only_where_no_key_is_needed(
    tmp_path: Path, text: str, key: str | None
) -> None:
    """Elsewhere a client reads its own key, and no line puts another in its place."""
    path = tmp_path / "gateway.toml"
    path.write_text(f'[upstreams.up]\nurl = "http://127.0.0.1:9/v1"\n{text}\n')
    settings = load_settings(path, environ={"GROQ_API_KEY": "sk-of-the-gateway"})
    assert settings.example_key == key
    at = GatewayAddress("http://127.0.0.1:8787", "m", settings.example_key)
    shown = "".join(lines for _, lines in render_snippets(at))
    assert ('api_key="unused"' in shown) == (key is not None)
    assert at.environment(find_program(SHELL), {}).get("OPENAI_API_KEY") == key
    assert "sk-of-the-gateway" not in shown


def test_check_shows_what_would_run_or_every_error(tmp_path: Path) -> None:
    """Nothing listens and no key is shown; what is wrong is all there."""
    words = (sys.executable, "-m", "surecall", "serve", "--check", "--config", "gateway.toml")
    environ = {**os.environ, "OUR_KEY": "key-of-the-upstream-1234"}

    def check(text: str) -> "subprocess.CompletedProcess[str]":
        (tmp_path / "gateway.toml").write_text(text)
        return subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, env=environ, check=False
        )

    sound = check(
        '[upstreams.a]\nurl = "http://127.0.0.1:1/v1"\napi_key_env = "OUR_KEY"\n'
        '[routes.fast]\ntargets = [{upstream = "a", model = "m"}]\n'
    )
    assert sound.returncode == 0
    for shown in ("http://127.0.0.1:8787", "http://127.0.0.1:1/v1", "$OUR_KEY", "fast: a/m"):
        assert shown in sound.stdout
    assert environ["OUR_KEY"] not in sound.stdout
    wrong = check("[server]\nprot = 1\nhots = 'x'\n")
    assert wrong.returncode != 0
    assert "line 2: server.prot" in wrong.stderr
    assert "line 3: server.hots" in wrong.stderr
