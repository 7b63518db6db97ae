"""Limits, clients that leave, changes of the settings, and the end of a gateway."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from surecall.gateway.settings.load import load_settings

from .harness import (
    STREAM_END,
    STREAM_HEAD,
    KeptRecords,
    Served,
    ask,
    chat,
    completion,
    make_settings,
    piece,
    reply,
    serve_gateway,
    serve_stub,
    serve_stubbed,
)

CHAT = "/v1/chat/completions"
HANG = 30.0


class SlowRecords(KeptRecords):
    """Keeps a record only when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def add(self, record: Any) -> None:
        self.is_asked.set()
        try:
            await self.may_go_on.wait()
        finally:  # also when nobody waits any more
            self.records.append(record)


async def begin(
    served: Served, body: Any, **headers: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send a request and leave its answer to the test."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    data = json.dumps(body).encode()
    lines = [f"POST {CHAT} HTTP/1.1", f"host: 127.0.0.1:{served.port}"]
    lines += ["content-type: application/json", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + data)
    return reader, writer


async def until(check: Any, limit_s: float = 60.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + limit_s
    while not check():
        assert time.monotonic() < end, "it took too long"
        await asyncio.sleep(0.01)


# clients that leave

PHASES: dict[str, tuple[list[Any], dict[str, Any], dict[str, str]]] = {
    "before the head": ([HANG], {}, {}),
    "before the head of a stream": ([HANG], {"stream": True}, {}),
    "before the first event": ([STREAM_HEAD, HANG], {"stream": True}, {}),
    "inside a stream": ([STREAM_HEAD, piece("Hello"), HANG], {"stream": True}, {}),
    "inside a whole reply": ([reply(completion())[:90], HANG], {}, {}),
    "untouched": ([STREAM_HEAD, piece("Hi"), HANG], {"stream": True}, {"x_surecall": "off"}),
}


@pytest.mark.parametrize("phase", PHASES)
async def test_a_client_that_leaves_ends_the_request_upstream(phase: str, tmp_path: Path) -> None:
    """The upstream's connection is closed, and the request is recorded."""
    steps, fields, headers = PHASES[phase]
    async with serve_stubbed(tmp_path, steps) as (served, stub):
        reader, writer = await begin(served, chat("m", "Hi", **fields), **headers)
        await asyncio.wait_for(stub.asked.wait(), 60)
        if "inside a stream" in phase:
            await reader.readuntil(b"Hello")
        await asyncio.sleep(0.05)
        writer.transport.abort()
        await asyncio.wait_for(stub.gone.wait(), 60)
        await until(lambda: served.store.records)
        assert served.last.client_closed
        assert served.last.error_code == "CLIENT_CLOSED"
        await until(lambda: served.gateway.gate.inside == 0 and not served.gateway.live)


async def test_a_client_may_leave_while_it_waits(tmp_path: Path) -> None:
    """In line for its turn, and in the pause before a retry."""
    text = "[limits]\nmax_in_flight = 1\n"
    async with serve_stubbed(tmp_path, [HANG], text=text) as (served, stub):
        _, first = await begin(served, chat("m"))
        await asyncio.wait_for(stub.asked.wait(), 60)
        _, second = await begin(served, chat("m"))
        await until(lambda: served.gateway.gate.waiting == 1)
        second.transport.abort()
        await until(lambda: served.gateway.gate.waiting == 0)
        await until(lambda: len(served.store.records) == 1)
        first.transport.abort()
        await until(lambda: served.gateway.gate.inside == 0)
    busy = reply({"error": {"message": "busy"}}, 503, retry_after="10")
    async with serve_stubbed(tmp_path, [busy]) as (served, stub):
        _, writer = await begin(served, chat("m"))
        await asyncio.wait_for(stub.asked.wait(), 60)
        await asyncio.sleep(0.05)
        writer.transport.abort()
        await until(lambda: served.store.records)
        assert served.last.client_closed
        assert len(stub.heads) == 1


# too much at once


async def test_what_is_too_much_is_refused_at_once(tmp_path: Path) -> None:
    """One more than can wait gets 503 with retry-after; what waits too long does, too."""
    text = "[limits]\nmax_in_flight = 1\nmax_waiting = 1\nmax_wait_s = 0.3\n"
    async with serve_stubbed(tmp_path, [HANG], text=text) as (served, stub):
        _, first = await begin(served, chat("m"))
        await asyncio.wait_for(stub.asked.wait(), 60)
        reader, second = await begin(served, chat("m"))
        await until(lambda: served.gateway.gate.waiting == 1)
        third = await ask(served, "POST", CHAT, chat("m"))
        assert third.status == 503
        assert third.headers["retry-after"] == "1"
        assert "x-should-retry" not in third.headers
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        assert head.startswith(b"HTTP/1.1 503")
        assert (await ask(served, "GET", "/healthz")).status == 200
        metrics = (await ask(served, "GET", "/metrics")).body.decode()
        assert 'surecall_shed_total{reason="overload"} 2' in metrics
        assert "surecall_in_flight 1" in metrics
        first.transport.abort()
        second.transport.abort()


async def test_one_upstream_that_hangs_leaves_the_others_alone(tmp_path: Path) -> None:
    """Each upstream has its own share of what is under way."""
    async with serve_stub([HANG]) as slow, serve_stub([reply(completion())]) as quick:
        text = (
            f'[upstreams.slow]\nurl = "{slow.url}"\nmodels = ["slow"]\nmax_in_flight = 2\n'
            f'[upstreams.quick]\nurl = "{quick.url}"\n[limits]\nmax_waiting = 0\n'
        )
        async with serve_gateway(make_settings(tmp_path, text)) as served:
            writers = [(await begin(served, chat("slow")))[1] for _ in range(2)]
            await until(lambda: len(slow.heads) == 2)
            assert (await ask(served, "POST", CHAT, chat("slow"))).status == 503
            assert (await ask(served, "POST", CHAT, chat("m"))).status == 200
            for writer in writers:
                writer.transport.abort()


async def test_a_lone_upstream_may_use_all_that_a_worker_takes_on(tmp_path: Path) -> None:
    """One of several gets half of it, unless it has a limit of its own; reloads are followed."""
    alone = '[upstreams.a]\nurl = "http://127.0.0.1:9/v1"\nprobe = "off"\n'
    shared = f'{alone}[upstreams.b]\nurl = "http://127.0.0.1:9/v1"\nmax_in_flight = 7\n'
    path = tmp_path / "gateway.toml"
    path.write_text(alone, "utf-8")
    settings = load_settings(path, store="off")
    async with serve_gateway(settings, read_settings=lambda: load_settings(path)) as served:
        kept = served.gateway.state.upstreams["a"]
        assert kept.gate.limit == settings.limits.max_in_flight == 256
        path.write_text(f"{shared}[limits]\nmax_in_flight = 100\nmax_waiting = 3\n", "utf-8")
        assert await served.gateway.reload() is None
        upstreams = served.gateway.state.upstreams
        assert upstreams["a"] is kept
        assert {name: item.gate.limit for name, item in upstreams.items()} == {"a": 50, "b": 7}
        assert kept.gate.max_waiting == 3


@pytest.mark.parametrize("length", ["content-length: 4000000", "transfer-encoding: chunked"])
async def test_a_body_that_is_too_large_is_refused(length: str, tmp_path: Path) -> None:
    """By what it says about itself, or once that much has come."""
    text = "[limits]\nmax_request_bytes = 1000\n"
    async with serve_stubbed(tmp_path, [reply({})], text=text) as (served, stub):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\n{length}\r\n"
        writer.write(f"{head}content-type: application/json\r\n\r\n".encode())
        for _ in range(4):
            writer.write(b"190\r\n" + b" " * 400 + b"\r\n")
            await asyncio.sleep(0.01)
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        assert answer.startswith(b"HTTP/1.1 413")
        assert not stub.heads
        writer.close()


@pytest.mark.parametrize("part", ["nothing", "head", "body"])
async def test_a_client_that_trickles_is_cut_off(part: str, tmp_path: Path) -> None:
    """Head and body have to come in time; others are served meanwhile."""
    text = "[limits]\nheader_s = 0.2\nbody_s = 0.3\n"
    async with serve_stubbed(tmp_path, [reply(completion())], text=text) as (served, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\n"
        if part == "head":
            writer.write(head.encode())
        elif part == "body":
            writer.write(
                f"{head}content-type: application/json\r\ncontent-length: 99\r\n\r\n{{".encode()
            )
        assert (await ask(served, "POST", CHAT, chat("m"))).status == 200
        rest = await asyncio.wait_for(reader.read(), 60)
        assert rest == b"" if part == "nothing" else rest.startswith(b"HTTP/1.1 408")
        writer.close()


async def test_endless_headers_are_refused(tmp_path: Path) -> None:
    """A head that does not end is cut off by its size."""
    text = "[limits]\nmax_header_bytes = 4096\n"
    async with serve_stubbed(tmp_path, [reply({})], text=text) as (served, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: " + b"a" * 8000)
        assert (await asyncio.wait_for(reader.read(), 60)).startswith(b"HTTP/1.1 431")
        writer.close()


async def test_a_slow_reader_stops_the_upstream(tmp_path: Path) -> None:
    """What was read from the upstream and not sent to the client stays bounded."""
    event = piece("x" * 60_000)
    steps = [STREAM_HEAD, *[event] * 200, piece("", "stop"), STREAM_END]
    async with serve_stubbed(tmp_path, steps) as (served, _):
        reader, writer = await begin(served, chat("m", stream=True), connection="close")
        await until(lambda: len(served.gateway.live) == 1)
        await asyncio.sleep(0.3)
        job = next(iter(served.gateway.live))
        assert job._sent_bytes < 8_000_000  # the sockets of both sides hold some
        body = await asyncio.wait_for(reader.read(), 60)
        assert body.count(b"x" * 60_000) == 200
        assert served.last.outcome == "clean"
        writer.close()


# settings that change, and the end


async def test_settings_are_read_anew_and_bad_ones_are_not_taken(tmp_path: Path) -> None:
    """Streams go on, new requests follow the new settings, and a bad file changes nothing."""
    path = tmp_path / "gateway.toml"
    steps = [STREAM_HEAD, piece("Hello"), 0.4, piece("", "stop"), STREAM_END]
    async with serve_stub(steps) as old, serve_stub([reply(completion("New."))]) as new:
        path.write_text(f'[upstreams.a]\nurl = "{old.url}"\n')

        def read() -> Any:
            return load_settings(path, server={"port": 0}, store="off")

        async with serve_gateway(read(), read_settings=read) as served:
            reader, writer = await begin(served, chat("m", stream=True), connection="close")
            await reader.readuntil(b"Hello")
            path.write_text("[upstreams.a]\nurl = 7\n")
            served.gateway.reload_soon()
            await until(lambda: served.gateway.reload_error is not None)
            assert "upstreams" in str(served.gateway.reload_error)
            assert served.gateway.settings.upstreams["a"].base == old.url
            path.write_text(f'[upstreams.b]\nurl = "{new.url}"\n')
            assert await served.gateway.reload() is None
            assert (await ask(served, "POST", CHAT, chat("m"))).json == completion("New.")
            rest = await asyncio.wait_for(reader.read(), 60)
            assert b"[DONE]" in rest
            assert b"outcome=clean" in rest
            writer.close()


async def test_the_end_waits_for_streams_and_cuts_those_that_do_not_end(tmp_path: Path) -> None:
    """No new work; one stream ends by itself, the other gets an error event."""
    text = "[server]\ndrain_s = 1.6\n"
    short = [STREAM_HEAD, piece("Hello"), 0.3, piece("", "stop"), STREAM_END]
    endless = [STREAM_HEAD, piece("Hello"), HANG]
    async with serve_stubbed(tmp_path, short, endless, text=text) as (served, _):
        first, one = await begin(served, chat("m", stream=True))
        await first.readuntil(b"Hello")
        second, two = await begin(served, chat("m", stream=True))
        await second.readuntil(b"Hello")
        ending = asyncio.ensure_future(served.server.shutdown())
        await until(lambda: served.gateway.is_draining)
        with pytest.raises(ConnectionRefusedError):
            await ask(served, "GET", "/healthz")
        assert b"[DONE]" in await asyncio.wait_for(first.read(), 60)
        rest = await asyncio.wait_for(second.read(), 60)
        assert b'"error"' in rest
        assert b"[DONE]" not in rest
        assert b'finish_reason":"' not in rest.replace(b" ", b"")
        assert [record.outcome for record in served.store.records] == ["clean", "failed"]
        one.close()
        two.close()
        await asyncio.wait_for(ending, 60)


def test_without_anything_the_embedded_model_answers() -> None:
    """`surecall serve` alone is on loopback and needs no provider."""
    settings = load_settings()
    assert settings.server.host == "127.0.0.1"
    assert settings.server.port == 8787
    assert [entry.embedded for entry in settings.upstreams.values()] == ["smollm2-135m"]


async def test_a_body_that_begins_to_trickle_is_cut_off(tmp_path: Path) -> None:
    """A quick beginning buys no time: the rate counts over every stretch."""
    text = "[limits]\nheader_s = 0.2\nbody_s = 30\n"
    async with serve_stubbed(tmp_path, [reply(completion())], text=text) as (served, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\n"
        head += "content-type: application/json\r\ncontent-length: 9000000\r\n\r\n"
        writer.write(head.encode() + b"x" * 100_000)
        rest = await asyncio.wait_for(reader.read(), 60)
        assert rest.startswith(b"HTTP/1.1 408")
        writer.close()


async def test_a_full_gateway_refuses_before_the_body_has_come(tmp_path: Path) -> None:
    """Nothing is read for a request that has no chance, and its record is kept."""
    text = "[limits]\nmax_in_flight = 1\nmax_waiting = 0\n"
    async with serve_stubbed(tmp_path, [HANG], text=text) as (served, stub):
        _, first = await begin(served, chat("m"))
        await asyncio.wait_for(stub.asked.wait(), 60)
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\n"
        head += "content-type: application/json\r\ncontent-length: 9000\r\n\r\n"
        writer.write(head.encode())
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in answer
        assert [item.error_code for item in served.store.records] == ["OVERLOADED"]
        first.close()
        writer.close()


async def test_too_many_connections_are_refused_with_a_hint(tmp_path: Path) -> None:
    """Liveness is answered nevertheless."""
    text = "[limits]\nmax_connections = 1\n"
    async with serve_stubbed(tmp_path, [reply(completion())], text=text) as (served, _):
        _, idle = await asyncio.open_connection("127.0.0.1", served.port)
        refused = await ask(served, "POST", CHAT, chat("m"))
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert (await ask(served, "GET", "/healthz")).status == 200
        idle.close()


@pytest.mark.parametrize("text", ["", "[limits]\nmax_request_bytes = 10\n"])
async def test_a_client_may_leave_while_its_failure_is_recorded(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It leaves one record and no traceback, and is counted once."""
    store = SlowRecords()
    broken = reply({"error": {"message": "no"}}, 400)
    async with serve_stubbed(tmp_path, [broken], text=text, store=store) as (served, _):
        _, writer = await begin(served, chat("m"))
        await asyncio.wait_for(store.is_asked.wait(), 60)
        writer.transport.abort()
        await asyncio.sleep(0.05)
        store.may_go_on.set()
        await until(lambda: not served.gateway.live and store.records)
        shown = (await ask(served, "GET", "/metrics")).body.decode()
    assert len(store.records) == 1
    assert "Exception" not in caplog.text
    assert "Traceback" not in caplog.text
    lines = [line for line in shown.split("\n") if line.startswith("surecall_requests_total{")]
    assert [line.rpartition(" ")[2] for line in lines] == ["1"]


async def test_a_record_that_cannot_be_kept_fails_no_request(tmp_path: Path) -> None:
    """Whatever the store raises, the client has its answer."""

    class Odd(KeptRecords):
        async def add(self, record: Any) -> None:
            raise RuntimeError("odd")

    async with serve_stubbed(tmp_path, [reply(completion())], store=Odd()) as (served, _):
        assert (await ask(served, "POST", CHAT, chat("m"))).status == 200


@pytest.mark.parametrize(("when_full", "status"), [("drop", 200), ("refuse", 503)])
async def test_requests_go_on_without_records_unless_told_not_to(
    when_full: str, status: int, tmp_path: Path
) -> None:
    """Where nothing takes records, the settings decide; nothing goes upstream unrecorded then."""
    text = f'[store]\nwhen_full = "{when_full}"\n'
    async with serve_stubbed(tmp_path, [reply(completion())], text=text) as (served, stub):
        served.store.is_full = True
        got = await ask(served, "POST", CHAT, chat("m"))
        assert got.status == status
        assert len(stub.heads) == (status == 200)
        assert ("retry-after" in got.headers) is (status == 503)
        served.store.is_full = False
        assert (await ask(served, "POST", CHAT, chat("m"))).status == 200
