"""Framing without a network: where a reply was split never changes what it means."""

import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.upstream import chunked
from surecall.base.errors import Code, ProviderError
from surecall.models.client.framing import ReplyFrame
from surecall.models.client.network import ClientLimits

LIMITS = ClientLimits(max_header_bytes=4096, max_headers=20)
INTERIM = b"HTTP/1.1 103 Early\r\nLink: </x>\r\n\r\n"

pieces_of_body = st.lists(st.binary(min_size=1, max_size=40) | st.just(b"\r\n\r\n"), max_size=6)
surpluses = st.sampled_from([b"", b"", b"\r\n", b"\r\n\r\n", b"x", b"HTTP/1.1 200 OK\r\n\r\n"])


@st.composite
def splits(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """Cut data at some places."""
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(data) - 1)), max_size=8)))
    edges = [0, *cuts, len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def run(parts: list[bytes]) -> tuple[bytes, ReplyFrame]:
    """Feed parts as connections do; what follows the end is fed too."""
    frame = ReplyFrame(LIMITS)
    body = b""
    for part in parts:
        if frame.is_complete:
            frame.is_reusable = frame.is_reusable and not part  # as an answer treats it
        else:
            body += frame.feed(part)
    return body, frame


@given(st.data(), pieces_of_body, surpluses, st.integers(0, 2))
def test_chunks_mean_the_same_however_they_are_split(
    data: st.DataObject, pieces: list[bytes], surplus: bytes, interim: int
) -> None:
    """Body, end and what is behind it are found at every split, and only those."""
    head = INTERIM * interim + b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire = head + chunked(*pieces) + surplus
    body, frame = run(data.draw(splits(wire)))
    assert body == b"".join(pieces)
    assert frame.is_complete
    assert frame.is_reusable == (not surplus)


@given(st.data(), pieces_of_body, surpluses, st.integers(0, 2))
def test_a_length_means_the_same_however_it_is_split(
    data: st.DataObject, pieces: list[bytes], surplus: bytes, interim: int
) -> None:
    """Exactly as many bytes are the body as were announced."""
    whole = b"".join(pieces)
    head = INTERIM * interim + b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(whole)
    body, frame = run(data.draw(splits(head + whole + surplus)))
    assert body == whole
    assert frame.is_complete
    assert frame.is_reusable == (not surplus)
    assert frame.headers == [(b"content-length", str(len(whole)).encode())]


@given(st.data(), pieces_of_body)
def test_a_body_cut_anywhere_is_never_complete(data: st.DataObject, pieces: list[bytes]) -> None:
    """No prefix of a framed reply passes for the whole."""
    wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(*pieces)
    cut = wire[: data.draw(st.integers(0, len(wire) - 1))]
    _, frame = run(data.draw(splits(cut)))
    assert not frame.is_complete
    error = frame.end()
    assert error is not None
    assert error.code in {Code.CONNECTION_RESET, Code.UPSTREAM_TRUNCATED_BODY}


@given(st.data(), st.binary(max_size=300))
def test_any_bytes_are_a_reply_or_an_error_of_ours(data: st.DataObject, junk: bytes) -> None:
    """Damage never raises anything else, and never depends on where it was split."""
    base = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    at = data.draw(st.integers(0, len(base)))
    wire = base[:at] + junk + base[at + data.draw(st.integers(0, 4)) :]
    outcomes = set[tuple[object, ...]]()
    for parts in ([wire], data.draw(splits(wire)), [wire[n : n + 1] for n in range(len(wire))]):
        try:
            body, frame = run(parts)
        except ProviderError as error:
            outcomes.add((error.code,))
        else:
            outcomes.add((body, frame.status, frame.is_complete, frame.is_reusable))
    assert len(outcomes) == 1, outcomes


def test_a_trickled_head_is_not_searched_over_and_over() -> None:
    """A head of the largest size costs little, one byte at a time."""
    frame = ReplyFrame(ClientLimits())
    head = b"HTTP/1.1 200 OK\r\nX: " + b"y" * 60_000 + b"\r\nContent-Length: 0\r\n\r\n"
    for at in range(len(head)):
        frame.feed(head[at : at + 1])
    assert frame.is_complete


@pytest.mark.parametrize("size", [4096, 4097])
def test_headers_are_bounded_to_the_byte(size: int) -> None:
    """The limit itself is allowed, one byte more is not, split or not."""
    start = b"HTTP/1.1 204 No\r\nX: "
    head = start + b"y" * (size - len(start) - 4) + b"\r\n\r\n"
    for parts in ([head], [head[:100], head[100:]]):
        if size <= LIMITS.max_header_bytes:
            assert run(parts)[1].is_complete
        else:
            with pytest.raises(ProviderError, match="more bytes of headers"):
                run(parts)


def test_the_content_encoding_is_left_to_the_reader() -> None:
    """Bytes of a compressed body come out as they are."""
    packed = gzip.compress(b"hello")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    body, frame = run([head + packed])
    assert (body, frame.encoding) == (packed, b"gzip")
