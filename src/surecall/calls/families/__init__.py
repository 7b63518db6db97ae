"""All families, strongest evidence first."""

from typing import Final

from surecall.calls.formats import CallFormat

from .channels import ATEM_BLOCK, INKLING, KIMI_K3, MUSE, SOLAR
from .elements import (
    ANTHROPIC_XML,
    BARE_INVOKE,
    BARE_QWEN_XML,
    DOTS,
    DSML,
    GLM,
    HUNYUAN_V3,
    LANGCHAIN_XML,
    LONGCAT,
    MINICPM5,
    MINIMAX_M2,
    PREFIXED_INVOKE,
    QWEN_XML,
    SEED_XML,
    STEP3,
)
from .gemma import BARE_GEMMA, BARE_GEMMA_IN_LINE, GEMMA
from .harmony import HARMONY, STRIPPED_HARMONY, STRIPPED_HARMONY_START
from .marked_json import (
    APERTUS,
    COHERE_ACTION,
    COMMAND_R,
    FUNCTOOLS,
    GIGACHAT,
    INTERNLM,
    TAGGED_JSON,
    TOKEN_JSON,
)
from .named_json import (
    CHATGLM,
    DEEPSEEK,
    FLORETTE,
    FLORETTE_ANSWER,
    FUNCTION_TAG,
    FUNCTIONARY,
    FUNCTIONARY_START,
    KIMI,
    KIMI_STRIPPED,
    MISTRAL,
    MISTRAL_STRIPPED,
)
from .nested_tags import MINIMAX_M3, NAME_TAG
from .pythonic import (
    CODE_TAGS,
    GORILLA,
    LLAMA_PYTHON_TAG,
    NEXUS_RAVEN,
    PYTHON_TAGS,
    PYTHON_TOKENS,
    PYTHONIC,
)
from .react import REACT
from .unmarked import BARE_JSON, CODE_FENCE, CODE_FENCE_AS_TAUGHT

__all__ = ["FORMATS", "GROUPS", "TAUGHT_FORMATS"]

GROUPS: Final[dict[str, tuple[CallFormat, ...]]] = {
    "Channels and special tokens": (
        KIMI_K3, MUSE, HARMONY, INKLING, SOLAR, COHERE_ACTION, DSML, DEEPSEEK, STEP3, MINIMAX_M3,
        KIMI, MISTRAL, GEMMA, LLAMA_PYTHON_TAG, PYTHON_TOKENS, APERTUS, TOKEN_JSON, GIGACHAT,
        INTERNLM,
    ),
    "Tags": (
        MINIMAX_M2, DOTS, LONGCAT, HUNYUAN_V3, QWEN_XML, SEED_XML, GLM, ANTHROPIC_XML, PYTHON_TAGS,
        CODE_TAGS, TAGGED_JSON, FUNCTION_TAG,
    ),
    "Damaged markers and line prefixes": (
        BARE_QWEN_XML, MINICPM5, ATEM_BLOCK, BARE_INVOKE, PREFIXED_INVOKE, LANGCHAIN_XML, NAME_TAG,
        KIMI_STRIPPED, MISTRAL_STRIPPED, BARE_GEMMA, BARE_GEMMA_IN_LINE, STRIPPED_HARMONY,
        STRIPPED_HARMONY_START, FUNCTOOLS, FLORETTE, FLORETTE_ANSWER, FUNCTIONARY,
        FUNCTIONARY_START, GORILLA, NEXUS_RAVEN, COMMAND_R, REACT,
    ),
    "Text without markers": (CODE_FENCE, CHATGLM, BARE_JSON, PYTHONIC),
}  # fmt: skip
"""All families in their groups."""

FORMATS: Final[tuple[CallFormat, ...]] = tuple(form for group in GROUPS.values() for form in group)
"""Where several families share an opener, the first that recognises what follows wins."""
TAUGHT_FORMATS: Final[tuple[CallFormat, ...]] = tuple(
    CODE_FENCE_AS_TAUGHT if form is CODE_FENCE else form for form in FORMATS
)
"""The same, for a model that was told to write its calls in plain fences."""
