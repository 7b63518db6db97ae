"""All families, strongest evidence first."""

from typing import Final

from surecall.calls.formats import CallFormat

from .bare_json import BareJson
from .cohere import CohereAction, CommandR
from .deepseek import DeepSeekCalls
from .fences import CodeFences
from .gemma import BareGemma, Gemma
from .glm import Glm, HunyuanV3, LongCat
from .harmony import Harmony, StrippedHarmony, StrippedHarmonyStart
from .invoke import AnthropicXml, BareInvoke, Dots, Dsml, MiniCpm5, MiniMaxM2, PrefixedInvoke
from .kimi import KimiCalls, KimiK3, KimiStripped
from .message_kinds import AtemBlock, InklingCalls, MuseMessages, SolarCalls
from .minimax_m3 import MiniMaxM3
from .mistral import MistralCalls, MistralStripped
from .name_tag import FunctionTag, NameTag
from .named_lines import ChatGlm, Florette, FloretteAnswer, Functionary, FunctionaryStart
from .python_blocks import CodeTags, LlamaPythonTag, PythonTags, PythonTokens
from .pythonic import Gorilla, NexusRaven, Pythonic
from .qwen_xml import BareQwenXml, LangChainXml, QwenXml, Step3
from .react import ReAct
from .tagged_json import TaggedJson
from .token_json import Apertus, FunctoolsArray, TokenJson

_IN_FENCES: Final[tuple[CallFormat, ...]] = (
    QwenXml(), AnthropicXml(), TaggedJson(), FunctionTag(), BareQwenXml(), BareInvoke()
)  # fmt: skip
"""Families that models also write inside a code fence."""

FORMATS: Final[tuple[CallFormat, ...]] = (
    # channels and special tokens
    KimiK3(),
    MuseMessages(),
    Harmony(),
    InklingCalls(),
    SolarCalls(),
    CohereAction(),
    Dsml(),
    DeepSeekCalls(),
    Step3(),
    MiniMaxM3(),
    KimiCalls(),
    MistralCalls(),
    Gemma(),
    LlamaPythonTag(),
    PythonTokens(),
    Apertus(),
    TokenJson(),
    # tags
    MiniMaxM2(),
    Dots(),
    LongCat(),
    HunyuanV3(),
    QwenXml(),
    Glm(),
    AnthropicXml(),
    PythonTags(),
    CodeTags(),
    TaggedJson(),
    FunctionTag(),
    # damaged markers and line prefixes
    BareQwenXml(),
    MiniCpm5(),
    AtemBlock(),
    BareInvoke(),
    PrefixedInvoke(),
    LangChainXml(),
    NameTag(),
    KimiStripped(),
    MistralStripped(),
    BareGemma(),
    BareGemma(line_start=False),
    StrippedHarmony(),
    StrippedHarmonyStart(),
    FunctoolsArray(),
    Florette(),
    FloretteAnswer(),
    Functionary(),
    FunctionaryStart(),
    Gorilla(),
    NexusRaven(),
    CommandR(),
    ReAct(),
    # text without markers
    CodeFences(inner=_IN_FENCES),
    ChatGlm(),
    BareJson(),
    Pythonic(),
)
"""Where several families share an opener, the first that recognises what follows wins."""

TAUGHT_FORMATS: Final[tuple[CallFormat, ...]] = tuple(
    CodeFences(inner=form.inner, announcing=("", "json")) if isinstance(form, CodeFences) else form
    for form in FORMATS
)
"""The same, for a model that was told to write its calls in plain fences."""
