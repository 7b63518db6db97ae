"""What `surecall.wrap` adds to a clean reply, beside what the SDK costs by itself.

python bench/wrap.py [--rounds 60] [--requests 20]

The client and the wrapped one take turns in short rounds, and the best round of each counts, so
that a busy machine does not matter much. The endpoint is a transport in the same process that
answers with the same bytes, so only the client's own work is measured.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai

import surecall

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
CHAT = {
    "id": "c",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Oslo","days":3}'},
                    }
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70},
}
MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "tool_use", "id": "t_1", "name": "weather", "input": {"city": "Oslo", "days": 3}}
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 50, "output_tokens": 20},
}
ASKED = [{"role": "user", "content": "Weather in Oslo?"}]


def http(reply: Any) -> httpx2.Client:
    body = json.dumps(reply).encode()
    headers = {"content-type": "application/json"}
    return httpx2.Client(
        transport=httpx2.MockTransport(
            lambda _: httpx2.Response(200, headers=headers, content=body)
        )
    )


def ask_openai(client: Any) -> Callable[[], Any]:
    function = {"name": "weather", "description": "Tell it.", "parameters": SCHEMA}
    tools = [{"type": "function", "function": function}]
    return lambda: client.chat.completions.create(model="m", messages=ASKED, tools=tools)


def ask_anthropic(client: Any) -> Callable[[], Any]:
    tools = [{"name": "weather", "description": "Tell it.", "input_schema": SCHEMA}]
    return lambda: client.messages.create(model="m", max_tokens=100, messages=ASKED, tools=tools)


def cpu_ms(ask: Callable[[], Any], requests: int) -> float:
    began = time.process_time()
    for _ in range(requests):
        ask()
    return (time.process_time() - began) * 1000 / requests


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--requests", type=int, default=20)
    chosen = parser.parse_args()
    clients = {
        "openai": (ask_openai, openai.OpenAI(api_key="k", http_client=http(CHAT))),
        "anthropic": (ask_anthropic, anthropic.Anthropic(api_key="k", http_client=http(MESSAGE))),
    }
    print("| client | alone, ms | wrapped, ms | added, ms | median added, ms |")
    print("|---|---|---|---|---|")
    for name, (make, client) in clients.items():
        alone, wrapped = make(client), make(surecall.wrap(client))
        cpu_ms(alone, 20), cpu_ms(wrapped, 20)
        rounds = range(chosen.rounds)
        pairs = [(cpu_ms(alone, chosen.requests), cpu_ms(wrapped, chosen.requests)) for _ in rounds]
        least_alone, least_wrapped = (min(column) for column in zip(*pairs, strict=True))
        middle = statistics.median(after - before for before, after in pairs)
        print(
            f"| {name} | {least_alone:.2f} | {least_wrapped:.2f} "
            f"| {least_wrapped - least_alone:.2f} | {middle:.2f} |"
        )


if __name__ == "__main__":
    main()
