"""What the suite `directives` asks for, and which payloads do it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import clip
from surecall.evals.final_text import says_nothing
from surecall.evals.records import Reason
from surecall.evals.scenarios.paths import path_parts
from surecall.loop.directives import DirectiveRegistry, read_patch


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_IMAGE_KINDS: Final = (
    "image",
    "*/*",
    "png",
    "jpg",
    "jpeg",
    "webp",
    "gif",
    "svg",
    "bmp",
    "heic",
    "avif",
    "tif",
)
_MIN_IMAGE_BYTES: Final = 1_024
_TEXT: Final = {"type": "string", "minLength": 1}
_OP: Final = _object(
    ["op", "path"],
    op={"type": "string", "enum": ["set", "delete", "append", "insert"]},
    path={"type": "string", "description": "A JSON pointer such as /draft/title."},
    value={"type": ["string", "number", "boolean", "null"]},
    index={"type": "integer"},
)
PAYLOADS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "ui.show_form": (
        "Shows the user a form. The form for a new character is character_form.",
        _object(["form_id"], form_id=_TEXT),
    ),
    "ui.toast": (
        "Shows the user a short message.",
        _object(
            ["message"],
            message=_TEXT,
            level={"type": "string", "enum": ["info", "success", "warning", "error"]},
        ),
    ),
    "ui.patch": (
        "Changes the draft.",
        _object(["ops"], ops={"type": "array", "items": _OP, "minItems": 1}),
    ),
    "ui.request_upload": (
        "Asks the user to upload a file.",
        _object(
            ["purpose"],
            purpose={**_TEXT, "description": "What the file is for."},
            accept={"type": "array", "items": {"type": "string"}},
            max_bytes={"type": "integer", "minimum": 1},
        ),
    ),
}


def _find_none(payload: dict[str, Any]) -> str:
    return ""


def _find_bad_news(payload: dict[str, Any]) -> str:
    level = payload.get("level")
    if level in {"warning", "error"}:
        return f"good news has the level {level}"
    return "the message is empty" if says_nothing(str(payload.get("message"))) else ""


def _find_no_image(payload: dict[str, Any]) -> str:
    accepted = [str(each).casefold() for each in as_list(payload.get("accept") or [])]
    if not all(any(kind in each for kind in _IMAGE_KINDS) for each in accepted):
        return f"not only images are accepted: {clip(' '.join(accepted), 80)}"
    size = payload.get("max_bytes", _MIN_IMAGE_BYTES)
    return f"no image has {size} bytes" if size < _MIN_IMAGE_BYTES else ""


def _list_operations(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the operations of a patch, also where the payload itself is one."""
    found = payload.get("ops", payload)
    items = as_list(found) if isinstance(found, list) else [found]
    return [as_fields(item) for item in items if isinstance(item, dict)]


class Task(Struct, frozen=True, kw_only=True):
    """One thing that a user asks of the application."""

    name: str
    asks: str
    type: str
    ideal: dict[str, Any]
    """The payload that a good model writes."""
    expected: dict[str, Any] = {}
    """Members that must be exactly these."""
    find_contradiction: Callable[[dict[str, Any]], str] = _find_none
    """Says which member is against what was asked for."""

    def find_wrong(self, payload: dict[str, Any]) -> str:
        """Return what the strict verdict finds wrong with a payload; empty when it is right."""
        for key, value in self.expected.items():
            found = list(read_patch(payload).ops) if key == "ops" else payload.get(key)
            if found != value:
                return f"{key} is {clip(repr(payload.get(key)), 80)}"
        return self.find_contradiction(payload)

    def check_tried(self, payload: dict[str, Any]) -> Iterator[Reason]:
        """Look at a payload that was refused for anything but slips in its form."""
        for key, value in self.expected.items():
            if key != "ops" and payload.get(key, value) != value:
                yield Reason("PAYLOAD_WRONG", f"{key} was {clip(repr(payload[key]), 80)}")
        for wanted in self.expected.get("ops", ()):
            own = path_parts(wanted["path"])
            for item in _list_operations(payload):
                path = item.get("path")
                if path is not None and path_parts(str(path)) not in (own, own[-1:]):
                    yield Reason("CHANGE_TRIED_ELSEWHERE", clip(repr(item), 80))
                elif item.get("value", wanted["value"]) != wanted["value"]:
                    yield Reason("PAYLOAD_WRONG", f"an operation was {clip(repr(item), 80)}")

    def does_loosely(self, name: str, payload: dict[str, Any]) -> bool:
        """Tell whether this is what was asked for, as the original experiment sees it."""
        if name != self.type:
            return False
        if self.type != "ui.patch":
            return True
        ops = read_patch(payload).ops
        return any((op["op"], op["path"]) == ("set", "/draft/foo") and "value" in op for op in ops)


_SET_FOO: Final = {"ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}
TASKS: Final = (
    Task(
        name="show_form",
        asks="I want to create a new character. Show me the form for it.",
        type="ui.show_form",
        ideal={"form_id": "character_form"},
        expected={"form_id": "character_form"},
    ),
    Task(
        name="toast",
        asks="Tell me with a short message on the screen that the draft was saved.",
        type="ui.toast",
        ideal={"message": "The draft was saved."},
        find_contradiction=_find_bad_news,
    ),
    Task(
        name="patch_draft",
        asks="Set /draft/foo to the string bar.",
        type="ui.patch",
        ideal=_SET_FOO,
        expected=_SET_FOO,
    ),
    Task(
        name="request_upload",
        asks="Ask me to upload an image of my character.",
        type="ui.request_upload",
        ideal={"purpose": "An image of the character", "accept": ["image/*"]},
        find_contradiction=_find_no_image,
    ),
)
"""What is asked, in order."""


def make_registry() -> DirectiveRegistry:
    """Return the types of directives of the suite."""
    registry = DirectiveRegistry()
    for name, (description, schema) in PAYLOADS.items():
        check = read_patch if name == "ui.patch" else None
        registry.add(name, description=description, payload=schema, check=check)
    return registry
