"""What the schemas of tools lose when a provider is to hold the model to them."""

from collections.abc import Iterable

from msgspec import Struct

from surecall.formats.teach import reply_schema
from surecall.profiles import Capabilities
from surecall.records import ToolSpec
from surecall.schema import Loss, LossKind

from .prompting import fit_strictly

__all__ = ["SchemaLoss", "find_losses"]


class SchemaLoss(Struct, frozen=True, kw_only=True):
    """One thing that the schema of a tool says and the provider was not told in this form."""

    tool: str
    mode: str
    """`strict` or `constrained`: the way of putting tools to the model that needed it."""
    place: str
    """JSON pointer into the parameters of the tool."""
    keyword: str
    kind: LossKind
    """`dropped` and `weakened` accept more than before; `changed` may accept less or other values;
    `over_limit` was kept, and the provider is likely to refuse it."""
    why: str


def find_losses(
    tools: Iterable[ToolSpec], mode: str, capabilities: Capabilities
) -> tuple[SchemaLoss, ...]:
    """Return what the tools lose in a way of putting them to the model; most ways lose nothing."""
    if mode not in ("strict", "constrained"):
        return ()
    return tuple(
        SchemaLoss(
            tool=tool.name,
            mode=mode,
            place=loss.place,
            keyword=loss.keyword,
            kind=loss.kind,
            why=loss.why,
        )
        for tool in tools
        for loss in _losses_of(tool, mode, capabilities)
    )


def _losses_of(tool: ToolSpec, mode: str, capabilities: Capabilities) -> tuple[Loss, ...]:
    if mode == "constrained":
        return reply_schema((tool,), may_answer=False, is_grammar=capabilities.grammar)[1]
    return fit_strictly(tool).losses
