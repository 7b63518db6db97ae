"""An MCP server with prompts, resources and progress, started as a process of its own."""

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("others")


@server.prompt()
def greet(who: str) -> str:
    """Greet somebody."""
    return f"Greet {who}."


@server.resource("note://one")
def note() -> str:
    """Keep a note."""
    return "kept"


@server.resource("page://{number}")
def page(number: str) -> str:
    """Read a page."""
    return f"page {number}"


@server.tool()
async def count(context: Context) -> str:
    """Count to two."""
    await context.report_progress(1, 2)
    await context.report_progress(2, 2)
    return "two"


server.run()
