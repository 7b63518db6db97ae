"""Compare our rule for BFCL with the leaderboard's own checker on answers made by mutation.

python scripts/bfcl_agreement.py --wheel bfcl_eval-2026.3.23-py3-none-any.whl --answers 40000
python scripts/bfcl_agreement.py --wheel WHEEL --entries tests/evals/suites/bfcl_entries.json \
    --answers 600 --record tests/evals/suites/bfcl_verdicts.jsonl

With --trials, whole replies are made, in all categories of one turn, with calls whose JSON, names
and ids are damaged as well. Each is a trial of the strategy raw, and its verdict is compared with
what the leaderboard makes of the same reply.

The checker runs in a process of its own, in the Python that --python names, without surecall.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from surecall.base.records import Message
from surecall.evals.cases import Contender, IdealCall
from surecall.evals.records import Cell, Unit
from surecall.evals.strategies import settle
from surecall.evals.suites import single_turn
from surecall.evals.suites.bfcl import SINGLE_TURN, case_of, rules
from surecall.evals.suites.bfcl.data import BfclEntry, find_bfcl
from surecall.evals.trial import run_trial
from surecall.models.transport import ScriptedTransport, assistant

CHECKER = Path(__file__).with_name("bfcl_official.py")
Calls = list[dict[str, dict[str, Any]]]
MAX_RECORDED = 1_000
STRANGE: tuple[Any, ...] = ("", None, [], {}, 0, 1, True, False, 1.0, "x", [[]], [1], {"a": 1})


def list_entries(wheel: str) -> Iterator[dict[str, Any]]:
    """Yield every case that has answers."""
    files = find_bfcl(wheel)
    for category in SINGLE_TURN:
        if "relevance" not in category:
            for entry in files.entries(category):
                yield {
                    "id": entry.id,
                    "category": category,
                    "functions": list(entry.functions),
                    "answers": list(entry.answers or ()),
                }


class Mutator:
    """Makes answers: right ones, and right ones with up to three changes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311

    def answer(self, entry: dict[str, Any]) -> Calls:
        """Return one answer to a case."""
        calls: Calls = [
            {name: self.choose_arguments(parameters)}
            for answer in entry["answers"]
            for name, parameters in answer.items()
        ]
        if self.random.random() < 0.3:
            self.random.shuffle(calls)
        names = [function["name"] for function in entry["functions"]]
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
            if self.random.random() < 0.2:
                calls = self.change_calls(calls, names)
            elif calls:
                arguments = next(iter(self.random.choice(calls).values()))
                self.change_arguments(arguments)
        return calls

    def choose_arguments(self, parameters: dict[str, list[Any]]) -> dict[str, Any]:
        """Choose a right value for each parameter, or leave it out where that is allowed."""
        chosen: dict[str, Any] = {}
        for key, accepted in parameters.items():
            if not accepted or ("" in accepted and self.random.random() < 0.4):
                continue
            value = self.random.choice(accepted)
            as_given = self.random.random() < 0.1
            chosen[key] = json.loads(json.dumps(value if as_given else self.pick_plain(value)))
        return chosen

    def pick_plain(self, value: Any) -> Any:
        """Choose among the values that an object lists for each key."""
        if isinstance(value, list):
            return [self.pick_plain(each) for each in value]
        if not isinstance(value, dict):
            return value
        plain: dict[str, Any] = {}
        for key, choices in value.items():
            choice = self.random.choice(choices) if isinstance(choices, list) and choices else ""
            if choice != "" or self.random.random() < 0.3:
                plain[key] = choice if self.random.random() < 0.5 else self.pick_plain(choice)
        return plain

    def change_calls(self, calls: Calls, names: list[str]) -> Calls:
        """Change how many calls there are, their order, or one of their names."""
        change = self.random.choice(("drop", "repeat", "reverse", "rename", "case", "none"))
        if not calls:
            return [{self.random.choice(names): {}}]
        place = self.random.randrange(len(calls))
        match change:
            case "drop":
                return calls[:place] + calls[place + 1 :]
            case "repeat":
                return [*calls, json.loads(json.dumps(calls[place]))]
            case "reverse":
                return calls[::-1]
            case "rename":
                (arguments,) = calls[place].values()
                calls[place] = {self.random.choice([*names, "other"]): arguments}
            case "case":
                ((name, arguments),) = calls[place].items()
                calls[place] = {
                    self.random.choice((name.upper(), name.replace(".", "_"))): arguments
                }
            case _:
                return []
        return calls

    def change_arguments(self, arguments: dict[str, Any]) -> None:
        """Change one parameter, its name or its value."""
        if not arguments or self.random.random() < 0.08:
            arguments[self.random.choice(("extra", "id", "type"))] = self.random.choice(STRANGE)
            return
        key = self.random.choice(list(arguments))
        chance = self.random.random()
        if chance < 0.1:
            del arguments[key]
        elif chance < 0.15:
            arguments[key + "s"] = arguments.pop(key)
        else:
            arguments[key] = self.change_value(arguments[key])

    def change_value(self, value: Any) -> Any:
        """Return another value: slightly different, of another type, or quite another one."""
        if self.random.random() < 0.15:
            return self.random.choice(STRANGE)
        if self.random.random() < 0.08:
            return [value]
        changes: list[Callable[[], Any]]
        match value:
            case bool():
                changes = [lambda: not value, lambda: int(value), lambda: str(value)]
            case int() | float():
                changes = [
                    lambda: float(value),
                    lambda: int(value),
                    lambda: str(value),
                    lambda: value + 1,
                    lambda: -value,
                    lambda: bool(value),
                ]
            case str():
                changes = [
                    value.upper,
                    value.title,
                    lambda: value.replace(" ", "_"),
                    lambda: f"{value}.",
                    lambda: f" {value}-",
                    lambda: value[:-1],
                    lambda: value + "x",
                    lambda: value.replace("'", '"'),
                    lambda: value.split(","),
                    lambda: "",
                ]
            case list():
                changes = [
                    lambda: value[::-1],
                    lambda: value[1:],
                    lambda: value + value[:1],
                    lambda: [self.change_value(each) for each in value],
                    lambda: [*map(self.change_value, value[:1]), *value[1:]],
                    lambda: value[0] if value else None,
                    lambda: json.dumps(value),
                ]
            case dict():
                changes = [
                    lambda: dict(list(value.items())[1:]),
                    lambda: {**value, "more": 1},
                    lambda: {key: self.change_value(each) for key, each in value.items()},
                    lambda: json.dumps(value),
                ]
            case _:
                changes = [lambda: "", lambda: 0]
        return self.random.choice(changes)()

    # Replies

    def reply(self, entry: dict[str, Any], tools: list[str]) -> dict[str, Any]:
        """Return an assistant message: an answer to a case, with up to one damage to its form."""
        if self.random.random() < 0.1:
            return {"content": self.random.choice(("No.", "", '{"name": "f", "arguments": {}}'))}
        names = {
            function["name"]: tool for function, tool in zip(entry["functions"], tools, strict=True)
        }
        calls = (
            self.answer(entry)
            if entry["answers"]
            else [{self.random.choice([*names, "other"]): {}}]
        )
        made: list[dict[str, Any]] = []
        for number, call in enumerate(calls):
            ((name, arguments),) = call.items()
            made.append(
                {
                    "id": f"call_{number}",
                    "type": "function",
                    "function": {
                        "name": names.get(name, name),
                        "arguments": json.dumps(arguments),
                    },
                }
            )
        if made and self.random.random() < 0.4:
            self.damage(self.random.choice(made), made)
        return {"content": self.random.choice((None, "", "I will.")), "tool_calls": made}

    def damage(self, call: dict[str, Any], made: list[dict[str, Any]]) -> None:
        """Damage the form of one call."""
        function = call["function"]
        text = function["arguments"]
        forms = (
            json.dumps(text),
            f"\ufeff{text}",
            text[: self.random.randrange(len(text))],
            f"```json\n{text}\n```",
            text[:-1],
            text + "}",
            text.replace('"', "'"),
            f" {text}\n",
            f"{text} done",
            "",
            "{}",
            "null",
            "[]",
            f"[{text}]",
            json.dumps({function["name"]: json.loads(text)}),
            json.dumps({"arguments": json.loads(text)}),
            json.dumps({key: json.dumps(value) for key, value in json.loads(text).items()}),
            json.dumps({key: str(value) for key, value in json.loads(text).items()}),
            text.replace("{", '{"x": 1, "x": 2, ', 1) if text != "{}" else text,
            text.replace("{", '{"_unreadable": 1, ', 1) if text != "{}" else text,
            json.dumps(json.loads(text), indent=2),
            json.dumps({**json.loads(text), "extra": None}),
            json.dumps({**json.loads(text), "extra": float("nan")}),
            json.dumps({**json.loads(text), "extra": 10**400}),
            json.dumps({**json.loads(text), "extra": "\ud800"}),
            json.dumps({**json.loads(text), "extra": json.loads("[" * 70 + "]" * 70)}),
            json.dumps({**json.loads(text), "extra": "x" * 100_000}),
            json.loads(text),
        )
        match self.random.randrange(8):
            case 0:
                call["id"] = self.random.choice((made[0]["id"], "", None, 7))
            case 1:
                function["name"] = self.random.choice(
                    (f" {function['name']} ", function["name"].upper(), "functions.other", "")
                )
            case _:
                function["arguments"] = self.random.choice(forms)


async def play(case: Any, message: dict[str, Any]) -> bool:
    """Run a trial of the strategy raw whose model gives this reply, and return its verdict."""

    @asynccontextmanager
    async def opened(*_: Any) -> AsyncIterator[ScriptedTransport]:
        reply = assistant(message["content"], *message.get("tool_calls", ()))
        yield ScriptedTransport([reply, "Done.", "Done.", "Done."])

    cell = Cell(model="m", strategy="raw", suite="bfcl", scenario=case.scenario)
    who = Contender(label="m", model="m")
    unit = Unit(index=0, cell=cell, case=case.id)
    row, _ = await run_trial(unit, case, who, opened, settle("raw", who))
    return row.strict_ok


async def play_all(wheel: str, own: list[dict[str, Any]] | None, count: int, seed: int) -> Any:
    """Make replies, category by category, and return questions with our verdicts."""
    mutator, found = Mutator(seed), list[tuple[dict[str, Any], bool]]()
    files = None if own else find_bfcl(wheel)
    categories = SINGLE_TURN if files else dict.fromkeys(entry["category"] for entry in own or ())
    for category in categories:
        entries = (
            files.entries(category)
            if files
            else [
                BfclEntry(
                    id=entry["id"],
                    messages=(Message("user", "Do it."),),
                    functions=tuple(entry["functions"]),
                    answers=tuple(entry["answers"]) or None,
                )
                for entry in own or ()
                if entry["category"] == category
            ]
        )
        for _ in range(count // len(categories)):
            entry = mutator.random.choice(entries)
            case = case_of(category, entry)
            question = {
                "id": entry.id,
                "category": category,
                "functions": list(entry.functions),
                "answers": list(entry.answers or ()),
            }
            message = mutator.reply(question, [tool.name for tool in case.tools])
            question["message"] = message
            made = [call["function"] for call in message.get("tool_calls", ())]
            question["made"] = [
                [case.names.get(call["name"], call["name"]), call["arguments"]] for call in made
            ]
            question["text"] = message["content"] or ""
            found.append((question, await play(case, dict(message))))
    return found


def compare_trials(given: argparse.Namespace, own: list[dict[str, Any]] | None) -> None:
    """Compare the verdicts of trials, report the differences, and write them down if asked."""
    found = asyncio.run(play_all(given.wheel, own, given.trials, given.seed))
    theirs = judge_theirs([question for question, _ in found], given.wheel, given.python)
    counts: Counter[tuple[str, str]] = Counter()
    for (question, ours), said in zip(found, theirs, strict=True):
        kind = "broke" if said["ok"] is None else "same" if said["ok"] == ours else "different"
        counts[question["category"], kind] += 1
        counts[question["category"], f"right {said['ok']}"] += 1
        if kind == "different":
            print(question["id"], json.dumps(question["message"])[:500])
            print("   official:", said, "ours:", ours)
    for (category, kind), count in sorted(counts.items()):
        print(f"{category:24} {kind:12} {count}")
    same, different = (
        sum(n for (_, kind), n in counts.items() if kind == wanted)
        for wanted in ("same", "different")
    )
    print(f"trials agree {same} of {same + different} = {same / (same + different):.4%}")
    if given.record:
        lines = (
            json.dumps({"id": question["id"], "message": question["message"], "ok": said["ok"]})
            for (question, _), said in zip(found, theirs, strict=True)
            if said["ok"] is not None
        )
        short = [line for line in dict.fromkeys(lines) if len(line) <= MAX_RECORDED]
        given.record.write_text("".join(f"{line}\n" for line in short))


def judge_ours(question: dict[str, Any]) -> tuple[bool, bool]:
    """Return what our rule says, and what the stricter one says."""
    calls = [IdealCall(*next(iter(call.items()))) for call in question["calls"]]
    functions = {function["name"]: function for function in question["functions"]}
    ok = not rules.check_calls(calls, functions, question["answers"])
    return ok, not single_turn.check_calls(calls, functions, question["answers"])


def judge_theirs(questions: list[dict[str, Any]], wheel: str, python: str) -> list[Any]:
    """Return what the checker of the wheel says."""
    done = subprocess.run(  # noqa: S603
        [python, "-I", str(CHECKER), wheel],
        input="\n".join(map(json.dumps, questions)),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    """Make answers, judge them twice, and report the differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", required=True, help="the wheel of bfcl-eval")
    parser.add_argument("--python", default=sys.executable, help="runs the official checker")
    parser.add_argument("--answers", type=int, default=40_000, help="how many answers to make")
    parser.add_argument("--trials", type=int, help="make so many replies, and whole trials of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--entries", type=Path, help="cases of one's own, instead of the wheel's")
    parser.add_argument("--record", type=Path, help="write calls and verdicts to this file")
    given = parser.parse_args()
    own = json.loads(given.entries.read_text()) if given.entries else None
    if given.trials:
        compare_trials(given, own)
        return
    entries = [entry for entry in own or list_entries(given.wheel) if entry["answers"]]
    mutator = Mutator(given.seed)
    questions = [
        {**entry, "calls": mutator.answer(entry)}
        for entry in (entries[number % len(entries)] for number in range(given.answers))
    ]
    theirs = judge_theirs(questions, given.wheel, given.python)
    report(questions, theirs)
    if given.record:
        lines = (
            json.dumps({"id": question["id"], "calls": question["calls"], "ok": found["ok"]})
            for question, found in zip(questions, theirs, strict=True)
            if found["ok"] is not None
        )
        given.record.write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)))


def report(questions: list[dict[str, Any]], theirs: list[Any]) -> None:
    """Print how often both say the same, and where they do not."""
    counts: Counter[str] = Counter()
    by_category: dict[str, Counter[str]] = {}
    for question, found in zip(questions, theirs, strict=True):
        ours, strict = judge_ours(question)
        kind = "broke" if found["ok"] is None else "same" if found["ok"] == ours else "different"
        for count in (counts, by_category.setdefault(question["category"], Counter())):
            count.update((kind, f"right {found['ok']}"))
        counts["stricter says no"] += ours and not strict
        counts["stricter says yes"] += strict and not ours
        if kind == "different" and counts[kind] <= 20:
            print(question["id"], json.dumps(question["calls"])[:300])
            print("   official:", found, "ours:", ours)
        if kind == "broke" and counts[kind] <= 5:
            print(question["id"], json.dumps(question["calls"])[:300], found, "ours:", ours)
    for category, count in by_category.items():
        print(f"{category:24} {dict(sorted(count.items()))}")
    compared = counts["same"] + counts["different"]
    print(f"{dict(sorted(counts.items()))}")
    print(f"agreement {counts['same']} of {compared} = {counts['same'] / compared:.4%}")


if __name__ == "__main__":
    main()
