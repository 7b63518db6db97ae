"""What a probe found out, as frozen data."""

from datetime import UTC, datetime
from operator import add, sub
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import astuple

from surecall.base.records import ErrorDetail
from surecall.base.redaction import excerpt, redact

Verdict = Literal["yes", "no", "inconclusive"]
"""What a question to a provider found."""

_MAX_QUOTED_CHARS = 80


class Cost(Struct, frozen=True):
    """What was spent; requests that the transport repeated are counted."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """All tokens, as the provider counted them."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(*map(sub, astuple(self), astuple(other)))


class Finding(Struct, frozen=True, kw_only=True):
    """The answer to one question, and what it rests on."""

    question: str = ""
    verdict: Verdict
    fields: dict[str, Any] = {}
    """The capabilities this decides; nothing when inconclusive."""
    evidence: str
    code: str | None = None
    """The code of what kept the question from being answered."""
    cost: Cost = Cost()


class ProbeReport(Struct, frozen=True, kw_only=True):
    """Everything one probe found out about a model."""

    address: str
    protocol: str
    model: str
    asked_at: float
    """Seconds since the epoch."""
    findings: tuple[Finding, ...]
    error: ErrorDetail | None = None
    """What stopped the probe before its last question."""
    store_error: ErrorDetail | None = None
    """Why the findings could not be kept."""

    @property
    def fields(self) -> dict[str, Any]:
        """The capabilities found; where two questions decide one, the later."""
        fields: dict[str, Any] = {}
        for finding in self.findings:
            fields |= finding.fields
        return fields

    @property
    def cost(self) -> Cost:
        """What all questions cost together."""
        return sum((finding.cost for finding in self.findings), Cost())


class ProbeNote(Struct, frozen=True, kw_only=True):
    """What the trace of a run keeps about the probe before it."""

    asked_at: str
    """When, in ISO 8601 and UTC."""
    ok: bool
    """Whether what the run had to know was found out."""
    source: Literal["asked", "stored"] = "asked"
    """Whether the provider was asked for this run, or an earlier answer was still fresh."""
    fields: dict[str, Any] = {}
    """The capabilities that are known now."""
    findings: dict[str, str] = {}
    """The verdict on each question that was asked."""
    requests: int = 0
    tokens: int = 0
    error: ErrorDetail | None = None


def yes(evidence: str, **fields: Any) -> Finding:
    """Answer that it does."""
    return Finding(verdict="yes", evidence=evidence, fields=fields)


def no(evidence: str, **fields: Any) -> Finding:
    """Answer that it does not."""
    return Finding(verdict="no", evidence=evidence, fields=fields)


def unclear(evidence: str, code: str | None = None) -> Finding:
    """Answer that nothing can be concluded."""
    return Finding(verdict="inconclusive", evidence=evidence, code=code)


def quote(text: str | None) -> str:
    """Quote the start of what a model or provider said, without secrets."""
    return repr(excerpt(redact((text or "").strip()), _MAX_QUOTED_CHARS))


def date_text(seconds: float) -> str:
    """Write a time as people and programs read it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
