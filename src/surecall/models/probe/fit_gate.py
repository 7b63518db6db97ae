"""Asking a model whether a function fits a request: one short question for each function.

The score is the log-probability of yes minus that of no, where the provider gives them; elsewhere
there is only the plain answer.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, ProviderError
from surecall.base.json_values import as_fields
from surecall.base.records import Message, ModelRequest, ToolSpec, Usage, clip
from surecall.base.redaction import cut_secret_causes
from surecall.models.transport import Transport, exchange
from surecall.wire import WireProtocol
from surecall.wire.chat_completions.bodies import parse_first_token

_QUESTION: Final = (
    "A user asks:\n<<<\n{request}\n>>>\n\nThere is one function:\n{name}: {description}\n"
    "Its arguments: {arguments}.\n\nCan this function do what the user asks for? "
    "Answer with one word: yes or no."
)
_MAX_REQUEST_CHARS: Final = 4_000
_MAX_DESCRIPTION_CHARS: Final = 1_000
_SHORT: Final[Mapping[str, Any]] = {"max_tokens": 8, "temperature": 0}
_WITH_LOGPROBS: Final[Mapping[str, Any]] = {**_SHORT, "logprobs": True, "top_logprobs": 20}
_REFUSING_CODES: Final = frozenset({Code.BAD_REQUEST, Code.UNPROCESSABLE})
_YES: Final = "yes"
_NO: Final = "no"


class FitAnswer(Struct, frozen=True, kw_only=True):
    """Whether a function fits, as a model sees it."""

    says_yes: bool | None
    """What it said; unset when that was neither yes nor no."""
    score: float | None = None
    """Log-probability of yes minus that of no; unset when the provider gives none."""
    usage: Usage | None = None
    requests: int = 1

    def fits(self, threshold: float | None) -> bool:
        """Tell whether the function fits; one that the model has no opinion on does."""
        if self.score is not None:
            return self.score >= (0.0 if threshold is None else threshold)
        return self.says_yes is not False


class FitAsker:
    """Asks one model; what its provider refuses once is not sent again."""

    def __init__(self, transport: Transport, protocol: WireProtocol, model: str) -> None:
        self._transport = transport
        self._protocol = protocol
        self._model = model
        has_logprobs = protocol.traits.has_logprobs
        self._params = [_WITH_LOGPROBS, _SHORT, {}] if has_logprobs else [_SHORT, {}]

    async def ask(self, request: str, tool: ToolSpec) -> FitAnswer:
        """Ask about one function; raise `ProviderError` when the model cannot be asked."""
        messages = (Message("user", write_question(request, tool)),)
        requests = 0
        while True:
            params = dict(self._params[0])
            wire = self._protocol.render_request(
                ModelRequest(model=self._model, messages=messages, params=params)
            )
            try:
                came = await exchange(self._transport, self._protocol, wire)
            except ProviderError as error:
                cut_secret_causes(error)
                requests += max(error.attempts, 1)
                if error.code not in _REFUSING_CODES or len(self._params) == 1:
                    raise
                self._params = self._params[1:]
                continue
            said = self._protocol.parse_message(came.raw).content or ""
            return FitAnswer(
                says_yes=read_word(said),
                score=score_token(parse_first_token(came.body)) if "logprobs" in params else None,
                usage=came.raw.usage,
                requests=requests + came.attempts,
            )


def write_question(request: str, tool: ToolSpec) -> str:
    """Return the question whether a function fits a request."""
    arguments = ", ".join(as_fields(tool.parameters.get("properties"))) or "none"
    return _QUESTION.format(
        request=clip(request, _MAX_REQUEST_CHARS),
        name=tool.name,
        description=clip(tool.description, _MAX_DESCRIPTION_CHARS),
        arguments=arguments,
    )


def read_word(said: str) -> bool | None:
    """Return what a plain answer says: yes, no, or neither."""
    word = said.strip().strip("*\"'`").lower()
    if word.startswith(_YES):
        return True
    return False if word.startswith(_NO) else None


def score_token(logprobs: Mapping[str, float]) -> float | None:
    """Return how much more likely yes is than no as a first token."""
    if not logprobs:
        return None
    yes = _add(value for token, value in logprobs.items() if token.strip().lower() == _YES)
    no = _add(value for token, value in logprobs.items() if token.strip().lower() == _NO)
    if yes is None and no is None:
        return None
    # What is not among the tokens that are listed is less likely than all of them.
    least = min(logprobs.values())
    return (least if yes is None else yes) - (least if no is None else no)


def _add(values: Iterable[float]) -> float | None:
    found = list(values)
    if not found:
        return None
    highest = max(found)
    return highest + math.log(sum(math.exp(value - highest) for value in found))


def measure_separation(fitting: Sequence[float], other: Sequence[float]) -> float:
    """Return how often a fitting function scores above another one (the area under the curve)."""
    wins = sum((yes > no) + (yes == no) / 2 for yes in fitting for no in other)
    return wins / (len(fitting) * len(other))


def find_threshold(fitting: Sequence[float], other: Sequence[float]) -> float:
    """Return the score that tells the two apart best, in the middle of the widest such gap."""
    scores = sorted({*fitting, *other})
    gaps = [(scores[0] - 1, scores[0]), *pairwise(scores)]

    def right(middle: float) -> float:
        kept = sum(score >= middle for score in fitting) / len(fitting)
        refused = sum(score < middle for score in other) / len(other)
        return kept + refused

    low, high = max(gaps, key=lambda gap: (right(sum(gap) / 2), gap[1] - gap[0]))
    return (low + high) / 2
