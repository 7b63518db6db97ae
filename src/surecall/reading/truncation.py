"""Whether a call is whole, decided once.

A call is cut when its reply did not come to its own end, whatever its arguments look like, or when
its JSON ended in the middle of a value. A cut call never runs.
"""

from collections.abc import Collection
from typing import Final

from surecall.errors import Code
from surecall.records import Defect, ErrorDetail

__all__ = ["came_to_its_end", "cut_cause", "truncated"]

_LIMIT: Final = "the reply reached its token limit"
_CAUSES: Final = {
    "content_filter": "the provider's content filter stopped the reply",
    "error": "the provider broke the reply off with an error",
    "length": _LIMIT,
    "max_tokens": _LIMIT,
    "model_length": _LIMIT,
}
_HINT: Final = "Nothing was run. Make the call again with less: shorter values, or several calls."

_ENDS: Final = frozenset({"stop", "tool_calls", "function_call", "end_turn", "tool_use", "eos"})


def cut_cause(finish_reason: str | None, defects: Collection[Defect] = ()) -> str | None:
    """Return why no call of a reply can be trusted to be whole, or None."""
    if defects and any(defect.code == Code.UPSTREAM_BAD_EVENT for defect in defects):
        return "a part of the reply was lost on the way"
    return _CAUSES.get(finish_reason.lower()) if finish_reason else None


def came_to_its_end(finish_reason: str | None) -> bool:
    """Tell whether the provider says that the model stopped by itself."""
    return finish_reason is not None and finish_reason.lower() in _ENDS


def truncated(cause: str) -> ErrorDetail:
    """Return the refusal of a cut call, with advice for the model."""
    return ErrorDetail(
        Code.ARGUMENTS_TRUNCATED, f"The arguments are incomplete: {cause}.", hint=_HINT
    )
