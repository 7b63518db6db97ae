"""The types of directives that these tests use."""

from dataclasses import dataclass
from typing import Any

from surecall.base.records import ErrorDetail
from surecall.loop.directives import DirectiveRegistry, read_patch


@dataclass
class Toast:
    """A short message."""

    message: str
    level: str = "info"


def check_upload(payload: dict[str, Any]) -> list[ErrorDetail]:
    """Ask for a purpose."""
    return [] if payload.get("purpose") else [ErrorDetail("MISSING_PURPOSE", "Say what for.")]


FORM = {
    "type": "object",
    "properties": {"form_id": {"type": "string"}, "steps": {"type": "integer"}},
    "required": ["form_id"],
    "additionalProperties": False,
}


def make_registry() -> DirectiveRegistry:
    """Return the four types of a small editor."""
    return (
        DirectiveRegistry()
        .add("ui.show_form", description="Shows a form.", aliases=["open_form"], payload=FORM)
        .add("ui.toast", description="Shows a message.", payload=Toast)
        .add("ui.patch", description="Changes the draft.", payload=read_patch)
        .add("ui.request_upload", payload=check_upload)
    )
