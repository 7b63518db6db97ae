"""A stream of another format, or one that is no stream: read as it comes and written anew."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from surecall.base.errors import ProviderError, SurecallError
from surecall.base.records import RawCall, Reading, Receipt, Reply, ToolCall, Usage
from surecall.exchange.policy import Policy, Route
from surecall.exchange.prepare import Asked
from surecall.exchange.reply_checker import ReplyChecker
from surecall.exchange.request import ClientRequest
from surecall.exchange.thoughts import LeadingThought
from surecall.exchange.verdict import StreamEnd
from surecall.reading import ReadEvent, ReasoningRead, ReplyReader, TextRead
from surecall.reading.truncation import came_to_its_end
from surecall.text import encode_text
from surecall.wire import Stated, StreamDelta, StreamWriter
from surecall.wire.substitutes import restore_names

from .passthrough import Passing


class Translating:
    """Reads a stream in the endpoint's format and writes it in the client's.

    Args:
        request: What the client asked.
        policy: What may be done.
        checker: Reads what is not clean.
        route: Where it was asked.
        asked: What was asked there.
        headers: Headers of the answer.
        begun: What has passed the beginning of the stream on already, up to its first part.
    """

    is_tagged = has_begun = False
    """No call is passed on before its end, nor does reasoning in tags need another side."""
    pulses = 0
    """How many events without content stand between the numbered events of the endpoint."""
    stated: Stated | None = None
    """Why there is no answer, in the words of the endpoint and in the client's own format."""

    def __init__(
        self,
        request: ClientRequest,
        policy: Policy,
        checker: ReplyChecker,
        route: Route,
        asked: Asked,
        headers: Mapping[str, str],
        *,
        begun: Passing | None = None,
    ) -> None:
        self._request = request
        self._checker = checker
        self._protocol = route.protocol
        self._asked = asked
        self._folder = route.protocol.open_stream(headers)
        model, reply_id = request.model, None
        if begun is not None:
            model, reply_id = begun.model or model, begun.reply_id
        self._writer: StreamWriter = request.protocol.open_writer(
            model=model, reply_id=reply_id, request=request.settings
        )
        self._reader: ReplyReader | None = None
        is_taught = asked.mode != "native"
        looks = policy.text_formats and not request.demands_form
        if request.offers_tools and (looks or is_taught):
            self._reader = ReplyReader(
                request.tools.names,
                used_ids=checker.used_ids(),
                limits=policy.limits,
                taught=is_taught,
            )
        self._lead: LeadingThought | None = None
        if checker.moves_thoughts and not is_taught:
            self._lead = LeadingThought(request.tools.names, policy.limits, checker.used_ids)
        self._has_begun = begun is not None
        if begun is not None:
            self._writer.begin()  # which the client has already
        self._shown = 0
        """How much of the text, without reasoning that it began with, was read or written."""
        self._certain_chars = 0
        """How much of that is no part of a call."""
        self._has_changed = False
        """Whether the reader found reasoning in the midst of the text."""
        self._thought = 0
        self._read_chars = 0
        self._has_text = False
        self._has_data = False
        """Whether any event has come, and not only comments."""
        self._is_quiet = False
        """Whether nothing was written since the last look."""
        self._reply: Reply | None = None
        self._error: SurecallError | None = None

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """What was changed in events that were passed on."""
        return () if self._lead is None else self._lead.receipts

    @property
    def has_sent_text(self) -> bool:
        """Whether the client has any of the text; blanks do not count."""
        return self._has_text

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
        try:
            deltas = self._folder.feed(chunk)
        except ProviderError as error:
            self._error = error
            return b""
        if not deltas:
            self._has_data = self._has_data or b"data:" in chunk
            return b""
        self._has_data = True
        written = self._begin() + b"".join([self._write(delta) for delta in deltas])
        self._is_quiet = self._is_quiet and not written
        return written

    def pulse(self) -> bytes:
        """Return an event that says nothing if the client has got none since the last look."""
        was_quiet, self._is_quiet = self._is_quiet, True
        if not was_quiet or not self._has_data or self._error is not None:
            return b""
        return self._begin() + self._writer.pulse()

    def close(self, error: SurecallError | None) -> StreamEnd:
        """Return what came, or raise why it is not whole."""
        if self._error is not None:
            raise self._error
        if error is not None and not self._folder.done:
            raise error
        reply = self._protocol.parse_message(self._folder.close())
        reply = restore_names(reply, self._asked.renamed)
        if self._lead is not None and not reply.is_refusal:
            reply = self._lead.close(reply)
        self._reply = reply
        if self._lead is not None and (in_thought := self._lead.reading) is not None:
            return StreamEnd(reading=in_thought, reply=reply, text=in_thought.content)
        reading, text = self._read(reply)
        if not reading.calls:
            is_plain = bool((reply.content or "").strip()) and not reply.defects
            is_plain = is_plain and self._request.choice.wanted != "call"
            if is_plain and self._asked.mode == "native" and reply.finish_reason != "tool_calls":
                return StreamEnd(data=self._end(reply, (), text))
        return StreamEnd(reading=reading, reply=reply, text=text)

    def _read(self, reply: Reply) -> tuple[Reading, str | None]:
        """Read the whole reply; also return the text that is left to write."""
        reader = self._reader
        if reply.calls or reply.is_refusal or reader is None:
            return self._checker.read(reply, self._asked), None
        content = reply.content or ""
        before = reader.last_retraction
        rest = content[self._shown :]  # of a body that came whole
        reading = reader.read_whole(rest, reply.finish_reason)
        text = reading.content
        if reader.last_retraction is before:
            text = text[self._read_chars :]
        if reading.seen:  # the text probably makes calls; most of it was passed on
            has_calls = bool(reading.calls)
            return self._checker.read(reply, self._asked), text if has_calls else None
        return replace(reading, defects=(*reply.defects, *reading.defects)), text

    def deliver(
        self,
        calls: Sequence[ToolCall],
        text: str | None,
        *,
        note: str = "",
        is_again: bool = False,
    ) -> bytes:
        """Return the end of the stream with these calls."""
        assert self._reply is not None
        if self._lead is not None:
            self._lead.is_delivered = not is_again
        is_stop = is_again or bool(note) or not calls
        reply = replace(self._reply, finish_reason="stop") if is_stop else self._reply
        return self._end(reply, calls, text, note)

    def cut_short(self) -> bool:
        """End a reply that stops in a call as if it had come to its end; tell whether it does."""
        if self._error is not None or not self._folder.calls_count:
            return False
        self._reply = Reply(finish_reason="stop")
        return True

    def leave(self) -> bytes:
        """Return the end of the stream as it came, whatever was read in it."""
        assert self._reply is not None
        return self._write_end(self._reply, self._reply.calls, None)

    def shift(self, data: bytes) -> bytes:
        """Return events as they are: all of them were numbered here."""
        return data

    def can_deliver(self, calls: Sequence[ToolCall]) -> bool:
        """Tell whether the end of the stream can have these calls, as it always can."""
        return True

    def read_echoes(self) -> Reply | None:
        """Return the reply, which may have something that a client has to send back."""
        return self._reply

    def fail(self, error: SurecallError) -> bytes:
        """Break the stream off, in the way a client of the format notices."""
        return self._begin() + self._writer.fail(error)

    def _end(
        self, reply: Reply, calls: Sequence[ToolCall], text: str | None, note: str = ""
    ) -> bytes:
        raw = tuple(
            RawCall(call.id, call.name, encode_text(call.arguments), extra=call.extra)
            for call in calls
        )
        self._reply = replace(reply, calls=raw)  # with the ids that the client knows
        return self._write_end(reply, raw, text, note)

    def _write_end(
        self, reply: Reply, calls: Sequence[RawCall], text: str | None, note: str = ""
    ) -> bytes:
        writer = self._writer
        written = [self._begin()]
        thoughts = (reply.reasoning or "")[self._thought :]
        written.append(writer.reasoning(thoughts, reply.extra))
        if self._lead is not None:
            written.append(writer.reasoning(self._lead.rest))
        if text is None:
            sent = self._shown if self._reader is None else self._read_chars
            sent = self._certain_chars if self._has_changed else sent
            text = (reply.content or "")[sent:]
        is_refusal = reply.is_refusal and not calls
        written.append(writer.refusal(text) if is_refusal else writer.text(text))
        written.append(writer.text(note))
        written += [writer.call(call) for call in calls]
        finish = reply.finish_reason
        if calls and came_to_its_end(finish):
            finish = "tool_calls"
        ended = replace(reply, calls=tuple(calls), finish_reason=finish, is_refusal=is_refusal)
        written.append(writer.end(ended))
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
        if delta.is_refusal:  # which makes no calls
            return self._refuse(delta.text)
        text, written = delta.text, b""
        if self._lead is not None:
            thought, text = self._lead.feed(text)
            written = self._writer.reasoning(thought)
        self._shown += len(text)
        reader = self._reader
        if reader is None:
            self._has_text = self._has_text or bool(text.strip())
            return written + self._writer.text(text)
        written += self._take(reader.feed(text))
        if not reader.has_calls:
            self._certain_chars = self._shown - reader.held_characters
        return written

    def _refuse(self, text: str) -> bytes:
        self._shown += len(text)
        self._certain_chars += len(text)
        self._read_chars += len(text)
        self._has_text = self._has_text or bool(text.strip())
        return self._writer.refusal(text)

    def _take(self, events: Sequence[ReadEvent]) -> bytes:
        """Write what the reader is certain of."""
        written: list[bytes] = []
        for event in events:
            if isinstance(event, TextRead):
                self._read_chars += len(event.text)
                self._has_text = self._has_text or bool(event.text.strip())
                written.append(self._writer.text(event.text))
            elif isinstance(event, ReasoningRead):
                self._has_changed = True
                written.append(self._writer.reasoning(event.text))
        return b"".join(written)
