"""Asking a model whether a function fits a request: one short question for each function.

The score is the log-probability of yes minus that of no, where the provider gives them; elsewhere
there is only the plain answer. Where an endpoint for decisions is known, its model is asked.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError, ProviderError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message, ModelRequest, ToolSpec, Usage, WireRequest, clip
from surecall.base.redaction import cut_secret_causes
from surecall.models.profiles import Capabilities
from surecall.models.transport import Transport, exchange
from surecall.models.transport.interface import ask_transport
from surecall.text import decode
from surecall.wire import WireProtocol
from surecall.wire.chat_completions.bodies import parse_first_token

_QUESTION: Final = (
    "A user asks:\n<<<\n{request}\n>>>\n\nThere is one function:\n{name}: {description}\n"
    "Its arguments: {arguments}.\n\nCan this function do what the user asks for? "
    "Answer with one word: yes or no."
)
_STATEMENT: Final = (
    "The function {name} can do what the user asks for. {name}: {description} "
    "Its arguments: {arguments}."
)
_MAX_REQUEST_CHARS: Final = 4_000
_MAX_DESCRIPTION_CHARS: Final = 1_000
_SHORT: Final[Mapping[str, Any]] = {"max_tokens": 8, "temperature": 0}
_WITH_LOGPROBS: Final[Mapping[str, Any]] = {**_SHORT, "logprobs": True, "top_logprobs": 20}
_REFUSING_CODES: Final = frozenset({Code.BAD_REQUEST, Code.UNPROCESSABLE})
_LEAST: Final = 1e-6
"""How far from certain a probability counts at most, so that it has a score."""
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
    """Asks one model, or the model for decisions; what is refused once is not sent again."""

    def __init__(
        self,
        transport: Transport,
        protocol: WireProtocol,
        model: str,
        capabilities: Capabilities | None = None,
    ) -> None:
        self._transport = transport
        self._protocol = protocol
        self._model = model
        known = capabilities or Capabilities()
        self._decision = (known.decision_model, known.decision_path)
        self._threshold = known.fit_threshold
        has_logprobs = protocol.traits.has_logprobs
        self._params = [_WITH_LOGPROBS, _SHORT, {}] if has_logprobs else [_SHORT, {}]

    @property
    def threshold(self) -> float | None:
        """The score from which a function fits; probabilities of decisions have their middle."""
        return self._threshold if self._decision[0] is None else None

    async def ask(self, request: str, tool: ToolSpec) -> FitAnswer:
        """Ask about one function; raise `ProviderError` when the model cannot be asked."""
        requests = 0
        if self._decision[0] is not None:
            decided, requests = await self._decide(self._decision[0], request, tool)
            if decided is not None:
                return decided
            self._decision = (None, self._decision[1])
        messages = (Message("user", write_question(request, tool)),)
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

    async def _decide(
        self, model: str, request: str, tool: ToolSpec
    ) -> tuple[FitAnswer | None, int]:
        """Ask the endpoint for decisions; no answer where it refuses or says something else."""
        path, said = self._decision[1], clip(request, _MAX_REQUEST_CHARS)
        question = {"instructions": _describe(_STATEMENT, tool)}
        body: dict[str, Any] = {"model": model}
        if path == "/decisions":
            body |= {"input": said, "questions": [{"type": "predicate", **question}]}
        else:
            body |= {"state": said, "questions": {"fits": {"type": "noul", **question}}}
        wire = WireRequest(path=path, body=body)
        try:
            came = await ask_transport(self._transport, lambda: self._transport.send(wire))
        except ProviderError as error:
            cut_secret_causes(error)
            if error.retryable:
                raise
            return None, max(error.attempts, 1)
        try:
            fields = as_fields(decode(came.body))
        except JSONTextError:
            return None, came.attempts
        answers = fields.get("answers")
        first = as_fields(as_fields(answers).get("fits") or next(iter(as_list(answers)), None))
        likely = first.get("probability", first.get("noul"))
        if isinstance(likely, bool) or not isinstance(likely, int | float) or not 0 <= likely <= 1:
            return None, came.attempts
        likely = min(max(likely, _LEAST), 1 - _LEAST)
        counted = as_fields(fields.get("usage"))
        tokens = (counted.get(name) for name in ("input_tokens", "output_tokens", "total_tokens"))
        usage = Usage(*(count if isinstance(count, int) else 0 for count in tokens))
        score = math.log(likely / (1 - likely))
        answer = FitAnswer(says_yes=score >= 0, score=score, usage=usage, requests=came.attempts)
        return answer, came.attempts


def write_question(request: str, tool: ToolSpec) -> str:
    """Return the question whether a function fits a request."""
    return _describe(_QUESTION, tool, request=clip(request, _MAX_REQUEST_CHARS))


def _describe(template: str, tool: ToolSpec, **words: str) -> str:
    arguments = ", ".join(as_fields(tool.parameters.get("properties"))) or "none"
    description = clip(tool.description, _MAX_DESCRIPTION_CHARS)
    return template.format(name=tool.name, description=description, arguments=arguments, **words)


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
