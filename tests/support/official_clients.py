"""Official clients of four wire formats as a plain agent uses them: one turn at a time.

Nothing is repaired here. What a client hands over is taken as most agents take it: calls from the
place the client puts them, arguments with `json.loads`.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import anthropic
import openai
from google import genai
from google.genai import types

KEY = "client-key-0123456789"


class SeenCall(NamedTuple):
    """A call as a client hands it over; arguments that are not JSON stay text."""

    id: str
    name: Any
    arguments: Any


class Turn(NamedTuple):
    """What a client hands over for one request."""

    calls: list[SeenCall]
    text: str


class Scene(NamedTuple):
    """What an agent asks."""

    order: str
    tools: Mapping[str, Mapping[str, Any]]
    """Schemas by name."""
    choice: str = "auto"
    """`auto`, `none`, `required` or the name of a tool; only for the first request."""
    one_call: bool = False


class Agent(Protocol):
    """A conversation over one official client."""

    async def ask(self) -> Turn:
        """Ask for the next turn."""
        ...

    def answer(self, result: str) -> None:
        """Add the same result for every call of the last turn."""
        ...

    async def close(self) -> None:
        """Give up the connections."""
        ...


def _read(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


class ChatAgent:
    """The OpenAI client with chat completions."""

    def __init__(self, url: str, model: str, scene: Scene, *, stream: bool, timeout: float) -> None:
        self._client: Any = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, timeout=timeout)
        self._stream = stream
        self._messages: list[Any] = [{"role": "user", "content": scene.order}]
        tools = [
            {"type": "function", "function": {"name": name, "parameters": schema}}
            for name, schema in scene.tools.items()
        ]
        self._asked: dict[str, Any] = {"model": model, "tools": tools}
        if scene.one_call:
            self._asked["parallel_tool_calls"] = False
        choice = scene.choice
        if choice in ("none", "required"):
            self._asked["tool_choice"] = choice
        elif choice != "auto":
            self._asked["tool_choice"] = {"type": "function", "function": {"name": choice}}

    async def ask(self) -> Turn:
        """Ask for the next turn."""
        made: Any = await self._client.chat.completions.create(
            messages=self._messages, stream=self._stream, **self._asked
        )
        self._asked.pop("tool_choice", None)
        if self._stream:
            return await self._ask_stream(made)
        message = made.choices[0].message
        self._messages.append(message.model_dump(exclude_none=True))
        calls = [
            SeenCall(call.id, call.function.name, _read(call.function.arguments))
            for call in message.tool_calls or []
        ]
        return Turn(calls, message.content or "")

    async def _ask_stream(self, made: Any) -> Turn:
        text = ""
        found: dict[int, dict[str, Any]] = {}
        async for event in made:
            for choice in event.choices[:1]:
                text += choice.delta.content or ""
                for delta in choice.delta.tool_calls or []:
                    call = found.setdefault(delta.index, {"id": "", "name": "", "arguments": ""})
                    call["id"] = call["id"] or delta.id
                    call["name"] += delta.function.name or ""
                    call["arguments"] += delta.function.arguments or ""
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if found:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for call in found.values()
            ]
        self._messages.append(message)
        calls = [
            SeenCall(item["id"], item["name"], _read(item["arguments"])) for item in found.values()
        ]
        return Turn(calls, text)

    def answer(self, result: str) -> None:
        """Add the same result for every call of the last turn."""
        for call in self._messages[-1]["tool_calls"]:
            self._messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    async def close(self) -> None:
        """Give up the connections."""
        await self._client.close()


class ResponsesAgent:
    """The OpenAI client with responses."""

    def __init__(self, url: str, model: str, scene: Scene, *, stream: bool, timeout: float) -> None:
        self._client: Any = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, timeout=timeout)
        self._stream = stream
        self._input: list[Any] = [{"role": "user", "content": scene.order}]
        tools = [
            {"type": "function", "name": name, "parameters": schema, "strict": False}
            for name, schema in scene.tools.items()
        ]
        self._asked: dict[str, Any] = {"model": model, "tools": tools}
        if scene.one_call:
            self._asked["parallel_tool_calls"] = False
        choice = scene.choice
        if choice in ("none", "required"):
            self._asked["tool_choice"] = choice
        elif choice != "auto":
            self._asked["tool_choice"] = {"type": "function", "name": choice}
        self._calls: list[Any] = []

    async def ask(self) -> Turn:
        """Ask for the next turn."""
        made: Any = await self._client.responses.create(
            input=self._input, stream=self._stream, **self._asked
        )
        self._asked.pop("tool_choice", None)
        if self._stream:
            ended = None
            async for event in made:
                if event.type in ("response.completed", "response.incomplete"):
                    ended = event.response
                elif event.type == "response.failed":
                    raise openai.OpenAIError(str(event.response.error))
            if ended is None:
                return Turn([], "")
            made = ended
        if made.error is not None:
            raise openai.OpenAIError(str(made.error))
        self._calls = [item for item in made.output if item.type == "function_call"]
        self._input += [item.model_dump(exclude_none=True) for item in made.output]
        calls = [SeenCall(item.call_id, item.name, _read(item.arguments)) for item in self._calls]
        return Turn(calls, made.output_text)

    def answer(self, result: str) -> None:
        """Add the same result for every call of the last turn."""
        self._input += [
            {"type": "function_call_output", "call_id": call.call_id, "output": result}
            for call in self._calls
        ]

    async def close(self) -> None:
        """Give up the connections."""
        await self._client.close()


class MessagesAgent:
    """The Anthropic client."""

    def __init__(self, url: str, model: str, scene: Scene, *, stream: bool, timeout: float) -> None:
        self._client: Any = anthropic.AsyncAnthropic(base_url=url, api_key=KEY, timeout=timeout)
        self._stream = stream
        self._messages: list[Any] = [{"role": "user", "content": scene.order}]
        tools = [{"name": name, "input_schema": schema} for name, schema in scene.tools.items()]
        self._asked: dict[str, Any] = {"model": model, "max_tokens": 500, "tools": tools}
        kinds = {"auto": "auto", "none": "none", "required": "any"}
        choice: dict[str, Any] = {"type": kinds.get(scene.choice, "tool")}
        if choice["type"] == "tool":
            choice["name"] = scene.choice
        if scene.one_call:
            choice["disable_parallel_tool_use"] = True
        if choice != {"type": "auto"}:
            self._asked["tool_choice"] = choice
        self._calls: list[Any] = []

    async def ask(self) -> Turn:
        """Ask for the next turn."""
        if self._stream:
            async with self._client.messages.stream(messages=self._messages, **self._asked) as made:
                message: Any = await made.get_final_message()
        else:
            message = await self._client.messages.create(messages=self._messages, **self._asked)
        if self._asked.get("tool_choice", {}).get("type") != "auto":
            self._asked.pop("tool_choice", None)
        self._calls = [block for block in message.content if block.type == "tool_use"]
        content = [block.model_dump(exclude_none=True) for block in message.content]
        self._messages.append({"role": "assistant", "content": content})
        text = "".join(block.text for block in message.content if block.type == "text")
        return Turn([SeenCall(call.id, call.name, call.input) for call in self._calls], text)

    def answer(self, result: str) -> None:
        """Add the same result for every call of the last turn."""
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}
            for call in self._calls
        ]
        self._messages.append({"role": "user", "content": results})

    async def close(self) -> None:
        """Give up the connections."""
        await self._client.close()


class GeminiAgent:
    """The client of Google's generative models."""

    def __init__(self, url: str, model: str, scene: Scene, *, stream: bool, timeout: float) -> None:
        options = types.HttpOptions(base_url=url, timeout=int(timeout * 1000))
        self._client: Any = genai.Client(api_key=KEY, http_options=options)
        self._model = model
        self._stream = stream
        self._contents: list[Any] = [
            types.Content(role="user", parts=[types.Part(text=scene.order)])
        ]
        self._tools: list[Any] = [
            types.Tool(
                function_declarations=[
                    types.FunctionDeclaration(name=name, parameters_json_schema=schema)
                    for name, schema in scene.tools.items()
                ]
            )
        ]
        self._choice = scene.choice
        self._calls: list[Any] = []

    async def ask(self) -> Turn:
        """Ask for the next turn."""
        modes = {"none": "NONE", "required": "ANY"}
        calling = types.FunctionCallingConfig(mode=modes.get(self._choice, "ANY"))  # type: ignore[arg-type]
        if self._choice not in ("auto", "none", "required"):
            calling.allowed_function_names = [self._choice]
        chosen = types.ToolConfig(function_calling_config=calling)
        asked: dict[str, Any] = {
            "model": self._model,
            "contents": self._contents,
            "config": types.GenerateContentConfig(
                tools=self._tools, tool_config=None if self._choice == "auto" else chosen
            ),
        }
        models = self._client.aio.models
        if self._stream:
            replies = [item async for item in await models.generate_content_stream(**asked)]
        else:
            replies = [await models.generate_content(**asked)]
        self._choice = "auto"
        parts = [
            part
            for made in replies
            for candidate in (made.candidates or [])[:1]
            for part in (candidate.content.parts if candidate.content else None) or []
        ]
        self._contents.append(types.Content(role="model", parts=parts))
        self._calls = [part.function_call for part in parts if part.function_call]
        text = "".join(part.text for part in parts if part.text and not part.thought)
        return Turn([SeenCall(call.id, call.name, call.args) for call in self._calls], text)

    def answer(self, result: str) -> None:
        """Add the same result for every call of the last turn."""
        parts = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=call.id, name=call.name, response={"output": result}
                )
            )
            for call in self._calls
        ]
        self._contents.append(types.Content(role="user", parts=parts))

    async def close(self) -> None:
        """Give up the connections."""
        await self._client.aio.aclose()


AGENTS: dict[str, Any] = {
    "chat_completions": ChatAgent,
    "responses": ResponsesAgent,
    "messages": MessagesAgent,
    "gemini": GeminiAgent,
}
"""Agents by the wire format of their client."""
