"""Streams for clients that offer `functions`, and look for a call in the older field."""

from msgspec.structs import replace

from surecall.base.records import RawCall, Reply
from surecall.wire.chat_completions.writer import ChatStreamWriter
from surecall.wire.server import arguments_text, name_text


class LegacyWriter(ChatStreamWriter):
    """Writes one reply as completion chunks, with its call in `function_call`."""

    def call(self, call: RawCall) -> bytes:
        """Write one whole call."""
        function = {"name": name_text(call), "arguments": arguments_text(call)}
        return self._chunk({"function_call": function})

    def end(self, reply: Reply) -> bytes:
        """Close the reply with its finish reason and usage; its text is not written again."""
        finish = reply.finish_reason
        finish = "function_call" if finish == "tool_calls" else finish
        return super().end(replace(reply, finish_reason=finish))
