import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.upstream import gzip_bomb
from surecall.base.errors import Code, ProviderReplyError
from surecall.models.client.bodies import BodyDecoder, open_decoder
from surecall.models.transport import WireLimits

MIB = 1024 * 1024


def decoder(encoding: str = "gzip", *, max_bytes: int = 32 * MIB, **limits: int) -> BodyDecoder:
    """Return a decoder with the shipped limits, or these."""
    return open_decoder(
        encoding, WireLimits(**limits), max_bytes=max_bytes, code=Code.UPSTREAM_TOO_LARGE
    )


def drain(decoder: BodyDecoder, sizes: list[int]) -> None:
    """Take every piece there is, noting its size."""
    while piece := decoder.step():
        sizes.append(len(piece))


def decode(decoder: BodyDecoder, *chunks: bytes) -> bytes:
    """Feed all chunks and return what comes out."""
    found: list[bytes] = []
    for chunk in chunks:
        decoder.feed(chunk)
        while piece := decoder.step():
            found.append(piece)
    decoder.close()
    return b"".join(found)


@given(data=st.binary(max_size=4000), cuts=st.lists(st.integers(1, 50), max_size=40))
@settings(max_examples=100)
def test_gzip_gives_the_same_bytes_for_every_chunking(data: bytes, cuts: list[int]) -> None:
    """Where the wire cuts does not matter."""
    packed = gzip.compress(data)
    chunks: list[bytes] = []
    for size in [*cuts, len(packed)]:
        chunks.append(packed[:size])
        packed = packed[size:]
    assert decode(decoder(), *(chunk for chunk in chunks if chunk)) == data


@pytest.mark.parametrize("encoding", ["", "identity", " Identity "])
def test_identity_passes_through(encoding: str) -> None:
    """Bytes that are not encoded arrive as they are."""
    assert decode(decoder(encoding), b"ab", b"c") == b"abc"


@pytest.mark.parametrize(
    "encoding",
    ["br", "zstd", "compress", "gzip, gzip", "gzip, deflate", "gzip, br", "*", "identity, x"],
)
def test_any_other_encoding_is_refused(encoding: str) -> None:
    """Codings that were not asked for are not decoded."""
    with pytest.raises(ProviderReplyError) as caught:
        decode(decoder(encoding), gzip.compress(b"{}"))
    assert caught.value.code == Code.UPSTREAM_ENCODING


@given(cuts=st.lists(st.integers(1, 5), max_size=40))
@pytest.mark.parametrize(
    "body", [b'{"a": "Zo\xc3\xab"}', b" \n[1]", b"data: {}\n\n", b": hi\n\n", b""]
)
def test_plain_bytes_may_have_any_name(body: bytes, cuts: list[int]) -> None:
    """JSON and events that are only labelled as encoded are read as they are, in any pieces."""
    left, chunks = body, list[bytes]()
    for size in [*cuts, len(body)]:
        chunks.append(left[:size])
        left = left[size:]
    assert decode(decoder("br"), *chunks) == body


@given(data=st.binary(max_size=2000), cuts=st.lists(st.integers(1, 50), max_size=40))
@settings(max_examples=100)
@pytest.mark.parametrize("window", [15, -15], ids=["as it is meant", "without a header"])
def test_deflate_is_read_in_both_forms(window: int, data: bytes, cuts: list[int]) -> None:
    """Servers disagree on what the name means; in pieces of any size."""
    packer = zlib.compressobj(wbits=window)
    packed = packer.compress(data) + packer.flush()
    chunks: list[bytes] = []
    for size in [*cuts, len(packed)]:
        chunks.append(packed[:size])
        packed = packed[size:]
    assert decode(decoder("deflate"), *(chunk for chunk in chunks if chunk)) == data


def test_an_honest_large_body_is_read() -> None:
    """Size alone is no fault below the limit, nor is a high ratio of a small body."""
    data = b"".join(b'{"n": %d, "text": "some words"}' % n for n in range(100_000))
    assert decode(decoder(), gzip.compress(data)) == data
    assert decode(decoder(), gzip.compress(b" " * MIB)) == b" " * MIB


def test_data_without_content_does_not_go_on_for_ever() -> None:
    """Empty blocks expand to nothing: what arrives is counted as well."""
    bounded = decoder("deflate", max_bytes=1000)
    packer = zlib.compressobj(wbits=-15)
    block = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    with pytest.raises(ProviderReplyError) as caught:
        decode(bounded, *[block * 10] * 1000)
    assert caught.value.code == Code.UPSTREAM_TOO_LARGE


@pytest.mark.parametrize(
    ("packed", "code"),
    [
        pytest.param(b"not gzip", Code.UPSTREAM_ENCODING, id="garbage"),
        pytest.param(zlib.compress(b"x"), Code.UPSTREAM_ENCODING, id="zlib instead"),
        pytest.param(gzip.compress(b"x") + b"y", Code.UPSTREAM_ENCODING, id="trailing byte"),
        pytest.param(gzip.compress(b"x") * 2, Code.UPSTREAM_ENCODING, id="second member"),
        pytest.param(gzip.compress(b"x")[:-1], Code.UPSTREAM_TRUNCATED_BODY, id="cut trailer"),
        pytest.param(gzip.compress(b"x")[:5], Code.UPSTREAM_TRUNCATED_BODY, id="cut header"),
        pytest.param(
            gzip.compress(b"hello")[:-8] + b"\0" * 8, Code.UPSTREAM_ENCODING, id="wrong checksum"
        ),
    ],
)
def test_broken_gzip_is_refused(packed: bytes, code: Code) -> None:
    """Neither half nor surplus data passes for a body, in one piece or byte by byte."""
    with pytest.raises(ProviderReplyError) as caught:
        decode(decoder(), packed)
    assert caught.value.code == code
    with pytest.raises(ProviderReplyError) as caught:
        decode(decoder(), *(packed[n : n + 1] for n in range(len(packed))))
    assert caught.value.code == code


def test_an_empty_gzip_body_is_empty() -> None:
    """No bytes at all are no broken gzip."""
    assert decode(decoder()) == b""


def test_a_body_above_its_limit_is_refused() -> None:
    """The limit counts decoded bytes."""
    for encoding, data in (("identity", b"x" * 101), ("gzip", gzip.compress(b"x" * 101))):
        with pytest.raises(ProviderReplyError) as caught:
            decode(decoder(encoding, max_bytes=100), data)
        assert caught.value.code == Code.UPSTREAM_TOO_LARGE
        assert "larger than 100 bytes" in str(caught.value)


def test_a_gzip_bomb_is_refused_early_and_in_little_memory() -> None:
    """A megabyte that expands to a gigabyte is given up after about a megabyte."""
    bomb = gzip_bomb(1024 * MIB)
    assert len(bomb) < 1.1 * MIB
    bounded = decoder()
    bounded.feed(bomb)
    sizes: list[int] = []
    tracemalloc.start()
    with pytest.raises(ProviderReplyError, match="expands more than 100 times") as caught:
        drain(bounded, sizes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.code == Code.UPSTREAM_TOO_LARGE
    assert sum(sizes) <= 2 * MIB
    assert peak < 4 * MIB


def test_a_bomb_below_the_ratio_limit_stops_at_the_size_limit() -> None:
    """With the ratio allowed, the size still ends it."""
    bounded = decoder(max_ratio=2000)
    bounded.feed(gzip_bomb(64 * MIB))
    sizes: list[int] = []
    with pytest.raises(ProviderReplyError, match="larger than 33554432 bytes"):
        drain(bounded, sizes)
    assert 31 * MIB < sum(sizes) <= 32 * MIB


def test_steps_are_bounded() -> None:
    """One step never yields more than a quarter of a megabyte."""
    bounded = decoder()
    bounded.feed(gzip.compress(b" " * MIB))
    sizes: list[int] = []
    drain(bounded, sizes)
    assert max(sizes) <= 256 * 1024
    assert sum(sizes) == MIB
