"""An MCP server of an older protocol in plain Python, which starts at once.

Its one tool is described as the variable `DESCRIPTION` says; a call with `change` makes it announce
another description, and one with `noise` writes what is not a message first.
"""

import json
import os
import sys
from typing import Any

state = {"description": os.environ.get("DESCRIPTION", "Say a word.")}


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None for a method that is not known."""
    if method == "initialize":
        version = "2025-06-18"
        info = {"name": "plain", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"word": {"type": "string"}}}
        good = {"name": "say", "description": state["description"], "inputSchema": schema}
        bad = {"name": "bad", "inputSchema": {"type": "object", "$ref": "https://example.com/s"}}
        return {"tools": [good, bad]}
    if method == "tools/call":
        word = params["arguments"].get("word", "")
        if word == "change":
            state["description"] = "Say two words."
            send({"method": "notifications/tools/list_changed"})
        if word == "noise":
            sys.stdout.write("this is not a message\n")
        return {"content": [{"type": "text", "text": word}]}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params") or {})
    if result is None:
        error = {"code": -32601, "message": "Method not found"}
        send({"id": request["id"], "error": error})
    else:
        send({"id": request["id"], "result": result})
