"""Judge decoded calls with the leaderboard's own checker, one JSON line in and one out.

python scripts/bfcl_official.py WHEEL < questions.jsonl > verdicts.jsonl

Runs in any Python and needs nothing but the wheel: what the checker imports only for the
languages and model names that are not used here is replaced by empty modules. Conversations need
mpmath 1.3.0 as well, which the wheel asks for.
"""

import json
import os
import sys
from itertools import count
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace

GIVEN = ("functions", "answers", "category")


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
        "dotenv": {"load_dotenv": lambda *_, **__: None},
        "filelock": {"FileLock": None},
    }
    for name, content in replaced.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(content)
    with TemporaryDirectory() as folder:  # the package makes folders when it is imported
        os.environ["BFCL_PROJECT_ROOT"] = folder
        from bfcl_eval.utils import is_empty_output, is_function_calling_format_output
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def check(question):
        if "made" in question:
            return check_reply(question)
        found = ast_checker(
            question["functions"],
            question["calls"],
            question["answers"],
            Language.PYTHON,
            question["category"],
            "any",
        )
        return {"ok": found["valid"], "why": found.get("error_type")}

    def check_reply(question):
        """Decode a reply as the handler of chat completions does, and judge it as the runner."""
        try:
            calls = [{name: json.loads(arguments)} for name, arguments in question["made"]]
            # Without calls the handler decodes the content, letter by letter.
            if not calls and question["text"]:
                raise ValueError("there is no call")
        except Exception as error:
            calls = None
            why = repr(error)
        if "relevance" in question["category"]:
            is_call = calls is not None and not is_empty_output(calls)
            return {"ok": is_call != ("irrelevance" in question["category"]), "why": "relevance"}
        if calls is None:
            return {"ok": False, "why": why}
        if not is_function_calling_format_output(calls):
            return {"ok": False, "why": "wrong_output_format"}
        return check({**{key: question[key] for key in GIVEN}, "calls": calls})

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
