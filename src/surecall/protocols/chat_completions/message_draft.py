"""An assistant message that arrives in pieces."""

from typing import Any, Final, Literal, TypeAlias, cast

from surecall.errors import Code
from surecall.jsontext import mend_surrogates, mend_surrogates_in
from surecall.protocols.base import StreamDelta
from surecall.protocols.event_folder import HeldHalves
from surecall.protocols.kept import Kept, KeptText
from surecall.records import Defect

from .call_drafts import CallDraft, CallDrafts
from .content import REASONING_KEYS, split_parts

__all__ = ["MessageDraft"]

_Kind: TypeAlias = Literal["text", "reasoning"]

_JOINED_DETAILS: Final = ("reasoning.text", "reasoning.summary")


class MessageDraft:
    """The message as far as it has arrived."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self.has_halves = False
        """Whether halves of surrogate pairs may be among the pieces."""
        self.calls = CallDrafts(kept)
        self._legacy: CallDraft | None = None
        self._texts: dict[str, KeptText] = {}
        self._details: list[Any] = []
        self._extra: dict[str, Any] = {}
        self._defects: dict[str, Defect] = {}
        self._halves = HeldHalves()

    def __bool__(self) -> bool:
        return bool(self.calls or self._legacy or any(self._texts.values()))

    @property
    def text(self) -> str:
        """The text so far."""
        return mend_surrogates(str(self._texts.get("content", "")))

    @property
    def calls_count(self) -> int:
        """How many calls have begun."""
        return len(self.calls) or int(self._legacy is not None)

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What was odd about the pieces, each kind once."""
        return (*self._defects.values(), *self.calls.defects)

    def take(self, delta: dict[str, Any], shown: list[StreamDelta]) -> None:
        """Add what one event brought, and append what can be shown of it."""
        has_thought = False
        for key, value in delta.items():
            if value is None or key == "role":
                continue
            if key == "content":
                self._take_content(value, shown)
            elif key in REASONING_KEYS and isinstance(value, str):
                self._keep(key, value)
                if not has_thought:
                    self._show("reasoning", value, shown)
                has_thought = True
            elif key == "tool_calls":
                self.calls.take(value)
            else:
                self._take_other(key, value, shown)

    def flush(self, shown: list[StreamDelta]) -> None:
        """Show what was held back, now that its other half cannot come any more."""
        self._halves.flush(shown)

    def render(self) -> dict[str, Any]:
        """Return the message as a whole reply would carry it."""
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for key, text in self._texts.items():
            message[key] = str(text)
        if self.calls:
            message["tool_calls"] = self.calls.render()
        if self._legacy is not None:
            arguments = self._legacy.arguments
            message["function_call"] = {"name": self._legacy.name, "arguments": arguments}
        if self._details:
            message["reasoning_details"] = [_joined(detail) for detail in self._details]
        message.update(self._extra)
        return mend_surrogates_in(message) if self.has_halves else message

    def _take_content(self, content: Any, shown: list[StreamDelta]) -> None:
        if isinstance(content, str):
            self._keep("content", content)
            self._show("text", content, shown)
        elif isinstance(content, list | dict):
            text, thought, note = split_parts(cast("Any", content))
            self._note(Code.CONTENT_AS_PARTS, note)
            self._keep("content", text)
            if thought:
                self._keep(REASONING_KEYS[0], thought)
                self._show("reasoning", thought, shown)
            self._show("text", text, shown)
        else:
            note = f"The content is of type {type(content).__name__}, not text."
            self._note(Code.CONTENT_NOT_USABLE, note)

    def _take_other(self, key: str, value: Any, shown: list[StreamDelta]) -> None:
        if key == "refusal" and isinstance(value, str):
            self._keep(key, value)
            if not self._texts.get("content"):
                self._show("text", value, shown)
        elif key == "function_call" and isinstance(value, dict):
            call = cast("dict[str, Any]", value)
            self._legacy = self._legacy or CallDraft(self._kept)
            self._legacy.take(call.get("name"), call.get("arguments"))
            self.calls.has_objects = self.calls.has_objects or not self._legacy.is_text
        elif key == "reasoning_details" and isinstance(value, list):
            self._take_details(cast("list[Any]", value))
        elif isinstance(value, list) and isinstance(self._extra.get(key), list):
            self._kept.add_value(value)
            self._extra[key].extend(value)
        else:
            self._kept.put(self._extra, key, value)

    def _take_details(self, details: list[Any]) -> None:
        """Collect reasoning that must be sent back whole: pieces of one thought are joined."""
        for item in details:
            detail = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
            if detail.get("type") not in _JOINED_DETAILS:
                self._kept.add_part(item)
                self._details.append(item)
                continue
            last = self._details[-1] if self._details else None
            if not isinstance(last, _Detail) or not last.continues(detail):
                last = _Detail(self._kept)
                self._details.append(last)
            last.take(detail)

    def _keep(self, key: str, text: str) -> None:
        kept = self._texts.get(key)
        if kept is None:
            kept = self._texts[key] = KeptText(self._kept)
        kept.append(text)

    def _show(self, kind: _Kind, text: str, shown: list[StreamDelta]) -> None:
        if self.has_halves:
            self._halves.show(kind, text, shown)
        elif text:
            shown.append(StreamDelta(kind, text))

    def _note(self, code: Code, message: str) -> None:
        self._defects.setdefault(code, Defect(code, message, "/content"))


class _Detail:
    """One thought of `reasoning_details`, in pieces."""

    def __init__(self, kept: Kept) -> None:
        kept.add_part()
        self._kept = kept
        self.fields: dict[str, Any] = {}
        self.texts: dict[str, KeptText] = {}

    def continues(self, detail: dict[str, Any]) -> bool:
        """Tell whether the piece belongs to this thought."""
        return all(self.fields.get(key) == detail.get(key) for key in ("type", "index"))

    def take(self, detail: dict[str, Any]) -> None:
        for key, value in detail.items():
            if key in {"text", "summary"} and isinstance(value, str):
                self.texts.setdefault(key, KeptText(self._kept)).append(value)
            elif value is not None or key not in self.fields:
                self._kept.put(self.fields, key, value)


def _joined(detail: Any) -> Any:
    if not isinstance(detail, _Detail):
        return detail
    return {**detail.fields, **{key: str(text) for key, text in detail.texts.items()}}
