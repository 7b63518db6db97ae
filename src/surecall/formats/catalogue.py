"""All families, strongest evidence first."""

from typing import Final

from .apertus import Apertus
from .bare_json import BareJson
from .base import CallFormat
from .chatglm import ChatGlm
from .cohere import CohereAction
from .command_r import CommandR
from .deepseek import DeepSeekCalls
from .dsml import Dsml
from .fences import CodeFences
from .florette import Florette, FloretteAnswer
from .function_tag import FunctionTag
from .functionary import Functionary, FunctionaryStart
from .functools_array import FunctoolsArray
from .gemma import BareGemma, Gemma
from .glm import Glm, HunyuanV3, LongCat
from .gorilla import Gorilla, NexusRaven
from .harmony import Harmony
from .harmony_stripped import StrippedHarmony, StrippedHarmonyStart
from .inkling import InklingCalls
from .invoke import AnthropicXml, BareInvoke, Dots, MiniMaxM2, PrefixedInvoke
from .kimi import KimiCalls, KimiStripped
from .kimi_k3 import KimiK3
from .langchain_xml import LangChainXml
from .llama import LlamaPythonTag
from .minicpm5 import MiniCpm5
from .minimax_m3 import MiniMaxM3
from .mistral import MistralCalls, MistralStripped
from .muse import AtemBlock, MuseMessages
from .name_tag import NameTag
from .python_blocks import CodeTags, PythonTags, PythonTokens
from .pythonic import Pythonic
from .qwen_xml import BareQwenXml, QwenXml
from .react import ReAct
from .solar import SolarCalls
from .step3 import Step3
from .tagged_json import TaggedJson
from .token_json import TokenJson

__all__ = ["FORMATS", "TAUGHT_FORMATS"]

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
