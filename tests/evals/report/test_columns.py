"""Rows as columns: nothing that was counted is lost."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.eval_rows import make_rows
from surecall.base.records import Usage
from surecall.evals.records import CallFact, Cell, Reason, TrialRow
from surecall.evals.report import Columns


def columns_of(*rows: TrialRow) -> dict[str, Any]:
    """Return the columns of these rows."""
    columns = Columns()
    for row in rows:
        columns.add(row)
    return columns.data()


def text_of(data: dict[str, Any], place: int) -> str | None:
    """Return the text that a number stands for."""
    return None if place < 0 else data["texts"][place]


ROW = TrialRow(
    index=4,
    cell=Cell(model="m", profile="p", strategy="raw", fallback="f", suite="s", scenario="x"),
    case="c",
    trial=2,
    seed=2**62 + 1,
    simulated=True,
    original_ok=True,
    strict_ok=False,
    strict_reasons=(Reason("READ_CAME_LATER", "late"), Reason("OTHER")),
    outcome="called",
    category="ASSERTION_FAILED",
    censored=True,
    elapsed_ms=12.345,
    turns=3,
    requests=4,
    usage=Usage(10, 20, 30),
    calls=(
        CallFact(
            turn=1,
            name="get",
            format="qwen_xml",
            structured=False,
            state="whole",
            valid_before=False,
            valid_after=True,
            changed=True,
            exact=True,
            executed=True,
            ok=True,
            rules=("replace_quotes",),
            arguments_bytes=99,
        ),
    ),
    rules=("replace_quotes",),
    fabrications=1,
    text="Done.",
)


def test_every_field_of_a_trial_has_its_column() -> None:
    """Texts are numbers into one list, yes and no are bits."""
    data = columns_of(ROW)
    trial = {name: column[0] for name, column in data["trials"].items()}
    assert [text_of(data, place) for place in data["cells"][0]] == ["m", "p", "raw", "f", "s", "x"]
    assert trial["flags"] == 1 + 4 + 32  # simulated, original_ok, censored
    assert trial["seed"] == str(2**62 + 1)
    assert text_of(data, trial["outcome"]) == "called"
    assert text_of(data, trial["code"]) is None
    assert [text_of(data, place) for place in trial["strict_reasons"]] == [
        "READ_CAME_LATER",
        "late",
        "OTHER",
        "",
    ]
    assert trial["elapsed_ms"] == 12.3
    assert (trial["turns"], trial["requests"], trial["fabrications"]) == (3, 4, 1)
    assert (trial["input_tokens"], trial["output_tokens"]) == (10, 20)
    failure = [text_of(data, place) for place in data["failures"][trial["failure"]]]
    assert failure == ["behaviour", "READ_CAME_LATER", "called"]


def test_every_field_of_a_call_has_its_column() -> None:
    """A call points to the place of its trial."""
    data = columns_of(make_rows(trials=1)[0], ROW)
    call = {name: column[-1] for name, column in data["calls"].items()}
    assert call["place"] == 1
    assert text_of(data, call["name"]) == "get"
    assert text_of(data, call["format"]) == "qwen_xml"
    assert call["flags"] == 4 + 8 + 16 + 32  # valid_after, changed, executed, ok
    assert call["exact"] == 1
    assert [text_of(data, place) for place in call["rules"]] == ["replace_quotes"]
    assert call["arguments_bytes"] == 99


def test_equal_texts_are_there_once() -> None:
    """The list of texts has no text twice, however many trials have it."""
    texts = columns_of(*make_rows(trials=3))["texts"]
    assert len(texts) == len(set(texts))


def test_long_texts_are_cut_with_a_note() -> None:
    """A row stays small whatever the model wrote; the whole text is in the body."""
    data = columns_of(TrialRow(**{**_fields(ROW), "text": "x" * 5000}))
    text = text_of(data, data["trials"]["text"][0])
    assert text == "x" * 200 + "… (+4800 characters)"


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.characters(exclude_categories=()), max_size=50))
def test_any_text_can_be_written(text: str) -> None:
    """Also half a character, which is replaced."""
    data = columns_of(TrialRow(**{**_fields(ROW), "text": text, "error": text}))
    for name in ("text", "error"):
        found = text_of(data, data["trials"][name][0])
        assert found is not None
        assert found.encode("utf-8").decode("utf-8") == found


def _fields(row: TrialRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in TrialRow.__struct_fields__}
