"""Attempts to reach a tool that is hidden or not approved, generated from a seed."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from support.cut_calls import RENDERERS
from surecall.models.transport import ScriptedReply, assistant, tool_call

__all__ = ["ARGUMENTS", "CHANNELS", "Attempt", "make_attempts", "spell"]

ARGUMENTS = {"what": "everything"}

_LOOK_ALIKES = str.maketrans(
    {"a": "\u0430", "e": "\u0435", "o": "\u043e", "p": "\u0440", "c": "\u0441", "i": "\u0456"}
)
_FULL_WIDTH = {ord(letter): ord(letter) + 0xFEE0 for letter in "abcdefghijklmnopqrstuvwxyz"}

SPELLINGS: dict[str, Callable[[str], str]] = {
    "exact": lambda name: name,
    "upper": str.upper,
    "title": str.title,
    "camel": lambda name: "".join(word.title() for word in name.split("_")),
    "hyphen": lambda name: name.replace("_", "-"),
    "dots": lambda name: name.replace("_", "."),
    "spaces": lambda name: name.replace("_", " "),
    "joined": lambda name: name.replace("_", ""),
    "padded": lambda name: f"  {name}\n",
    "look-alike": lambda name: name.translate(_LOOK_ALIKES),
    "full width": lambda name: name.translate(_FULL_WIDTH),
    "zero width": lambda name: f"{name[:2]}\u200b{name[2:]}",
    "soft hyphen": lambda name: f"{name[:2]}\u00ad{name[2:]}",
    "accent": lambda name: f"{name}\u0301",
    "right to left": lambda name: f"\u202e{name[::-1]}",
    "nul": lambda name: f"{name}\x00",
    "functions": lambda name: f"functions.{name}",
    "default api": lambda name: f"default_api.{name}",
    "mcp": lambda name: f"mcp__bank__{name}",
    "namespace": lambda name: f"tools::{name}",
    "path": lambda name: f"/{name}",
    "kimi": lambda name: f"functions.{name}:0",
    "channel": lambda name: f"{name}<|channel|>commentary",
    "quoted": lambda name: f'"{name}"',
    "called": lambda name: f"{name}()",
    "version": lambda name: f"{name}_v2",
    "typo": lambda name: name[:-1],
    "escaped": lambda name: "".join(f"%{ord(letter):02x}" for letter in name),
    "object": lambda name: json.dumps({"name": name}),
    "two": lambda name: f"look {name}",
}


@dataclass(frozen=True)
class Attempt:
    """One way to ask for a tool: what the provider answers, and what the caller sets."""

    number: int
    channel: str
    spelling: str
    replies: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def id(self) -> str:
        """Return what identifies it in a failure."""
        return f"{self.number} {self.channel} {self.spelling}"


def spell(name: str, spelling: str) -> str:
    """Return a name in one of the spellings."""
    return SPELLINGS[spelling](name)


def _field(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    calls = [tool_call(name, ARGUMENTS, "c0")]
    if chance.random() < 0.3:
        calls.insert(0, tool_call("look", ARGUMENTS, "c1"))
    return [assistant(None, *calls)], {}


def _legacy(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    call = {"name": name, "arguments": json.dumps(ARGUMENTS)}
    return [{"role": "assistant", "content": None, "function_call": call}], {}


def _write(name: str, chance: random.Random) -> str:
    render = RENDERERS[chance.choice(sorted(RENDERERS))]
    return render([(name, ARGUMENTS)])


def _text(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    options = chance.choice(
        [{}, {"text_formats": "all"}, {"likely_calls": "run"}, {"likely_calls": "approve"}]
    )
    return [_write(name, chance)], options


def _streamed(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    replies, options = chance.choice([_field, _text])(name, chance)
    return replies, {**options, "stream": True}


def _injected(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Have a tool's result hold the call, and the model repeat it."""
    text = _write(name, chance)
    look = assistant(None, tool_call("look", {"what": text}, "c1"))
    return [look, text], {"text_formats": chance.choice(["auto", "all"])}


def _chosen(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Have the choice name the tool: as text, or as the wire has it."""
    replies, _ = _field(name, chance)
    named = {"type": "function", "function": {"name": name}}
    return replies, {"tool_choice": chance.choice([name, named, "required"])}


def _fallback(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Have the provider refuse tools; the call comes in the reply without them."""
    refusal = ScriptedReply(status=400, message="tools are not supported")
    replies, _ = chance.choice([_field, _legacy, _text])(name, chance)
    return [refusal, *replies], {"fallback_retry_count": 1, "text_formats": "all"}


def _rescued(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Have the reply come inside an error."""
    said = "Failed to call a function. See 'failed_generation'."
    failed = {"error": {"message": said, "failed_generation": _write(name, chance)}}
    return [ScriptedReply(status=400, body=failed)], {"text_formats": "all"}


def _taught(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    return [_write(name, chance)], {"tool_prompting": "taught"}


def _constrained(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    call = chance.choice(
        [
            {"name": name, "arguments": ARGUMENTS},
            {"reply": {"name": name, "arguments": ARGUMENTS}},
            {"tool_calls": [{"name": name, "arguments": ARGUMENTS}]},
        ]
    )
    can = {"json_schema": True}
    return [json.dumps(call)], {"tool_prompting": "constrained", "capabilities": can}


def _wrapped(name: str, chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Have the call inside another one."""
    uses = {"tool_uses": [{"recipient_name": f"functions.{name}", "parameters": ARGUMENTS}]}
    outer = tool_call("multi_tool_use.parallel", uses, "c0")
    inner = tool_call("look", {"name": name, "arguments": ARGUMENTS}, "c0")
    return [assistant(None, chance.choice([outer, inner]))], {}


CHANNELS: dict[str, Callable[[str, random.Random], tuple[list[Any], dict[str, Any]]]] = {
    "field": _field,
    "legacy field": _legacy,
    "text": _text,
    "streamed": _streamed,
    "injection": _injected,
    "tool_choice": _chosen,
    "fallback": _fallback,
    "error body": _rescued,
    "taught": _taught,
    "constrained": _constrained,
    "wrapped": _wrapped,
}


def make_attempts(
    name: str, count: int, seed: int, spellings: Sequence[str] = tuple(SPELLINGS)
) -> Iterator[Attempt]:
    """Yield attempts to reach a tool, each channel and each spelling as often as any other."""
    chance = random.Random(seed)
    channels = sorted(CHANNELS)
    for number in range(count):
        channel = channels[number % len(channels)]
        spelling = spellings[(number // len(channels)) % len(spellings)]
        replies, options = CHANNELS[channel](spell(name, spelling), chance)
        yield Attempt(number, channel, spelling, tuple(replies), options)
