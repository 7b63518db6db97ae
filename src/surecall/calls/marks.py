"""The marks that a reader looks for: reasoning, tokens that end a turn, and one index of all."""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import groupby
from typing import Final

from .base import Thinking

_PREFIX: Final = "antml" + ":"

_PAIRS: Final = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    (f"<{_PREFIX}thinking>", f"</{_PREFIX}thinking>"),
    ("<thought>", "</thought>"),
    ("<scratch_pad>", "</scratch_pad>"),
    ("<think:opensource>", "</think:opensource>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel>thought\n", "<channel|>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|thought_start|>", "<|thought_end|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("◁think▷", "◁/think▷"),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
)

_SPOKEN: Final = ("Here is my thought process:", "Here's my thought process:")
_SPOKEN_END: Final = ("Here is my response:", "Here's my response:")

REASONING: Final = {
    **{opener: Thinking((closer,)) for opener, closer in _PAIRS},
    **{opener: Thinking(_SPOKEN_END, in_words=True) for opener in _SPOKEN},
    "<|inner_prefix|>": Thinking(("<|inner_suffix|>",), holds=frozenset({"<|tools_prefix|>"})),
}
"""What ends reasoning, by what begins it."""

REASONING_CLOSERS: Final = frozenset(closer for _, closer in _PAIRS)
"""What ends reasoning, also where its beginning was in the prompt."""


def find_open_reasoning(generation_prompt: str | None) -> Thinking | None:
    """Return the reasoning that a template had already opened, if it had."""
    if not generation_prompt:
        return None
    best: tuple[int, Thinking] | None = None
    for opener, thinking in REASONING.items():
        opened = generation_prompt.rfind(opener.rstrip())
        closed = generation_prompt.rfind(thinking.closers[0])
        if opened > closed and (best is None or opened > best[0]):
            best = (opened, thinking)
    return best[1] if best else None


RESIDUE: Final = frozenset(
    {
        "</longcat_s>",
        "<SPECIAL_11>Assistant",
        "<SPECIAL_11>User",
        "<SPECIAL_12>",
        "</s>",
        "<end_code>",
        "<end_of_sentence>",
        "<end_of_turn>",
        "<eop>",
        "<eos>",
        "<seed:eos>",
        "<turn|>",
        "<|END_OF_TURN_TOKEN|>",
        "<|END_RESPONSE|>",
        "<|END_TEXT|>",
        "<|START_RESPONSE|>",
        "<|START_TEXT|>",
        "<|begin_of_text|>",
        "<|call|>",
        "<|close|>message<|sep|>",
        "<|content_model_end_sampling|>",
        "<|end_message|>",
        "<|end_of_msg|>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<|end|>",
        "<|eom_id|>",
        "<|eom|>",
        "<|eos|>",
        "<|eot_id|>",
        "<|eot|>",
        "<|im_end|>",
        "<|im_start|>assistant",
        "<|message_sep|>",
        "<|observation|>",
        "<|return|>",
        "<|role_sep|>",
        "<|start_header_id|>assistant<|end_header_id|>",
        "<|start|>assistant",
        "<|stop|>",
        "<|tool_response>",
        "<|turn>model",
        "<|user|>",
        "<｜Assistant｜>",
        "<｜end▁of▁sentence｜>",
        "<｜hy_eos:opensource｜>",
        "<｜hy_eos｜>",
        "[END FINAL RESPONSE]",
        "[EOS]",
        "[EOT]",
        "[e~[",
    }
)
"""Stripped where only more of them and white space stand between them and an end of the text."""


_MAX_HEAD: Final = 8
"""How much of a literal the first look at a text compares."""


class OpenerIndex:
    """Finds the leftmost, longest of many literals, and what of the end may become one."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._known = sorted(set(literals))
        self._longest = max(map(len, self._known), default=1) - 1

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds the leftmost, longest literal."""
        return re.compile(pattern_of(self._known))

    @cached_property
    def _head(self) -> re.Pattern[str]:
        heads = sorted({literal[:_MAX_HEAD] for literal in self._known})
        return re.compile(pattern_of(heads, is_cut=True) if heads else r"(?!)")

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(
            literal[:length] for literal in self._known for length in range(1, len(literal))
        )

    @cached_property
    def _lengths(self) -> dict[str, list[int]]:
        """How long a beginning of a literal may be, longest first, by its last two characters."""
        found: dict[str, set[int]] = {}
        for prefix in self._prefixes:
            found.setdefault(prefix[-2:], set()).add(len(prefix))
        return {end: sorted(lengths, reverse=True) for end, lengths in found.items()}

    def may_begin(self, text: str) -> bool:
        """Tell whether a literal may begin in the text; one search says so for most text.

        It may be where `pattern` finds none and `held_from` nothing, never the other way round.
        """
        return self._head.search(text) is not None

    def may_grow(self, text: str, at: int) -> bool:
        """Tell whether the text from here to its end is the beginning of a longer literal."""
        return len(text) - at <= self._longest and text[at:] in self._prefixes

    def held_from(self, text: str, at: int) -> int:
        """Return from where on the end of the text may be the beginning of a literal."""
        end = len(text)
        for tail in (text[-2:], text[-1:]):
            for length in self._lengths.get(tail, ()):
                if end - length >= at and text[end - length :] in self._prefixes:
                    return end - length
        return end


def pattern_of(words: list[str], *, is_cut: bool = False, depth: int = 0) -> str:
    """Return a pattern that shares what words have in common, so that none is tried twice.

    Args:
        words: What it matches.
        is_cut: Whether it matches the beginning of a word, too, at the end of the text.
        depth: How much of the words came before.
    """
    branches: list[str] = []
    ends_here = "" in words
    for first, group in groupby((word for word in words if word), key=lambda word: word[0]):
        rest = [word[1:] for word in group]
        branches.append(re.escape(first) + pattern_of(rest, is_cut=is_cut, depth=depth + 1))
    if not branches:
        return ""
    if is_cut and depth and not ends_here:
        branches.append(r"\Z")
    joined = branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
    return f"(?:{joined})?" if ends_here else joined
