"""Calls that were cut, as text and on the wire, and what a tool with effects is given of them."""

import asyncio
import html
import json
from collections.abc import Callable, Iterator
from typing import Any

from surecall import run_sync, tool
from surecall.base.errors import SurecallError
from surecall.base.records import RawCall, Reply, ToolSpec
from surecall.calls import ToolNames
from surecall.models.transport import ScriptedReply, ScriptedTransport
from surecall.reading import read_reply
from surecall.tools import Dispatcher, ToolContext, ToolRegistry
from surecall.wire import WireProtocol

from . import render_formats_json, render_formats_untagged
from .render_formats_tags import RENDERERS as TAG_RENDERERS

__all__ = ["FINISHES", "RENDERERS", "TARGET", "Recorder", "cut_on_wire", "parse", "wires"]

FINISHES = ("stop", "length", "never_heard_of", None)
"""A word that ends a reply, one that breaks it off, one that nobody knows, and none."""

TARGET = ToolSpec(
    name="clean",
    effect="write",
    parameters={
        "type": "object",
        "properties": {
            "keep": {"type": "array"},
            "path": {"type": "string"},
            "count": {"type": "number"},
            "options": {"type": "object"},
            "dry_run": {"type": "boolean", "default": True},
            "note": {"type": "string", "default": ""},
        },
        "additionalProperties": False,
    },
)
_NAMES = ToolNames([TARGET])


class Recorder:
    """A tool with effects that remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[dict[str, Any]] = []

        @tool(name="clean", parameters=TARGET.parameters, effect="write")
        def clean(**arguments: Any) -> str:
            """Remember the arguments."""
            self.given.append(arguments)
            return "done"

        self._tools = ToolRegistry([clean])
        self._dispatcher = Dispatcher(self._tools)

    def run(self, reply: Reply) -> list[dict[str, Any]]:
        """Read a reply, dispatch its calls, and return what the tool was given."""
        self.given = []
        calls = [call for call in read_reply(reply, tools=_NAMES).calls if call.state == "whole"]
        if calls:
            asyncio.run(self._dispatch_all(calls))
        return self.given

    def run_in_loop(self, text: str, finish_reason: str | None, **options: Any) -> list[Any]:
        """Give a whole run this reply, and return what the tool was given."""
        self.given = []
        script = ScriptedTransport(
            [ScriptedReply(message=text, finish_reason=finish_reason), *["Done."] * 3]
        )
        run_sync("hi", model="m", preset=(), tools=self._tools, transport=script, **options)
        return self.given

    async def _dispatch_all(self, calls: list[Any]) -> None:
        for call in calls:
            result = await self._dispatcher.dispatch(call, ToolContext(call_id=call.id))
            codes = result.envelope.error_codes
            assert ("CALL_NOT_CERTAIN" in codes) == (call.certainty == "likely"), codes


# Text


def _one(write: Callable[[str, dict[str, Any]], str]) -> Callable[..., str]:
    return lambda calls, *_: write(*calls[0])


def _lines(arguments: dict[str, Any], indent: str) -> str:
    return "\n".join(f"{indent}{key}: {json.dumps(item)}" for key, item in arguments.items())


def _keywords(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{key}={item!r}" for key, item in arguments.items())


_OTHERS = {
    "yaml": _one(
        lambda n, a: f"<tool_calls>\n- name: {n}\n  arguments:\n{_lines(a, '    ')}\n</tool_calls>"
    ),
    "react_lines": _one(lambda n, a: f"Action: {n}\nAction Input:\n{_lines(a, '')}\n"),
    "react_call": _one(lambda n, a: f"Action: {n}({_keywords(a)})\n"),
    "flat": _one(lambda n, a: f"<tool_call>{json.dumps({'name': n, **a})}</tool_call>"),
    "flat_bare": _one(lambda n, a: json.dumps({"name": n, **a})),
    "keyed": _one(lambda n, a: f"<tool_call>{json.dumps({n: a})}</tool_call>"),
    "keyed_bare": _one(lambda n, a: json.dumps({n: a})),
    "text_arguments": _one(
        lambda n, a: json.dumps({"tool_calls": [{"name": n, "arguments": json.dumps(a)}]})
    ),
    "arguments_first": _one(
        lambda n, a: f"<tool_call>{json.dumps({'arguments': a, 'name': n})}</tool_call>"
    ),
    "python_call": _one(lambda n, a: f"{n}({_keywords(a)})"),
    "invoke": _one(lambda n, a: f'<invoke name="{n}">\n{_parameters(a)}</invoke>'),
    "invoke_attributes": _one(
        lambda n, a: f'<invoke name="{n}" {" ".join(map(_attribute, a.items()))}/>'
    ),
    "invoke_json": _one(
        lambda n, a: f'<function_calls><invoke name="{n}">{json.dumps(a)}</invoke></function_calls>'
    ),
    "invoke_legacy": _one(
        lambda n, a: (
            f"<function_calls><invoke><tool_name>{n}</tool_name><parameters>"
            f"{_elements(a)}</parameters></invoke></function_calls>"
        )
    ),
    "cdata": _one(
        lambda n, a: (
            f'<function name="{n}">'
            + "".join(
                f'<param name="{key}"><![CDATA[{_written(item)}]]></param>'
                for key, item in a.items()
            )
            + "</function>"
        )
    ),
    "qwen_json": _one(
        lambda n, a: f"<tool_call>\n<function={n}>\n{json.dumps(a)}\n</function>\n</tool_call>"
    ),
    "qwen_bare": _one(
        lambda n, a: (
            f"<function={n}>\n"
            + "".join(f"<parameter={key}>\n{_written(a[key])}\n</parameter>\n" for key in a)
            + "</function>"
        )
    ),
    "property_tags": _one(
        lambda n, a: f"<tool_call><function={n}>{_elements(a)}</function></tool_call>"
    ),
    "name_tag_json": _one(lambda n, a: f"<{n}>{json.dumps(a)}</{n}>"),
    "mcp": _one(
        lambda n, a: (
            f"<use_mcp_tool><server_name>s</server_name><tool_name>{n}</tool_name>"
            f"<arguments>{json.dumps(a)}</arguments></use_mcp_tool>"
        )
    ),
    "longcat_json": _one(lambda n, a: f"<longcat_tool_call>{_named(n, a)}</longcat_tool_call>"),
    "longcat_call": _one(
        lambda n, a: f"<longcat_tool_call>{n}({json.dumps(a)})</longcat_tool_call>"
    ),
    "dsml_json": _one(
        lambda n, a: (
            f'<｜DSML｜tool_calls><｜DSML｜invoke name="{n}">{json.dumps(a)}'
            "</｜DSML｜invoke></｜DSML｜tool_calls>"
        )
    ),
    "sections": _one(
        lambda n, a: f"<tool_calls><tool_call>{_named(n, a)}</tool_call></tool_calls>"
    ),
    "fenced_tag": _one(lambda n, a: f"<tool_call>\n```json\n{_named(n, a)}\n```\n</tool_call>"),
    "other_tag": _one(lambda n, a: f"<tools>{_named(n, a)}</tools>"),
    "kimi_stripped": _one(lambda n, a: f"functions.{n}:0{json.dumps(a)}"),
    "mistral_stripped": _one(lambda n, a: f"{n}[ARGS]{json.dumps(a)}"),
    "harmony_bare": _one(lambda n, a: f"assistantcommentary to=functions.{n}json{json.dumps(a)}"),
}


def _written(item: Any) -> str:
    return item if isinstance(item, str) else json.dumps(item)


def _named(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def _attribute(pair: tuple[str, Any]) -> str:
    return f'{pair[0]}="{html.escape(_written(pair[1]))}"'


def _parameters(arguments: dict[str, Any]) -> str:
    return "".join(
        f'<parameter name="{key}">{_written(item)}</parameter>\n' for key, item in arguments.items()
    )


def _elements(arguments: dict[str, Any]) -> str:
    return "".join(f"<{key}>{_written(item)}</{key}>\n" for key, item in arguments.items())


RENDERERS: dict[str, Callable[..., str]] = {
    **{
        name.removeprefix("render_"): getattr(module, name)
        for module in (render_formats_json, render_formats_untagged)
        for name in module.__all__
        if name.startswith("render_")
    },
    **TAG_RENDERERS,
    **_OTHERS,
}
"""Every family of text formats, and shapes that several of them read."""


# The wire


def wires(
    protocol: WireProtocol, arguments: dict[str, Any], finish_reason: str | None
) -> Iterator[tuple[str, bytes]]:
    """Yield a reply with one call as a server writes it: `whole` and `stream`."""
    text = json.dumps(arguments, ensure_ascii=False)
    call = RawCall("call_1", "clean", text)
    reply = Reply(content=None, calls=(call,), finish_reason=finish_reason, model="m")
    yield "whole", json.dumps(protocol.render_reply(reply)).encode()
    writer = protocol.open_writer(model="m")
    yield "stream", writer.begin() + writer.call(call) + writer.end(reply)


def cut_on_wire(data: bytes, arguments: dict[str, Any], end: int) -> bytes | None:
    """Return a reply with its arguments cut; `None` where they are not on the wire as text."""
    lines = data.decode().split("\n")
    changed = 0
    for number, line in enumerate(lines):
        head, brace, body = line.partition("{")
        if brace and head in ("", "data: "):
            value, count = _cut_texts(json.loads(brace + body), arguments, end)
            changed += count
            lines[number] = head + json.dumps(value)
    return "\n".join(lines).encode() if changed else None


def _cut_texts(value: Any, arguments: dict[str, Any], end: int) -> tuple[Any, int]:
    """Return a value in which every text that is the arguments is cut, and how many are."""
    if isinstance(value, str) and value[:1] == "{" and value != "{}":
        return (value[:end], 1) if json.loads(value) == arguments else (value, 0)
    if isinstance(value, list):
        items = [_cut_texts(item, arguments, end) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    if isinstance(value, dict):
        fields = {key: _cut_texts(item, arguments, end) for key, item in value.items()}
        return {key: item for key, (item, _) in fields.items()}, sum(
            count for _, count in fields.values()
        )
    return value, 0


def parse(protocol: WireProtocol, kind: str, data: bytes) -> Reply | None:
    """Return the reply in what a server sent, or `None` when it is refused."""
    try:
        if kind == "whole":
            raw = protocol.parse_body(data)
        else:
            folder = protocol.open_stream()
            folder.feed(data)
            raw = folder.close()
        return protocol.parse_message(raw)
    except SurecallError:
        return None
