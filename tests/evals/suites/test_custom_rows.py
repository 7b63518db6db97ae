"""Cases from rows of CSV and JSONL."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.errors import ConfigError
from surecall.evals.suites.custom import CustomSuite
from surecall.evals.suites.custom.document import CallDoc, ChecksDoc
from surecall.evals.suites.custom.rows import read_rows

TOOLS = """
[[tools]]
name = "weather"
effect = "read"
[tools.parameters]
type = "object"
required = ["city"]
properties = { city = { type = "string" } }
"""


def write(folder: Path, name: str, text: str) -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_table_adds_cases_to_a_file(tmp_path: Path) -> None:
    """Cells become keys of the case, of its one call and of its checks."""
    write(
        tmp_path,
        "more.csv",
        "\ufeffid,scenario,prompt,tool,arguments,text_contains,ignore_case\n"
        'oslo,warm,"How warm, in Oslo?",weather,"{""city"": ""Oslo""}","[""4"", ""°C""]",yes\n'
        ",talk,Hello,,,hello,\n",
    )
    suite = CustomSuite(write(tmp_path, "all.toml", f'cases_from = "more.csv"\n{TOOLS}'))
    (oslo,), (hello,) = suite.cases("warm"), suite.cases("talk")

    assert oslo.doc.calls == (CallDoc(tool="weather", arguments={"city": "Oslo"}),)
    assert oslo.doc.checks == ChecksDoc(text_contains=("4", "°C"), ignore_case=True)
    assert oslo.doc.prompt == "How warm, in Oslo?"
    assert (hello.id, hello.doc.calls) == ("row-3", None)
    assert hello.doc.checks == ChecksDoc(text_contains=("hello",))


def test_lines_of_json_bring_their_tools_along(tmp_path: Path) -> None:
    """A line that is not a case is about the whole file."""
    text = (
        '{"name": "sky", "tools": [{"name": "look", "effect": "read"}]}\n\n'
        '{"id": "a", "prompt": "Look.", "calls": [{"tool": "look"}]}\n'
        '{"prompt": "Do not look.", "calls": []}\n'
    )
    suite = CustomSuite(write(tmp_path, "cases.jsonl", text))

    assert suite.name == "custom:sky"
    assert [case.id for case in suite.cases("cases")] == ["a", "row-4"]
    assert [tool.name for tool in suite.cases("cases")[0].prepare(1).tools] == ["look"]


def test_the_version_changes_with_the_rows(tmp_path: Path) -> None:
    """Another row makes it another suite."""
    place = write(tmp_path, "all.toml", f'cases_from = "more.csv"\n{TOOLS}')
    write(tmp_path, "more.csv", "prompt,text_contains\nHello,hi\n")
    before = CustomSuite(place).version
    write(tmp_path, "more.csv", "prompt,text_contains\nHello,ho\n")

    assert CustomSuite(place).version != before


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("c.csv", "prompt,text_contans\nHi,x\n", "line 2, cases[0].text_contans: there is no key"),
        ("c.csv", "prompt,calls\nHi,[oops\n", "line 2: calls is not JSON"),
        ("c.csv", "prompt\nHi,x\n", "line 2: 2 cells, but 1 columns"),
        ("c.csv", 'prompt\n"Hi\n', "it is not CSV"),
        ("c.csv", "prompt,control\nHi,maybe\n", "line 2: control is 'maybe', and must be yes or"),
        ("c.csv", 'prompt,tool,calls\nHi,x,"[]"\n', "give either `calls` or `tool`"),
        ("c.csv", "prompt,tool\nA,\nHi,nothing\n", "c.csv, line 2"),
        ("c.csv", "", "there are no cases"),
        ("c.jsonl", '{"prompt": "Hi", "calls": []}\n[1]\n', "line 2: a line must be an object"),
        ("c.jsonl", '{"prompt": "Hi"\n', "line 1: it is not JSON"),
        ("c.toml", 'cases_from = "x.txt"', "x.txt is not a CSV, JSONL or Parquet file"),
        ("c.toml", 'cases_from = "x.csv"', "x.csv: No such file"),
    ],
)
def test_a_mistake_is_refused_with_its_line(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    """Whoever wrote the row finds it."""
    with pytest.raises(ConfigError) as refused:
        CustomSuite(write(tmp_path, name, text))

    assert words in refused.value.message
    assert refused.value.code == "INVALID_CASE"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=5))
def test_any_text_survives_a_table(prompts: list[str]) -> None:
    """What a spreadsheet writes is what the model is asked."""
    file = io.StringIO(newline="")
    writer: Any = csv.writer(file)
    writer.writerow(["id", "prompt"])
    for number, prompt in enumerate(prompts):
        writer.writerow([f"c{number}", prompt])
    rows = read_rows(Path("x.csv"), file.getvalue().encode())

    assert [row.get("prompt", "") for row in rows.cases] == [
        prompt if prompt.strip() else "" for prompt in prompts
    ]


def test_a_row_of_parquet_is_a_case(tmp_path: Path) -> None:
    """Lists and structs are taken as they are, texts as in CSV."""
    duckdb = pytest.importorskip("duckdb")
    place = tmp_path / "more.parquet"
    query = (
        "SELECT 'paris' AS id, 'Weather in Paris?' AS prompt, 'weather' AS tool, "
        "{'city': 'Paris'} AS arguments, ['20', 'degrees'] AS text_contains, NULL AS scenario"
    )
    duckdb.sql(query).write_parquet(str(place))
    write(tmp_path, "cases.toml", f'cases_from = "more.parquet"\n{TOOLS}')
    (case,) = CustomSuite(tmp_path / "cases.toml").cases("cases")
    assert case.doc.calls == (CallDoc(tool="weather", arguments={"city": "Paris"}),)
    assert case.doc.checks == ChecksDoc(text_contains=("20", "degrees"))
    place.write_bytes(b"PAR1 nothing")
    with pytest.raises(ConfigError) as caught:
        CustomSuite(tmp_path / "cases.toml")
    assert "not Parquet" in caught.value.message
