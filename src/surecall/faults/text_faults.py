"""Faults in what a model says: calls written as text, reasoning out of place, empty answers."""

from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import Code
from surecall.jsontext import decode

from .answers import Answer, json_answer
from .dialects import DIALECTS, WrittenCalls
from .drafts import Draft, Occasion
from .edits import DraftEdit, for_finals
from .records import CHAT_ONLY, Fault

__all__ = ["EMPTY_FINAL_FAULTS", "REASONING_FAULTS", "TEXT_FORMAT_FAULTS"]

_READS_TEXT: Final = {"text_formats": True}
_ENFORCED: Final = {"tool_use_mode": "enforced"}
_THOUGHT: Final = "The user wants this done. I will use a tool."
_WRITERS: Final = {
    "bare_json": "small models without a template for tools",
    "deepseek": "DeepSeek V3 and R1 behind servers that do not parse them",
    "function_calls": "models prompted in the style of Claude",
    "glm": "GLM-4.5 and later; vibe_tavern study: content tags of GLM models",
    "harmony": "gpt-oss behind servers that do not parse its channels",
    "hermes": "Qwen and Hermes models; vibe_tavern study: content tags of Qwen models",
    "json_fence": "instruction models without a template for tools",
    "kimi": "Kimi K2 behind servers that do not parse it",
    "llama": "Llama 3 behind servers that do not parse it",
    "minimax": "MiniMax-M2; vibe_tavern study: content tags of MiniMax models",
    "mistral": "Mistral models behind servers that do not parse them",
    "pythonic": "Llama 3.2, Llama 4 and small models trained on Python calls",
    "qwen_xml": "Qwen3-Coder behind servers that do not parse it",
    "react": "models prompted in the style of ReAct",
}


def _calls_of(draft: Draft) -> WrittenCalls:
    functions = [call["function"] for call in draft.calls]
    return [(function["name"], decode(function["arguments"])) for function in functions]


def _written(dialect: str) -> DraftEdit:
    def edit(draft: Draft, _: Occasion) -> Draft:
        if not draft.calls:
            return draft
        text = DIALECTS[dialect](_calls_of(draft))
        message = {"role": "assistant", "content": text}
        return replace(draft, message=message, finish_reason="stop")

    return edit


def _cut_text(draft: Draft, occasion: Occasion) -> Draft:
    if not draft.calls:
        return draft
    text = _written("hermes")(draft, occasion).text
    message = {"role": "assistant", "content": text[: len(text) * 2 // 3]}
    return replace(draft, message=message, finish_reason="length")


def _promised(draft: Draft, _: Occasion) -> Draft:
    if not draft.calls:
        return draft
    name = draft.calls[0]["function"]["name"]
    message = {"role": "assistant", "content": f"I will now use {name} to do what you asked."}
    return replace(draft, message=message, finish_reason="stop")


def _failed_generation(answer: Answer, occasion: Occasion) -> Answer:
    """Answer 400 with what the model wrote, if the clean reply has calls."""
    if not (occasion.draft.calls and occasion.draft.is_clean):
        return answer
    error = {
        "message": "Failed to call a function. Please adjust your prompt.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": DIALECTS["hermes"](_calls_of(occasion.draft)),
    }
    return json_answer({"error": error}, 400)


def _thinking(**fields: Any) -> DraftEdit:
    return lambda draft, _: draft.with_message(**fields)


def _think_tags(draft: Draft, _: Occasion) -> Draft:
    return draft.with_message(content=f"<think>\n{_THOUGHT}\n</think>\n\n{draft.text}")


def _unclosed(draft: Draft, _: Occasion) -> Draft:
    return draft.with_message(content=f"<think>\n{_THOUGHT}") if draft.calls else draft


def _call_in_thought(draft: Draft, occasion: Occasion) -> Draft:
    if not draft.calls:
        return draft
    text = _written("hermes")(draft, occasion).text
    message = {"role": "assistant", "content": "", "reasoning_content": text}
    return replace(draft, message=message, finish_reason="stop")


def _empty(**fields: Any) -> DraftEdit:
    """Give no answer right after results; asked once more, the model answers."""

    def edit(draft: Draft, occasion: Occasion) -> Draft:
        if occasion.request.messages[-1].role != "tool":
            return draft
        message = {"role": "assistant", **fields}
        return replace(draft, message=message)

    return for_finals(edit)


TEXT_FORMAT_FAULTS: Final = (
    *(
        Fault(
            name=f"text_{dialect}",
            group="text_format",
            does=f"Writes calls as text in the {dialect} dialect.",
            seen=_WRITERS[dialect],
            needs="text_formats = true",
            options=_READS_TEXT,
            draft=_written(dialect),
        )
        for dialect in DIALECTS
    ),
    Fault(
        name="text_cut",
        group="text_format",
        does="Stops at the token limit in the middle of a call written as text.",
        seen="every model that writes calls as text",
        repairable=False,
        told=Code.ARGUMENTS_TRUNCATED,
        code=Code.REPEATED_CALL,
        needs="text_formats = true",
        options=_READS_TEXT,
        draft=_cut_text,
    ),
    Fault(
        name="text_in_error",
        group="text_format",
        does="Answers 400 with the call that the server could not parse in `failed_generation`.",
        seen="servers that parse calls themselves and give up",
        protocols=CHAT_ONLY,
        needs="text_formats = true",
        options=_READS_TEXT,
        wire=_failed_generation,
    ),
    Fault(
        name="text_promise",
        group="text_format",
        does="Says which tool it will use, and does not call it.",
        seen="vibe_tavern study: NO_TOOL_CALLS of MiniMax models",
        repairable=False,
        code=Code.NO_TOOL_CALLS,
        needs="tool_use_mode = enforced",
        options={**_ENFORCED, **_READS_TEXT},
        draft=_promised,
    ),
)

REASONING_FAULTS: Final = (
    Fault(
        name="reasoning_content",
        group="reasoning",
        does="Sends its reasoning beside the content.",
        seen="DeepSeek and most servers of reasoning models",
        draft=_thinking(reasoning_content=_THOUGHT),
    ),
    Fault(
        name="reasoning_details",
        group="reasoning",
        does="Sends its reasoning as a list of details.",
        seen="OpenRouter",
        protocols=CHAT_ONLY,
        draft=_thinking(
            reasoning=_THOUGHT,
            reasoning_details=[{"type": "reasoning.text", "text": _THOUGHT, "index": 0}],
        ),
    ),
    Fault(
        name="reasoning_in_content",
        group="reasoning",
        does="Puts its reasoning in tags before the content.",
        seen="reasoning models behind servers that do not split it off",
        needs="text_formats = true",
        options=_READS_TEXT,
        draft=_think_tags,
    ),
    Fault(
        name="reasoning_unclosed",
        group="reasoning",
        does="Begins to reason in the content beside a call and never closes the tag.",
        seen="reasoning models behind servers that do not split it off",
        needs="text_formats = true",
        options=_READS_TEXT,
        draft=_unclosed,
    ),
    Fault(
        name="reasoning_holds_call",
        group="reasoning",
        does="Writes the call into its reasoning and nowhere else.",
        seen="reasoning models that forget to leave their reasoning",
        repairable=False,
        code=Code.NO_TOOL_CALLS,
        needs="tool_use_mode = enforced",
        options={**_ENFORCED, **_READS_TEXT},
        draft=_call_in_thought,
    ),
)

EMPTY_FINAL_FAULTS: Final = (
    Fault(
        name="final_empty",
        group="empty_final",
        does="Answers with empty text after the tools have run.",
        seen="vibe_tavern study, failure modes: empty final messages",
        draft=_empty(content=""),
    ),
    Fault(
        name="final_null",
        group="empty_final",
        does="Answers with a null after the tools have run.",
        seen="vibe_tavern study, failure modes: empty final messages",
        protocols=CHAT_ONLY,
        draft=_empty(content=None),
    ),
    Fault(
        name="final_blank",
        group="empty_final",
        does="Answers with blanks after the tools have run.",
        seen="vibe_tavern study, failure modes: empty final messages",
        draft=_empty(content=" \n"),
    ),
    Fault(
        name="final_missing",
        group="empty_final",
        does="Leaves the content out after the tools have run.",
        seen="vibe_tavern study, failure modes: empty final messages",
        protocols=CHAT_ONLY,
        draft=_empty(),
    ),
    Fault(
        name="final_only_reasoning",
        group="empty_final",
        does="Puts all it has to say into its reasoning.",
        seen="reasoning models",
        draft=_empty(content="", reasoning_content="All is done, I will tell the user so."),
    ),
)
