"""What a careful reader would take from an answer, class by class."""

from typing import Any, NamedTuple

import pytest

import surecall

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
STRING = {"type": "string"}
MOOD = {"enum": ["HAPPY", "SAD", "VERY_SAD", "neutral"]}
PERSON = {
    "type": "object",
    "properties": {"name": STRING, "age": INTEGER},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TAGS = {"type": "array", "items": STRING}
PEOPLE = {"type": "array", "items": PERSON}


def obj(required: str = "", /, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object; all properties are required unless some are named."""
    names = required.split() if required else list(properties)
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in names if name in properties],
        "additionalProperties": False,
    }


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also takes null."""
    return {"anyOf": [schema, {"type": "null"}]}


class Case(NamedTuple):
    """An answer, its schema, and what it says."""

    text: str
    schema: Any
    value: Any


SIDE_OR_RADIUS = {"anyOf": [obj(side=NUMBER), obj(radius=NUMBER)]}
CERTAIN = [
    Case("12", INTEGER, 12),
    Case(" 12\n", INTEGER, 12),
    Case("12.0", INTEGER, 12),
    Case('"12"', INTEGER, 12),
    Case("true", BOOLEAN, True),
    Case("True", BOOLEAN, True),
    Case("yes", BOOLEAN, True),
    Case("null", {"type": "null"}, None),
    Case("HAPPY", MOOD, "HAPPY"),
    Case('"HAPPY"', MOOD, "HAPPY"),
    Case("happy", MOOD, "HAPPY"),
    Case("very sad", MOOD, "VERY_SAD"),
    Case("hello there", STRING, "hello there"),
    Case('"hello there"', STRING, "hello there"),
    Case("5", STRING, "5"),
    Case(' {"a": 1} ', STRING, ' {"a": 1} '),
    Case('{"name": "Bo", "age": 3}', PERSON, {"name": "Bo", "age": 3}),
    Case('```json\n{"name": "Bo", "age": 3}\n```', PERSON, {"name": "Bo", "age": 3}),
    Case("{name: 'Bo', age: 3,}", PERSON, {"name": "Bo", "age": 3}),
    Case('{"name": "Bo", /* years */ "age": "3"}', PERSON, {"name": "Bo", "age": 3}),
    Case('{"Name": "Bo", "AGE": 3}', PERSON, {"name": "Bo", "age": 3}),
    Case("[1, 2, 3]", {"type": "array", "items": INTEGER}, [1, 2, 3]),
    Case('["1", "2"]', {"type": "array", "items": INTEGER}, [1, 2]),
    Case('{"a": 1, "b": 2}', {"type": "object", "additionalProperties": INTEGER}, {"a": 1, "b": 2}),
    Case("7", {"anyOf": [INTEGER, STRING]}, 7),
    Case('"7"', {"anyOf": [INTEGER, STRING]}, "7"),
    Case("[]", TAGS, []),
    Case("{}", True, {}),
    Case("5", {"const": 5}, 5),
]

NUMBERS = [
    Case("1,234", INTEGER, 1234),
    Case("1,234,567", INTEGER, 1234567),
    Case("1 234 567", INTEGER, 1234567),
    Case("1_000", INTEGER, 1000),
    Case("1'000", INTEGER, 1000),
    Case("$5", INTEGER, 5),
    Case("$1,299.99", NUMBER, 1299.99),
    Case("-$20", INTEGER, -20),
    Case("€ 3,50", NUMBER, 3.5),
    Case("1.234,56", NUMBER, 1234.56),
    Case("12 apples", INTEGER, 12),
    Case("about 70 kg", INTEGER, 70),
    Case("70kg", NUMBER, 70),
    Case("1/2", NUMBER, 0.5),
    Case("1 1/2 cups", NUMBER, 1.5),
    Case("2½", NUMBER, 2.5),
    Case("45%", NUMBER, 45),
    Case("45 %", {"type": "number", "minimum": 0, "maximum": 1}, 0.45),
    Case("3.5 million", NUMBER, 3500000),
    Case("20k", INTEGER, 20000),
    Case("+7", INTEGER, 7),
    Case("-3 degrees", INTEGER, -3),
    Case("The answer is 42.", INTEGER, 42),
    Case("We add 3 and 4, so the answer is: 7.", INTEGER, 7),
    Case("First 10, then 20. In the end **30** remain.", INTEGER, 30),
    Case("2 + 2 = 4", INTEGER, 4),
    Case('{"count": 9}', INTEGER, 9),
    Case("[9]", INTEGER, 9),
    Case("```\n9\n```", INTEGER, 9),
    Case("Let me count.\n\n9", INTEGER, 9),
    Case("1e3", NUMBER, 1000.0),
    Case(".5", NUMBER, 0.5),
    Case("3.0 apples", INTEGER, 3),
    Case("the 15th", INTEGER, 15),
    Case("4/2", INTEGER, 2),
    Case("10,000.00", INTEGER, 10000),
    Case("R$ 1.234,00", NUMBER, 1234),
    Case("The answer is \\boxed{42}", INTEGER, 42),
    Case("The options are 1, 2, or 3.\n\n2", INTEGER, 2),
    Case("Step 1: 3*4 = 12\nStep 2: add 5 = 17\nAnswer: 17", INTEGER, 17),
    Case('{"value": 1, "unit": "kg"}', INTEGER, 1),
]

BOOLEANS = [
    Case("Yes, it does.", BOOLEAN, True),
    Case("No, because true north is elsewhere.", BOOLEAN, False),
    Case("The statement is true.", BOOLEAN, True),
    Case("That is not true.", BOOLEAN, False),
    Case("I think this is **False**", BOOLEAN, False),
    Case("It could be true or false. Answer: false", BOOLEAN, False),
    Case("TRUE.", BOOLEAN, True),
    Case("1", BOOLEAN, True),
    Case('{"is_valid": "Yes"}', BOOLEAN, True),
    Case("Correct!", BOOLEAN, True),
    Case("y", BOOLEAN, True),
    Case('{"answer": true, "why": "no reason"}', BOOLEAN, True),
]

OPTIONS = [
    Case("Happy.", MOOD, "HAPPY"),
    Case("'happy'", MOOD, "HAPPY"),
    Case("**HAPPY**", MOOD, "HAPPY"),
    Case("The user seems happy today.", MOOD, "HAPPY"),
    Case("very-sad!", MOOD, "VERY_SAD"),
    Case("I'd say they are very sad.", MOOD, "VERY_SAD"),
    Case("SAD: the customer complains a lot", MOOD, "SAD"),
    Case("Sad - though a moment ago happy", MOOD, "SAD"),
    Case("It is neither HAPPY nor neutral. Answer: SAD", MOOD, "SAD"),
    Case("Between HAPPY and SAD I pick `SAD`.", MOOD, "SAD"),
    Case("not happy, sad", MOOD, "SAD"),
    Case('{"mood": "happy"}', MOOD, "HAPPY"),
    Case('["SAD"]', MOOD, "SAD"),
    Case('```json\n"SAD"\n```', MOOD, "SAD"),
    Case("The final category is: neutral", MOOD, "neutral"),
    Case("Café, please", {"enum": ["CAFE", "TEA"]}, "CAFE"),
    Case("I choose option 2", {"enum": [1, 2, 3]}, 2),
    Case("The answer is 5", {"const": 5}, 5),
    Case("It is `draft`", {"const": "draft"}, "draft"),
    Case(
        "The customer wants a refund",
        {
            "oneOf": [
                {"const": "R1", "description": "wants a refund"},
                {"const": "R2", "description": "wants an exchange"},
            ]
        },
        "R1",
    ),
    Case(
        "R2: wants an exchange",
        {"oneOf": [{"const": "R1", "title": "Refund"}, {"const": "R2", "title": "Exchange"}]},
        "R2",
    ),
    Case("Yes, definitely", {"enum": ["yes", "no"]}, "yes"),
    Case("I prefer C++ here", {"enum": ["C", "C++", "C#"]}, "C++"),
    Case("The answer is C.", {"enum": ["C", "C++", "C#"]}, "C"),
    Case("This is a good choice: B", {"enum": ["A", "B"]}, "B"),
    Case("B) because A is wrong", {"enum": ["A", "B"]}, "B"),
    Case("The value is -1", {"enum": ["-1", "0", "1"]}, "-1"),
    Case("HAPPY (because SAD would be wrong)", MOOD, "HAPPY"),
    Case("SAD\n\nThe person was happy once.", MOOD, "SAD"),
    Case('{"value": "HAPPY", "confidence": 0.9}', MOOD, "HAPPY"),
    Case("<answer>SAD</answer>", MOOD, "SAD"),
    Case("The options are HAPPY, SAD and neutral.\n\nFinal answer: HAPPY", MOOD, "HAPPY"),
]

STRINGS = [
    Case(
        "Write to bo@example.com please.", {"type": "string", "format": "email"}, "bo@example.com"
    ),
    Case("It was on 2026-03-31.", {"type": "string", "format": "date"}, "2026-03-31"),
    Case("3 May 2026", {"type": "string", "format": "date"}, "2026-05-03"),
    Case("March 31, 2026", {"type": "string", "format": "date"}, "2026-03-31"),
    Case("2026/3/1", {"type": "string", "format": "date"}, "2026-03-01"),
    Case("Your code is `AB-12`.", {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{2}$"}, "AB-12"),
    Case('{"name": 5, "age": 3}', PERSON, {"name": "5", "age": 3}),
    Case('{"name": ["Bo"], "age": 3}', PERSON, {"name": "Bo", "age": 3}),
    Case("2026-03-04T10:00:00Z", {"type": "string", "format": "date"}, "2026-03-04"),
]

OBJECTS = [
    Case('Here you are: {"name": "Bo", "age": 3}', PERSON, {"name": "Bo", "age": 3}),
    Case(
        'Sure!\n```json\n{"name": "Bo", "age": 3}\n```\nAnything else?',
        PERSON,
        {"name": "Bo", "age": 3},
    ),
    Case('"name": "Bo", "age": 3', PERSON, {"name": "Bo", "age": 3}),
    Case('"name": "Bo",\n"age": 3\n}', PERSON, {"name": "Bo", "age": 3}),
    Case("name: Bo\nage: 3", PERSON, {"name": "Bo", "age": 3}),
    Case("- **Name:** Bo\n- **Age:** 3 years", PERSON, {"name": "Bo", "age": 3}),
    Case("The person:\n\nName: Bo\nAge: 3", PERSON, {"name": "Bo", "age": 3}),
    Case("Name: Bo, Age: 3", PERSON, {"name": "Bo", "age": 3}),
    Case("name = Bo\nage = 3", PERSON, {"name": "Bo", "age": 3}),
    Case("| Name | Age |\n|---|---|\n| Bo | 3 |", PERSON, {"name": "Bo", "age": 3}),
    Case(
        "| Field | Value |\n|---|---|\n| name | Bo |\n| age | 3 |", PERSON, {"name": "Bo", "age": 3}
    ),
    Case("## Name\nBo\n\n## Age\n3", PERSON, {"name": "Bo", "age": 3}),
    Case("```yaml\nname: Bo\nage: 3\n```", PERSON, {"name": "Bo", "age": 3}),
    Case('{"person": {"name": "Bo", "age": 3}}', PERSON, {"name": "Bo", "age": 3}),
    Case('[{"name": "Bo", "age": 3}]', PERSON, {"name": "Bo", "age": 3}),
    Case('{"status": "ok", "data": {"name": "Bo", "age": 3}}', PERSON, {"name": "Bo", "age": 3}),
    Case('"{\\"name\\": \\"Bo\\", \\"age\\": 3}"', PERSON, {"name": "Bo", "age": 3}),
    Case('{"name": "Bo", "age": 3, "mood": "fine"}', PERSON, {"name": "Bo", "age": 3}),
    Case('{"name": "Bo", "age": "3 years old"}', PERSON, {"name": "Bo", "age": 3}),
    Case(
        '{"a": 1} is no person, {"name": "Bo", "age": 3} is one', PERSON, {"name": "Bo", "age": 3}
    ),
    Case(
        'Draft: {"name": "Bo", "age": 2}\nFinal answer: {"name": "Bo", "age": 3}',
        PERSON,
        {"name": "Bo", "age": 3},
    ),
    Case(
        '<think>{"name": "No", "age": 1}?</think>{"name": "Bo", "age": 3}',
        PERSON,
        {"name": "Bo", "age": 3},
    ),
    Case('{"first name": "Bo"}', obj(first_name=STRING), {"first_name": "Bo"}),
    Case('{"firstName": "Bo"}', obj(first_name=STRING), {"first_name": "Bo"}),
    Case('{"First-Name:": "Bo"}', obj(first_name=STRING), {"first_name": "Bo"}),
    Case('{"Given name": "Bo"}', obj(fn={"type": "string", "title": "Given name"}), {"fn": "Bo"}),
    Case(
        '{"years lived": 3}',
        obj(age={"type": "integer", "description": "Years lived."}),
        {"age": 3},
    ),
    Case("Bo", obj(name=STRING), {"name": "Bo"}),
    Case("42", obj(answer=INTEGER), {"answer": 42}),
    Case("The answer is 42", obj(answer=INTEGER), {"answer": 42}),
    Case("[1, 2]", obj(numbers={"type": "array", "items": INTEGER}), {"numbers": [1, 2]}),
    Case('{"name": "Bo", "age": null}', obj("name", name=STRING, age=INTEGER), {"name": "Bo"}),
    Case(
        '{"name": "Bo"}',
        obj("name age", name=STRING, age=nullable(INTEGER)),
        {"name": "Bo", "age": None},
    ),
    Case(
        '{"name": "Bo", "age": "unknown"}',
        obj("name", name=STRING, age={"anyOf": [INTEGER, STRING]}),
        {"name": "Bo", "age": "unknown"},
    ),
    Case(
        '{"name": "Bo", "age": "N/A"}',
        obj(name=STRING, age=nullable(INTEGER)),
        {"name": "Bo", "age": None},
    ),
    Case(
        '{"outer": {"inner": {"x": "5"}}}',
        obj(outer=obj(inner=obj(x=INTEGER))),
        {"outer": {"inner": {"x": 5}}},
    ),
    Case(
        '{"name": "Bo", "tags": "red"}',
        obj(name=STRING, tags=TAGS),
        {"name": "Bo", "tags": ["red"]},
    ),
    Case(
        '{"name": "Bo", "tags": "red, green"}',
        obj(name=STRING, tags=TAGS),
        {"name": "Bo", "tags": ["red", "green"]},
    ),
    Case(
        "name: Bo\ntags:\n  - red\n  - green",
        obj(name=STRING, tags=TAGS),
        {"name": "Bo", "tags": ["red", "green"]},
    ),
    Case(
        "name: Bo\nhome:\n  city: Oslo\n  zip: 123",
        obj(name=STRING, home=obj(city=STRING, zip=INTEGER)),
        {"name": "Bo", "home": {"city": "Oslo", "zip": 123}},
    ),
    Case('{"kind": "dog"}', obj(kind={"enum": ["DOG", "CAT"]}), {"kind": "DOG"}),
    Case('{"kind": "It is a dog"}', obj(kind={"enum": ["DOG", "CAT"]}), {"kind": "DOG"}),
    Case("a: 1\nb: 2", {"type": "object", "additionalProperties": INTEGER}, {"a": 1, "b": 2}),
    Case(
        '{"a": "1", "b": "two: 2"}',
        {"type": "object", "additionalProperties": INTEGER},
        {"a": 1, "b": 2},
    ),
    Case(
        '{"note": "say "hi" to her", "ok": true}',
        obj(note=STRING, ok=BOOLEAN),
        {"note": 'say "hi" to her', "ok": True},
    ),
    Case(
        "{note: all is well, ok: yes}",
        obj(note=STRING, ok=BOOLEAN),
        {"note": "all is well", "ok": True},
    ),
    Case('{"text": {"a": 1}, "n": 2}', obj(text=STRING, n=INTEGER), {"text": '{"a":1}', "n": 2}),
    Case('Person(name="Bo", age=3)', PERSON, {"name": "Bo", "age": 3}),
    Case("Name - Bo\nAge - 3", PERSON, {"name": "Bo", "age": 3}),
    Case("<person><name>Bo</name><age>3</age></person>", PERSON, {"name": "Bo", "age": 3}),
    Case('{"*name*": "Bo", "age (years)": 3}', PERSON, {"name": "Bo", "age": 3}),
    Case('{"results": [{"name": "Bo", "age": 3}]}', PERSON, {"name": "Bo", "age": 3}),
    Case('{"name": "Bo", "age": 3}', obj(people=PEOPLE), {"people": [{"name": "Bo", "age": 3}]}),
    Case('{"name": "Bo", "age": 3}', obj(person=PERSON), {"person": {"name": "Bo", "age": 3}}),
    Case(
        "bio: |\n  line one\n  line two\nage: 3",
        obj(bio=STRING, age=INTEGER),
        {"bio": "line one\nline two", "age": 3},
    ),
    Case(
        "# Title\nSoup\n\n# Parts\n| name | age |\n|--|--|\n| Bo | 3 |\n\n# Tags\n- a\n- b",
        obj(title=STRING, parts=PEOPLE, tags=TAGS),
        {"title": "Soup", "parts": [{"name": "Bo", "age": 3}], "tags": ["a", "b"]},
    ),
    Case('{"name": "Bo", "age": }', obj("name", name=STRING, age=INTEGER), {"name": "Bo"}),
]

LISTS = [
    Case("first (1), second (2)", TAGS, ["first (1)", "second (2)"]),
    Case('"red"', TAGS, ["red"]),
    Case("red", TAGS, ["red"]),
    Case("red, green and blue", TAGS, ["red", "green", "blue"]),
    Case("- red\n- green", TAGS, ["red", "green"]),
    Case("Here are the colours:\n\n1. red\n2. green\n\nHave fun!", TAGS, ["red", "green"]),
    Case("* **red**\n* **green**", TAGS, ["red", "green"]),
    Case("red\ngreen\nblue", TAGS, ["red", "green", "blue"]),
    Case('The list is ["red", "green"].', TAGS, ["red", "green"]),
    Case('{"tags": ["red", "green"]}', TAGS, ["red", "green"]),
    Case("1, 2, 3", {"type": "array", "items": INTEGER}, [1, 2, 3]),
    Case("The numbers are 4, 8 and 15.", {"type": "array", "items": INTEGER}, [4, 8, 15]),
    Case("5", {"type": "array", "items": INTEGER}, [5]),
    Case('[1, "2 pears", "3 apples"]', {"type": "array", "items": INTEGER}, [1, 2, 3]),
    Case("happy, sad", {"type": "array", "items": MOOD}, ["HAPPY", "SAD"]),
    Case(
        "First they were happy, later very sad.",
        {"type": "array", "items": MOOD},
        ["HAPPY", "VERY_SAD"],
    ),
    Case('{"name": "Bo", "age": 3}', PEOPLE, [{"name": "Bo", "age": 3}]),
    Case(
        '{"name": "Bo", "age": 3}\n{"name": "Al", "age": 4}',
        PEOPLE,
        [{"name": "Bo", "age": 3}, {"name": "Al", "age": 4}],
    ),
    Case(
        'First {"name": "Bo", "age": 3}, then {"name": "Al", "age": 4}.',
        PEOPLE,
        [{"name": "Bo", "age": 3}, {"name": "Al", "age": 4}],
    ),
    Case(
        '```json\n{"name": "Bo", "age": 3}\n```\nand\n```json\n{"name": "Al", "age": "4"}\n```',
        PEOPLE,
        [{"name": "Bo", "age": 3}, {"name": "Al", "age": 4}],
    ),
    Case(
        "| Name | Age |\n|---|---|\n| Bo | 3 |\n| Al | 4 |",
        PEOPLE,
        [{"name": "Bo", "age": 3}, {"name": "Al", "age": 4}],
    ),
    Case(
        "- name: Bo\n  age: 3\n- name: Al\n  age: 4",
        PEOPLE,
        [{"name": "Bo", "age": 3}, {"name": "Al", "age": 4}],
    ),
    Case(
        "Name: Bo\nAge: 3\n\nName: Al\nAge: 4",
        PEOPLE,
        [{"name": "Bo", "age": 3}, {"name": "Al", "age": 4}],
    ),
    Case('{"people": [{"name": "Bo", "age": "3"}]}', PEOPLE, [{"name": "Bo", "age": 3}]),
    Case(
        "[[1, 2], [3]]",
        {"type": "array", "items": {"type": "array", "items": INTEGER}},
        [[1, 2], [3]],
    ),
    Case("[[1, 2]]", {"type": "array", "items": INTEGER}, [1, 2]),
    Case(
        '["Bo", "3"]',
        {"type": "array", "prefixItems": [STRING, INTEGER], "items": False, "minItems": 2},
        ["Bo", 3],
    ),
    Case('"red", "green"', TAGS, ["red", "green"]),
    Case("'red', 'green'", TAGS, ["red", "green"]),
    Case("- Buy milk, eggs\n- Call Bo", TAGS, ["Buy milk, eggs", "Call Bo"]),
    Case("N/A", TAGS, []),
    Case(
        '{"result": {"data": [{"name": "Bo", "age": 3}, {"name": "Al", "age": 4}]}}',
        PEOPLE,
        [{"name": "Bo", "age": 3}, {"name": "Al", "age": 4}],
    ),
]

CIRCLE = obj(kind={"const": "circle"}, r=NUMBER)
SQUARE = obj(kind={"const": "square"}, a=NUMBER)
SHAPE = {"anyOf": [CIRCLE, SQUARE]}
UNIONS = [
    Case("radius: 2", SIDE_OR_RADIUS, {"radius": 2}),
    Case('{"kind": "square", "a": "2"}', SHAPE, {"kind": "square", "a": 2}),
    Case('{"kind": "Circle", "r": 2}', SHAPE, {"kind": "circle", "r": 2}),
    Case('{"r": 2}', SHAPE, {"kind": "circle", "r": 2}),
    Case('I think {"kind": "circle", "r": 1.5} fits', SHAPE, {"kind": "circle", "r": 1.5}),
    Case('{"shape": {"kind": "square", "a": 2}}', SHAPE, {"kind": "square", "a": 2}),
    Case(
        '{"kind": "square", "a": 2}{"kind": "circle", "r": 1}',
        {"type": "array", "items": SHAPE},
        [{"kind": "square", "a": 2}, {"kind": "circle", "r": 1}],
    ),
    Case(
        '{"kind": "square", "a": 2}',
        {"type": "array", "items": SHAPE},
        [{"kind": "square", "a": 2}],
    ),
    Case(
        '{"x": ["1"]}',
        {"anyOf": [obj(x={"type": "array", "items": INTEGER}), obj(y=STRING)]},
        {"x": [1]},
    ),
    Case('{"Y": 4}', {"anyOf": [obj(x=INTEGER), obj(y=INTEGER)]}, {"y": 4}),
    Case("No: false", {"anyOf": [BOOLEAN, INTEGER]}, False),
    Case("12 apples", {"anyOf": [INTEGER, {"type": "null"}]}, 12),
    Case("None", {"anyOf": [INTEGER, {"type": "null"}]}, None),
    Case("N/A", {"anyOf": [INTEGER, {"type": "null"}]}, None),
    Case("sad.", nullable(MOOD), "SAD"),
    Case('{"name": "Bo", "age": 3}', {"anyOf": [STRING, PERSON]}, {"name": "Bo", "age": 3}),
    Case('See: {"name": "Bo", "age": 3}', {"anyOf": [PERSON, TAGS]}, {"name": "Bo", "age": 3}),
    Case('[{"name": "Bo", "age": "3"}]', {"anyOf": [PEOPLE, STRING]}, [{"name": "Bo", "age": 3}]),
    Case(
        '{"pet": {"$": 1, "kind": "circle", "r": "3cm"}}',
        obj(pet=SHAPE),
        {"pet": {"kind": "circle", "r": 3}},
    ),
    Case('{"v": "4"}', obj(v={"anyOf": [INTEGER, BOOLEAN]}), {"v": 4}),
    Case(
        '{"node": {"v": "1", "next": {"v": 2}}}',
        {
            "$defs": {
                "N": {
                    "type": "object",
                    "properties": {"v": INTEGER, "next": nullable({"$ref": "#/$defs/N"})},
                    "required": ["v"],
                }
            },
            "type": "object",
            "properties": {"node": {"$ref": "#/$defs/N"}},
            "required": ["node"],
        },
        {"node": {"v": 1, "next": {"v": 2}}},
    ),
]

LIKELY = [*NUMBERS, *BOOLEANS, *OPTIONS, *STRINGS, *OBJECTS, *LISTS, *UNIONS]


@pytest.mark.parametrize("case", CERTAIN, ids=lambda case: repr(case.text))
def test_what_is_nothing_but_the_value_is_certain(case: Case) -> None:
    """No judgement is needed, so the default takes it."""
    reading = surecall.read_value(case.text, case.schema)
    assert reading.errors == ()
    assert reading.value == case.value
    assert (reading.state, reading.certainty, reading.doubt) == ("whole", "certain", "")


@pytest.mark.parametrize("case", LIKELY, ids=lambda case: repr(case.text))
def test_what_a_careful_reader_would_take(case: Case) -> None:
    """The value is found, and changes have receipts."""
    reading = surecall.read_value(case.text, case.schema, accept="likely", finish_reason="stop")
    assert reading.errors == ()
    assert reading.value == case.value
    assert reading.state == "whole"
    assert reading.receipts or reading.certainty == "certain"
    assert (reading.certainty == "likely") == bool(reading.doubt)
