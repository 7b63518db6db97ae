"""Parts that arrive in pieces: text is joined, everything else comes whole."""

from typing import Any, Final, Literal

from surecall.jsontext import mend_surrogates
from surecall.protocols.kept import Kept, KeptText

from .members import as_dict, as_list, member

__all__ = ["PartDrafts"]

_NOT_TEXT: Final = ("functionCall", "inlineData", "fileData")


class PartDrafts:
    """The parts of one reply, as far as they have arrived."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._parts: list[dict[str, Any]] = []
        self._texts: list[KeptText | None] = []
        self._new: list[tuple[Literal["text", "reasoning"], str]] = []
        self.calls_count = 0

    @property
    def text(self) -> str:
        """The text so far, without thoughts."""
        pairs = zip(self._parts, self._texts, strict=True)
        found = [str(text) for part, text in pairs if text and not part.get("thought")]
        return mend_surrogates("".join(found))

    def take(self, parts: Any) -> None:
        """Add the parts of one chunk."""
        for item in as_list(parts):
            part = as_dict(item)
            text = part.get("text")
            if isinstance(text, str) and not any(member(part, name) for name in _NOT_TEXT):
                self._take_text(part, text)
                continue
            self.calls_count += isinstance(member(part, "functionCall"), dict)
            self._begin(part, None)

    def taken(self) -> list[tuple[Literal["text", "reasoning"], str]]:
        """Return the pieces of text that arrived since the last time."""
        found, self._new = self._new, []
        return found

    def render(self) -> list[dict[str, Any]]:
        """Return the parts as a whole reply would carry them."""
        return [
            part if text is None else {**part, "text": mend_surrogates(str(text))}
            for part, text in zip(self._parts, self._texts, strict=True)
        ]

    def _take_text(self, part: dict[str, Any], text: str) -> None:
        is_thought = part.get("thought") is True
        self._new.append(("reasoning" if is_thought else "text", text))
        last = self._texts[-1] if self._texts else None
        if last is not None:
            held = self._parts[-1]
            is_open = not member(held, "thoughtSignature")
            if is_open and (held.get("thought") is True) == is_thought:
                last.append(text)
                for key, value in part.items():
                    if key != "text":
                        self._kept.put(held, key, value)
                return
        begun = KeptText(self._kept)
        begun.append(text)
        self._begin({key: part[key] for key in part if key != "text"}, begun)

    def _begin(self, part: dict[str, Any], text: KeptText | None) -> None:
        self._kept.add_part(part)
        self._parts.append(part)
        self._texts.append(text)
