"""A run judged again: every trial gets the verdict of today, and nothing is sent.

Its replies are played again, so that today's reader reads them.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderError,
    ProviderStatusError,
    ProviderTimeoutError,
    StoreError,
    SurecallError,
)
from surecall.base.records import Usage, WireReply, WireRequest
from surecall.base.redaction import MASK
from surecall.evals.cases import Contender
from surecall.models.transport import Transport, WireStream
from surecall.wire import RawReply, WireProtocol, find_protocol

from .cases import Case
from .experiments import EvalRun, open_run_store
from .jobs import TrialParams, Trials
from .records import Manifest, Reason, TrialBody, TrialRow, Unit, make_manifest
from .store import LATEST, RunStore, check_tag
from .suites import load_suite
from .trial import run_trial

_MEASURED: Final = (
    *("attempts", "cached_replies", "censored", "cost_usd", "elapsed_ms", "error", "error_status"),
    *("first_token_ms", "requests", "started_at", "tokens_per_s", "usage"),
)
"""Fields that say what happened then, and not what is thought of it."""


class Regrader:
    """Decides the trials of one run again, under the settings that it was made with."""

    def __init__(self, manifest: Manifest) -> None:
        names = cast("list[str]", manifest.axes.get("suites", []))
        self._suites = [load_suite(manifest.places.get(name, name)) for name in names]
        self._contenders = {
            label: msgspec.convert(fields, Contender)
            for label, fields in manifest.contenders.items()
        }
        params = TrialParams(
            suites=tuple(names),
            contenders=tuple(self._contenders.values()),
            open_transport="",
            **msgspec.convert(manifest.options, dict[str, Any]),
        )
        self._trials = Trials(params, self._suites, _refuse_to_send)

    @property
    def versions(self) -> dict[str, str]:
        """The versions that the suites have today."""
        return {suite.name: suite.version for suite in self._suites}

    async def decide(
        self, row: TrialRow, body: TrialBody | None
    ) -> tuple[TrialRow | None, TrialBody | None]:
        """Return a trial with its new verdicts; no row when it cannot be decided again."""
        if body is None or row.cell.model not in self._contenders or _hides_secret(body):
            return None, body
        if self._trials.params.agent:
            return None, body  # a program is not run again
        unit = Unit(index=row.index, cell=row.cell, case=row.case, trial=row.trial, seed=row.seed)
        contender = self._contenders[row.cell.model]
        try:
            case = self._trials.find_case(unit)
            settled = self._trials.settle(unit, contender)
        except SurecallError:
            return None, body  # the case, or the strategy, is not there any more
        settled = replace(settled, options={**settled.options, "stream": False})
        kept = KeptReplies(row, body, find_protocol(settled.protocol))
        found, _ = await run_trial(
            unit,
            case,
            contender,
            kept.open,
            settled,
            timeout_s=self._trials.params.timeout_s,
            protocol=cast("WireProtocol", kept),
        )
        if not kept.is_used_up or found.code != row.code:
            return None, body
        measured = {name: getattr(row, name) for name in _MEASURED}
        if found.category is not None and row.code is not None:
            measured["category"] = row.category  # it goes by parts of the error that are not kept
        return replace(found, **measured), body


class KeptReplies:
    """Gives the replies of a stored trial, as transport and as wire format in one."""

    def __init__(self, row: TrialRow, body: TrialBody, protocol: WireProtocol) -> None:
        self._protocol = protocol
        self._waiting: deque[RawReply | ProviderError] = deque(_list_replies(body))
        self._ending = None if row.code is None else _find_ending(row)
        if self._waiting and self._ending is not None:
            last = self._waiting[-1]
            if isinstance(last, ProviderError) and last.code == row.code:
                self._waiting[-1] = self._ending  # which is kept with its hint
        self._next: RawReply | None = None
        self._was_overdrawn = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._protocol, name)

    @property
    def is_used_up(self) -> bool:
        """Whether every reply was asked for, and no more than there were."""
        return not self._waiting and not self._was_overdrawn

    def open(
        self, contender: Contender, unit: Unit, case: Case
    ) -> AbstractAsyncContextManager[Transport]:
        """Open itself for its trial."""
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Transport, None]:
        yield self

    async def send(self, request: WireRequest) -> WireReply:
        """Give the next reply, or fail as the request failed then."""
        if not self._waiting:
            ending, self._ending = self._ending, None
            if ending is not None:
                raise ending
            self._was_overdrawn = True
            raise ProviderError(Code.RUN_MISMATCH, "no reply is left for this request.")
        found = self._waiting.popleft()
        if isinstance(found, ProviderError):
            raise found
        self._next = found
        return WireReply(status=200, headers={}, body=b"")

    def stream(self, request: WireRequest) -> AbstractAsyncContextManager[WireStream]:
        """Refuse: replies are kept whole."""
        raise StoreError(Code.RUN_MISMATCH, "Replies are kept whole, not as streams.")

    def parse_body(self, body: bytes, headers: Any = None) -> RawReply:
        """Return the reply that was just sent."""
        assert self._next is not None
        return self._next

    async def aclose(self) -> None:
        """Close nothing."""


def _hides_secret(body: TrialBody) -> bool:
    return any(MASK in str(turn.get("raw")) for turn in body.transcript)


def _list_replies(body: TrialBody) -> Iterator[RawReply | ProviderError]:
    for turn in body.transcript:
        for failure in turn.get("failures", ()):
            yield _make_error(failure["code"], failure["message"], failure["status"])
        if "raw" in turn:
            usage = turn.get("usage")
            yield RawReply(
                message=turn["raw"],
                finish_reason=turn.get("finish_reason"),
                usage=None if usage is None else msgspec.convert(usage, Usage),
                model=turn.get("answered_by"),
                id=turn.get("request_id"),
            )


def _find_ending(row: TrialRow) -> ProviderError:
    """Return the error that ended a run, in the words that were kept of it."""
    code = row.code or ""
    return _make_error(code, (row.error or "").removeprefix(f"{code}: "), row.error_status)


def _make_error(code: str, message: str, status: int | None) -> ProviderError:
    if code.endswith("_TIMEOUT"):
        return ProviderTimeoutError(code, message, status=status)
    kind = ProviderConnectionError if status is None else ProviderStatusError
    return kind(code, message, status=status)


def _refuse_to_send(contender: Contender, unit: Unit, case: Case) -> NoReturn:
    raise StoreError(Code.RUN_MISMATCH, "nothing is sent when a run is judged again.")


class VerdictChange(Struct, frozen=True, kw_only=True):
    """A trial whose verdict is another one now."""

    index: int
    cell: str
    case: str
    verdict: str
    """`strict` or `original`."""
    ok: bool
    """What it is now."""
    reasons: tuple[Reason, ...]
    """What speaks against it now, or spoke against it before."""


class Regraded(Struct, frozen=True, kw_only=True):
    """What judging a run again gave."""

    source: str
    """The run that was judged."""
    run: EvalRun | None
    """The run with the new verdicts; None when nothing was to be written."""
    trials: int
    undecided: tuple[int, ...]
    """Places of trials that could not be decided again and keep their verdicts."""
    changes: tuple[VerdictChange, ...]


async def regrade(
    reference: str = LATEST,
    *,
    store: str | Path | None = None,
    tag: str | None = None,
    dry_run: bool = False,
) -> Regraded:
    """Regrader the trials of a run again and write them as a new run; the old one stays as it is.

    Args:
        reference: The run: its id, the beginning of one, a tag, or `@latest~1`.
        store: The file with the runs; the one of the settings by default.
        tag: A name for the new run.
        dry_run: Whether nothing is to be written.

    Raises:
        StoreError: There is no such run.
        ConfigError: A suite of the run is not there any more.
    """
    if tag is not None:
        check_tag(tag)
    with open_run_store(store, must_exist=True) as opened:
        info = opened.info(opened.resolve(reference))
        regrader = Regrader(info.manifest)
        pairs = [
            (row, *await regrader.decide(row, opened.find_body(info.id, row.index)))
            for row in opened.rows(info.id)
        ]
        trials = [(new or row, body) for row, new, body in pairs]
        manifest = _describe(info.manifest, regrader.versions, info.id)
        run = None if dry_run else _write(opened, manifest, trials, tag)
    return Regraded(
        source=info.id,
        run=run,
        trials=len(trials),
        undecided=tuple(row.index for row, new, _ in pairs if new is None),
        changes=tuple(
            change for row, new, _ in pairs if new is not None for change in _compare(row, new)
        ),
    )


def regrade_sync(reference: str = LATEST, **arguments: Any) -> Regraded:
    """Regrader a run again where no event loop runs; takes what `regrade` takes."""
    return asyncio.run(regrade(reference, **arguments))


def _describe(old: Manifest, versions: dict[str, str], source: str) -> Manifest:
    """Return the manifest of the new run: that of the old, with the versions of today."""
    return replace(
        old,
        suites=versions,
        package=make_manifest((), axes={}).package,
        command=f"surecall eval regrade {source}",
        regraded_from=source,
    )


def _write(
    store: RunStore,
    manifest: Manifest,
    trials: list[tuple[TrialRow, TrialBody | None]],
    tag: str | None,
) -> EvalRun:
    run_id = store.create(manifest)
    with store.hold(run_id):
        store.add(run_id, trials)
        is_over = len(trials) >= manifest.units
        store.finish(run_id, "complete" if is_over else "interrupted")
    if tag is not None:
        store.tag(run_id, tag)
    return EvalRun(store.path, store.info(run_id))


def _compare(old: TrialRow, new: TrialRow) -> Iterator[VerdictChange]:
    for verdict in ("strict", "original"):
        was, now = (getattr(row, f"{verdict}_ok") for row in (old, new))
        if was != now:
            yield VerdictChange(
                index=new.index,
                cell=new.cell.label,
                case=new.case,
                verdict=verdict,
                ok=now,
                reasons=getattr(old if now else new, f"{verdict}_reasons"),
            )
