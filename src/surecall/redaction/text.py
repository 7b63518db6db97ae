"""Text without secrets: whole, cut to a limit, or as it comes in pieces."""

from .known import known_secrets, mask_text
from .shapes import SHAPE_START_CHARS, mask_shapes

__all__ = ["StreamMask", "redact", "redact_start"]


def redact(text: str) -> str:
    """Return the text without known secrets and without anything shaped like a key."""
    return mask_shapes(mask_text(text))


def redact_start(text: str, limit: int) -> str:
    """Return the first `limit` characters of a longer text, redacted as part of the whole.

    A secret that the limit would cut in two is taken out: half of it is still a secret.
    """
    near = text[: limit + max(SHAPE_START_CHARS, known_secrets().longest)]
    if redact(near) == near:
        return text[:limit]
    return redact(text)[:limit]


class StreamMask:
    """Takes known secrets out of text that comes in pieces; what may begin one waits."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what can be shown now."""
        known = known_secrets()
        if not known.forms:
            return text
        text = mask_text(self._held + text) if self._held else mask_text(text)
        start = _begun_secret(text.lower(), known.forms)
        self._held = text[start:]
        return text[:start]

    def close(self) -> str:
        """Return what was held back."""
        held, self._held = self._held, ""
        return held


def _begun_secret(lowered: str, forms: tuple[str, ...]) -> int:
    """Return where the end of a text begins to be a secret, or its length."""
    first = len(lowered)
    for form in forms:
        start = lowered.find(form[0], max(0, len(lowered) - len(form) + 1))
        while 0 <= start < first:
            if form.startswith(lowered[start:]):
                first = start
                break
            start = lowered.find(form[0], start + 1)
    return first
