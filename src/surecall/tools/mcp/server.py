"""A server of surecall's own functions, over the official SDK."""

import os
import socket
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, cleandoc, signature
from typing import Annotated, Any, Final, get_args

from surecall.base.errors import Code, ConfigError, SurecallError
from surecall.base.version import VERSION

from .connection import load_sdk

_HOST: Final = "127.0.0.1"


def make_server(instructions: str, functions: Iterable[Callable[..., dict[str, Any]]]) -> Any:
    """Return a server with some functions as tools, an `MCPServer` of the official SDK."""
    load_sdk()
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    server = MCPServer("surecall", version=VERSION, instructions=instructions, log_level="WARNING")
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for function in functions:
        words = cleandoc(function.__doc__ or "")
        server.add_tool(_with_refusals(function), description=words, annotations=hints)
    return server


def _with_refusals(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return the function with errors of surecall as answers, which an agent can act on."""

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


def serve_http(server: Any, port: int) -> None:
    """Serve over HTTP on this machine only, at `/mcp`.

    Raises:
        ConfigError: The port cannot be used.
    """
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
