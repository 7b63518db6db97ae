"""Names, digests and effects of tools that a server defines."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.errors import ToolDefinitionError
from surecall.tools.mcp.definitions import name_server, name_tools, read_definition
from surecall.tools.mcp.server_tools import read_data


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("python server.py", "server"),
        ("/usr/bin/python3.11 -m tools/files.py --root /data", "files"),
        ("uv run weather.py", "weather"),
        ("npx -y @scope/server-files /data", "server-files"),
        ("uvx mcp-server-git@1.2", "mcp-server-git"),
        (["my-server", "--stdio"], "my-server"),
        ("https://mcp.example.com/v1", "example"),
        ("http://127.0.0.1:8000/mcp", "127"),
        ("python", "mcp"),
        ("env API_KEY=secret npx server-files", "server-files"),
    ],
)
def test_a_server_is_named_after_its_program_or_host(target: Any, name: str) -> None:
    """Runners, flags, versions and endings are not a part of the name."""
    assert name_server(target) == name


def test_names_are_prefixed_and_lead_back() -> None:
    """A name that fits stays as it is; others end in a digest of the original."""
    names = name_tools("s", ["read", "read.all", "read/all", "x" * 100])
    assert names["s__read"] == "read"
    assert names["s__read_all_8fb73bbb"] == "read.all"
    assert sorted(names.values()) == sorted(["read", "read.all", "read/all", "x" * 100])
    assert all(len(name) <= 64 for name in names)


@given(st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=20))
def test_no_two_tools_get_the_same_name(names: list[str]) -> None:
    """Whatever a server calls its tools, each name in a run leads back to one of them."""
    found = name_tools("server", names)
    assert sorted(found.values()) == sorted(names)
    assert all(name.isascii() and 1 <= len(name) <= 64 for name in found)


def definition(**fields: Any) -> Any:
    """Return a definition, or fail."""
    found = read_definition({"name": "t", "inputSchema": {"type": "object"}, **fields})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("annotations", "effect"),
    [
        ({"readOnlyHint": True}, "read"),
        ({"readOnlyHint": False, "openWorldHint": False}, "write"),
        ({"readOnlyHint": "true"}, "external"),
        ({}, "external"),
        (None, "external"),
    ],
)
def test_only_a_hint_that_says_so_makes_a_tool_read(annotations: Any, effect: str) -> None:
    """What a server does not say counts as an effect."""
    assert definition(annotations=annotations).effect == effect


def test_the_digest_covers_what_a_model_reads() -> None:
    """Another description, schema or hint is another definition; order and metadata are not."""
    first = definition(description="Add.", _meta={"a": 1})
    assert first.digest == definition(description="Add.", _meta={"a": 2}).digest
    others = [
        definition(description="Add!"),
        definition(description="Add.", annotations={"readOnlyHint": True}),
        definition(description="Add.", inputSchema={"type": "object", "required": ["a"]}),
    ]
    assert len({first.digest, *(other.digest for other in others)}) == 4


@pytest.mark.parametrize(
    "schema", [{"type": "array"}, {"$ref": "https://example.com/s.json"}, {"properties": 5}]
)
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, Any]) -> None:
    """Remote references are never fetched, and arguments are always an object."""
    with pytest.raises(ToolDefinitionError):
        definition(inputSchema=schema).describe("t", None)


@pytest.mark.parametrize(
    ("answer", "data"),
    [
        ({"structuredContent": {"ok": True}, "content": []}, {"ok": True}),
        ({"structuredContent": [1]}, {"value": [1]}),
        (
            {
                "structuredContent": {"result": ["a", {"b": 1}]},
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": '{"b": 1}'}],
            },
            {"result": ["a", {"b": 1}]},
        ),
        (
            {"structuredContent": {}, "content": [{"type": "text", "text": "Ask again at noon."}]},
            {"structured": {}, "content": [{"text": "Ask again at noon."}]},
        ),
        (
            {
                "structuredContent": {"n": 1},
                "content": [
                    {"type": "text", "text": '{"n": 1}'},
                    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                ],
            },
            {
                "structured": {"n": 1},
                "content": [{"type": "image", "mime_type": "image/png", "bytes_left_out": 3}],
            },
        ),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"text": "a\nb"},
        ),
        ({"content": []}, {"text": ""}),
        (
            {"content": [{"type": "resource", "resource": {"uri": "f:a", "text": "t"}}]},
            {"content": [{"uri": "f:a", "text": "t"}]},
        ),
        (
            {"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]},
            {"content": [{"type": "audio", "mime_type": "audio/wav", "bytes_left_out": 3}]},
        ),
        (
            {"content": [{"type": "resource_link", "uri": "f:b", "name": "b"}]},
            {"content": [{"type": "resource_link", "uri": "f:b", "name": "b"}]},
        ),
    ],
)
def test_an_answer_becomes_data(answer: dict[str, Any], data: dict[str, Any]) -> None:
    """Structure first, then texts; of anything else only what it is."""
    assert read_data(answer) == data
