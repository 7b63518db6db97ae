"""What the items of an output say: text, reasoning, calls."""

from typing import Any, Final

from msgspec import Struct

from surecall.errors import Code
from surecall.records import Defect, RawCall, clip

from .reasoning import mark_places, reasoning_parts
from .shapes import as_fields, as_list

__all__ = ["REASONING_BREAK", "Output", "finish_reason_of", "parse_output"]

REASONING_BREAK: Final = "\n\n"
"""What is put between two pieces of reasoning, which are paragraphs of their own."""

_CALL_FIELDS: Final = frozenset({"arguments", "call_id", "id", "name", "status", "type"})
_TEXT_PARTS: Final = ("output_text", "refusal", "text")
_REASONS: Final = {"max_output_tokens": "length"}


class Output(Struct, frozen=True):
    """The items of one output, understood."""

    text: str | None
    """The text, or the refusal that came in its place."""
    reasoning: str | None
    calls: tuple[RawCall, ...]
    extra: dict[str, Any]
    defects: tuple[Defect, ...]

    @property
    def words(self) -> dict[str, Any]:
        """What the model said, by kind, to compare two tellings of it."""
        calls = [(call.id, call.name, call.arguments) for call in self.calls]
        return {"text": self.text or "", "reasoning": self.reasoning or "", "calls": calls}


def parse_output(message: dict[str, Any]) -> Output:
    """Read the items of an output, whatever shape they have."""
    reader = _OutputReader()
    items = message.get("output")
    if isinstance(items, list):
        for position, item in enumerate(as_list(items)):
            reader.read(item, f"/output/{position}")
    elif items is not None:
        note = f"The output is of type {type(items).__name__}, not a list."
        reader.defects.append(Defect(Code.CONTENT_NOT_USABLE, note, "/output"))
    return reader.close()


def finish_reason_of(message: dict[str, Any]) -> str | None:
    """Return why the model stopped, in the words of the records.

    An output that is not complete without saying why counts as cut, and so does one with a call
    that is not complete. Any other status, such as `cancelled`, stands for itself.
    """
    status = message.get("status")
    if status == "incomplete":
        reason = as_fields(message.get("incomplete_details")).get("reason")
        if not isinstance(reason, str) or not reason:
            return "length"
        return _REASONS.get(reason, reason.lower())
    if status != "completed":
        return status.lower() if isinstance(status, str) and status else None
    items = [as_fields(item) for item in as_list(message.get("output"))]
    calls = [item for item in items if item.get("type") == "function_call"]
    if any(call.get("status") == "incomplete" for call in calls):
        return "length"
    return "tool_calls" if calls else "stop"


class _OutputReader:
    def __init__(self) -> None:
        self.defects: list[Defect] = []
        self._items: list[dict[str, Any]] = []
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[RawCall] = []
        self._phase: str | None = None
        self._ignored: dict[str, int] = {}

    def read(self, item: Any, place: str) -> None:
        if not isinstance(item, dict):
            note = f"A value of type {type(item).__name__} stands where an item should be."
            self.defects.append(Defect(Code.CALL_ENTRY_DROPPED, note, place))
            return
        fields = as_fields(item)
        self._items.append(fields)
        kind = fields.get("type")
        if kind == "message":
            self._read_message(fields, place)
        elif kind == "reasoning":
            self._thoughts += reasoning_parts(fields)
        elif kind == "function_call":
            self._read_call(fields, place)
        elif isinstance(kind, str) and kind:
            name = clip(kind, 60)
            self._ignored[name] = self._ignored.get(name, 0) + 1
        else:
            self.defects.append(Defect(Code.CONTENT_NOT_USABLE, "An item has no type.", place))

    def close(self) -> Output:
        text = "".join(self._texts) if self._texts else None
        if not text and any(self._refusals):
            text = "".join(self._refusals)
        extra: dict[str, Any] = {}
        reasoning = mark_places(self._items, has_text=bool(text))
        if reasoning:
            extra["reasoning_items"] = reasoning
        if self._phase:
            extra["phase"] = self._phase
        for name, count in self._ignored.items():
            note = f"{count} items of type {name!r} were not used."
            self.defects.append(Defect(Code.PART_NOT_KNOWN, note, "/output"))
        return Output(
            text,
            REASONING_BREAK.join(self._thoughts) or None,
            tuple(self._calls),
            extra,
            tuple(self.defects),
        )

    def _read_message(self, item: dict[str, Any], place: str) -> None:
        phase = item.get("phase")
        if isinstance(phase, str):
            self._phase = phase
        content = item.get("content")
        if isinstance(content, str):
            self._texts.append(content)
            note = "The content is plain text, not a list of parts."
            self.defects.append(Defect(Code.CONTENT_AS_TEXT, note, f"{place}/content"))
            return
        if content is not None and not isinstance(content, list):
            note = f"The content is of type {type(content).__name__}, not a list of parts."
            self.defects.append(Defect(Code.CONTENT_NOT_USABLE, note, f"{place}/content"))
        for position, part in enumerate(as_list(content)):
            fields = as_fields(part)
            text, refusal = fields.get("text"), fields.get("refusal")
            if isinstance(text, str):
                self._texts.append(text)
            elif isinstance(refusal, str):
                self._refusals.append(refusal)
            else:
                kind = fields.get("type")
                is_known = not isinstance(kind, str) or kind in _TEXT_PARTS
                code = Code.CONTENT_NOT_USABLE if is_known else Code.PART_NOT_KNOWN
                note = "A part of the content has no text."
                self.defects.append(Defect(code, note, f"{place}/content/{position}"))

    def _read_call(self, item: dict[str, Any], place: str) -> None:
        arguments = item.get("arguments")
        extra = {
            key: value
            for key, value in item.items()
            if key not in _CALL_FIELDS and value is not None
        }
        call = RawCall(item.get("call_id"), item.get("name"), arguments, "tool_calls", extra)
        self._calls.append(call)
        if isinstance(arguments, dict):
            note = "The arguments are an object, not its text."
            self.defects.append(Defect(Code.ARGUMENTS_AS_OBJECT, note, place))
        elif isinstance(arguments, str) and not arguments.strip():
            note = "The arguments are blank text."
            self.defects.append(Defect(Code.ARGUMENTS_BLANK, note, place))
