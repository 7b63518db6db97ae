"""Text typed by the schema of its parameter, and the schema of a parameter."""

from dataclasses import dataclass
from typing import Any

import pytest

from surecall.schema import property_schema, type_text_value
from surecall.text import encode


@dataclass(frozen=True)
class Text:
    id: str
    schema: dict[str, Any] | None
    text: str
    expected: Any


def one(*types: str) -> dict[str, Any]:
    """Return a schema of one type, or of several."""
    return {"type": types[0] if len(types) == 1 else list(types)}


ANY_OF = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
ENUM = {"enum": ["1", 2, True, None, "auto"]}

TEXTS = [
    Text("string stays", one("string"), " 007 \n", " 007 \n"),
    Text("string that looks like null", one("string"), "null", "null"),
    Text("string that looks like an object", one("string"), '{"a":1}', '{"a":1}'),
    Text("typed enum stays text", {"type": "string", "enum": ["1"]}, "1", "1"),
    Text("integer", one("integer"), "42", 42),
    Text("integer in space", one("integer"), "\n42\n", 42),
    Text("big integer", one("integer"), "1" + "0" * 30, 10**30),
    Text("quotes around an integer", one("integer"), '"42"', "42"),
    Text("fraction for an integer", one("integer"), "3.5", 3.5),
    Text("number", one("number"), "2.50", 2.5),
    Text("whole number", one("number"), "2", 2),
    Text("exponent", one("number"), "1e3", 1000.0),
    Text("infinity stays", one("number"), "inf", "inf"),
    Text("overflow stays", one("number"), "1e999", "1e999"),
    Text("nan stays", one("number"), "NaN", "NaN"),
    Text("no number", one("number"), "ten", "ten"),
    Text("leading zero stays", one("integer"), "007", "007"),
    Text("boolean", one("boolean"), "TRUE", True),
    Text("boolean yes is a repair", one("boolean"), "yes", "yes"),
    Text("boolean one is a repair", one("boolean"), "1", "1"),
    Text("object", one("object"), '{"a": [1]}', {"a": [1]}),
    Text("python object", one("object"), "{'a': True, 'b': None}", {"a": True, "b": None}),
    Text("array", one("array"), " [1, 2]\n", [1, 2]),
    Text("python array", one("array"), "['it\\'s', (1, 2.5),]", ["it's", [1, 2.5]]),
    Text("tuple", one("array"), "(1, -2)", [1, -2]),
    Text("set", one("array"), "{'a', 'b'}", "{'a', 'b'}"),
    Text("words for an array stay", one("array"), "a, b", "a, b"),
    Text("number for an array stays", one("array"), "5", "5"),
    Text("array for an object", one("object"), "[1]", [1]),
    Text("call stays", one("array"), "[open('x')]", "[open('x')]"),
    Text("key twice stays", one("object"), '{"a":1,"a":2}', '{"a":1,"a":2}'),
    Text("too deep stays", one("array"), "[" * 200 + "]" * 200, "[" * 200 + "]" * 200),
    Text("null for a number", one("integer"), "null", None),
    Text("null where allowed", one("string", "null"), "null", None),
    Text("None is text", one("string", "null"), "None", "None"),
    Text("nullable", {"type": "string", "nullable": True}, "null", None),
    Text("union integer first", one("string", "integer"), "3", 3),
    Text("union not that literal", one("string", "integer"), "3.5", "3.5"),
    Text("union in space", one("string", "integer"), " 3", " 3"),
    Text("union number", one("number", "string"), "3", 3),
    Text("union boolean", one("boolean", "string"), "true", True),
    Text("union boolean not JSON", one("boolean", "string"), "True", "True"),
    Text("union object", one("object", "string"), '{"a":1}', {"a": 1}),
    Text("union python object", one("object", "string"), "{'a':1}", "{'a':1}"),
    Text("union of JSON text", one("array", "string"), '"a"', '"a"'),
    Text("union without null", one("integer", "string"), "null", "null"),
    Text("any of", ANY_OF, "3", 3),
    Text("any of text", ANY_OF, "three", "three"),
    Text("union without string", one("integer", "boolean"), "TRUE", True),
    Text("union without string or fit", one("integer", "boolean"), "3.5", "3.5"),
    Text("enum text first", ENUM, "1", "1"),
    Text("enum number", ENUM, "2", 2),
    Text("enum boolean", ENUM, "true", True),
    Text("enum null", ENUM, "null", None),
    Text("enum other", {"enum": [1, 2]}, "3", 3),
    Text("enum of texts", {"enum": ["a", "b"]}, "3", "3"),
    Text("const", {"const": 5}, "5", 5),
    Text("no schema object", None, '{"a":1}', {"a": 1}),
    Text("no schema number", None, "5", 5),
    Text("no schema word", None, "false", False),
    Text("no schema null", None, "null", None),
    Text("no schema text", None, "5 apples", "5 apples"),
    Text("no schema JSON text", None, '"a"', '"a"'),
    Text("no schema python", None, "{'a':1}", "{'a':1}"),
    Text("no schema nan", None, "NaN", "NaN"),
    Text("empty schema", {}, "5", 5),
    Text("int", one("int"), "5", 5),
    Text("uint8", one("uint8"), "5", 5),
    Text("float", one("float"), "0.5", 0.5),
    Text("str", one("str"), "5", "5"),
    Text("varchar", one("varchar(40)"), "5", "5"),
    Text("longtext", one("longtext"), "5", "5"),
    Text("bool", one("bool"), "False", False),
    Text("dict", one("dict"), "{'a': 1}", {"a": 1}),
    Text("list", one("list[int]"), "[1]", [1]),
    Text("any", one("any"), "5", 5),
    Text("unknown word", one("thing"), "true", True),
    Text("properties without type", {"properties": {}}, "{'a': 1}", {"a": 1}),
    Text("items without type", {"items": {}}, "[1]", [1]),
    Text("empty number", one("integer"), "", ""),
]


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.id)
def test_text_is_typed_by_its_schema(case: Text) -> None:
    """The schema decides what text means; text of another type is kept."""
    assert encode(type_text_value(case.text, case.schema)) == encode(case.expected)


LITERALS = [
    pytest.param("{'a': 'b\\n\\x41\\u00e9\\\\'}", {"a": "b\nAé\\"}, id="escapes"),
    pytest.param("{'a': {'b': [()]}}", {"a": {"b": [[]]}}, id="nested"),
    pytest.param("(1,)", [1], id="tuple of one"),
    pytest.param(" { } ", {}, id="empty"),
    pytest.param("[true, None, -1.5e3]", [True, None, -1500.0], id="words"),
]
EITHER = {"type": ["object", "array"]}


@pytest.mark.parametrize(("text", "expected"), LITERALS)
def test_a_literal_is_read(text: str, expected: Any) -> None:
    """Python's spelling of objects and arrays is understood."""
    assert encode(type_text_value(text, EITHER)) == encode(expected)


@pytest.mark.parametrize(
    "text",
    [
        "a", "f'a'", "[1", "[1]]", "[1 2]", "[,]", "[1,,2]", "{'a'}:1", "{'a': }",
        "{'a': 1, 'b'}", "{'a', 'b': 1}", "{1: 2}", "1 + 2", "'a'", "lambda: 1",
        "[x for x in y]", "{'a': b}", "Sure: {'a': 1}", "(" * 129 + ")" * 129,
    ],
)  # fmt: skip
def test_anything_else_is_no_literal(text: str) -> None:
    """Names, operators, damage, prose and depth are kept as text, for the check to refuse."""
    assert type_text_value(text, EITHER) == text


def test_a_long_literal_takes_one_pass() -> None:
    """A hundred thousand elements, and as many openers that never close, end quickly."""
    assert type_text_value("[" + "'a'," * 100_000 + "]", EITHER) == ["a"] * 100_000
    assert type_text_value("[" * 100_000, EITHER) == "[" * 100_000


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "plain": {"type": "integer"},
        "named": {"$ref": "#/$defs/size", "description": "How large."},
        "joined": {"allOf": [{"type": ["integer", "string"]}, {"type": "integer", "minimum": 1}]},
        "maybe": {"anyOf": [{"$ref": "#/$defs/size"}, {"type": "null"}]},
        "free": True,
    },
    "$defs": {"size": {"type": "integer", "minimum": 0}},
}
PROPERTIES = [
    pytest.param(SCHEMA, "plain", {"type": "integer"}, id="plain"),
    pytest.param(
        SCHEMA,
        "named",
        {"description": "How large.", "type": "integer", "minimum": 0},
        id="reference",
    ),
    pytest.param(SCHEMA, "joined", {"type": "integer", "minimum": 1}, id="all of"),
    pytest.param(
        SCHEMA,
        "maybe",
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
        id="branches",
    ),
    pytest.param(SCHEMA, "free", {}, id="anything"),
    pytest.param(SCHEMA, "other", None, id="unknown"),
    pytest.param({"additionalProperties": {"type": "integer"}}, "k", {"type": "integer"}, id="map"),
    pytest.param({"allOf": [SCHEMA]}, "plain", {"type": "integer"}, id="inside all of"),
    pytest.param(
        {"anyOf": [{"properties": {"a": {"type": "integer"}}}, {"type": "null"}]},
        "a",
        {"type": "integer"},
        id="inside a branch",
    ),
    pytest.param(
        {"oneOf": [{"properties": {"a": {"type": t}}} for t in ("integer", "string")]},
        "a",
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        id="inside two branches",
    ),
    pytest.param({"properties": {"a": {"$ref": "#/$defs/none"}}}, "a", {}, id="nowhere"),
]


@pytest.mark.parametrize(("schema", "key", "expected"), PROPERTIES)
def test_the_schema_of_a_property_stands_alone(
    schema: dict[str, Any], key: str, expected: dict[str, Any] | None
) -> None:
    """References and joined schemas are resolved, and the schema itself is not changed."""
    before = encode(schema)
    assert property_schema(schema, key) == expected
    assert encode(schema) == before
