"""Judge decoded calls with the leaderboard's own checker, one JSON line in and one out.

python scripts/bfcl_official.py WHEEL < questions.jsonl > verdicts.jsonl

Runs in any Python and needs nothing but the wheel: what the checker imports only for the
languages and model names that are not used here is replaced by empty modules. Conversations need
mpmath 1.3.0 as well, which the wheel asks for.
"""

import json
import sys
from itertools import count
from types import ModuleType, SimpleNamespace


def open_checker(wheel):
    """Import the checker from the wheel; names of functions are taken as they are."""
    sys.path.insert(0, wheel)

    class AnyModel(dict):
        def __missing__(self, name):
            return SimpleNamespace(underscore_to_dot=False)

    converters = "bfcl_eval.eval_checker.ast_eval.type_convertor"
    replaced = {
        "bfcl_eval.constants.model_config": {"MODEL_CONFIG_MAPPING": AnyModel()},
        f"{converters}.java_type_converter": {"java_type_converter": None},
        f"{converters}.js_type_converter": {"js_type_converter": None},
    }
    for name, content in replaced.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(content)
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def check(question):
        found = ast_checker(
            question["functions"],
            question["calls"],
            question["answers"],
            Language.PYTHON,
            question["category"],
            "any",
        )
        return {"ok": found["valid"], "why": found.get("error_type")}

    return check


def open_conversation_checker():
    """Import the checker of conversations, which runs every call on the APIs of the wheel."""
    from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_checker as checker
    from bfcl_eval.eval_checker.multi_turn_eval.func_source_code.posting_api import TwitterAPI

    numbers = count()

    def check(question):
        # The APIs live as long as the name of a model, and posts share their default lists for
        # ever: each question gets its own of both.
        TwitterAPI.post_tweet.__defaults__ = ([], [])
        name = f"model_{next(numbers)}"
        entry = {key: question[key] for key in ("id", "initial_config", "involved_classes")}
        turns = question["turns"]
        found = checker.multi_turn_checker(
            [[calls] if calls else [] for calls in turns],
            question["ground_truth"],
            entry,
            "multi_turn_base",
            name,
        )
        TwitterAPI.post_tweet.__defaults__ = ([], [])
        results = [
            checker.execute_multi_turn_func_call(
                calls, entry["initial_config"], entry["involved_classes"], f"{name}_r", entry["id"]
            )[0]
            for calls in turns
        ]
        return {"ok": found["valid"], "why": found.get("error_type"), "results": results}

    return check


def main():
    """Judge every line: conversations have turns."""
    check, check_conversation = open_checker(sys.argv[1]), None
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if "turns" in question:
                check_conversation = check_conversation or open_conversation_checker()
                found = check_conversation(question)
            else:
                found = check(question)
        except Exception as error:
            found = {"ok": None, "why": repr(error)}
        print(json.dumps(found))


if __name__ == "__main__":
    main()
