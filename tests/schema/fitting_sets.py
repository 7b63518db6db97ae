"""Sets of values by class: what should be read at least as likely, and what must not be certain.

Each class makes twenty or more positives and as many negatives from a seed, so that the shapes
count and not the sentences.
"""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Literal, NamedTuple

INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
STRING: dict[str, Any] = {"type": "string"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}
CITIES = ("Oslo", "Turin", "São Paulo", "Kyoto", "Port Louis", "Łódź")
WORDS = ("copper", "blue lagoon", "Q3 review", "north gate", "ping", "R-12", "umbrella stand")
STRAYS = ("foo", "note", "confidence", "reason", "session", "explanation", "x_id", "thought")
COLORS = ("DARK_BLUE", "LIGHT_GREEN", "CRIMSON", "off_white")
NOTHING = object()


class Item(NamedTuple):
    """One text or arguments with a schema, and the value meant; `NOTHING` for a negative."""

    entrance: Literal["arguments", "answer"]
    given: Any
    schema: Any
    value: Any = NOTHING


def closed(required: str = "", /, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object that allows no other names."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def both(given: Any, schema: Any, value: Any = NOTHING) -> Iterator[Item]:
    """Give the same value as arguments and as an answer."""
    yield Item("arguments", given, schema, value)
    yield Item("answer", json.dumps(given, ensure_ascii=False), schema, value)


def forbidden_names(random: Random) -> Iterator[Item]:
    """Make arguments with names that a closed schema forbids."""
    weather = closed("city", city=STRING, days=INTEGER)
    trip = closed("to", to=STRING, stops={"type": "array", "items": closed("at", at=STRING)})
    for _ in range(7):
        city, stray = random.choice(CITIES), random.choice(STRAYS)
        extra = {stray: random.choice([1, "x", None, True, 0.5])}
        yield from both({"city": city, **extra}, weather, {"city": city})
        yield from both({**extra, "city": city, "days": 2}, weather, {"city": city, "days": 2})
        yield from both(
            {"to": city, "stops": [{"at": "A", **extra}]},
            trip,
            {"to": city, "stops": [{"at": "A"}]},
        )
    yield Item("arguments", {"dummy": ""}, closed(), {})
    for _ in range(8):
        city, stray = random.choice(CITIES), random.choice(STRAYS)
        yield from both({stray: city}, weather)
        yield from both({"days": 2, stray: city}, weather)
        yield from both({stray: {"city": city}, "name": "other"}, weather)
    yield Item("arguments", {"name": "other", "arguments": {"to": "Oslo"}}, closed(to=STRING))


def several_objects(random: Random) -> Iterator[Item]:
    """Make answers of several objects in a row."""
    person = closed("name age", name=STRING, age=INTEGER)
    for number in range(24):
        ones = [{"name": name, "age": random.randint(1, 90)} for name in random.sample(WORDS, 3)]
        other = {random.choice(STRAYS): random.randint(1, 9)}
        sign = random.choice(["\n", "\n\n", " ", ",\n", ""])
        rows: list[Any] = [other, *ones[:2]] if number % 3 else ones
        text = sign.join(map(json.dumps, rows))
        text = f"```json\n{text}\n```" if number % 4 == 3 else text
        yield Item("answer", text, person, ones[0])
        one, two = map(json.dumps, ones[:2])
        said = random.choice([f"{one} or {two}", f"Either {one}, or maybe {two}."])
        yield Item("answer", said, person)
        yield Item("answer", sign.join(map(json.dumps, [other, {"age": 1}])), person)


def absent_keys(random: Random) -> Iterator[Item]:
    """Make objects that lack what may be lacking, and what may not."""
    nullable = {"anyOf": [INTEGER, {"type": "null"}]}
    loose = closed("name", name=STRING, age=INTEGER, town=STRING)
    strict = closed("name age", name=STRING, age=nullable)
    needy = closed("name age", name=STRING, age=INTEGER)
    for _ in range(6):
        name = random.choice(WORDS)
        text = json.dumps(name, ensure_ascii=False)
        yield Item("answer", f'{{"name": {text}, "age": }}', loose, {"name": name})
        yield Item("answer", f'{{"age": , "name": {text}}}', loose, {"name": name})
        yield Item(
            "answer", f"name: {name}\nage:\ntown: Oslo", loose, {"name": name, "town": "Oslo"}
        )
        yield from both(
            {"name": name, "age": None, "town": "None"},
            closed("name", name=STRING, age=INTEGER, town=nullable),
            {"name": name, "town": None},
        )
        yield from both({"name": name}, strict, {"name": name, "age": None})
        yield from both({"name": name}, needy)
        yield from both({"name": name, "age": None}, needy)
        yield Item("answer", f'{{"name": {text}, "age": }}', needy)


def lines_without_quotes(random: Random) -> Iterator[Item]:
    """Make answers with values of several lines that have no quotes."""
    note = closed("text n", text=STRING, n=INTEGER)
    for _ in range(6):
        one, two = random.sample(WORDS, 2)
        n = random.randint(1, 99)
        said = {"text": f"{one}\n{two}", "n": n}
        yield Item("answer", f"{{\n  text: {one}\n{two},\n  n: {n}\n}}", note, said)
        yield Item("answer", f'{{\n  "text": {one}\n{two},\n  "n": {n}\n}}', note, said)
        yield Item("answer", f"text: |\n  {one}\n  {two}\nn: {n}", note, said)
        yield Item("answer", f"text: {one}\n{two}\nn: {n}", note, said)
        yield Item("answer", f"text: {one}\n{two}", note)
        yield Item("answer", f"{{\n  text: {one}\n{two}\n", note)
        yield Item("answer", f"text: {one}\nn: {n}\ntext: {two}\nn: 4", note)
        yield Item("answer", f'{{\n  "text": {one}\n{two},\n  "n": many\n}}', note)


def words_for_nothing(random: Random) -> Iterator[Item]:
    """Make answers that say `None` where text is asked for, and null where nothing fits."""
    note = closed("text", text=STRING, n=INTEGER)
    for _ in range(6):
        word, n = random.choice(["None", "Null", "NULL"]), random.randint(1, 9)
        yield Item("answer", f'{{"text": {word}, "n": {n}}}', note, {"text": word, "n": n})
        yield Item("answer", f"{{text: {word}}}", note, {"text": word})
        yield Item("answer", word, STRING, word)
        yield Item("answer", f"text: {word}\nn: {n}", note, {"text": word, "n": n})
        yield Item("answer", f'{{"text": null, "n": {n}}}', note)
        yield Item("arguments", {"text": None, "n": n}, note)
        yield Item(
            "answer", f'{{"text": "a", "n": {word}}}', closed("text n", text=STRING, n=INTEGER)
        )
        yield Item("answer", "null", INTEGER)


def written_numbers(random: Random) -> Iterator[Item]:
    """Make numbers with separators, signs and units, and texts that are no one number."""
    price = closed("price", price=NUMBER)
    km = closed("distance_km", distance_km=NUMBER)
    stay = closed("nights", nights={**INTEGER, "description": "Number of nights."})
    for _ in range(4):
        n = random.randint(2, 8)
        yield from both({"price": f"{n},5"}, price, {"price": n + 0.5})
        yield from both({"price": f"${n},250.50"}, price, {"price": n * 1000 + 250.5})
        yield from both({"price": f"€ {n},75"}, price, {"price": n + 0.75})
        yield from both({"price": f"{n}.000,25"}, price, {"price": n * 1000 + 0.25})
        yield from both({"price": f"{n} 500 000"}, price, {"price": n * 1_000_000 + 500_000})
        yield from both({"distance_km": f"{n}.5 km"}, km, {"distance_km": n + 0.5})
        yield from both({"nights": f"{n} nights"}, stay, {"nights": n})
        yield from both({"price": f"{n}.1.{n}"}, price)
        yield from both({"price": f"{n}-{n + 4}"}, price)
        yield from both({"price": f"{n} or {n + 1}"}, price)
        yield from both({"nights": "2026-03-0" + str(n)}, stay)
        yield from both({"price": random.choice(["NaN", "free", "v" + str(n), "0x1F"])}, price)
        yield from both({"price": f"1,2,{n}"}, price)
        yield Item("arguments", {"nights": f"{n} weeks"}, stay)
        yield Item("arguments", {"distance_km": f"{n} miles"}, km)


def spelled_options(random: Random) -> Iterator[Item]:
    """Make options in other case, punctuation or by description, and words that are none."""
    paint = closed("color", color={"enum": list(COLORS)})
    reasons = closed(
        "reason",
        reason={
            "oneOf": [
                {"const": "R1", "title": "Refund", "description": "wants the money back"},
                {"const": "R2", "title": "Exchange", "description": "wants another piece"},
            ]
        },
    )
    for _ in range(5):
        color = random.choice(COLORS)
        plain = color.replace("_", " ").lower()
        yield from both({"color": plain}, paint, {"color": color})
        yield from both({"color": plain.title().replace(" ", "")}, paint, {"color": color})
        yield from both({"color": f"{plain.title()}."}, paint, {"color": color})
        yield from both({"color": f"'{plain.replace(' ', '.')}'"}, paint, {"color": color})
        yield from both({"reason": "refund"}, reasons, {"reason": "R1"})
        yield from both({"reason": "Wants another piece."}, reasons, {"reason": "R2"})
        yield from both({"color": f"{plain} or crimsons, {COLORS[0]}, {COLORS[1]}"}, paint)
        yield from both({"color": color[: len(color) // 2]}, paint)
        yield from both({"color": random.choice(["teal", "", "any", "blue"])}, paint)
        yield from both({"reason": "wants"}, reasons)
        yield from both({"reason": ["R1", "R2"]}, reasons)
        yield from both({"color": random.randint(0, 9)}, paint)


def lists_and_singles(random: Random) -> Iterator[Item]:
    """Make single values where a list is asked for, and lists where one value is."""
    tags = closed("tags", tags={"type": "array", "items": STRING})
    ids = closed("ids", ids={"type": "array", "items": INTEGER})
    one = closed("name n", name=STRING, n=INTEGER)
    for _ in range(5):
        a, b = random.sample(WORDS, 2)
        n = random.randint(2, 90)
        yield from both({"tags": a}, tags, {"tags": [a]})
        yield from both({"ids": n}, ids, {"ids": [n]})
        yield from both({"ids": f"{n}, {n + 1}"}, ids, {"ids": [n, n + 1]})
        yield from both({"tags": f"{a}, {b}"}, tags, {"tags": [a, b]})
        yield from both({"name": [a], "n": [n]}, one, {"name": a, "n": n})
        yield from both({"name": a, "n": {"value": n}}, one, {"name": a, "n": n})
        yield from both({"name": [a, b], "n": n}, one)
        yield from both({"name": a, "n": [n, n + 1]}, one)
        yield from both({"name": a, "n": []}, one)
        yield from both({"ids": [n, a]}, ids)
        yield from both({"tags": [a, None]}, tags)
        yield from both({"tags": None}, tags)


def spelled_names(random: Random) -> Iterator[Item]:
    """Make keys in other styles, by title or alias, and keys that mean two names or none."""
    stay = closed(
        "check_in guests",
        check_in=STRING,
        guests=INTEGER,
        room={**STRING, "title": "Kind of room", "aliases": ["chamber"]},
    )
    twins = closed("userId user_id", userId=INTEGER, user_id=INTEGER)
    for _ in range(5):
        day, n = f"2026-0{random.randint(1, 9)}-11", random.randint(1, 6)
        said = {"check_in": day, "guests": n}
        yield from both({"checkIn": day, "Guests": n}, stay, said)
        yield from both({"check-in": day, "GUESTS": n}, stay, said)
        yield from both({"Check In:": day, "'guests'": n}, stay, said)
        yield from both({**said, "kind of room": "double"}, stay, {**said, "room": "double"})
        yield from both({**said, "chamber": "double"}, stay, {**said, "room": "double"})
        yield from both({"arrival": day, "guests": n}, stay)
        yield from both({"check_in": day, "guests": n, "Guests": n + 1}, stay)
        yield from both({"user-id": n, "userId": n}, twins)
        yield from both({"in": day, "guests": n}, stay)
        yield from both({"check_in": day, "guest_names": n}, stay)


CLASSES: dict[str, Callable[[Random], Iterator[Item]]] = {
    made.__name__: made
    for made in (
        forbidden_names, several_objects, absent_keys, lines_without_quotes, words_for_nothing,
        written_numbers, spelled_options, lists_and_singles, spelled_names,
    )
}  # fmt: skip
