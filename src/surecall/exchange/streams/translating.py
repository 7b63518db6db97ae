"""A stream of another format, or one that is no stream: read as it comes and written anew."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from surecall.errors import ProviderError, SurecallError
from surecall.exchange.policy import Policy, Route
from surecall.exchange.request import ClientRequest
from surecall.protocols import StreamDelta
from surecall.protocols.substitutes import restore_names
from surecall.reading import (
    ReasoningRead,
    ReplyReader,
    TextRead,
    read_reply,
)
from surecall.reading.calls import read_clean_calls
from surecall.reading.truncation import came_to_its_end
from surecall.records import RawCall, Reading, Reply, ToolCall, Usage

from .events import MAX_STREAM_BYTES
from .passing import used_ids
from .sides import Found, Side


class Translating(Side):
    """Reads a stream in the endpoint's format and writes it in the client's."""

    def __init__(
        self,
        request: ClientRequest,
        route: Route,
        policy: Policy,
        headers: Mapping[str, str],
        renamed: Mapping[str, str],
    ) -> None:
        self._request = request
        self._policy = policy
        self._protocol = route.protocol
        self._renamed = renamed
        self._taught = route.strategy == "taught"
        self._folder = route.protocol.open_stream(headers)
        self._writer = request.protocol.open_writer(model=request.model)
        self._reader: ReplyReader | None = None
        self._looks = (
            (policy.text_formats or self._taught) and request.offers_tools
        )
        if self._looks:
            self._reader = ReplyReader(
                request.tools.names, limits=policy.limits, taught=self._taught
            )
        self._has_begun = False
        self._shown = 0
        self._thought = 0
        self._read_chars = 0
        self._sent: list[str] = []
        self._received = 0
        self._reply: Reply | None = None
        self._error: SurecallError | None = None

    @property
    def done(self) -> bool:
        """Whether nothing more of what the endpoint sends is of use."""
        return self._error is not None or self._folder.done

    @property
    def model(self) -> str | None:
        """The model that answered."""
        return None if self._reply is None else self._reply.model

    @property
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""
        return None if self._reply is None else self._reply.usage

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes and return those for the client."""
        if self._error is not None:
            return b""
        self._received += len(chunk)
        try:
            deltas = self._folder.feed(chunk)
        except ProviderError as error:
            self._error = error
            return b""
        if not deltas:
            return b""
        written = [self._begin()]
        written += [self._write(delta) for delta in deltas]
        return b"".join(written)

    def close(self, error: SurecallError | None) -> Found:
        """Return what came, or raise why it is not whole."""
        if self._error is not None:
            raise self._error
        if error is not None and not self._folder.done:
            raise error
        reply = self._protocol.parse_message(self._folder.close())
        self._reply = reply = restore_names(reply, self._renamed)
        sent = "".join(self._sent)
        clean = self._clean(reply)
        if clean is not None:
            return Found(data=self._end(reply, clean, None), calls=len(clean))
        reading, text = self._read(reply)
        is_text = not reply.calls
        if not reading.calls:
            return Found(data=self._end(reply, (), text))
        if not is_text and not reading.defects and _needed_nothing(reading, self._request):
            return Found(data=self._end(reply, reading.calls, None), calls=len(reading.calls))
        found = Found(reading=reading, is_text=is_text, text=text, sent=sent)
        found.snippet = str(reading.calls[0].raw)
        return found

    def _clean(self, reply: Reply) -> tuple[ToolCall, ...] | None:
        """Return calls with which nothing is wrong."""
        if not reply.calls or reply.defects or not came_to_its_end(reply.finish_reason):
            return None
        names = self._request.tools.names
        if names and any(
            call.name.__class__ is not str or names.spec(call.name) is None
            for call in reply.calls
        ):
            return None
        used = used_ids(self._request)
        return read_clean_calls(reply.calls, names, used, self._policy.limits)

    def _read(self, reply: Reply) -> tuple[Reading, str | None]:
        """Read the whole reply; also return the text that is left to write."""
        reader = self._reader
        if reply.calls or reader is None:
            reading = read_reply(
                reply,
                tools=self._request.tools.names,
                text_formats=False,
                limits=self._policy.limits,
                used_ids=used_ids(self._request),
            )
            return reading, None
        content = reply.content or ""
        if self._shown < len(content):  # a body that came whole
            self._take(reader.feed(content[self._shown :]))
        before = reader.last_retraction
        reading = reader.close(reply.finish_reason)
        rest = reading.content
        if reader.last_retraction is before:
            rest = rest[self._read_chars :]
        return replace(reading, defects=(*reply.defects, *reading.defects)), rest

    def deliver(self, calls: Sequence[ToolCall], found: Found) -> bytes:
        """Return the end of the stream with these calls."""
        assert self._reply is not None
        return self._end(self._reply, calls, found.text)

    def again(self, reading: Reading, text: str | None) -> Found:
        """Return what was read of another reply, in the place of the first."""
        return Found(reading=reading, text=text, sent="".join(self._sent))

    def fail(self, error: SurecallError) -> bytes:
        """Break the stream off, in the way a client of the format notices."""
        return self._begin() + self._writer.fail(error)

    def _end(self, reply: Reply, calls: Sequence[ToolCall], text: str | None) -> bytes:
        writer = self._writer
        written = [self._begin()]
        thoughts = (reply.reasoning or "")[self._thought :]
        written.append(writer.reasoning(thoughts, reply.extra))
        if text is None:
            text = (reply.content or "")[self._shown :] if self._reader is None else ""
            if self._reader is not None and reply.calls:
                text = (reply.content or "")[self._read_chars :]
        written.append(writer.text(text))
        raw = [RawCall(call.id, call.name, call.arguments, extra=call.extra) for call in calls]
        written += [writer.call(call) for call in raw]
        finish = reply.finish_reason
        if calls and came_to_its_end(finish):
            finish = "tool_calls"
        written.append(writer.end(replace(reply, calls=tuple(raw), finish_reason=finish)))
        return b"".join(written)

    def _begin(self) -> bytes:
        if self._has_begun:
            return b""
        self._has_begun = True
        return self._writer.begin()

    def _write(self, delta: StreamDelta) -> bytes:
        if delta.kind == "reasoning":
            self._thought += len(delta.text)
            return self._writer.reasoning(delta.text, delta.extra)
        self._shown += len(delta.text)
        if self._reader is None:
            self._sent.append(delta.text)
            return self._writer.text(delta.text)
        return self._take(self._reader.feed(delta.text))

    def _take(self, events: Sequence[object]) -> bytes:
        """Write what the reader is certain of."""
        written: list[bytes] = []
        for event in events:
            if isinstance(event, TextRead):
                self._read_chars += len(event.text)
                self._sent.append(event.text)
                written.append(self._writer.text(event.text))
            elif isinstance(event, ReasoningRead):
                written.append(self._writer.reasoning(event.text))
        return b"".join(written)


def _needed_nothing(reading: Reading, request: ClientRequest) -> bool:
    """Tell whether all calls can be delivered as they came."""
    names = request.tools.names
    return not reading.receipts and all(
        call.arguments is not None
        and not call.errors
        and not call.receipts
        and call.certainty == "certain"
        and (not names or names.spec(call.name) is not None)
        for call in reading.calls
    )
