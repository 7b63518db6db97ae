"""A real, small model inside this process."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import surecall
from surecall.base.errors import Code, ConfigError, ProviderStatusError, SetupError
from surecall.base.records import WireRequest
from surecall.models.profiles import find_weights
from surecall.models.transport import EmbeddedTransport, close_engines, load_embedded
from surecall.models.transport.weights import locate_weights

SMALL = find_weights("smollm2-135m")
N_CTX = 2048


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder of its own, so that nothing is left on the machine."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module", autouse=True)
def unload() -> Any:
    """Unload the model after the last test."""
    yield
    close_engines()


@pytest.fixture
async def transport(cache: Path) -> AsyncIterator[EmbeddedTransport]:
    """A transport to the model, which is loaded once for all tests."""
    async with EmbeddedTransport(SMALL, n_ctx=N_CTX, cache_dir=cache) as opened:
        yield opened


def chat(text: str = "Name an animal.", **fields: Any) -> WireRequest:
    """A request for a short answer."""
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 8, **fields}
    return WireRequest(path="/chat/completions", body=body, stream=bool(fields.get("stream")))


async def answer(transport: EmbeddedTransport, request: WireRequest) -> dict[str, Any]:
    """Send a request and parse the answer."""
    return json.loads((await transport.send(request)).body)


async def text_of(transport: EmbeddedTransport, request: WireRequest) -> str:
    """Send a request and return what the model wrote."""
    return (await answer(transport, request))["choices"][0]["message"]["content"]


async def test_a_whole_answer(transport: EmbeddedTransport) -> None:
    """It has the model's name, the cause of its end, and the count of tokens."""
    reply = await answer(transport, chat(ignore_eos=True))
    assert reply["model"] == "smollm2-135m"
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["usage"]["completion_tokens"] == 8


async def test_a_streamed_answer_is_the_whole_one(transport: EmbeddedTransport) -> None:
    """The pieces of a stream with the same seed make up the same text."""
    whole = await text_of(transport, chat(seed=3, temperature=0.9))
    async with transport.stream(chat(seed=3, temperature=0.9, stream=True)) as stream:
        lines = b"".join([piece async for piece in stream]).decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    events = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == whole


async def test_a_seed_repeats_the_text(transport: EmbeddedTransport) -> None:
    """The same seed gives the same text at a high temperature; others give others."""
    texts = [
        await text_of(transport, chat(seed=seed, temperature=0.9, max_tokens=16))
        for seed in (7, 7, 8, 9)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 3


async def test_a_schema_holds_the_answer(transport: EmbeddedTransport) -> None:
    """With json_schema the text can be nothing else."""
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "c", "schema": schema, "strict": True}}
    asked = chat("Hello", response_format=form, max_tokens=40, temperature=0)
    text = await text_of(transport, asked)
    assert json.loads(text) in ({"colour": "red"}, {"colour": "blue"})


async def test_a_grammar_holds_the_answer(transport: EmbeddedTransport) -> None:
    """A grammar of llama.cpp is passed on."""
    grammar = 'root ::= "yes" | "no"'
    assert await text_of(transport, chat("Hello", grammar=grammar)) in {"yes", "no"}


async def test_too_much_for_the_context_is_told(transport: EmbeddedTransport) -> None:
    """The request is refused with the numbers, and the hint names the setting."""
    with pytest.raises(ProviderStatusError) as caught:
        await transport.send(chat("word " * N_CTX))
    assert (caught.value.code, caught.value.status) == (Code.BAD_REQUEST, 400)
    assert f"({N_CTX} tokens)" in caught.value.message
    assert "local.n_ctx" in (caught.value.hint or "")


async def test_another_wire_format_is_told(transport: EmbeddedTransport) -> None:
    """A path the engine does not have comes with a word about the one it has."""
    with pytest.raises(ProviderStatusError) as caught:
        await transport.send(WireRequest(path="/gemini/none", body={}))
    assert caught.value.code == Code.NOT_FOUND
    assert "only chat completions" in (caught.value.hint or "")


async def test_requests_may_overlap(transport: EmbeddedTransport) -> None:
    """More requests than there are places are all answered."""
    replies = await asyncio.gather(*(answer(transport, chat(str(n))) for n in range(4)))
    assert len({reply["id"] for reply in replies}) == 4


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_giving_up_ends_the_generation(transport: EmbeddedTransport, streamed: bool) -> None:
    """When both places were taken by answers nobody waits for, the next request is answered."""
    endless = chat(max_tokens=N_CTX - 100, ignore_eos=True, stream=streamed)

    async def ask() -> None:
        if not streamed:
            await transport.send(endless)
            return
        async with transport.stream(endless) as stream:
            async for _ in stream:
                return

    tasks = [asyncio.create_task(ask()) for _ in range(2)]
    if streamed:
        await asyncio.gather(*tasks)
    else:
        await asyncio.sleep(0.3)
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(item) for item in done] == [asyncio.CancelledError] * 2
    async with asyncio.timeout(60):
        assert (await answer(transport, chat(max_tokens=1)))["usage"]["completion_tokens"] == 1


async def test_a_template_without_tools_is_found_out(transport: EmbeddedTransport) -> None:
    """The model never sees tools, whatever the server accepts."""
    assert await transport.template_shows_tools() is False


async def test_the_engine_answers_nobody_else(transport: EmbeddedTransport, cache: Path) -> None:
    """Its port is on loopback only, and it wants a key."""
    import aiohttp

    await transport.open()
    engine = load_embedded(SMALL, n_ctx=N_CTX, cache_dir=cache)
    assert engine.address.startswith("http://127.0.0.1:")
    assert engine.api_key.reveal() not in repr(engine.__dict__)
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    async with aiohttp.ClientSession() as session:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            url = f"{engine.address}/v1/chat/completions"
            async with session.post(url, json=body, headers=headers) as response:
                assert response.status == 401
                assert response.headers.get("Access-Control-Allow-Origin", "") == ""


def test_callers_at_once_share_one_load(cache: Path) -> None:
    """Whoever comes while the model is loading waits for it and gets the same."""
    engines: list[Any] = []
    start = threading.Barrier(3)

    def load() -> None:
        start.wait()
        engines.append(load_embedded(SMALL, n_ctx=512, cache_dir=cache))

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(engines) == 3
    assert len(set(map(id, engines))) == 1
    assert load_embedded(SMALL, n_ctx=N_CTX, cache_dir=cache) is not engines[0]


async def test_a_transport_can_be_used_after_closing(cache: Path) -> None:
    """Closing gives up connections, not the model."""
    transport = EmbeddedTransport(SMALL, n_ctx=N_CTX, cache_dir=cache)
    await transport.send(chat(max_tokens=1))
    await transport.aclose()
    await transport.aclose()
    await transport.send(chat(max_tokens=1))
    await transport.aclose()


async def test_a_run_needs_no_address(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """The name of the model is enough, and an address of the environment is not used."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("SURECALL_CACHE_DIR", str(cache))
    monkeypatch.setenv("SURECALL_LOCAL__N_CTX", str(N_CTX))
    result = await surecall.run(
        "Name an animal.",
        model="embedded:smollm2-135m",
        request_overrides={"max_tokens": 4, "ignore_eos": True},
    )
    assert result.cut
    assert result.usage.output_tokens == 4


async def test_a_file_of_your_own_is_named_by_its_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Relative to the current folder, and called by its name in answers."""
    path = locate_weights(SMALL, None)
    assert path is not None
    (tmp_path / "own.gguf").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SURECALL_LOCAL__N_CTX", "256")
    result = await surecall.run(
        "Hi", model="embedded:own.gguf", request_overrides={"max_tokens": 1, "ignore_eos": True}
    )
    assert result.trace.turns[0].answered_by == "own"


@pytest.mark.parametrize(
    ("model", "code"),
    [
        pytest.param("embedded:smolm2-135m", Code.UNKNOWN_MODEL, id="misspelt"),
        pytest.param("embedded:", Code.UNKNOWN_MODEL, id="no name"),
        pytest.param("embedded:none.gguf", Code.MODEL_WEIGHTS_MISSING, id="no file"),
        pytest.param("embedded:./notes", Code.MODEL_WEIGHTS_MISSING, id="a path"),
    ],
)
async def test_a_model_that_is_not_there(model: str, code: Code) -> None:
    """The code tells a wrong name from a missing file."""
    with pytest.raises(SetupError) as caught:
        await surecall.run("Hi", model=model)
    assert caught.value.code == code


async def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    """What begins like a model and is none is refused by the engine."""
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(200))
    with pytest.raises(SetupError) as caught:
        await EmbeddedTransport(path).send(chat())
    assert caught.value.code == Code.MODEL_NOT_LOADABLE


def test_without_the_engine_its_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    """The command to install it is in the error."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(SetupError) as caught:
        load_embedded(SMALL, n_ctx=300, cache_dir=cache)
    assert caught.value.code == Code.ENGINE_MISSING
    assert caught.value.hint == "Run: pip install 'surecall[local]'"


@pytest.mark.parametrize("settings", [{"n_ctx": 0}, {"threads": 0}], ids=["n_ctx", "threads"])
def test_settings_that_cannot_be(settings: dict[str, int]) -> None:
    """They are refused before anything is loaded."""
    with pytest.raises(SetupError, match="INVALID_CONFIG"):
        EmbeddedTransport(SMALL, **settings)  # type: ignore[arg-type] - the names are right


EXIT = """
import asyncio, sys, threading
from surecall.models.profiles import find_weights
from surecall.base.records import WireRequest
from surecall.models.transport import EmbeddedTransport

body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 900, "ignore_eos": True}
started = threading.Event()

async def ask():
    weights = find_weights("smollm2-135m")
    request = WireRequest(path="/chat/completions", body={**body, "stream": True}, stream=True)
    async with EmbeddedTransport(weights, n_ctx=1024, cache_dir=sys.argv[1]) as transport:
        async with transport.stream(request) as stream:
            async for piece in stream:
                started.set()

def work():
    try:
        asyncio.run(ask())
    except asyncio.CancelledError:
        pass
    except RuntimeError:  # of asyncio.run itself, which ends with a thread that 3.12 refuses it
        assert sys.version_info[:2] == (3, 12)

threading.Thread(target=work, daemon=True).start()
assert started.wait(40)
print("leaving")
"""


def test_a_process_ends_cleanly_while_a_model_writes(cache: Path) -> None:
    """Neither a crash of the engine nor a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", EXIT, str(cache)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "leaving\n")
    assert "Traceback" not in done.stderr


def test_an_embedded_model_is_not_taken_for_another() -> None:
    """What the catalog knows of one embedded model does not hold for a file of your own."""
    from surecall.models.profiles import Catalog

    catalog = Catalog.builtin()
    known = catalog.find("embedded:smollm2-135m")
    assert known is not None
    assert known.capabilities["supports_tool_use"] is False
    assert catalog.find("embedded:own.gguf") is None


def test_errors_are_configuration_errors() -> None:
    """A misspelt name is caught by whoever catches wrong settings."""
    with pytest.raises(ConfigError):
        find_weights("no-such-model")
