"""What programs and libraries read to use a gateway: rows of `programs.toml`, filled in."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from shlex import quote
from typing import Final

import msgspec
from msgspec import Struct

from surecall.base.errors import did_you_mean, invalid_config

PLACEHOLDER_KEY: Final = "unused"
"""What a client that insists on a key sends where neither gateway nor upstream needs one."""
SHELL: Final = "shell"
SHOWN_AT_FIRST: Final = ("openai", "anthropic", "langchain", "pydantic-ai", "curl", SHELL)

_PLACE: Final = re.compile("<(url|model|key|own_key|header)>")


class Program(Struct, frozen=True, forbid_unknown_fields=True):
    """A program or a library, and how it is pointed at a gateway."""

    title: str
    command: str = ""
    """What `surecall with` starts; empty for a library or a program with settings of its own."""
    install: str = ""
    """The command that installs it."""
    keys: tuple[tuple[str, ...], ...] = ()
    """Variables that take a key; of a group one is enough, and a stand-in goes into the first."""
    variables: dict[str, str] = {}
    arguments: tuple[str, ...] = ()
    file: str = ""
    """What the program reads at every start; `content` belongs there."""
    content: str = ""
    text: str = ""
    needs_model: bool = False
    needs_file: bool = False
    """Whether the variables do nothing unless `content` is in the file."""


class GatewayAddress(Struct, frozen=True):
    """The gateway that a program is pointed at.

    >>> from surecall.gateway.programs import GatewayAddress, find_program
    >>> at = GatewayAddress("http://127.0.0.1:8787", model="qwen3")
    >>> at.environment(find_program("qwen"), {})["OPENAI_BASE_URL"]
    'http://127.0.0.1:8787/v1'
    """

    url: str
    model: str = ""
    key: str | None = None
    """What a client presents; nothing where it has a key anyway."""

    def fill(self, text: str) -> str:
        """Put address, model and key where the text has a place for them."""
        key = self.key
        header = f"authorization: Bearer {'$OPENAI_API_KEY' if key is None else key}"
        values = {
            "url": self.url,
            "model": self.model or "YOUR_MODEL",
            "key": "YOUR_KEY" if key is None else key,
            "own_key": "" if key is None else f', api_key="{key}"',
            "header": "" if key == PLACEHOLDER_KEY else f'-H "{header}" ',
        }
        return _PLACE.sub(lambda match: values[match[1]], text).strip("\n")

    def environment(self, program: Program, environ: Mapping[str, str]) -> dict[str, str]:
        """What to set for a program that starts with these variables; a key that is there stays."""
        found = dict(self._variables(program))
        for group in program.keys:
            is_own = self.key in (None, PLACEHOLDER_KEY) and any(map(environ.get, group))
            if self.key is not None and not is_own:
                found[group[0]] = self.key
        return found

    def arguments(self, program: Program) -> list[str]:
        """The arguments that come before the user's own."""
        return [self.fill(word) for word in program.arguments if self._has_what(word)]

    def exports(self, program: Program) -> str:
        """Lines for a shell, which takes every value as it is.

        Without a key, a client keeps the one that its shell has; only where there is none, clients
        that insist on a key find a stand-in.
        """
        lines = [f"export {name}={quote(value)}" for name, value in self._variables(program)]
        for group in program.keys:
            line = f"export {group[0]}={quote(self.key or PLACEHOLDER_KEY)}"
            if self.key in (None, PLACEHOLDER_KEY):
                there = "".join(f"${{{name}:-}}" for name in group)
                line = f'[ -n "{there}" ] || {line}'
            lines.append(line)
        return "\n".join(lines)

    def lines(self, program: Program) -> str:
        """Everything that a person needs to point the program at the gateway by hand."""
        parts = [self.fill(program.text)] if program.text else []
        if "<own_key>" in program.text and self.key is None:
            parts.insert(0, f"# your key comes from {program.keys[0][0]}")
        if (program.variables or program.keys) and not program.text:
            parts.append(self.exports(program))
        if not program.variables and (arguments := self.arguments(program)):
            parts.append(f"{program.command} {' '.join(map(quote, arguments))}")
        return "\n".join(parts)

    def _variables(self, program: Program) -> Iterator[tuple[str, str]]:
        for name, text in program.variables.items():
            if self._has_what(text):
                yield name, self.fill(text)

    def _has_what(self, text: str) -> bool:
        return bool(self.model) or "<model>" not in text


@cache
def list_programs() -> Mapping[str, Program]:
    """Every row, by its name."""
    text = files("surecall.gateway").joinpath("programs.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Program])


def find_program(name: str) -> Program:
    """Find a row by its name.

    Raises:
        ConfigError: There is none; the nearest names are suggested.
    """
    programs = list_programs()
    if (found := programs.get(name.lower())) is None:
        raise invalid_config(
            f"There is no program {name!r}.",
            f"{did_you_mean(name, programs)} For any other, `surecall connect {SHELL}`.",
        )
    return found


def render_snippets(gateway: GatewayAddress) -> list[tuple[str, str]]:
    """Titles and lines for the usual clients."""
    programs = list_programs()
    return [(programs[name].title, gateway.lines(programs[name])) for name in SHOWN_AT_FIRST]
