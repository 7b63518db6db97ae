"""Whether the calls of a stream can be delivered, and what is said to the model when not."""

from msgspec import Struct
from msgspec.structs import replace

from surecall.exchange.judge import Judge, Verdict
from surecall.exchange.policy import ParseError
from surecall.exchange.prepare import Asked, Mode
from surecall.exchange.wording import EMPTY_ANSWER, write_envelope
from surecall.formats.teach import tell_not_executed
from surecall.records import Message, Reading, Reply, clip

_MAX_SNIPPET = 200
_MAX_ECHO_CHARS = 4000
_NOTHING = "(nothing)"


class Weighed(Struct, frozen=True, kw_only=True):
    """What a streamed reply is worth."""

    verdict: Verdict
    is_usable: bool
    leaves: bool = False
    """Whether it goes on as it came, though some of it is doubtful."""


class StreamJudge(Judge):
    """Judges the streamed replies to one request of a client."""

    def read(self, reply: Reply, asked: Asked) -> Reading:
        """Read a reply as a whole one is read."""
        return self._read(reply, asked)

    def used_ids(self) -> frozenset[str]:
        """Return the ids of the calls of the conversation."""
        return self._used_ids()

    def weigh(self, reading: Reading, reply: Reply, asked: Asked, *, own_form: bool) -> Weighed:
        """Decide about what was read.

        Args:
            reading: The reply as it was read.
            reply: The reply.
            asked: What it answers.
            own_form: Whether its calls stay in the form of the endpoint's format.
        """
        verdict = Verdict(reply=reply, reading=reading, defects=reading.defects)
        if not reading.calls:
            if self._names:
                verdict = self._judge_silence(verdict, reading, reply, asked)
            return Weighed(verdict=verdict, is_usable=not (verdict.notice or verdict.is_empty))
        answers, leaves = self._check(reading.calls)
        if answers:
            first = next(error for answer in answers for error in answer.errors)
            shown = str(reading.calls[0].raw)
            error = ParseError(asked.mode, first.code, clip(shown, _MAX_SNIPPET))
            verdict = replace(verdict, answers=answers, parse_error=error)
            return Weighed(verdict=verdict, is_usable=False)
        if leaves:
            verdict = replace(verdict, calls=len(reading.calls))
            return Weighed(verdict=verdict, is_usable=True, leaves=True)
        reading, dropped = self._take_one(reading)
        receipts = self._receipts(reading, kept_form=own_form) + dropped
        calls = len(reading.calls)
        verdict = replace(verdict, reading=reading, receipts=receipts, calls=calls)
        return Weighed(verdict=verdict, is_usable=True)


def follow_up(bad: Verdict, mode: Mode) -> list[Message]:
    """Return the model's own reply and what is wrong with it, as the conversation goes on."""
    if bad.is_empty:
        return [Message("user", EMPTY_ANSWER)]
    reply, reading = bad.reply or Reply(), bad.reading
    if reading is None or not reading.calls:
        way = "object" if mode == "object" else "fenced"
        content = clip(reply.content or "", _MAX_ECHO_CHARS) or _NOTHING
        return [Message("assistant", content), Message("user", tell_not_executed(bad.notice, way))]
    results = [
        Message("tool", write_envelope(answer), tool_call_id=call.id, extra={"is_error": True})
        for call, answer in zip(reading.calls, bad.answers, strict=True)
    ]
    said = Message("assistant", reading.content or None, reading.calls, extra=reply.extra)
    return [said, *results]
