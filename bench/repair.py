"""What reading and repairing JSON costs: surecall beside other parsers and repairers, in one run.

    python bench/repair.py [--rounds 15] [--size 1000000] [--out results.json]

The contenders take turns on the same texts on this machine in the same minutes: compare the
ratios, not the microseconds. Libraries that are not installed for the interpreter are left out
and named. After that come hostile texts, at half the size and at the full size, for surecall
alone at both levels: each must be done in a second, and twice the text must not take more than
2.5 times as long.
"""

import argparse
import importlib
import json
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from surecall.text import repair_json

BODY = (
    "Since the 14:05 deploy the checkout page returns 504 for one in five requests from the "
    "Frankfurt region. Order service p99 went from 310 ms to 29 s; the payment provider shows no "
    "incident. Rolling back the cart service did not help, which suggests that the new connection "
    "pool limit in the gateway is the cause. Logs and a flame graph are in the incident channel. "
) * 2
TICKET: dict[str, Any] = {
    "title": "Checkout page times out for EU customers",
    "body": BODY,
    "priority": "high",
    "tags": ["checkout", "eu", "latency", "payments"],
    "due_days": 2,
}
RECORD: dict[str, Any] = {
    "id": 17,
    "name": "frankfurt-3",
    "ok": True,
    "note": None,
    "load": 0.42,
    "tags": ["a", "b"],
    "owner": {"team": "payments", "page": False},
}
BAML_TYPES = """
class Ticket {
  title string
  body string
  priority string
  tags string[]
  due_days int
}
class Owner {
  team string
  page bool
}
class Record {
  id int
  name string
  ok bool
  note string?
  load float
  tags string[]
  owner Owner
}
client<llm> Nobody {
  provider "openai-generic"
  options {
    base_url "http://127.0.0.1:9"
    model "none"
  }
}
function ReadTicket(text: string) -> Ticket {
  client Nobody
  prompt #"{{ text }}"#
}
function ReadRecords(text: string) -> Record[] {
  client Nobody
  prompt #"{{ text }}"#
}
"""
MAX_HOSTILE_S = 1.0
MAX_GROWTH = 2.5


def loosened(value: Any) -> str:
    """The usual damage: bare keys, Python literals, trailing commas."""
    text = json.dumps(value)
    for key in ("title", "priority", "id", "ok", "team", "load"):
        text = text.replace(f'"{key}": ', f"{key}: ")
    text = text.replace("true", "True").replace("false", "False").replace("null", "None")
    return text.replace('"]', '",]').replace("}}", "},}")


def texts() -> dict[str, str]:
    valid = json.dumps(TICKET)
    many = [dict(RECORD, id=number) for number in range(1450)]
    return {
        "valid_1k": valid,
        "fenced_1k": f"Sure, here is the call:\n```json\n{valid}\n```\nLet me know.",
        "loose_1k": loosened(TICKET),
        "python_1k": repr(TICKET),
        "cut_1k": json.dumps(dict(TICKET, extra=BODY))[: len(valid) + 60],
        "valid_200k": json.dumps(many),
        "loose_200k": loosened(many),
        "cut_200k": json.dumps(many)[:-40],
    }


def contenders() -> tuple[dict[str, Callable[[str], Any]], list[str]]:
    found: dict[str, Callable[[str], Any]] = {
        "surecall": lambda text: repair_json(text, cut="close").value,
        "msgspec": msgspec.json.Decoder().decode,
        "json": json.loads,
    }
    missing: list[str] = []
    for name in ("json_repair", "jsonmend", "fast_json_repair"):
        try:
            found[name] = importlib.import_module(name).loads
        except ImportError:
            missing.append(name)
    try:
        jiter = importlib.import_module("jiter")
        found["jiter"] = lambda text: jiter.from_json(
            text.encode(), partial_mode="trailing-strings"
        )
    except ImportError:
        missing.append("jiter")
    try:
        found["baml"] = baml_reader()
    except ImportError:
        missing.append("baml_py and pydantic")
    return found, missing


def baml_reader() -> Callable[[str], Any]:
    """BAML reads text only into a declared type: here the types of the two values."""
    baml_py = importlib.import_module("baml_py")
    pydantic = importlib.import_module("pydantic")
    runtime = baml_py.BamlRuntime.from_files("baml_src", {"baml_src/main.baml": BAML_TYPES}, {})
    models = ModuleType("models")
    fields = {"title": str, "body": str, "priority": str, "tags": list[str], "due_days": int}
    owner = pydantic.create_model("Owner", team=str, page=bool)
    record = {"id": int, "name": str, "ok": bool, "note": str | None, "load": float}
    vars(models).update(
        Ticket=pydantic.create_model("Ticket", **fields),
        Owner=owner,
        Record=pydantic.create_model("Record", **record, tags=list[str], owner=owner),
    )
    options = (models, models, models, False, runtime.create_context_manager(), None, None, {})

    def read(text: str) -> Any:
        name = "ReadRecords" if text.startswith("[") else "ReadTicket"
        return runtime.parse_llm_response(name, text, *options)

    return read


def accepts(read: Callable[[str], Any], text: str) -> bool:
    try:
        return read(text) is not None
    except Exception:
        return False


def measured(
    readers: dict[str, Callable[[str], Any]], text: str, rounds: int
) -> dict[str, float | None]:
    """The best CPU time of some rounds, in microseconds; None for who refuses the text."""
    best: dict[str, float | None] = dict.fromkeys(readers)
    taking_part = {name: read for name, read in readers.items() if accepts(read, text)}
    counts: dict[str, int] = {}
    for number in range(rounds + 1):
        for name, read in taking_part.items():
            count = counts.get(name, 1)
            start = time.process_time()
            for _ in range(count):
                read(text)
            taken = time.process_time() - start
            if number == 0:
                counts[name] = max(1, int(0.01 / max(taken, 1e-7)))
            else:
                best[name] = min(best[name] or 1e9, taken / count * 1e6)
    return best


def hostile(size: int) -> dict[str, str]:
    return {
        "open arrays": "[" * size,
        "open objects": "{" * size,
        "open members": '{"a":' * (size // 5),
        "nested and closed": "[" * (size // 2) + "]" * (size // 2),
        "double quotes": '"' * size,
        "single quotes": "'" * size,
        "escaped quotes in an open string": '{"a":"' + '\\"' * (size // 2),
        "inner quotes": '{"a": "' + 'he said "x" and ' * (size // 16) + '"}',
        "quotes and commas": '{"a": "' + 'b", "c' * (size // 6),
        "fences": "```json\n" * (size // 8),
        "braces in prose": "see {x " * (size // 7),
        "comments without an end": "{" + "/*" * (size // 2),
        "line comments": "[" + "//\n" * (size // 3) + "1]",
        "backslashes": '{"a":"' + "\\" * size,
        "an open string": '{"k":"' + "v" * size,
        "digits": "[" + "1" * size,
        "unicode escapes": '["' + "\\u0041" * (size // 6),
        "odd escapes": "['" + "\\x41" * (size // 4) + "']",
        "raw line breaks": '["' + "a\n" * (size // 2) + '"]',
        "blanks, then a brace": " " * size + "{",
        "keys without values": '{"a" ' * (size // 5),
        "commas": "[" + "," * size,
        "colons": '{"a"' + ":" * size,
        "spaced colons": '{"a"' + ": " * (size // 2),
        "braces and quotes": '{"' * (size // 2),
        "mixed brackets": "[}{]" * (size // 4),
        "wrong closers": "[" * 100 + "1" + "}" * size,
        "values in a row": "{}" * (size // 2),
        "loose members": "{" + "a:True," * (size // 7) + "}",
        "bare words": "[" + "ab cd," * (size // 6) + "]",
        "joined strings": '["a"' + '+"b"' * (size // 4) + "]",
        "no commas": "[" + '"a"\n' * (size // 4) + "]",
        "braces in bare text": '{"a": h' + "{" * size,
        "words in braces": '{"a": ' + "{x} y " * (size // 6) + "}",
        "lists closed early": '{"a": ' + "[1], " * (size // 5),
        "rows closed early": '{"a": [' + "[1, 2], " * (size // 8) + "3], [4]]}",
        "keys in a list": "[" + '"a": 1, ' * (size // 8),
        "JSON in text": '{"a": "x{"b": ' * (size // 14),
        "lone strings": '{"a": "x", ' + '"y", ' * (size // 5) + "}",
        "lone keys": '{"k": 1, ' + '"cccccccc"; ' * (size // 12) + "}",
        "lone words": '{"k": 1, ' + "c , " * (size // 4) + "}",
        "repeated keys": "{" + '"k": 1, "k": 2, ' * (size // 16) + "}",
        "objects not closed": '[{"a": 1, ' * (size // 9),
        "strings not closed": '{a: "b, c: 1, ' * (size // 13),
        "fences inside": "{" + "```json\n" * (size // 8),
        "doubled quotes": '{""a"": ""b"", ' * (size // 14),
    }


def run_hostile(size: int, *, guess: bool) -> list[dict[str, Any]]:
    rows = []
    halves = hostile(size // 2)
    for name, text in hostile(size).items():
        taken = []
        for one in (halves[name], text):
            start = time.process_time()
            state = repair_json(one, guess=guess, cut="close" if guess else "refuse").state
            taken.append(time.process_time() - start)
        # Below some milliseconds the clock says nothing about growth.
        growth = taken[1] / taken[0] if taken[1] > 0.02 else 0.0
        is_fine = taken[1] <= MAX_HOSTILE_S and growth <= MAX_GROWTH
        rows.append(
            {
                "name": f"{name}, likely" if guess else name,
                "state": state,
                "s": taken[1],
                "growth": growth,
                "fine": is_fine,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    readers, missing = contenders()
    print(f"{datetime.now(UTC):%Y-%m-%d} Python {platform.python_version()}; missing: {missing}")
    print(f"{'':12}" + "".join(f"{name:>18}" for name in readers) + "   (us, times surecall's)")
    speed: dict[str, dict[str, float | None]] = {}
    for kind, text in texts().items():
        row = measured(readers, text, options.rounds)
        speed[kind] = row
        ours = row["surecall"] or 0.0
        cells = [f"{us:9.1f} x{us / ours:6.2f}" if us else "refused" for us in row.values()]
        print(f"{kind:12}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
    rows = [*run_hostile(options.size, guess=False), *run_hostile(options.size, guess=True)]
    for row in rows:
        mark = "" if row["fine"] else "  <-- TOO SLOW"
        print(f"{row['name']:42}{row['state']:12}{row['s']:8.3f} s  x{row['growth']:.2f}{mark}")
    if options.out:
        options.out.write_text(json.dumps({"speed": speed, "hostile": rows}, indent=1))


if __name__ == "__main__":
    main()
