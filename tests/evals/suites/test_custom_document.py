"""A file of cases that is wrong is refused, with the place and a way out."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from msgspec import Struct

from surecall.base.errors import ConfigError
from surecall.evals.suites.custom import CustomSuite
from surecall.evals.suites.custom.document import (
    CallDoc,
    CaseDoc,
    ChecksDoc,
    LineMap,
    ResultDoc,
    SuiteDoc,
    ToolDoc,
    show_path,
)

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "write-your-own-cases.md"

HEAD = """\
[[tools]]
name = "weather"
[tools.parameters]
type = "object"
required = ["city"]
additionalProperties = false
properties = { city = { type = "string" } }

[[cases]]
id = "one"
prompt = "?"
calls = []

"""
"""Lines 1 to 13; what is tried begins on line 14."""

CASE = 'id = "two"\nprompt = "?"\n'


@dataclass(frozen=True)
class Wrong:
    """What stands in a file, and what the message has to say."""

    id: str
    text: str
    told: tuple[str, ...]
    head: str = HEAD


WRONG = [
    Wrong("not TOML", "cases = = 1", ("is not a TOML file", "line 14"), HEAD),
    Wrong("unknown key", f"[[cases]]\n{CASE}promt = 1", ("line 17, cases[1].promt", "'prompt'")),
    Wrong("unknown key at the top", "sistem = 'x'", ("line 1, sistem", "'system'"), ""),
    Wrong(
        "unknown key of a call",
        f"[[cases]]\n{CASE}[[cases.calls]]\ntool = 'weather'\nargs = {{}}",
        ("line 19, cases[1].calls[0].args", "there is no key 'args'"),
    ),
    Wrong(
        "unknown key of a check",
        f"[[cases]]\n{CASE}[cases.checks]\ntext_contain = ['a']",
        ("line 18, cases[1].checks.text_contain", "'text_contains'"),
    ),
    Wrong("wrong type", f"[[cases]]\n{CASE}tools = 'x'", ("line 17, cases[1].tools", "array")),
    Wrong("wrong choice", f"[[cases]]\n{CASE}order = 'none'", ("cases[1].order", "'none'")),
    Wrong("no id", "[[cases]]\nprompt = '?'", ("line 14, cases[1]", "`id`")),
    Wrong("id twice", "[[cases]]\nid = 'one'\nprompt = '?'\ncalls = []", ("line 15", "twice")),
    Wrong("id with a space", "[[cases]]\nid = 'a b'\nprompt = '?'", ("cases[1].id", "letters")),
    Wrong("no cases", "cases = []", ("there are no cases",), ""),
    Wrong("no trials", "trials = 0\n[[cases]]\nid = 'a'", ("line 1, trials", "not 0"), ""),
    Wrong("nothing asked", "[[cases]]\nid = 'a'\ncalls = []", ("line 14", "nothing is asked")),
    Wrong("empty prompt", "[[cases]]\nid = 'a'\nprompt = ' '", ("cases[1].prompt", "empty")),
    Wrong(
        "prompt and messages",
        f"[[cases]]\n{CASE}messages = [{{ role = 'user', content = 'x' }}]",
        ("both a prompt and messages",),
    ),
    Wrong("nothing expected", f"[[cases]]\n{CASE}", ("line 14, cases[1]", "all would pass")),
    Wrong(
        "unknown tool",
        f"[[cases]]\n{CASE}[[cases.calls]]\ntool = 'whether'",
        ("line 18, cases[1].calls[0].tool", "Did you mean 'weather'"),
    ),
    Wrong("no tool", f"[[cases]]\n{CASE}[[cases.calls]]\nmatch = 'subset'", ("no tool is named",)),
    Wrong(
        "tool not offered",
        f"[[cases]]\n{CASE}tools = []\n[[cases.calls]]\ntool = 'weather'",
        ("not offered in this case",),
    ),
    Wrong(
        "unknown absent tool",
        f"[[cases]]\n{CASE}absent = ['wether']",
        ("cases[1].absent[0]", "'weather'"),
    ),
    Wrong(
        "arguments that the tool refuses",
        f"[[cases]]\n{CASE}[[cases.calls]]\ntool = 'weather'\narguments = {{ town = 'x' }}",
        ("line 19, cases[1].calls[0].arguments", "weather would refuse this call"),
    ),
    Wrong(
        "subset with an unknown argument",
        f"[[cases]]\n{CASE}[[cases.calls]]\ntool = 'weather'\nmatch = 'subset'\n"
        "arguments = { citi = 'x' }",
        ("no argument 'citi'", "Did you mean 'city'"),
    ),
    Wrong(
        "a date",
        f"[[cases]]\n{CASE}[[cases.calls]]\ntool = 'weather'\narguments = {{ city = 2026-01-01 }}",
        ("has no form in JSON", "in quotes"),
    ),
    Wrong(
        "no number",
        "[[tools]]\nname = 'x'\nresult = { at = [inf] }",
        ("line 16, tools[1].result", "has no form in JSON"),
    ),
    Wrong(
        "expected and absent",
        f"[[cases]]\n{CASE}[[cases.calls]]\ntool = 'weather'\narguments = {{ city = 'x' }}\n"
        "absent = ['city']",
        ("line 20", "'city' is expected, and must be absent"),
    ),
    Wrong(
        "tool expected and absent",
        f"[[cases]]\n{CASE}absent = ['weather']\n[[cases.calls]]\ntool = 'weather'",
        ("'weather' is expected, and must be absent",),
    ),
    Wrong(
        "nothing to choose from",
        f"[[cases]]\n{CASE}[[cases.calls]]\ntool = 'weather'\none_of = {{ city = [] }}",
        ("one_of.city", "no value that would be right"),
    ),
    Wrong(
        "said twice",
        f"[[cases]]\n{CASE}[[cases.calls]]\ntool = 'weather'\narguments = {{ city = 'x' }}\n"
        "one_of = { city = ['y'] }",
        ("one_of.city", "in arguments as well"),
    ),
    Wrong(
        "alternatives and more",
        f"[[cases]]\n{CASE}[[cases.calls]]\ntool = 'weather'\nany_of = [{{ tool = 'weather' }}]",
        ("any_of must be alone",),
    ),
    Wrong(
        "mistake in an alternative",
        f"[[cases]]\n{CASE}[[cases.calls]]\nany_of = [{{ tool = 'wether' }}]",
        ("line 18, cases[1].calls[0].any_of[0].tool", "'weather'"),
    ),
    Wrong(
        "unknown option",
        f"[[cases]]\n{CASE}options = {{ max_turn = 3 }}",
        ("cases[1].options.max_turn", "'max_turns'"),
    ),
    Wrong("bad option", "[options]\nmax_turns = 0", ("options.max_turns", "greater than 0")),
    Wrong("tool twice", "[[tools]]\nname = 'weather'", ("line 15, tools[1].name", "twice")),
    Wrong("bad tool name", "[[tools]]\nname = 'get it'", ("tools[1]", "letters")),
    Wrong(
        "bad schema",
        "[[tools]]\nname = 'x'\nparameters = { type = 'objekt' }",
        ("line 14, tools[1]",),
    ),
    Wrong(
        "result and error",
        "[[tools]]\nname = 'x'\n[[tools.results]]\nresult = 1\n"
        "error = { code = 'A', message = 'b' }",
        ("line 16, tools[1].results[0]", "both a result and an error"),
    ),
    Wrong(
        "error without a message",
        "[[tools]]\nname = 'x'\n[[tools.results]]\nerror = { code = 'A' }",
        ("tools[1].results[0].error", "`message`"),
    ),
    Wrong(
        "result of an unknown tool",
        f"[[cases]]\n{CASE}calls = []\n[[cases.results]]\ntool = 'wether'\nresult = 1",
        ("line 19, cases[1].results[0].tool", "'weather'"),
    ),
    Wrong(
        "result of another tool",
        "[[tools]]\nname = 'x'\n[[tools.results]]\ntool = 'weather'\nresult = 1",
        ("tools[1].results[0].tool", "a result of 'x'"),
    ),
    Wrong("check nowhere", f"[[cases]]\n{CASE}checks.state = 'f'", ("the file of f is not named",)),
    Wrong(
        "check without a name", f"[[cases]]\n{CASE}checks.state = 'a.py:'", ("not name a function",)
    ),
    Wrong(
        "check in no file",
        f"[[cases]]\n{CASE}checks.state = 'missing.py:f'",
        ("missing.py is not a Python file",),
    ),
    Wrong(
        "unknown check",
        f"[[cases]]\n{CASE}checks.state = 'checks.py:is_god'",
        ("has no function 'is_god'", "Did you mean 'is_good'"),
    ),
    Wrong("file that fails", f"[[cases]]\n{CASE}checks.state = 'broken.py:f'", ("line 2", "boom")),
    Wrong(
        "file that ends", f"[[cases]]\n{CASE}checks.state = 'leaves.py:f'", ("ends the program",)
    ),
    Wrong("no Python", f"[[cases]]\n{CASE}checks.state = 'syntax.py:f'", ("line 1", "SyntaxError")),
    Wrong(
        "tools that are no tools",
        "tools_from = 'tools.py'\n[[cases]]\nid = 'a'\nprompt = '?'\ncalls = []",
        ("tools.py", "cannot be a tool"),
        "",
    ),
    Wrong(
        "a tool in both",
        "tools_from = 'good.py'\n[[tools]]\nname = 'ping'\n[[cases]]\nid = 'a'",
        ("line 3, tools[0].name", "is also a tool of"),
        "",
    ),
    Wrong(
        "a result for Python",
        "tools_from = 'good.py'\n[[cases]]\nid = 'a'\nprompt = '?'\ncalls = []\n"
        "[[cases.results]]\ntool = 'ping'\nresult = 1",
        ("line 7, cases[0].results[0].tool", "answers for itself"),
        "",
    ),
]

FILES = {
    "checks.py": "def is_good(run):\n    return True\n",
    "broken.py": "x = 1\nraise RuntimeError('boom')\n",
    "leaves.py": "raise SystemExit(1)\n",
    "syntax.py": "def f(:\n",
    "tools.py": "tools = [3]\n",
    "good.py": "import surecall\n\n\n@surecall.tool\ndef ping() -> str:\n    return 'x'\n",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.id)
def test_a_mistake_is_told_with_its_place(wrong: Wrong, tmp_path: Path) -> None:
    """The message names file, line and key, and the hint says what to do."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    place = tmp_path / "cases.toml"
    place.write_text(wrong.head + wrong.text + "\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        CustomSuite(place)
    assert caught.value.code == "INVALID_CASE"
    assert str(tmp_path) in caught.value.message
    assert caught.value.hint
    for part in wrong.told:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("missing.toml", None, "No such file"),
        ("missing.py", None, "is not a Python file"),
        ("bytes.toml", b"\xff\xfe", "is not a TOML file"),
        ("empty.toml", b"", "there are no cases"),
        ("broken.json", b'{"cases": [', "is not a JSON file"),
        ("list.json", b"[]", "does not hold an object"),
        ("wrong.json", b'{"cases": [{"id": "a", "promt": "?"}]}', "cases[0].promt"),
        ("empty.py", b"x = 1\n", "has no cases"),
        ("wrong.py", b"cases = [{'id': 'a', 'promt': '?'}]\n", "cases[0].promt"),
        ("list.py", b"cases = 3\n", "cases"),
    ],
)
def test_a_file_without_cases_is_told_as_that(
    name: str, content: bytes | None, told: str, tmp_path: Path
) -> None:
    """Whatever is wrong with the file as a whole is a refusal as well."""
    place = tmp_path / name
    if content is not None:
        place.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        CustomSuite(place)
    assert caught.value.code == "INVALID_CASE"
    assert told in str(caught.value)


@pytest.mark.parametrize("kind", [SuiteDoc, ToolDoc, CaseDoc, CallDoc, ChecksDoc, ResultDoc])
def test_the_page_names_every_key(kind: type[Struct]) -> None:
    """Whoever writes a file finds all that can be in it."""
    page = PAGE.read_text("utf-8")
    assert [key for key in kind.__struct_fields__ if f"`{key}`" not in page] == []


def test_lines_are_found_for_what_has_one() -> None:
    """Headers, keys and items of arrays are found; what is inside of a line is its line."""
    text = dedent('''\
        name = "x"
        text = """
        [[cases]]
        id = "no"
        """
        [[cases]]
        id = "a"  # one
        options.max_turns = 3
        [cases.checks]
        text_contains = [
          "b = c",
        ]
        [[cases.calls]]
        arguments = { city = "Oslo" }
        [[cases]]
        [[cases.calls]]
        [[cases.calls]]
        "tool" = 'x'
        ''')
    lines = LineMap(text)
    found = {
        show_path(path): lines.line_of(path)
        for path in (
            ("name",),
            ("cases", 0),
            ("cases", 0, "id"),
            ("cases", 0, "options", "max_turns"),
            ("cases", 0, "checks", "text_contains", 0),
            ("cases", 0, "calls", 0, "arguments", "city"),
            ("cases", 1, "calls", 1, "tool"),
            ("cases", 1, "prompt"),
            ("nothing",),
        )
    }
    assert found == {
        "name": 1,
        "cases[0]": 6,
        "cases[0].id": 7,
        "cases[0].options.max_turns": 8,
        "cases[0].checks.text_contains[0]": 10,
        "cases[0].calls[0].arguments.city": 14,
        "cases[1].calls[1].tool": 18,
        "cases[1].prompt": 15,
        "nothing": None,
    }
