"""JSON after special tokens: Granite 3, Phi-4-mini, GigaChat 3 and InternLM."""

import re
from typing import Final

from msgspec.structs import replace

from .base import CallFormat, Found
from .fitting import code_call
from .json_block import close_block, noted, read_block, receipt
from .source import Source

__all__ = ["TokenJson", "read_after_token"]

_SEPARATOR: Final = "<|message_sep|>"
_ROLE: Final = "function call"
_ROLE_END: Final = "<|role_sep|>"
_ACTION: Final = "<|action_start|>"
_PLUGIN: Final = "<|plugin|>"
_INTERPRETER: Final = "<|interpreter|>"
_ACTION_END: Final = "<|action_end|>"
_FENCED: Final = re.compile(r"```(?:python|py)?+\n((?:[^\n]++|\n(?!```\Z))*+)\n```")
_TURN_ENDS: Final = (
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end|>",
    "<|im_end|>",
    "<|eot_id|>",
    "</s>",
)
_RESULTS: Final = (
    "<|tool_response|>",
    "<tool_response>",
    "<|start_of_role|>tool_response",
    "<|start_of_role|>tool",
    "<|message_sep|>\n\nfunction result<|role_sep|>",
    "<|START_TOOL_RESULT|>",
)


_CLOSERS: Final[dict[str, tuple[str, ...]]] = {
    "<|tool_call|>": ("<|/tool_call|>", "<|end_tool_call|>"),
    "<|function_call|>": (),
    _SEPARATOR: (),
    _ROLE + _ROLE_END: (),
    _ACTION: (_ACTION_END,),
}


class TokenJson(CallFormat):
    """One object, an array, or objects in a row, after a special token."""

    name = "token_json"
    trims = False
    literals = tuple(_CLOSERS)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the calls after the token; text that ends inside one makes it cut."""
        opener = source.starts_any(_CLOSERS, at)
        here = at + len(opener)
        if opener == _SEPARATOR:
            here = _skip_role(source, here)
            if here < 0:
                return None
        elif opener == _ACTION:
            here = source.skip_space(here)
            if source.starts(_INTERPRETER, here):
                return _read_code(source, here + len(_INTERPRETER))
            if source.starts(_PLUGIN, here):
                here += len(_PLUGIN)
        return read_after_token(source, here, opener, _CLOSERS[opener], closes=opener == _ACTION)


def read_after_token(
    source: Source, at: int, opener: str, closers: tuple[str, ...], *, closes: bool
) -> Found | None:
    """Read the calls in JSON that begins here.

    Args:
        source: The text.
        at: Where the JSON begins.
        opener: The token before it.
        closers: What may end it.
        closes: Whether models that write the token end it with the first closer.
    """
    here = source.skip_space(at)
    if source.at_end(here):
        return Found(end=here)
    block = read_block(source, here, (opener, *closers, *_TURN_ENDS, *_RESULTS))
    if block is None:
        return None
    if block.cut:
        return Found(end=block.end, calls=block.calls)
    end, closer = close_block(source, block.end, closers)
    calls = block.calls
    if closes and closer not in closers:
        why = "the call itself is complete"
        calls = noted(calls, receipt("missing_closer", closer, closers[0], why))
    has_result = bool(calls and source.starts_any(_RESULTS, source.skip_space(end)))
    return Found(end=end, calls=calls, ends_message=has_result)


def _skip_role(source: Source, at: int) -> int:
    """Return where the JSON begins after `function call` as the role of a message, or -1."""
    here = source.skip_space(at)
    if not source.starts(_ROLE, here):
        return -1
    here = source.skip_space(here + len(_ROLE))
    return here + len(_ROLE_END) if source.starts(_ROLE_END, here) else -1


def _read_code(source: Source, at: int) -> Found | None:
    """Read raw code for the one tool that runs code, where there is one."""
    if code_call(source.tools, "") is None:
        return None
    end = source.find(_ACTION_END, at)
    is_cut = end < 0
    end = len(source.text) if is_cut else end
    written = source.text[at:end].strip("\n")
    fenced = _FENCED.fullmatch(written)
    call = code_call(source.tools, fenced[1] if fenced else written)
    if call is None:
        return None
    if is_cut:
        call = replace(call, state="cut")
    return Found(end=end if is_cut else end + len(_ACTION_END), calls=(call,))
