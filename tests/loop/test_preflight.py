"""Requests that must not be sent."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from surecall.errors import Code, RequestError
from surecall.loop.preflight import check_request
from surecall.profiles import RESERVED_REQUEST_KEYS, Capabilities
from surecall.records import Message, ModelRequest, ToolSpec

TOOLS = (ToolSpec(name="look"),)
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}


@dataclass(frozen=True)
class Case:
    """A request, what the model can do, and the code of the refusal."""

    id: str
    code: str
    request: dict[str, Any] = field(default_factory=dict[str, Any])
    can: dict[str, Any] = field(default_factory=dict[str, Any])
    says: str = ""


NO = "CAPABILITY_UNSUPPORTED"
CASES = [
    Case("plain", ""),
    Case("tools", "", {"tools": TOOLS}),
    Case("stream", "", {"stream": True}),
    Case("json object", "", {"response_format": {"type": "json_object"}}, {"json_object": True}),
    Case("schema", "", {"response_format": SCHEMA}, {"json_schema": True}),
    Case("another format", "", {"response_format": {"type": "text"}}),
    Case(
        "tools and a format",
        Code.TOOLS_WITH_RESPONSE_FORMAT,
        {"tools": TOOLS, "response_format": SCHEMA},
        {"json_schema": True},
    ),
    Case("no tools", NO, {"tools": TOOLS}, {"supports_tool_use": False}, "supports_tool_use"),
    Case("no streaming", NO, {"stream": True}, {"streaming": False}, "stream=False"),
    Case(
        "no json object",
        NO,
        {"response_format": {"type": "json_object"}},
        {"json_object": False},
        "json_object",
    ),
    Case("no schema", NO, {"response_format": SCHEMA}, {"json_schema": False}, "json_schema"),
    *(
        Case(f"reserved {key}", Code.RESERVED_KEY, {"params": {key: 1}}, says=key)
        for key in sorted(RESERVED_REQUEST_KEYS)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_request_is_checked_before_it_costs_anything(case: Case) -> None:
    """What cannot be right is refused with a code and a way out."""
    request = ModelRequest(model="m", messages=(Message("user", "hi"),), **case.request)
    capabilities = Capabilities(**case.can)
    if not case.code:
        check_request(request, capabilities)
        return
    with pytest.raises(RequestError) as caught:
        check_request(request, capabilities)
    assert caught.value.code == case.code
    assert case.says in str(caught.value)
    assert caught.value.hint
