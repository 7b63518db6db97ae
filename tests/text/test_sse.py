"""Event streams are read the same however their bytes are cut."""

from dataclasses import dataclass

import pytest

from surecall.base.errors import Code, ProviderReplyError, SetupError
from surecall.text import SSEEvent, SSEReader, render_comment, render_event


def read(*chunks: bytes, max_line_bytes: int = 1000) -> list[SSEEvent]:
    """Read a whole stream."""
    reader = SSEReader(max_line_bytes)
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return events + reader.close()


@dataclass(frozen=True)
class Stream:
    id: str
    data: bytes
    events: tuple[SSEEvent, ...]


def E(data: str, event: str = "message", **fields: object) -> SSEEvent:  # noqa: N802 - a table word
    """Return an event, briefly."""
    return SSEEvent(data, event, **fields)  # pyright: ignore[reportArgumentType] - test table


STREAMS = [
    Stream("nothing", b"", ()),
    Stream("blank-lines", b"\n\n\n\n", ()),
    Stream("one", b"data: a\n\n", (E("a"),)),
    Stream("two", b"data: a\n\ndata: b\n\n", (E("a"), E("b"))),
    Stream("more-blank-lines", b"\ndata: a\n\n\n\n\ndata: b\n\n\n", (E("a"), E("b"))),
    Stream("crlf", b"data: a\r\n\r\ndata: b\r\n\r\n", (E("a"), E("b"))),
    Stream("cr-only", b"data: a\r\rdata: b\r\r", (E("a"), E("b"))),
    Stream("mixed-ends", b"data: a\r\n\ndata: b\r\r\ndata: c\n\r", (E("a"), E("b"), E("c"))),
    Stream("mark", b"\xef\xbb\xbfdata: a\n\n", (E("a"),)),
    Stream("second-mark-is-text", b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", (E("b"),)),
    Stream("comments", b": hi\n\n:\n:data: x\ndata: a\n: there\n\n", (E("a"),)),
    Stream("no-space", b"data:a\n\n", (E("a"),)),
    Stream("two-spaces", b"data:  a \n\n", (E(" a "),)),
    Stream("tab-is-kept", b"data:\ta\n\n", (E("\ta"),)),
    Stream("colons-in-data", b'data: {"a":1}\n\n', (E('{"a":1}'),)),
    Stream("many-lines", b"data: a\ndata:\ndata: b\n\n", (E("a\n\nb"),)),
    Stream("empty-data", b"data:\n\n", (E(""),)),
    Stream("data-without-colon", b"data\n\ndata\ndata\n\n", (E(""), E("\n"))),
    Stream("event", b"event: ping\ndata: a\n\ndata: b\n\n", (E("a", "ping"), E("b"))),
    Stream("event-after-data", b"data: a\nevent: x\n\n", (E("a", "x"),)),
    Stream("last-event-name-counts", b"event: x\nevent: y\ndata: a\n\n", (E("a", "y"),)),
    Stream("empty-event-name", b"event:\ndata: a\n\n", (E("a"),)),
    Stream("event-without-data", b"event: x\n\ndata: a\n\n", (E("a"),)),
    Stream("id-lasts", b"id: 7\ndata: a\n\ndata: b\n\n", (E("a", id="7"), E("b", id="7"))),
    Stream("id-alone-lasts", b"id: 7\n\ndata: b\n\n", (E("b", id="7"),)),
    Stream("id-emptied", b"id: 7\ndata: a\n\nid\ndata: b\n\n", (E("a", id="7"), E("b", id=""))),
    Stream("id-with-nul", b"id: 1\x002\ndata: a\n\n", (E("a"),)),
    Stream("retry", b"retry: 1500\ndata: a\n\ndata: b\n\n", (E("a", retry_ms=1500), E("b"))),
    Stream("retry-not-a-number", b"retry: 1.5\ndata: a\n\n", (E("a"),)),
    Stream("retry-endless", b"retry: " + b"9" * 500 + b"\ndata: a\n\n", (E("a"),)),
    Stream("unknown-field", b"foo: bar\nfoo\ndata: a\nDATA: b\n data: c\n\n", (E("a"),)),
    Stream("utf-8", "data: é€😀\n\n".encode(), (E("é€😀"),)),
    Stream("other-breaks", "data: a\u2028b\x0bc\x85\n\n".encode(), (E("a\u2028b\x0bc\x85"),)),
    Stream("nul-is-text", b"data: a\0b\n\n", (E("a\0b"),)),
    Stream("bad-utf-8", b"data: a\xff\xe2\x82\ndata: \xacb\n\n", (E("a\ufffd\ufffd\n\ufffdb"),)),
    Stream("no-last-blank-line", b"data: a\n\ndata: b\n", (E("a"), E("b"))),
    Stream("no-last-line-end", b"data: a\n\ndata: [DONE]", (E("a"), E("[DONE]"))),
    Stream("ends-in-cr", b"data: a\r", (E("a"),)),
    Stream("ends-after-event-name", b"data: a\n\nevent: x\n", (E("a"),)),
    Stream("ends-in-comment", b"data: a\n\n: bye", (E("a"),)),
    Stream("named-then-plain", b"event: x\ndata: a\n\ndata: b\n\n", (E("a", "x"), E("b"))),
]  # fmt: skip


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.id)
def test_a_stream_gives_its_events(case: Stream) -> None:
    """In one chunk, byte by byte, and cut in two at every place."""
    expected = list(case.events)
    assert read(case.data) == expected
    assert read(*(bytes([byte]) for byte in case.data)) == expected
    for place in range(len(case.data) + 1):
        assert read(case.data[:place], b"", case.data[place:]) == expected


def test_events_come_as_soon_as_they_are_complete() -> None:
    """Nothing is held back that the blank line has released."""
    reader = SSEReader()
    assert reader.feed(b"data: a") == []
    assert reader.feed(b"\n") == []
    assert reader.feed(b"\ndata: b\r") == [E("a")]
    assert reader.feed(b"\n\r") == [E("b")]
    assert reader.feed(b"\n") == []
    assert reader.close() == []


def test_comments_are_counted() -> None:
    """A stream that only keeps the connection alive can be told from a silent one."""
    reader = SSEReader()
    reader.feed(b": one\n\n:two\ndata: a\n:")
    assert reader.comments == 2
    reader.close()
    assert reader.comments == 3


def test_closing_twice_gives_nothing_new() -> None:
    """The trailing event is told once."""
    reader = SSEReader()
    reader.feed(b"data: a\ndata: b")
    assert reader.close() == [E("a\nb")]
    assert reader.close() == []


def test_defaults_of_an_event() -> None:
    """An event that names nothing is a `message` without id."""
    event = SSEReader().feed(b"data: a\n\n")[0]
    assert (event.data, event.event, event.id, event.retry_ms) == ("a", "message", None, None)


def refusal(reader: SSEReader, *chunks: bytes) -> ProviderReplyError:
    """Return the error that the last chunk raises."""
    *first, last = chunks
    for chunk in first:
        assert reader.feed(chunk) == []
    with pytest.raises(ProviderReplyError) as caught:
        reader.feed(last)
    return caught.value


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param((b"data: 123456\n",), id="whole-line"),
        pytest.param((b"data: 123456",), id="open-line"),
        pytest.param((b"data: 1234", b"5"), id="passed-by-one-byte"),
        pytest.param((b"data: 1234", b"5\n\n"), id="passed-at-its-end"),
        pytest.param((b"data: a\n", b": 123456789\r"), id="comment"),
        pytest.param((b"x" * 11,), id="no-field-at-all"),
    ],
)
def test_an_endless_line_is_refused_at_once(chunks: tuple[bytes, ...]) -> None:
    """The limit is checked on every piece, not only when the line ends."""
    error = refusal(SSEReader(max_line_bytes=10), *chunks)
    assert error.code == Code.STREAM_TOO_LARGE
    assert error.message == "a line of the event stream is longer than 10 bytes."


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(b"data: abcd\n" * 3, id="of many lines"),
        pytest.param(b"data: ab\ndata: abcdefgh\n", id="with a long last line"),
        pytest.param(b": comment\ndata: abcd\n: comment\n" * 3, id="with comments between"),
    ],
)
def test_an_endless_event_is_refused(stream: bytes, size: int) -> None:
    """An event has a limit of its own, however long its lines are and wherever it is cut."""
    reader = SSEReader(max_event_bytes=10)
    assert reader.feed(b"data: 0123456789\n\n") == [E("0123456789")]
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    with pytest.raises(ProviderReplyError) as caught:
        [event for chunk in chunks for event in reader.feed(chunk)]
    assert caught.value.code == Code.STREAM_TOO_LARGE
    assert caught.value.message == "an event of the stream is longer than 10 bytes."


@pytest.mark.parametrize("field", ["event", "id"])
def test_a_name_or_id_without_end_is_refused(field: str) -> None:
    """No honest stream needs them long, and an id is kept from event to event."""
    error = refusal(SSEReader(), f"{field}: ".encode(), *[b"x" * 10_000] * 20, b"\n")
    assert error.code == Code.STREAM_TOO_LARGE
    assert error.message == f"a field `{field}` of the event stream is longer than 65536 bytes."


@pytest.mark.parametrize("start", [b":", b"\xef\xbb\xbf:", b"unknown: ", b" "])
def test_of_a_line_without_data_little_is_kept(start: bytes) -> None:
    """A comment may be as long as a line; what nobody reads is not held until it ends."""
    reader = SSEReader()
    reader.feed(start)
    for _ in range(100):
        reader.feed(b"x" * 100_000)
    assert len(reader._partial) < 400_000  # pyright: ignore[reportPrivateUsage]
    assert reader.feed(b"\ndata: 1\n\n") == [E("1")]


def test_a_line_at_the_limit_is_read() -> None:
    """Line ends, and a mark at the start, do not count."""
    assert read(b"\xef\xbb\xbfdata: 1234\r\n\r\n", max_line_bytes=10) == [E("1234")]
    assert read(b"\xef\xbb\xbfdata:", b" 1234", b"\n\n", max_line_bytes=10) == [E("1234")]
    assert read(b"data: 1234\n\n" * 3, max_line_bytes=10) == [E("1234")] * 3


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_events_before_an_endless_line_are_told_first(size: int) -> None:
    """What was whole is returned; the refusal follows with the next call."""
    reader = SSEReader(max_line_bytes=10)
    stream = b"data: a\n\ndata: b\n\ndata: 12345\n\ndata: c\n\n"
    events: list[SSEEvent] = []

    def read_all() -> None:
        for start in range(0, len(stream), size):
            events.extend(reader.feed(stream[start : start + size]))
        reader.close()

    with pytest.raises(ProviderReplyError) as caught:
        read_all()
    assert events == [E("a"), E("b")]
    assert caught.value.code == Code.STREAM_TOO_LARGE
    with pytest.raises(ProviderReplyError):
        reader.close()


@pytest.mark.parametrize(
    ("rendered", "wire"),
    [
        pytest.param(render_event("a"), b"data: a\n\n", id="plain"),
        pytest.param(render_event(""), b"data: \n\n", id="empty"),
        pytest.param(
            render_event("a\nb\r\nc\rd"), b"data: a\ndata: b\ndata: c\ndata: d\n\n", id="lines"
        ),
        pytest.param(
            render_event("é", event="ping", id="7"),
            b"event: ping\nid: 7\ndata: \xc3\xa9\n\n",
            id="all",
        ),
        pytest.param(render_event("a\ud800"), b"data: a\xef\xbf\xbd\n\n", id="half-a-pair"),
        pytest.param(render_event("\ud83d\ude00"), b"data: \xf0\x9f\x98\x80\n\n", id="two-halves"),
        pytest.param(render_comment("hi\nyou"), b": hi\n: you\n\n", id="comment"),
        pytest.param(render_comment(), b": \n\n", id="empty-comment"),
    ],
)  # fmt: skip
def test_events_are_rendered(rendered: bytes, wire: bytes) -> None:
    """No text can break out of its event."""
    assert rendered == wire


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\0b"])
@pytest.mark.parametrize("field", ["event", "id"])
def test_names_and_ids_cannot_break_the_line(field: str, bad: str) -> None:
    """Where a line break has no meaning it is refused, not dropped."""
    with pytest.raises(SetupError) as caught:
        render_event("data", **{field: bad})
    assert caught.value.code == Code.INVALID_OPTION


def test_nothing_is_read_behind_a_line_that_is_too_long_however_it_was_split() -> None:
    """The rest of the chunk in which such a line ends is not read either."""
    reader = SSEReader(max_line_bytes=9)
    assert reader.feed(b"x") == []
    with pytest.raises(ProviderReplyError):
        reader.feed(b"event: name\ndata: 1\n\n")
