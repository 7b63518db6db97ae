"""Calls in `<tool_call>` tags alone, where no other text is looked at for calls.

A tag that is only quoted is not a call: one inside a code fence, inline code or a template, or
one whose opener is escaped. Neither is a tag without its closer.
"""

import re
from typing import Final

from msgspec.structs import replace

from surecall.calls import FORMATS, CallFormat, Found, Source

TAG_OPENER: Final = "<tool_call>"
_CLOSER: Final = "</tool_call>"
_IN_TAGS: Final = frozenset({"glm", "tagged_json"})
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]++")
_QUOTES: Final = frozenset("\\`")
_TEMPLATES: Final = (("{{", "}}"), ("{%", "%}"))
_LOOKED_BACK_CHARS: Final = 2_000


class _ClosedTags(CallFormat):
    """What a format reads in closed tags that are not quoted."""

    literals = (TAG_OPENER,)

    def __init__(self, inner: CallFormat) -> None:
        self.name = inner.name
        self._inner = inner

    def read(self, source: Source, at: int) -> Found | None:
        """Read the call in the tag at `at`."""
        if _is_quoted(source, at) or source.find(_CLOSER, at) < 0:
            return None
        found = self._inner.read(source, at)
        if found is None or not all(_NAME.fullmatch(call.name) for call in found.calls):
            return found
        # The tag was asked for, so that a bare name in it is a call, too.
        return replace(found, grade="marked")


def _is_quoted(source: Source, at: int) -> bool:
    before = source.text[max(0, at - _LOOKED_BACK_CHARS) : at]
    return before[-1:] in _QUOTES or any(
        before.rfind(opener) > before.rfind(closer) and source.find(closer, at) >= 0
        for opener, closer in _TEMPLATES
    )


TAG_FORMATS: Final[tuple[CallFormat, ...]] = tuple(
    _ClosedTags(form) for form in FORMATS if form.name in _IN_TAGS
)
