"""`surecall models serve`: the real model behind a port of its own."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.cli import ExitCode

from .harness import invoke


@dataclass
class Served:
    """A running command and the address it told."""

    process: "subprocess.Popen[str]"
    address: str

    def ask(
        self, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, Any] | str]:
        """Send a request and return the status and the answer."""
        given = {"Content-Type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        request = urllib.request.Request(self.address + path, body, given)
        try:
            with urllib.request.urlopen(request, timeout=100) as response:
                status, data = response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            status, data = error.code, error.read().decode()
        return status, json.loads(data) if data.startswith("{") else data


def chat(**fields: Any) -> bytes:
    """The body of a small request."""
    whole = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3, **fields}
    return json.dumps(whole).encode()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The command, running."""
    words = [sys.executable, "-m", "surecall", "models", "serve", "smollm2-135m"]
    with subprocess.Popen(
        [*words, "--port", "0", "--n-ctx", "512", "--json"],
        cwd=tmp_path_factory.mktemp("serve"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield Served(process, json.loads(process.stdout.readline())["address"])
        finally:
            process.kill()


CHAT = "/v1/chat/completions"


def test_models_are_listed(served: Served) -> None:
    """The one model, by its short name."""
    status, answer = served.ask("/v1/models")
    assert status == 200
    assert isinstance(answer, dict)
    assert [row["id"] for row in answer["data"]] == ["smollm2-135m"]


def test_an_answer_comes_whole_or_streamed(served: Served) -> None:
    """As chat completions, with usage."""
    status, answer = served.ask(CHAT, chat(ignore_eos=True))
    assert status == 200
    assert isinstance(answer, dict)
    assert answer["usage"]["completion_tokens"] == 3
    status, text = served.ask(CHAT, chat(stream=True))
    assert status == 200
    assert isinstance(text, str)
    assert text.endswith("data: [DONE]\n\n")


@dataclass(frozen=True)
class Refused:
    id: str
    body: bytes
    status: int
    code: str
    headers: dict[str, str]


REFUSED = [
    Refused("no JSON", b"{", 400, "INVALID_JSON", {}),
    Refused("no object", b"[]", 400, "INVALID_REQUEST", {}),
    Refused("a form", chat(), 415, "UNSUPPORTED_CONTENT_TYPE", {"Content_Type": "text/plain"}),
    Refused("another host", chat(), 403, "FOREIGN_HOST", {"Host": "example.com"}),
    Refused("too long", chat(max_tokens="x" * 3), 400, "BAD_REQUEST", {}),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_is_no_request_is_refused(case: Refused, served: Served) -> None:
    """With a status and a code, whoever asks."""
    status, answer = served.ask(CHAT, case.body, **case.headers)
    assert isinstance(answer, dict)
    assert (status, answer["error"]["code"]) == (case.status, case.code)


def test_a_taken_port_is_told(served: Served) -> None:
    """The address of the first command cannot be used by a second."""
    port = served.address.rpartition(":")[2]
    result = invoke("models", "serve", "smollm2-135m", "--port", port, "--n-ctx", "512")
    assert result.exit_code == ExitCode.USAGE
    assert f"Port {port} cannot be used" in result.stderr


def test_ctrl_c_ends_it_cleanly(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also while it writes an answer: no traceback, and exit code 0."""
    words = [sys.executable, "-m", "surecall", "models", "serve", "smollm2-135m"]
    with subprocess.Popen(
        [*words, "--port", "0", "--json"],
        cwd=tmp_path_factory.mktemp("serve"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["address"]
            request = urllib.request.Request(
                address + CHAT,
                chat(stream=True, ignore_eos=True, max_tokens=3500),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as response:
                assert response.readline().startswith(b"data: ")
                process.send_signal(signal.SIGINT)
                out, problems = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, problems) == (0, "")
    assert json.loads(out)["type"] == "stopped"
