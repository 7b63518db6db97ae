"""What the gateway writes to standard error: sentences or JSON, and one line for each request."""

import json
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from surecall.base.errors import Code, StoreError, explain
from surecall.gateway.log import set_up_log

from .harness import (
    ask,
    chat,
    completion,
    free_port,
    make_settings,
    reply,
    serve_gateway,
    serve_stub,
)
from .test_serve_command import ask as ask_command
from .test_serve_command import run_command

CHAT = "/v1/chat/completions"


@pytest.fixture
def _own_log() -> Iterator[None]:
    logger = logging.getLogger("surecall")
    before = logger.handlers, logger.propagate, logger.level
    yield
    logger.handlers, logger.propagate, logger.level = before
    logging.getLogger("surecall.requests").setLevel(logging.NOTSET)


async def _serve_some(form: str, folder: Path) -> None:
    """Answer one request by a fallback, and refuse one at the entrance."""
    async with serve_stub([reply(completion())]) as stub:
        text = (
            f'[upstreams.a]\nurl = "http://127.0.0.1:{free_port()}/v1"\nprobe = "off"\n'
            f'[upstreams.b]\nurl = "{stub.url}"\nprobe = "off"\n'
            '[routes.smart]\ntargets = [{upstream = "a", model = "x"}]\n'
            'fallbacks = [{upstream = "b", model = "y"}]\n'
            f'[log]\nformat = "{form}"\nrequests = true\n'
        )
        settings = make_settings(folder, text)
        set_up_log(settings.log.format)
        async with serve_gateway(settings) as served:
            assert (await ask(served, "POST", CHAT, chat("smart"))).status == 200
            assert (await ask(served, "GET", "/nowhere")).status == 404


@pytest.mark.usefixtures("_own_log")
async def test_a_request_leaves_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what was asked, who answered, how long it took, and what failed before."""
    await _serve_some("text", tmp_path)
    answered, refused = capsys.readouterr().err.splitlines()
    moment, level, sentence = answered.split(" ", 2)
    assert moment.endswith("Z")
    assert level == "info"
    assert " for smart got 200 from b in " in sentence
    assert sentence.endswith("clean, attempts: a CONNECTION_REFUSED, b answered.")
    assert refused.endswith("GET /nowhere got 404: NOT_FOUND.")


@pytest.mark.usefixtures("_own_log")
async def test_a_request_leaves_one_object_of_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same as fields, beside the sentence."""
    await _serve_some("json", tmp_path)
    answered, refused = map(json.loads, capsys.readouterr().err.splitlines())
    assert answered["event"] == "request"
    assert (answered["status"], answered["upstream"], answered["model"]) == (200, "b", "smart")
    assert [item["upstream"] for item in answered["attempts"]] == ["a", "b"]
    assert answered["attempts"][0]["error"] == "CONNECTION_REFUSED"
    assert (refused["event"], refused["path"], refused["status"]) == ("refused", "/nowhere", 404)


@pytest.mark.usefixtures("_own_log")
def test_what_repeats_is_written_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a minute; ids of requests make no difference, and the next line has the count."""
    now = [1000.0]
    monkeypatch.setattr("surecall.gateway.log.time.monotonic", lambda: now[0])
    set_up_log("text")
    log = logging.getLogger("surecall.gateway")
    for number in range(17):
        log.error("Request %025x was not recorded: %s", number, "The disk is full.")
    log.error("Request %025x was not recorded: %s", 1, "The server is away.")
    now[0] += 61
    log.error("Request %025x was not recorded: %s", 99, "The disk is full.")
    first, other, later = capsys.readouterr().err.splitlines()
    assert "The disk is full." in first
    assert "The server is away." in other
    assert later.endswith("The disk is full. (16 more since the last time)")


def test_errors_are_explained_in_words() -> None:
    """No notation of Python, and no code where there is a sentence."""
    assert explain(StoreError(Code.STORE_WRITE_FAILED, "The disk is full.")) == "The disk is full."
    assert explain(OSError(28, "No space left", "/x")) == "OSError: No space left"
    assert explain(KeyError()) == "KeyError"


def test_the_command_logs_requests(tmp_path: Path) -> None:
    """`--log json` writes an object for each, whatever the file says."""
    with run_command("faults", "serve", cwd=tmp_path) as (_, upstream):
        words = ("serve", "--upstream", upstream, "--port", "0", "--store", "off", "--log", "json")
        with run_command(*words, cwd=tmp_path, env=os.environ) as (process, url):
            ask_command(url)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=100)
    (line,) = [json.loads(line) for line in err.splitlines() if '"event":"request"' in line]
    assert (line["outcome"], line["calls"], line["status"]) == ("repaired", 1, 200)
