"""An openai client whose provider writes calls as text, alone and wrapped.

python examples/wrap_client.py
"""

import asyncio
from typing import Any

import openai

import surecall
from surecall.faults import FaultServer, FaultyProvider

TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


async def ask(client: openai.AsyncOpenAI) -> str:
    """Ask for one call and describe what the client hands over."""
    completion = await client.chat.completions.create(
        model="faults:text_hermes",
        messages=[{"role": "user", "content": 'call weather with {"city": "Oslo"}'}],
        tools=TOOLS,
    )
    message = completion.choices[0].message
    calls = [call.function for call in message.tool_calls or [] if call.type == "function"]
    return f"{calls[0].name}({calls[0].arguments})" if calls else f"text: {message.content}"


async def main() -> None:
    """Ask a provider of this machine that writes each call in the tags of Hermes."""
    async with (
        FaultServer(FaultyProvider()) as provider,
        openai.AsyncOpenAI(base_url=provider.url, api_key="none") as client,
    ):
        print("alone   ", await ask(client))
        print("wrapped ", await ask(surecall.wrap(client)))


if __name__ == "__main__":
    asyncio.run(main())
