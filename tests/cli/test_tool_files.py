"""Tools from a file: found in order, and every failure names the file and the line."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from surecall.base.errors import ToolDefinitionError
from surecall.cli.tool_files import load_tools

HEAD = "from surecall.tools import ToolRegistry, tool\n"


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    """Write a file with tools."""
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def names(path: Path) -> list[str]:
    """Load the file and name its tools."""
    return [tool.name for tool in load_tools(path)]


def test_decorated_functions_are_found_in_the_order_written(tmp_path: Path) -> None:
    """Every tool counts once, also under two names; undecorated functions do not count."""
    text = HEAD + (
        "@tool\ndef zebra(): ...\n@tool\ndef ape(): ...\nagain = zebra\ndef plain(): ...\n"
    )
    assert names(write(tmp_path, text)) == ["zebra", "ape"]


def test_the_name_tools_decides(tmp_path: Path) -> None:
    """A list of functions, or a registry, called `tools` is what is taken."""
    listed = HEAD + "@tool\ndef other(): ...\ndef plain(): ...\ntools = [plain]\n"
    assert names(write(tmp_path, listed)) == ["plain"]
    registry = HEAD + "tools = ToolRegistry()\n@tools.register\ndef kept(): ...\n"
    assert names(write(tmp_path, registry, "other.py")) == ["kept"]


def test_a_file_may_import_its_neighbours_and_use_dataclasses(tmp_path: Path) -> None:
    """Files beside it can be imported, and types defined in it can be resolved."""
    write(tmp_path, "WORD = 'hello'\n", "neighbour_of_tools.py")
    text = HEAD + (
        "from dataclasses import dataclass\nimport neighbour_of_tools\n"
        "@dataclass\nclass Place:\n    city: str\n"
        "@tool(description=neighbour_of_tools.WORD)\ndef weather(place: Place): ...\n"
    )
    (made,) = load_tools(write(tmp_path, text))
    assert made.spec.description == "hello"
    assert "place" in made.spec.parameters["properties"]


def test_what_the_file_prints_is_not_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printing while the file is imported goes to standard error."""
    load_tools(write(tmp_path, HEAD + "print('hello')\n@tool\ndef a(): ...\n"))
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


@dataclass(frozen=True)
class Broken:
    id: str
    text: str
    code: str
    says: str


BROKEN = [
    Broken("empty", "x = 1\n", "INVALID_TOOL", "holds no tool"),
    Broken("syntax", "def a(:\n", "INVALID_TOOL", "mine.py, line 1: SyntaxError"),
    Broken("missing module", "\nimport no_such_module_at_all\n", "INVALID_TOOL", "line 2: Module"),
    Broken("raises", "def f():\n    1 / 0\n\nf()\n", "INVALID_TOOL", "line 2: ZeroDivisionError"),
    Broken("exits", "\n\nraise SystemExit(0)\n", "INVALID_TOOL", "line 3: the file ends"),
    Broken(
        "bad name",
        HEAD + "@tool(name='not a name')\ndef a(): ...\n",
        "INVALID_TOOL_NAME",
        "mine.py, line 2",
    ),
    Broken(
        "twice",
        HEAD + "def a(): ...\ntools = [a, a]\n",
        "DUPLICATE_TOOL",
        "'a'",
    ),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
def test_a_file_that_cannot_be_used_says_where_and_why(case: Broken, tmp_path: Path) -> None:
    """The error has a code and names the file and the line."""
    with pytest.raises(ToolDefinitionError) as caught:
        load_tools(write(tmp_path, case.text))
    assert caught.value.code == case.code
    assert case.says in caught.value.message


@pytest.mark.parametrize("name", ["absent.py", "notes.txt"])
def test_only_python_files_will_do(name: str, tmp_path: Path) -> None:
    """A file that is not there, or is no Python file, is refused."""
    write(tmp_path, "x", "notes.txt")
    with pytest.raises(ToolDefinitionError, match=r"There is no file|is not Python"):
        load_tools(tmp_path / name)
