"""MCP: tools of other servers in a run, and surecall's own functions as a server."""

from .client import McpTools, mcp_tools
from .connection import silence_sdk
from .pins import PinFile

__all__ = ["McpTools", "PinFile", "mcp_tools", "silence_sdk"]
