"""Reasoning in text: the tags around it, and what is still open where a prompt ends."""

from typing import Final

from .formats import Thinking

_PREFIX: Final = "antml" + ":"

_PAIRS: Final = (
    ("<think>", "</think>"), ("<thinking>", "</thinking>"),
    (f"<{_PREFIX}thinking>", f"</{_PREFIX}thinking>"), ("<thought>", "</thought>"),
    ("<scratch_pad>", "</scratch_pad>"), ("<think:opensource>", "</think:opensource>"),
    ("[THINK]", "[/THINK]"), ("<|channel>thought\n", "<channel|>"),
    ("<seed:think>", "</seed:think>"), ("<mm:think>", "</mm:think>"),
    ("<longcat_think>", "</longcat_think>"), ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"), ("<|thought_start|>", "<|thought_end|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"), ("◁think▷", "◁/think▷"),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
)  # fmt: skip

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
