"""Judge decoded calls with the leaderboard's own checker, one JSON line in and one out.

python scripts/bfcl_official.py WHEEL < questions.jsonl > verdicts.jsonl

Runs in any Python and needs nothing but the wheel: what the checker imports only for the
languages and model names that are not used here is replaced by empty modules.
"""

import json
import sys
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


def main():
    """Judge every line."""
    check = open_checker(sys.argv[1])
    for line in sys.stdin:
        try:
            found = check(json.loads(line))
        except Exception as error:
            found = {"ok": None, "why": repr(error)}
        print(json.dumps(found))


if __name__ == "__main__":
    main()
