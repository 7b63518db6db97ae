"""Where the trials of a report come from: a store, or rows at hand."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import asdict

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.files import explain_write_errors, write_whole
from surecall.base.pages import SHARED_SCRIPTS, SHEET, join_scripts, read_asset
from surecall.evals.gates import check_stored
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.records import TrialBody, TrialRow
from surecall.evals.store import RunInfo, RunStore
from surecall.loop.stored import encode_kept
from surecall.text import mend_surrogates

from .answer import render_answer
from .bodies import BodyChoice, RowMark, order_bodies, pack_bodies
from .columns import Columns
from .markup import Html, name

TrialSource: TypeAlias = RunStore | Iterable[TrialRow] | Iterable[tuple[TrialRow, TrialBody | None]]
"""A store, rows, or rows each with its body."""


class Trials(Struct, frozen=True):
    """The rows in order, and a way to the body of each."""

    rows: Iterator[TrialRow]
    body: Callable[[int], TrialBody | None]
    """Only to be asked once the rows have been read."""


def open_trials(source: TrialSource, run_id: str) -> Trials:
    """Return the trials of a run, read one by one."""
    if isinstance(source, RunStore):
        return Trials(source.rows(run_id), lambda index: source.find_body(run_id, index))
    bodies: dict[int, TrialBody] = {}
    return Trials(_split(source, bodies), bodies.get)


def _split(
    trials: Iterable[TrialRow] | Iterable[tuple[TrialRow, TrialBody | None]],
    bodies: dict[int, TrialBody],
) -> Iterator[TrialRow]:
    for trial in trials:
        row, body = (trial, None) if isinstance(trial, TrialRow) else trial
        if body is not None:
            bodies[row.index] = body
        yield row


MAX_FILE_BYTES: Final = 15_000_000
"""A report is no larger than this, unless all bodies are asked for."""

SCRIPTS: Final = (
    "data.js",
    "bodies.js",
    "state.js",
    "facets.js",
    "trials.js",
    "transcript.js",
    "trial.js",
    "main.js",
)
"""The report's own pieces of script, in the order in which they are joined."""

_DATA_VERSION: Final = 2
_HERE: Final = __package__ or "surecall.evals.report"
_NOT_SHOWN: Final = frozenset({"units", "units_hash", "contenders", "catalog", "places"})
"""Fields of a manifest that the page does not need."""


def write_html(
    source: TrialSource,
    run_info: RunInfo,
    out_path: str | Path,
    *,
    bodies: BodyChoice = "failed",
) -> Path:
    """Write the report of a run and return where it is.

    Args:
        source: The store, or the rows, or the rows each with its body.
        run_info: What is known of the run.
        out_path: The file to write; its folder is made when it is not there.
        bodies: Whose transcripts go in: `none`, `failed` (and one passing trial of each case, as
            long as the file stays below 15 MB) or `all`.
    """
    path = Path(out_path)
    page = render_html(source, run_info, bodies=bodies)
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as file:
            file.write(page)
    return path


def render_html(source: TrialSource, run_info: RunInfo, *, bodies: BodyChoice = "failed") -> bytes:
    """Return the report of a run; the same run gives the same bytes."""
    if bodies not in get_args(BodyChoice):
        raise ConfigError(
            Code.INVALID_OPTION,
            f"bodies is {bodies!r}.",
            hint=did_you_mean(str(bodies), get_args(BodyChoice)),
        )
    trials = open_trials(source, run_info.id)
    columns, marks = Columns(), list[RowMark]()
    tallies = tally_rows(_note(trials.rows, columns, marks))
    data = columns.data()
    room = None if bodies == "all" else MAX_FILE_BYTES - len(encode_kept(data)) - 1_000_000
    packed = pack_bodies(order_bodies(marks, bodies), trials.body, max_bytes=room)
    data |= {
        "version": _DATA_VERSION,
        "run": _header(run_info),
        "bodies": {
            "choice": bodies,
            "kept": [int(index) for index in packed.packed],
            "left_out": packed.left_out,
        },
    }
    answer = render_answer(
        tallies,
        run_info,
        gates=check_stored(source, run_info, tallies) if isinstance(source, RunStore) else (),
        kept=len(packed.packed),
        choice=bodies,
        left_out=packed.left_out,
    )
    return _fill(
        run=run_info.id,
        answer=answer,
        data=data,
        bodies={"shared": packed.shared, "packed": packed.packed},
    )


def _note(rows: Iterable[TrialRow], columns: Columns, marks: list[RowMark]) -> Iterator[TrialRow]:
    """Yield the rows, and note each for the page on its way."""
    for row in rows:
        columns.add(row)
        marks.append(RowMark.of(row))
        yield row


def _header(info: RunInfo) -> dict[str, Any]:
    """Return what the page says about the run."""
    shown = ("id", "status", "tags", "units", "done", "created_at", "ended_at")
    manifest = asdict(info.manifest)
    return {
        **{name: getattr(info, name) for name in shown},
        **{name: value for name, value in manifest.items() if name not in _NOT_SHOWN},
        "hash": info.manifest.hash,
    }


# The file


def _fill(*, run: str, answer: Html, data: Any, bodies: Any) -> bytes:
    style, script = read_asset(SHEET), _script()
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    page = Template(read_asset("report.html", _HERE)).substitute(
        policy=policy,
        title=escape(f"surecall {mend_surrogates(run)}"),
        run=name(run),
        answer=answer,
        style=style,
        script=script,
        data=_inert(data),
        bodies=_inert(bodies),
    )
    return page.encode("utf-8")


def _inert(value: Any) -> str:
    """Return JSON that cannot end the element it stands in, whatever a model wrote."""
    text = encode_kept(value).decode("utf-8")
    # Outside of strings JSON has none of these characters, and inside an escape means the same.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _script() -> str:
    shared = (read_asset(piece) for piece in SHARED_SCRIPTS)
    return join_scripts((*shared, *(read_asset(piece, _HERE) for piece in SCRIPTS)))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
