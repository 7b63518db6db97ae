"""MCP: tools of other servers in a run, and surecall's own functions as a server."""

from .connection import silence_sdk
from .pins import PinFile
from .server_tools import McpTools, mcp_tools

__all__ = ["McpTools", "PinFile", "mcp_tools", "silence_sdk"]
