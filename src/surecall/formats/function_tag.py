"""`<function=NAME>{JSON}</function>`: Functionary v3.1 and the Llama 3.1 custom tool prompt."""

import re
from typing import Final

from surecall.errors import SurecallError
from surecall.jsontext import decode
from surecall.records import Receipt

from .base import CallFormat, Found, TextCall
from .source import Source
from .tags import ends_within, run_end, tag_receipt

__all__ = ["FunctionTag"]

_OPENER: Final = "<function="
_CLOSERS: Final = ("</function>", "<function>")
_NAME: Final = re.compile(r"[^\s<>\"'{}()\[\]=/]{0,256}+")
_ATTRIBUTES: Final = re.compile(r"[^<>{}\n]{0,256}+")


class FunctionTag(CallFormat):
    """A name in the tag, and one JSON object."""

    name = "function_tag"
    literals = (_OPENER,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the object after the name; `>` may be missing, or come after the object."""
        begin = at + len(_OPENER)
        begin += len(source.starts_any(('"', "'"), begin))
        name_end = run_end(source, _NAME, begin)
        name = source.text[begin:name_end]
        if not name:
            return None
        here = run_end(source, _ATTRIBUTES, name_end)
        if source.at_end(here):
            return Found(end=here) if self._is_name_begun(source, name) else None
        character = source.char(here)
        if character == "<" and source.starts("</function>", here):
            return self._without_arguments(source, name, at, here)
        receipts: tuple[Receipt, ...] = ()
        if character == ">":
            here = source.skip_space(here + 1)
            if source.at_end(here):
                return None
        else:
            receipts = (tag_receipt("missing_bracket", source.text[at:here], name),)
        if source.char(here) != "{" or (receipts and source.tools.resolve(name) is None):
            return None
        return self._with_json(source, name, here, receipts)

    def _with_json(
        self, source: Source, name: str, at: int, receipts: tuple[Receipt, ...]
    ) -> Found | None:
        end = source.value_end(at)
        known = source.tools.resolve(name) is not None
        if end is None:
            call = TextCall(name=name, arguments=source.text[at:], state="cut", receipts=receipts)
            return Found(end=len(source.text), calls=(call,)) if known else None
        text = source.text[at:end]
        if not known and not _is_object(text):
            return None
        here = source.skip_space(end)
        if receipts and source.char(here) == ">":
            here = source.skip_space(here + 1)
        closer = "" if source.at_end(here) else source.starts_any(_CLOSERS, here)
        if closer:
            end = here + len(closer)
        elif ends_within(source, _CLOSERS[0], here):
            end = len(source.text)
        if closer != _CLOSERS[0]:
            receipts += (tag_receipt("missing_closing_tag", closer, _CLOSERS[0]),)
        call = TextCall(name=name, arguments=text, receipts=receipts)
        return Found(end=end, calls=(call,), grade="marked" if closer or known else "damaged")

    def _without_arguments(self, source: Source, name: str, at: int, here: int) -> Found:
        receipt = tag_receipt("missing_bracket", source.text[at:here], name)
        call = TextCall(name=name, arguments=None, receipts=(receipt,))
        return Found(end=here + len("</function>"), calls=(call,), grade="damaged")

    def _is_name_begun(self, source: Source, name: str) -> bool:
        return any(known.startswith(name) for known in source.tools.names)


def _is_object(text: str) -> bool:
    try:
        return isinstance(decode(text), dict)
    except SurecallError:
        return False
