"""What is in the rows of a store, and how it is written; a row that cannot be right is refused."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.records.receipts import clip
from surecall.text import decode_own, decoder_of, encode
from surecall.tools.approvals import Approval, PausedRun
from surecall.workspace import Change, Part, WorkspaceState
from surecall.workspace.state import PARTS

T = TypeVar("T")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_decode_approval: Final = decoder_of(Approval)
_decode_run: Final = decoder_of(PausedRun)
_decode_change: Final = decoder_of(Change)


class DamagedRow(ValueError):  # noqa: N818 - what was found
    """A row holds what no version of surecall writes."""


def instant(moment: datetime) -> int:
    """Return a moment as microseconds, to be compared by a database."""
    return (moment - _EPOCH) // _MICROSECOND


def encode_change(change: Change) -> bytes:
    """Return a change as bytes; what a receipt quotes need not be JSON and is described then."""
    try:
        return encode(change)
    except JSONTextError:
        receipts = tuple(
            replace(each, before=clip(ascii(each.before)), after=clip(ascii(each.after)))
            for each in change.author.receipts
        )
        return encode(replace(change, author=replace(change.author, receipts=receipts)))


def decode_change(row: Sequence[Any]) -> Change:
    """Return the change of a row with the revision and the content."""
    change = _decode(_decode_change, row[1])
    if change.revision != row[0]:
        raise DamagedRow(f"revision {row[0]} has the change of revision {change.revision}")
    return change


def decode_approval(row: Sequence[Any]) -> Approval:
    """Return the approval of a row with the id, the status and the content."""
    approval = _decode(_decode_approval, row[2])
    if approval.id != row[0] or approval.status != row[1]:
        raise DamagedRow(f"approval {row[0]} is not what its row says")
    return approval


def decode_run(data: Any) -> PausedRun:
    """Return the paused run of a row."""
    return _decode(_decode_run, data)


def decode_state(
    workspace_id: str, row: Sequence[Any], contents: Mapping[str, Any]
) -> WorkspaceState:
    """Return a state from its revision, its versions, and the content of its parts."""
    if not all(isinstance(number, int) for number in row):
        raise DamagedRow("a version is not a number")
    revision, *versions = row
    members: dict[str, Any] = {}
    for part, version in zip(PARTS, versions, strict=True):
        if part not in contents:
            raise DamagedRow(f"{part}:{version} of a workspace is missing")
        members[part] = decode_part(part, contents[part])
        members[f"{part}_version"] = version
    return WorkspaceState(id=workspace_id, revision=revision, **members)


def decode_part(part: Part, data: Any) -> Any:
    """Return the content of a part."""
    found = _decode(decode_own, data)
    if part != "locks":
        if not isinstance(found, dict):
            raise DamagedRow(f"the {part} of a workspace is not an object")
        return cast("dict[str, Any]", found)
    try:
        return msgspec.convert(found, tuple[str, ...])
    except msgspec.ValidationError:
        raise DamagedRow("the locks of a workspace are not a list of paths") from None


def _decode(decode: Callable[[bytes], T], data: Any) -> T:
    try:
        return decode(bytes(data))
    except (ValueError, TypeError, JSONTextError) as error:
        raise DamagedRow(str(error)) from None
