"""What goes wrong in the first minutes is said in words that a newcomer can act on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from surecall import Policy, SurecallError, run, tool
from surecall.base.errors import ConfigError
from surecall.loop.options import resolve_options
from surecall.models.config import load_config

FOREIGN = ("Expected `", "- at `", "object is not", "Traceback", "msgspec", "`$", "NoneType")
"""Words of libraries, which say nothing to whoever calls ours."""


@dataclass
class City:
    """A value."""

    name: str


@tool
def look(word: str) -> str:
    """Look a word up."""
    return word


def plain(word: str) -> str:
    """Look a word up."""
    return word


class Unused:
    """A transport that nothing may reach."""

    async def send(self, request: object) -> NoReturn:
        """Fail."""
        raise AssertionError("a request was sent")

    stream = send

    async def aclose(self) -> None:
        """Nothing is open."""


ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"tools": look}, "Write tools=[look]."),
    ({"tools": plain}, "Write tools=[plain]."),
    ({"tools": "look"}, "tools must be a list, not 'look'."),
    ({"tools": None}, "tools must be a list, not None. Write tools=[f, g], or leave it out."),
    ({"tools": {"look": look}}, "tools must be a list"),
    ({"tools": [None]}, "None cannot be a tool."),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "cannot run"),
    ({"response_model": City}, "Did you mean output=..."),
    ({"response_format": City}, "Did you mean output=..."),
    ({"output_type": City}, "Did you mean output=..."),
    ({"max_retries": 3}, "retry.max_retries"),
    ({"retries": 3}, "retry.max_retries"),
    ({"system_prompt": "x"}, "Did you mean system=...?"),
    ({"instructions": "x"}, "Did you mean system=...?"),
    ({"messages": []}, "The first argument takes a text or messages."),
    ({"max_steps": 3}, "Did you mean max_turns=...?"),
    ({"max_turn": 3}, "Did you mean 'max_turns'?"),
    ({"max_completion_tokens": 3}, "Did you mean max_tokens=...?"),
    ({"client": object()}, "surecall.wrap(client)"),
    ({"top_p": 1}, "request_overrides"),
    ({"timeout": "10"}, "timeout must be seconds above 0, not '10'."),
    ({"timeout": -1}, "timeout must be seconds above 0, not -1."),
    ({"temperature": "hot"}, "temperature must be a number, not 'hot'."),
    ({"max_tokens": "many"}, "max_tokens must be a whole number, not 'many'."),
    ({"max_turns": "abc"}, "max_turns must be a whole number, not 'abc'."),
    ({"max_turns": 0}, "max_turns must be greater than 0, not 0."),
    ({"stream": "yes"}, "stream must be true or false, not 'yes'."),
    ({"tool_use_mode": "on"}, "must be 'disabled' or 'enforced' or 'relaxed', not 'on'."),
    ({"tool_allowlist": 3}, "tool_allowlist must be a list of names, not 3."),
    ({"request_overrides": "x"}, "request_overrides must be"),
    ({"tools": [look], "tool_choice": "lok"}, "look"),
    ({"output": 42}, "Write output=int."),
    ({"output": City("x")}, "Write output=City."),
    ({"headers": ["a"]}, "headers must be a dict"),
    ({"history": "x"}, "history must be a list of messages, not 'x'."),
    ({"transport": "x"}, "transport must be a transport, as in ScriptedTransport([reply])"),
    ({"approvals": "x.db"}, "approvals must be a store, as in MemoryApprovals()"),
    ({"preset": "opnai"}, "Did you mean 'openai'?"),
    ({"provider": "opnai"}, "Did you mean 'openai'?"),
    ({"model": 5}, "model must be a string, not 5."),
    ({"api_key": 5}, "api_key must be a string, not int."),
    ({"base_url": "localhost:8000"}, "base_url must be an address such as https://host/v1."),
    ({"prompt": None}, "The prompt must be a text, a message or a list of messages, not None."),
    ({"prompt": {"content": "x"}}, 'Write it like {"role": "user", "content": "Hello"}.'),
]


@pytest.mark.parametrize(
    ("given", "words"), ARGUMENTS, ids=["-".join(given) for given, _ in ARGUMENTS]
)
async def test_a_wrong_argument_is_refused_in_our_words_before_anything_is_sent(
    given: Mapping[str, Any], words: str
) -> None:
    """The name is right, and what to write instead is there."""
    arguments: dict[str, Any] = {"model": "m", "transport": Unused(), **given}
    prompt = arguments.pop("prompt", "Hello")
    with pytest.raises(SurecallError) as caught:
        await run(prompt, **arguments)
    said = f"{caught.value.message[:1].upper()}{caught.value.message[1:]} {caught.value.hint}"
    assert words.lower() in said.lower()
    assert not any(word in said for word in FOREIGN)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"refused_calls": "delivr"}, "Did you mean 'deliver'?"),
        ({"likely_calls": "yes"}, "Known: deliver, leave, reask."),
        ({"repeated_calls": "notes"}, "Did you mean 'note'?"),
        ({"steps": ("repair", "force", "guess")}, "Known: coerce, force, reask, repair, taught."),
    ],
)
def test_a_policy_knows_its_words(given: Mapping[str, Any], hint: str) -> None:
    """A word it does not know is refused where it is written, not at the first reply."""
    with pytest.raises(ConfigError, match=f"{next(iter(given))} of a policy cannot be") as caught:
        Policy(**given)
    assert caught.value.hint == hint


def settle(folder: Path) -> None:
    """Read the settings of a folder, and the options of a run among them."""
    config = load_config(cwd=folder, environ={})
    resolve_options(
        config.options, {name: config.origins[f"options.{name}"] for name in config.options}
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = 5", "model (from surecall.toml: model) must be a string, not 5."),
        ("stream = 'yes'", "must be true or false, not 'yes'."),
        ("probe = 'yes'", "must be `off` or `auto`, not 'yes'."),
        ("modle = 'm'", "Did you mean 'model'?"),
        ("deadlines = 5", "Write [deadlines] above its keys."),
        ("[deadlines]\ntotal_s = 'x'", "must be seconds above 0, not 'x'."),
        ("[retry]\nmax_retries = -1", "must be a whole number, 0 or more, not -1."),
        ("[options]\nmax_turns = 'x'", "options.max_turns) must be a whole number, not 'x'."),
        ("[options]\nmax_turn = 3", "Did you mean 'max_turns'?"),
        ("[headers]\nx-team = 5", "headers.x-team (from surecall.toml: headers.x-team) must be"),
    ],
)
def test_a_wrong_value_of_a_file_is_refused_in_our_words(
    text: str, words: str, tmp_path: Path
) -> None:
    """With its place, what it must be, and what it is."""
    (tmp_path / "surecall.toml").write_text(text)
    with pytest.raises(SurecallError) as caught:
        settle(tmp_path)
    said = str(caught.value)
    assert words in said
    assert not any(word in said for word in FOREIGN)
