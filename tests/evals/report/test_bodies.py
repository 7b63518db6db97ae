"""Transcripts in a report: which go in, and that they come out again."""

import base64
import json
import zlib
from typing import Any

from support.eval_rows import MODELS, make_body, make_rows
from support.reports import embedded, make_info, with_bodies
from surecall.evals.records import TrialBody, TrialRow
from surecall.evals.report import PackedBodies, RowMark, order_bodies, pack_bodies, render_html

ROWS = make_rows(models=MODELS[3:5], trials=3)
MARKS = [RowMark.of(row) for row in ROWS]


def unpacked(text: str) -> Any:
    """Undo the packing the way a browser does."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def body_in(packed: PackedBodies, index: int) -> dict[str, Any]:
    """Return one body with its shared parts."""
    body = unpacked(packed.packed[str(index)])
    for field, name, place in body.pop("parts"):
        body[field][name] = unpacked(packed.shared[int(place)])
    return body


def case_of(row: TrialRow) -> tuple[str, ...]:
    """Name what repetitions have in common."""
    return (row.cell.label, row.case)


def test_a_body_comes_out_as_it_went_in() -> None:
    """Request, config, transcript and state survive, shared or not."""
    bodies = {row.index: make_body(row) for row in ROWS}
    packed = pack_bodies(bodies, bodies.get)
    assert packed.left_out == 0
    for index, body in bodies.items():
        assert body_in(packed, index) == {
            "request": body.request,
            "config": body.config,
            "transcript": list(body.transcript),
            "state": body.state,
        }


def test_what_many_bodies_share_is_packed_once() -> None:
    """The tools of all trials are there a single time."""
    bodies = {row.index: make_body(row) for row in ROWS if not row.control}
    packed = pack_bodies(bodies, bodies.get)
    shared = [unpacked(text) for text in packed.shared]
    assert sum(part == bodies[0].request["tools"] for part in shared) == 1
    assert len(shared) < 5


def test_none_takes_none_and_all_takes_all() -> None:
    """The two ends of the choice."""
    assert order_bodies(MARKS, "none") == []
    assert order_bodies(MARKS, "all") == [row.index for row in ROWS]


def test_failed_takes_every_failure_and_one_success_of_each_case() -> None:
    """A trial that fails either verdict counts as a failure."""
    chosen = set(order_bodies(MARKS, "failed"))
    failed = {row.index for row in ROWS if not (row.strict_ok and row.original_ok)}
    passed = [row for row in ROWS if row.index in chosen - failed]
    assert failed <= chosen
    assert len(passed) == len({case_of(row) for row in passed})
    assert {case_of(row) for row in passed} == {
        case_of(row) for row in ROWS if row.index not in failed
    }


def test_one_failure_of_every_case_comes_before_the_second_of_any() -> None:
    """Where room is short, every case can still be looked into."""
    rows = {row.index: row for row in ROWS}
    failed = [
        case_of(rows[index])
        for index in order_bodies(MARKS, "failed")
        if not (rows[index].strict_ok and rows[index].original_ok)
    ]
    first_repeat = next(i for i, case in enumerate(failed) if case in failed[:i])
    assert set(failed[:first_repeat]) == set(failed)


def test_bodies_stop_where_there_is_no_more_room() -> None:
    """What is packed stays below the limit, and the rest is counted."""
    bodies = {row.index: make_body(row) for row in ROWS}
    whole = pack_bodies(bodies, bodies.get)
    size = sum(map(len, whole.shared)) + sum(map(len, whole.packed.values()))
    half = pack_bodies(bodies, bodies.get, max_bytes=size // 2)
    used = sum(map(len, half.shared)) + sum(map(len, half.packed.values()))
    assert 0 < used <= size // 2
    assert half.left_out == len(bodies) - len(half.packed) > 0
    for index in half.packed:
        assert body_in(half, int(index))["state"] == bodies[int(index)].state


def test_a_body_too_large_leaves_no_part_behind() -> None:
    """A shared part goes in only with a body that needs it."""
    small = TrialBody(index=1, state={"a": 1})
    large = TrialBody(index=0, request={"tools": [str(n) for n in range(20_000)]})
    packed = pack_bodies([0, 1], {0: large, 1: small}.get, max_bytes=2_000)
    assert packed.shared == ()
    assert list(packed.packed) == ["1"]
    assert packed.left_out == 1


def test_what_json_cannot_carry_is_replaced() -> None:
    """Half a character or a number without end does not stop a report."""
    body = TrialBody(index=0, state={"half": "\ud800", "endless": float("inf")})
    packed = pack_bodies([0], {0: body}.get)
    assert body_in(packed, 0)["state"] == {"half": "\ufffd", "endless": "inf"}


def test_the_page_says_which_bodies_it_has() -> None:
    """The list of kept bodies names exactly those that are packed."""
    page = render_html(with_bodies(ROWS), make_info(ROWS))
    told = embedded(page, "data")["bodies"]
    assert told["choice"] == "failed"
    assert told["left_out"] == 0
    assert [str(index) for index in told["kept"]] == list(embedded(page, "bodies")["packed"])
    assert 0 < len(told["kept"]) < len(ROWS)
