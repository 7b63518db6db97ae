"""How tool calls went, in figures: how many replies were broken, and what was or would be done.

rows = summarize(await count_by_model(store, RecordFilter()), by=("model", "upstream"))
print(describe(rows))
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from surecall.base.rates import Share, share
from surecall.store.records.store import ModelCount

READ: Final = ("clean", "repaired", "reasked", "unrepaired", "refused")
"""Outcomes of replies that were looked at, in the order in which they are shown."""
MIN_REPLIES: Final = 30
"""With fewer replies no rate is shown and nothing is advised."""
_ENOUGH: Final = 0.95
"""From this share of the broken replies on, repairs alone are worth switching on."""
_HARMLESS: Final = 0.01

Part = Literal["model", "upstream", "prompt"]


class ToolRow(Struct, kw_only=True):
    """Replies to requests with tools: of a model at an upstream, or with a prompt."""

    names: tuple[str, ...]
    is_observed: bool
    """Whether they were passed on untouched; then the figures say what would have been done."""
    replies: int = 0
    repaired: int = 0
    reasked: int = 0
    unusable: int = 0
    """Refused, or delivered though a call was not right."""
    parse_errors: int = 0
    retries: int = 0

    @property
    def broken(self) -> Share:
        """The share of replies that were not clean."""
        return share(self.repaired + self.reasked + self.unusable, self.replies)

    @property
    def success(self) -> Share:
        """The share of turns with a usable reply; of observed ones what a repair would give."""
        asked = 0 if self.is_observed else self.reasked
        return share(self.replies - self.broken.of + self.repaired + asked, self.replies)


def summarize(models: Iterable[ModelCount], *, by: tuple[Part, ...]) -> list[ToolRow]:
    """Add up replies to requests with tools, those of the busiest group first."""
    rows: dict[tuple[bool, tuple[str, ...]], ToolRow] = {}
    for item in models:
        outcome = item.observed or item.outcome
        if not item.with_tools or outcome not in READ:
            continue
        key = (bool(item.observed), tuple(getattr(item, name) for name in by))
        row = rows.get(key)
        if row is None:
            row = rows[key] = ToolRow(names=key[1], is_observed=key[0])
        count = item.counts.requests
        row.replies += count
        row.parse_errors += item.counts.parse_errors
        row.retries += item.counts.retries
        if outcome != "clean":
            field = outcome if outcome in ("repaired", "reasked") else "unusable"
            setattr(row, field, getattr(row, field) + count)
    return sorted(rows.values(), key=lambda row: (-row.replies, row.names))


def describe(rows: Sequence[ToolRow]) -> list[str]:
    """Return the answer in sentences: what was broken, what came of it, what to switch on."""
    seen, served = ([row for row in rows if row.is_observed is value] for value in (True, False))
    said = [_describe_all(found, is_observed=found is seen) for found in (seen, served) if found]
    return [*said, *filter(None, map(_advise, rows))] or ["No reply to a request with tools yet."]


def _describe_all(rows: Sequence[ToolRow], *, is_observed: bool) -> str:
    fields = ("repaired", "reasked", "unusable", "replies")
    fixed, asked, refused, replies = (sum(getattr(row, name) for row in rows) for name in fields)
    broken = share(fixed + asked + refused, replies)
    what = f"{'observed ' if is_observed else ''}{'reply' if broken.n == 1 else 'replies'}"
    was = "was" if broken.of == 1 else "were"
    start = f"Of {broken.n} {what} with tools, {broken.of} {was} broken ({show_share(broken)})"
    if not broken.of:
        return f"{start}."
    if is_observed:
        return (
            f"{start}: {fixed} would have been right after a repair, {asked} would have been "
            f"asked for again, {refused} refused."
        )
    return f"{start}: {fixed} repaired, {asked} asked for again, {refused} not made right."


def _advise(row: ToolRow) -> str:
    """Return what to switch on for a model that is only observed."""
    if not row.is_observed or row.replies < MIN_REPLIES:
        return ""
    broken, where = row.broken, " via ".join(name for name in row.names if name)
    if broken.high <= _HARMLESS:
        return f"{where}: leave it as it is; at most {broken.high:.1%} of its replies are broken."
    if not broken.of:
        return f"{where}: observe longer; nothing was broken in {broken.n} replies."
    if row.repaired >= _ENOUGH * broken.of:
        return f'{where}: end observing with steps = ["repair", "coerce"]; that is enough.'
    rest = broken.of - row.repaired
    return f"{where}: end observing with all steps; {rest} have to be asked for again."


def show_share(found: Share) -> str:
    """Return a share with its interval, as in `13.8 %, 10.8 % to 17.5 %`."""
    return f"{found.value:.1%}, {found.low:.1%} to {found.high:.1%}".replace("%", " %")
