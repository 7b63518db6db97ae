"""LangChain on an HTTP client that repairs replies.

python examples/langchain_tools.py
"""

import asyncio
from typing import Any

import httpx
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

import surecall
from surecall.faults import FaultServer, FaultyProvider


def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"Clear over {city}."


async def main() -> None:
    """Bind a function to a model whose arguments come in a code fence.

    `library` is needed only where httpx2 is installed as well.
    """
    async with (
        FaultServer(FaultyProvider()) as provider,
        surecall.async_http_client(library=httpx) as client,
    ):
        model: Any = ChatOpenAI(
            model="faults:arguments_fenced",
            base_url=provider.url,
            api_key=SecretStr("none"),
            http_async_client=client,
        )
        reply = await model.bind_tools([weather]).ainvoke('call weather with {"city": "Oslo"}')
    for call in reply.tool_calls:
        print(call["name"], call["args"], weather(**call["args"]))


if __name__ == "__main__":
    asyncio.run(main())
