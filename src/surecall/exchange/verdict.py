"""What a reply is worth: what can be delivered of it, or why nothing can."""

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import ProviderError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Defect, Envelope, ErrorDetail, Reading, Receipt, Reply, Usage
from surecall.text import decode, encode

from .policy import ParseError
from .wording import explain_not_run

CHOICE_RULE: Final = "drop_choice"


class Verdict(Struct, frozen=True, kw_only=True):
    """What a reply is worth."""

    body: bytes | None = None
    """The document for the client; `None` when the reply cannot be delivered."""
    changed: bool = False
    receipts: tuple[Receipt, ...] = ()
    defects: tuple[Defect, ...] = ()
    usage: Usage | None = None
    model: str | None = None
    calls: int = 0
    reply: Reply | None = None
    reading: Reading | None = None
    answers: tuple[Envelope, ...] = ()
    """What the model is to read about each of its calls, when some cannot be used."""
    notice: str = ""
    """Why a reply without calls cannot be delivered, in words that the model reads."""
    lacks_call: bool = False
    """Whether that is because it has no call, and one is demanded."""
    is_in_text: bool = False
    """Whether such a call may be anywhere in the text of a model that was taught to call tools."""
    is_empty: bool = False
    """Whether the model said nothing although an answer was due."""
    is_text: bool = False
    """Whether it is text that only may be a call: it may as well be an answer."""
    is_left: bool = False
    """Whether it goes on as it came, though some of it is doubtful."""
    fallback: bytes | None = None
    """The document of a reply that says nothing, or whose text only may be a call, for when asking
    does not help: neither is wrong."""
    document: dict[str, Any] | None = None
    """The reply that cannot be delivered as it is, decoded, when it is in the client's format."""
    error: ProviderError | None = None
    """Why there is no reply at all."""
    error_body: bytes | None = None
    """The endpoint's own words for it, where they are in the client's format."""
    parse_error: ParseError | None = None
    echoes: bool = False
    choices: "Choices | None" = None
    """Of several replies that were asked for, those that can be used, when some cannot."""

    @property
    def is_wrong(self) -> bool:
        """Whether the model has to be asked for something better."""
        return bool(self.answers or self.notice or self.is_empty)

    @property
    def is_usual(self) -> bool:
        """Whether the calls can be delivered as they came."""
        return self.calls > 0 and not (self.is_wrong or self.receipts or self.is_left)

    @property
    def errors(self) -> tuple[ErrorDetail, ...]:
        """What is wrong with the calls."""
        return tuple(error for answer in self.answers for error in answer.errors)

    @property
    def stuck_tools(self) -> tuple[str, ...]:
        """The offered tools whose calls could not be used."""
        calls = () if self.reading is None else self.reading.calls
        pairs = zip(calls, self.answers, strict=False)
        wrong = [call.name for call, answer in pairs if answer.errors and not is_spared(answer)]
        return tuple(dict.fromkeys(wrong))


class Choices(Struct, frozen=True):
    """Several replies at once, of which some cannot be used."""

    document: dict[str, Any]
    key: str
    """The member of the document that holds them."""
    usable: dict[int, Verdict]
    """By their positions; each with a document of its own."""
    missing: dict[int, Verdict]
    """The others."""

    def take(self, position: int, verdict: Verdict) -> "Choices":
        """Return the same with a reply in the place of one that could not be used."""
        missing = {key: bad for key, bad in self.missing.items() if key != position}
        return replace(self, usable={**self.usable, position: verdict}, missing=missing)

    def join(self) -> Verdict:
        """Return all that can be used as one reply; what is missing leaves a receipt."""
        found: list[Any] = []
        receipts: list[Receipt] = []
        for position, verdict in sorted(self.usable.items()):
            document = as_fields(decode(verdict.body or b"{}", surrogates="replace"))
            entry = as_fields(as_list(document.get(self.key))[0])
            found.append({**entry, "index": position})
            receipts += verdict.receipts
        why = "it cannot be used, and asking again did not help"
        receipts += [
            Receipt(CHOICE_RULE, f"/{self.key}/{position}", None, None, lossless=False, why=why)
            for position in self.missing
        ]
        first = next(iter(self.usable.values()))
        return replace(
            first,
            body=encode({**self.document, self.key: found}),
            changed=True,
            receipts=tuple(receipts),
            calls=sum(verdict.calls for verdict in self.usable.values()),
            choices=None,
        )


def is_spared(answer: Envelope) -> bool:
    """Tell whether a call was only not used because of another one of the same reply."""
    return answer.errors == explain_not_run(answer.tool_name).errors
