"""Compare our APIs and our rule for BFCL's conversations with the leaderboard's own, by mutation.

python scripts/bfcl_turns_agreement.py --wheel bfcl_eval-2026.3.23-py3-none-any.whl \
    --python OTHER/bin/python --answers 10000

Every conversation is played as expected, and then with up to four changes: calls left out, made
twice, swapped, moved to another turn or added, arguments changed, left out or added. Compared are
what each call returns and the verdicts. The official checker runs in a process of its own, in the
Python that --python names, which needs mpmath 1.3.0 and nothing else.
"""

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bfcl_agreement import STRANGE, judge_theirs

from surecall.base.json_values import as_list
from surecall.evals.cases import IdealCall
from surecall.evals.suites.bfcl import (
    BfclConversation,
    check_results,
    check_state,
    play_turns,
    read_conversations,
)
from surecall.evals.suites.bfcl.data import find_bfcl, list_files

Turns = list[list[IdealCall]]
RAISED = "Error during execution"
MAX_SHOWN = 25
MAX_CHARS = 200


class Mutator:
    """Changes expected calls; values come from those that the data have for the same parameter."""

    def __init__(self, conversations: Sequence[BfclConversation], seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.pool: dict[str, list[Any]] = {}
        for conversation in conversations:
            for turn in conversation.expected:
                for call in turn:
                    for name, value in call.arguments.items():
                        self.pool.setdefault(name, []).append(value)

    def change(self, conversation: BfclConversation, changes: int) -> Turns:
        """Return the expected calls with so many changes."""
        turns = [
            [IdealCall(call.name, dict(call.arguments)) for call in turn]
            for turn in conversation.expected
        ]
        for _ in range(changes):
            turn = self.random.choice(turns)
            match self.random.choice(("drop", "twice", "swap", "move", "add", "value", "value")):
                case "drop" if turn:
                    turn.pop(self.random.randrange(len(turn)))
                case "twice" if turn:
                    place = self.random.randrange(len(turn))
                    turn.insert(place, turn[place])
                case "swap":
                    self.random.shuffle(turn)
                case "move" if turn:
                    call = turn.pop(self.random.randrange(len(turn)))
                    self.random.choice(turns).append(call)
                case "value" if turn:
                    place = self.random.randrange(len(turn))
                    turn[place] = self.change_call(turn[place])
                case _:
                    place = self.random.randint(0, len(turn))
                    turn.insert(place, self.make_call(conversation))
        return turns

    def make_call(self, conversation: BfclConversation) -> IdealCall:
        """Call any function with values that fit its parameters, more or less."""
        function = self.random.choice(conversation.functions)
        required = function["parameters"].get("required", ())
        arguments = {
            name: self.choose_value(name, schema.get("type"))
            for name, schema in function["parameters"]["properties"].items()
            if name in required or self.random.random() < 0.4
        }
        return IdealCall(function["name"], arguments)

    def choose_value(self, name: str, kind: str | None) -> Any:
        """Choose a value that the data have, or one of the right type."""
        if name in self.pool and self.random.random() < 0.8:
            return self.random.choice(self.pool[name])
        values: dict[str | None, tuple[Any, ...]] = {
            "string": ("AAPL", "ZETA", "USR001", "alice", ".", "/", "..", "on", "2024-05-06", "x"),
            "integer": (0, 1, 2, 3, 5, 10, 12345),
            "float": (0, 1, 1.5, 2.0, 100.25, -3.5),
            "boolean": (True, False),
            "array": ([1, 2.5, 3], [], ["AAPL", "TSLA"], ["driver", "rear_left"]),
            "dict": ({}, {"status": "Open"}, {"title": "T", "priority": 2}, {"other": 1}),
        }
        return self.random.choice(values.get(kind, (None,)))

    def change_call(self, call: IdealCall) -> IdealCall:
        """Change, leave out or add an argument."""
        arguments = dict(call.arguments)
        chance = self.random.random()
        if not arguments or chance < 0.05:
            arguments[self.random.choice(("extra", "id"))] = 1
            return IdealCall(call.name, arguments)
        name = self.random.choice(list(arguments))
        if chance < 0.12:
            del arguments[name]
        elif chance < 0.2:
            arguments[name] = self.random.choice(STRANGE)
        else:
            arguments[name] = self.change_value(name, arguments[name])
        return IdealCall(call.name, arguments)

    def change_value(self, name: str, value: Any) -> Any:
        """Return another value of the same type."""
        if self.random.random() < 0.5:
            return self.random.choice(self.pool.get(name, [value]))
        match value:
            case bool():
                return not value
            case int() | float():
                return self.random.choice((value + 1, -value, 0, value * 2, float(value)))
            case str():
                changed = (value.upper(), value + "x", value[:-1], "", f"{value}/", f"/{value}")
                return self.random.choice(changed)
            case list():
                items = as_list(value)
                return self.random.choice((items[::-1], items[1:], items + items[:1], list[Any]()))
            case _:
                return value


def write_call(call: IdealCall) -> str:
    """Write a call as Python does."""
    return (
        f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"
    )


def read_result(text: str) -> str:
    """Return a result as Python writes it; the leaderboard writes objects as JSON."""
    try:
        return str(json.loads(text)) if text.startswith("{") else text
    except ValueError:
        return text


class Tally:
    """Counts what is the same, and prints what is not."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.by_function: Counter[str] = Counter()
        self.verdicts: list[str] = []

    def add(
        self, conversation: BfclConversation, turns: Turns, theirs: dict[str, Any], kind: str
    ) -> None:
        """Compare one answer."""
        if theirs["ok"] is None:
            self.counts[f"{kind}: the checker broke"] += 1
            print("BROKE", conversation.id, theirs["why"][:200])
            return
        expected = play_turns(conversation, conversation.expected)
        made = play_turns(conversation, turns)
        ours = not [*check_state(expected, made), *check_results(expected, made)]
        self.counts[f"{kind}: right {theirs['ok']}"] += 1
        same = ours == theirs["ok"]
        self.counts[f"{kind}: verdict {'same' if same else 'different'}"] += 1
        if not same:
            calls = [[write_call(call) for call in turn] for turn in turns]
            shown = (
                f"{conversation.id} official {theirs['ok']} {theirs['why']} ours {ours}: {calls}"
            )
            self.verdicts.append(shown)
        for turn, results in zip(made, theirs["results"], strict=True):
            for call, mine, their in zip(turn.calls, turn.results, results, strict=True):
                self.compare(call, mine, their, conversation.id)

    def compare(self, call: IdealCall, mine: str, their: str, case: str) -> None:
        """Compare one result; of two errors that Python raised, the words do not count."""
        their = read_result(their)
        if mine == their:
            self.counts["results: same"] += 1
        elif mine.startswith(RAISED) and their.startswith(RAISED):
            self.counts["results: both raised"] += 1
        else:
            self.counts["results: different"] += 1
            self.by_function[call.name] += 1
            if self.by_function[call.name] <= 3:
                print(case, write_call(call))
                print("   official:", their[:MAX_CHARS])
                print("   ours:    ", mine[:MAX_CHARS])

    def report(self) -> None:
        """Print the counts."""
        for shown in self.verdicts[:MAX_SHOWN]:
            print(shown)
        for key, number in sorted(self.counts.items()):
            print(f"{key:36} {number}")
        print("results that differ, by function:", dict(self.by_function))


def main() -> None:
    """Play conversations as expected and changed, judge them twice, and report differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", required=True, help="the wheel of bfcl-eval")
    parser.add_argument("--python", default=sys.executable, help="runs the official checker")
    parser.add_argument("--answers", type=int, default=10_000, help="how many changed answers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", help="a wheel with conversations of one's own")
    parser.add_argument(
        "--record", type=Path, help="write calls, results and verdicts to this file"
    )
    given = parser.parse_args()
    files = find_bfcl(given.cases or given.wheel)
    conversations = read_conversations(files)
    questions, answers = (files.rows(name) for name in list_files("multi_turn_base"))
    mutator = Mutator(conversations, given.seed)
    played: list[tuple[str, int, Turns]] = [
        ("expected", place, [list(turn) for turn in conversations[place].expected])
        for place in range(len(answers))
    ]
    for number in range(given.answers):
        place = number % len(conversations)
        changes = mutator.random.choice((1, 1, 2, 3, 4))
        played.append(("changed", place, mutator.change(conversations[place], changes)))
    asked = [
        {
            **questions[place],
            "ground_truth": answers[place]["ground_truth"],
            "turns": [[write_call(call) for call in turn] for turn in turns],
        }
        for _, place, turns in played
    ]
    theirs = judge_theirs(asked, given.wheel, given.python)
    if given.record:
        pairs = zip(asked, theirs, strict=True)
        lines = [
            json.dumps({"id": question["id"], "turns": question["turns"], **found})
            for question, found in pairs
            if found["ok"] is not None
        ]
        given.record.write_text("".join(f"{line}\n" for line in lines))
    tally = Tally()
    for (kind, place, turns), found in zip(played, theirs, strict=True):
        tally.add(conversations[place], turns, found, kind)
    names = {function["name"] for one in conversations for function in one.functions}
    called = {call.name for _, _, turns in played for turn in turns for call in turn}
    tally.report()
    found = f"{len(called & names)} of {len(names)} functions called"
    print(f"{len(conversations)} conversations, {found}")


if __name__ == "__main__":
    main()
