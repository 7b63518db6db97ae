"""surecall's own functions as an MCP server, for coding agents that work on tool calls.

Nothing here opens a file or a connection: what a caller sends is read, and an answer is returned.
"""

import os
import socket
from collections.abc import Callable
from inspect import Parameter, cleandoc, signature
from typing import Annotated, Any, Final, get_args

import msgspec

from surecall.base.errors import Code, ConfigError, SurecallError
from surecall.base.limits import MAX_BODY_BYTES
from surecall.base.version import VERSION
from surecall.cli.topics import explain_topic
from surecall.reading import read_reply as read_any_reply
from surecall.schema import SchemaChecker, lint_tool
from surecall.text import repair_json as repair_text
from surecall.tools.mcp.connection import load_sdk

_HOST: Final = "127.0.0.1"
_INSTRUCTIONS: Final = (
    "Look at what a model sent instead of guessing: read_reply shows the calls in a reply and "
    "every change that was needed, repair_json the value in broken JSON, check_schema what "
    "providers will refuse in a tool, and explain what a code or name of surecall means."
)


def read_reply(
    reply: str | dict[str, Any] | list[Any],
    tools: list[dict[str, Any]] | None = None,
    accept_likely: bool = False,
) -> dict[str, Any]:
    """Read the tool calls in a model's reply, with a receipt for every repair.

    Args:
        reply: The text a model wrote, or a message, a body or a recorded stream of any provider.
        tools: The tools that were offered, in the form of any provider.
        accept_likely: Whether to take calls that the text only probably makes.
    """
    accept = "likely" if accept_likely else "certain"
    reading = read_any_reply(reply, tools=tools, accept=accept)
    return msgspec.to_builtins(reading)


def repair_json(text: str, close_cut: bool = False) -> dict[str, Any]:
    """Read the JSON value in a text that may be broken; what could mean two things is refused.

    Args:
        text: What a model wrote where JSON was expected.
        close_cut: Whether a value that was cut off is closed, with what is missing lost.
    """
    cut = "close" if close_cut else "refuse"
    return msgspec.to_builtins(repair_text(text, cut=cut, max_bytes=MAX_BODY_BYTES))


def check_schema(
    parameters: dict[str, Any], name: str = "tool", description: str = ""
) -> dict[str, Any]:
    """Check a tool's schema: whether it is valid, and what some providers or models trip over.

    Args:
        parameters: JSON Schema of the arguments.
        name: The name of the tool.
        description: Its description.
    """
    SchemaChecker(parameters).compile()
    findings = lint_tool(name, description, parameters)
    return {"valid": True, "findings": msgspec.to_builtins(findings)}


def explain(name: str) -> dict[str, Any]:
    """Explain a code, rule, text format, fault, preset, option or setting of surecall.

    Args:
        name: Such as ARGUMENTS_TRUNCATED, or the rule of a receipt.
    """
    return {"found": msgspec.to_builtins(explain_topic(name))}


FUNCTIONS: Final[tuple[Callable[..., dict[str, Any]], ...]] = (
    read_reply,
    repair_json,
    check_schema,
    explain,
)
"""What the server offers."""


def make_server() -> Any:
    """Return the server, an `MCPServer` of the official SDK."""
    load_sdk()
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    server = MCPServer("surecall", version=VERSION, instructions=_INSTRUCTIONS, log_level="WARNING")
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for function in FUNCTIONS:
        words = cleandoc(function.__doc__ or "")
        server.add_tool(_with_refusals(function), description=words, annotations=hints)
    return server


def _with_refusals(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return the function with errors of surecall as answers, which an agent can act on."""
    from functools import wraps

    @wraps(function)
    def answer(**arguments: Any) -> dict[str, Any]:
        try:
            return function(**arguments)
        except SurecallError as error:
            return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}

    plain = signature(function)
    kept = [_keep_text(parameter) for parameter in plain.parameters.values()]
    vars(answer)["__signature__"] = plain.replace(parameters=kept)
    return answer


def _keep_text(parameter: Parameter) -> Parameter:
    """Return a parameter whose text stays text; the SDK parses JSON where more than text is taken.

    What a model wrote is often nothing but JSON, and is to be read as it was written.
    """
    from pydantic import PlainValidator, TypeAdapter

    given: Any = parameter.annotation
    if str not in get_args(given):
        return parameter
    check = PlainValidator(TypeAdapter(given).validate_python, json_schema_input_type=given)
    return parameter.replace(annotation=Annotated[str, check])


def serve_stdio() -> None:
    """Serve over standard input and output until the input ends."""
    make_server().run()


def serve_http(port: int) -> None:
    """Serve over HTTP on this machine only, at `/mcp`.

    Raises:
        ConfigError: The port cannot be used.
    """
    server = make_server()
    try:
        # The SDK would log why it cannot listen, and exit.
        with socket.create_server((_HOST, port)):
            pass
    except OSError as error:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"cannot listen on {_HOST}:{port}: {os.strerror(error.errno or 0)}.",
            hint="Choose another port.",
        ) from error
    server.run("streamable-http", host=_HOST, port=port)
