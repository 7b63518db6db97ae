"""A plain agent that knows nothing of surecall, run by `surecall with`.

surecall with --upstream URL python -- examples/plain_agent.py "Weather in Oslo?"

It calls a tool until the model answers in words, with `json.loads` and no checks.
"""

import json
import sys
from typing import Any

import openai

TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tell the weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


def main(question: str, model: str) -> None:
    """Ask, run what the model calls, and print its answer."""
    client = openai.OpenAI()
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(5):
        completion = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
        message: Any = completion.choices[0].message
        if not message.tool_calls:
            print(message.content)
            return
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            city = json.loads(call.function.arguments)["city"]
            result = f"Clear over {city}."
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "demo")
