"""An MCP server of an older protocol in plain Python, which starts at once.

Its one tool is described as the variable `DESCRIPTION` says; a call with `change` makes it announce
another description, one with `noise` writes what is not a message first, one with `die` ends it,
and one with a number waits for so many seconds.

The variable `PLAN` has it list other tools: `pages` of them, a list that is `endless` or makes one
`hang`; and it may say the `results` of some by name. Calls are noted in the file `CALLS`.
"""

import json
import os
import sys
import time
from typing import Any

state = {"description": os.environ.get("DESCRIPTION", "Say a word.")}
plan: dict[str, Any] = json.loads(os.environ.get("PLAN", "{}"))


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
    if method == "tools/list" and plan.get("hang"):
        time.sleep(600)
    if method == "tools/list" and "pages" in plan:
        pages = plan["pages"]
        next_page = int(params.get("cursor") or 0) + 1
        more = {"nextCursor": str(next_page)}
        has_more = plan.get("endless") or next_page < len(pages)
        return {"tools": pages[(next_page - 1) % len(pages)], **(more if has_more else {})}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"word": {"type": "string"}}}
        good = {"name": "say", "description": state["description"], "inputSchema": schema}
        bad = {"name": "bad", "inputSchema": {"type": "object", "$ref": "https://example.com/s"}}
        return {"tools": [good, bad]}
    if method == "tools/call":
        if "CALLS" in os.environ:
            with open(os.environ["CALLS"], "a") as file:
                file.write(json.dumps([params["name"], params["arguments"]]) + "\n")
        if params["name"] in plan.get("results", {}):
            return plan["results"][params["name"]]
        word = params["arguments"].get("word", "")
        if word == "die":
            os._exit(3)
        if word.isdecimal():
            time.sleep(int(word))
        if word == "change":
            state["description"] = "Say two words."
            send({"method": "notifications/tools/list_changed"})
        if word == "noise":
            sys.stdout.write("this is not a message\n")
            sys.stdout.flush()
            sys.stdout.buffer.write(b"\xff\xfe nor is this\n")
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
