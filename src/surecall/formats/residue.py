"""Tokens that end a turn or name a role, and belong to nobody's text."""

from typing import Final

__all__ = ["RESIDUE"]

RESIDUE: Final = frozenset(
    {
        "</longcat_s>",
        "</s>",
        "<end_of_sentence>",
        "<end_of_turn>",
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
        "<|start|>assistant",
        "<|stop|>",
        "<|tool_response>",
        "<|turn>model",
        "<|user|>",
        "<｜Assistant｜>",
        "<｜end▁of▁sentence｜>",
        "[END FINAL RESPONSE]",
        "[EOS]",
        "[EOT]",
        "[e~[",
    }
)
"""Stripped where only more of them and white space stand between them and an end of the text."""
