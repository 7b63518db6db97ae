"""What is said about tools of an MCP server, to models and to whoever starts a run."""

from typing import Final

from surecall.base.records import Effect

DESCRIPTION_WITHHELD: Final = (
    "This tool is not available: its definition was not approved. Do not call it."
)
NOT_PINNED: Final = (
    "The definition of this tool is not the one that was approved, so it was not called."
)
NOT_LISTED: Final = (
    "The server has changed its tools and did not say how, so this one was not called."
)
NAMELESS: Final = "It has no name."
UNREADABLE: Final = "Its definition is not plain JSON."
DEFINED_TWICE: Final = "The server has two tools of this name, which are not the same."
NOT_FINITE: Final = "The server answered with NaN or Infinity; null is in its place."
GO_ON: Final = "Go on without this tool, or tell the user that it has to be approved."
_MAY_HAVE_ACTED: Final = "It may have taken effect: find out in another way before you repeat it."


def explain_lost(server: str) -> str:
    """Say that the server of a tool is gone."""
    return f"The server {server!r} that has this tool does not answer any more."


def explain_error(server: str) -> str:
    """Say that the server answered with an error."""
    return f"The server {server!r} answered with an error; what it said is in data."


def hint_after_loss(effect: Effect) -> str:
    """Say what to do when nobody knows whether a call was made."""
    return "Go on without the tools of this server." if effect == "read" else _MAY_HAVE_ACTED


def hint_after_error(effect: Effect) -> str:
    """Say what to do when a tool has failed."""
    if effect == "read":
        return "Change the arguments if they were the reason, or go on without it."
    return f"Change the arguments if they were the reason. {_MAY_HAVE_ACTED}"
