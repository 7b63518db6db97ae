"""Options: types, defaults, unknown names, null, and where each value came from."""

import ast
import inspect
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_type_hints

import pytest

from surecall.base.errors import Code, ConfigError
from surecall.loop import Arguments, Options, Session, resolve_options
from surecall.loop import options as options_module
from surecall.loop.options import PARAMETERS, OptionArguments
from surecall.loop.session import RunArguments, SessionArguments, refuse_unknown

FIELDS = Options.__struct_fields__
NULLABLE = {
    "deadline_s",
    "max_identical_calls",
    "max_run_tokens",
    "max_tool_calls",
    "max_tool_calls_per_turn",
    "tool_timeout_s",
}


def documented(cls: str) -> dict[str, str]:
    """Return the docstrings that stand below the fields of a class."""
    tree = ast.parse(inspect.getsource(options_module))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == cls).body
    found: dict[str, str] = {}
    for field, after in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(after.value, ast.Constant)
            found[field.target.id] = str(after.value.value)
    return found


def test_the_defaults_are_what_the_documentation_promises() -> None:
    """Relaxed, fatal, twelve turns, 200,000 bytes, empty answers repaired without tools."""
    options = resolve_options({}).options
    assert options == Options()
    assert (options.tool_use_mode, options.tool_failure_policy) == ("relaxed", "fatal")
    assert (options.max_turns, options.max_identical_calls) == (12, 3)
    assert (options.max_tool_args_bytes, options.max_tool_output_bytes) == (200_000, 200_000)
    assert (options.fix_empty_final, options.fix_empty_final_disable_tools) == (True, True)
    assert (options.stream, options.fallback_retry_count) == (False, 0)


@pytest.mark.parametrize("name", FIELDS)
def test_every_option_has_a_docstring(name: str) -> None:
    """What an option does is said below it."""
    assert documented("Options").get(name, "").strip().endswith(".")


def test_option_arguments_are_the_fields_of_options() -> None:
    """No option is missing from the keyword arguments, and none is too many."""
    assert set(get_type_hints(OptionArguments)) == set(FIELDS)


def test_session_arguments_are_the_parameters_of_session() -> None:
    """`SessionArguments` names exactly what `Session` takes."""
    parameters = set(inspect.signature(Session).parameters) - {"options"}
    assert set(get_type_hints(SessionArguments)) == parameters | {*FIELDS, *PARAMETERS}


def test_run_arguments_are_the_parameters_of_session_run() -> None:
    """`RunArguments` names what `Session.run` takes beside the prompt and the typed output."""
    apart = {"self", "prompt", "output", "options"}
    parameters = set(inspect.signature(Session.run).parameters) - apart
    assert set(get_type_hints(RunArguments)) == parameters | {*FIELDS, *PARAMETERS}


def test_arguments_of_run_are_those_of_session_and_its_run() -> None:
    """`run` takes everything that a session and its run take."""
    expected = set(get_type_hints(SessionArguments)) | set(get_type_hints(RunArguments))
    assert set(get_type_hints(Arguments)) == expected


def test_an_unknown_option_is_refused_with_a_suggestion() -> None:
    """A typo is an error that names the option meant and where it came from."""
    with pytest.raises(ConfigError) as caught:
        resolve_options({"max_turn": 3}, {"max_turn": "preset:mine"})
    assert caught.value.code == Code.UNKNOWN_OPTION
    assert "preset:mine" in caught.value.message
    assert "'max_turns'" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("temprature", "Did you mean 'temperature'?"),
        ("base_uri", "Did you mean 'base_url'?"),
        ("max_turn", "Did you mean 'max_turns'?"),
        ("model", "It belongs to the session, as in Session(model=...)."),
        (
            "top_p",
            (
                "Fields of the request go into request_overrides, as in "
                'request_overrides={"top_p": ...} or --option request_overrides.top_p=VALUE.'
            ),
        ),
    ],
)
def test_a_wrong_argument_is_refused_with_the_one_that_was_meant(name: str, hint: str) -> None:
    """Arguments of a session and fields of a request are suggested like options."""
    with pytest.raises(ConfigError) as caught:
        refuse_unknown({name: 1})
    assert (caught.value.code, caught.value.hint) == (Code.UNKNOWN_OPTION, hint)


@dataclass(frozen=True)
class Bad:
    """A value that an option cannot have."""

    id: str
    name: str
    value: Any


BAD = [
    Bad("unknown mode", "tool_use_mode", "required"),
    Bad("unknown policy", "tool_failure_policy", "soft"),
    Bad("turns as text", "max_turns", "12"),
    Bad("turns as a flag", "max_turns", True),
    Bad("no turns", "max_turns", 0),
    Bad("negative turns", "max_turns", -1),
    Bad("fraction of a turn", "max_turns", 1.5),
    Bad("no calls", "max_tool_calls", 0),
    Bad("no calls per turn", "max_tool_calls_per_turn", 0),
    Bad("no tokens", "max_run_tokens", 0),
    Bad("no identical calls", "max_identical_calls", 0),
    Bad("no time", "deadline_s", 0),
    Bad("time that is no number", "deadline_s", float("nan")),
    Bad("negative time", "tool_timeout_s", -0.5),
    Bad("tool time that is no number", "tool_timeout_s", float("nan")),
    Bad("no argument bytes", "max_tool_args_bytes", 0),
    Bad("no bytes per turn", "max_turn_args_bytes", 0),
    Bad("no output bytes", "max_tool_output_bytes", 0),
    Bad("no concurrency", "max_concurrent_calls", 0),
    Bad("negative retries", "fallback_retry_count", -1),
    Bad("blank text", "fix_empty_final_user_text", " \n"),
    Bad("flag as text", "stream", "yes"),
    Bad("list as text", "tool_allowlist", "look"),
    Bad("list of numbers", "tool_denylist", [1]),
    Bad("object as list", "request_overrides", []),
    Bad("choice as number", "tool_choice", 1),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_a_value_that_cannot_be_used_is_refused(case: Bad) -> None:
    """The error names the option and never the raw validation exception."""
    with pytest.raises(ConfigError) as caught:
        resolve_options({case.name: case.value})
    assert caught.value.code == Code.INVALID_OPTION
    assert case.name in caught.value.message


@pytest.mark.parametrize("name", FIELDS)
def test_null_means_unset(name: str) -> None:
    """A null is null where that has a meaning, and the default everywhere else."""
    options = resolve_options({name: None}).options
    expected = None if name in NULLABLE else getattr(Options(), name)
    assert getattr(options, name) == expected


def test_null_switches_off_the_limit_on_repeated_calls() -> None:
    """A limit whose default is a number can be taken away."""
    assert resolve_options({"max_identical_calls": None}).options.max_identical_calls is None


def test_origins_are_told_for_every_option() -> None:
    """Defaults, callers and named origins are told apart."""
    resolved = resolve_options(
        {"max_turns": 3, "stream": True, "deadline_s": 1},
        {"stream": "preset:fast", "request_overrides.seed": "config"},
    )
    assert set(FIELDS) <= set(resolved.origins)
    assert resolved.origins["max_turns"] == "caller"
    assert resolved.origins["stream"] == "preset:fast"
    assert resolved.origins["tool_use_mode"] == "default"
    assert resolved.origins["request_overrides.seed"] == "config"
    assert resolved.options.deadline_s == 1.0


def test_an_object_names_every_origin_of_its_keys() -> None:
    """The preset that set a key is not hidden behind the caller, nor the other way round."""
    values = {"request_overrides": {"seed": 1, "provider": {"order": ["a"]}}}
    origins = {"request_overrides.provider.order": "preset:openrouter"}
    resolved = resolve_options(values, origins)
    assert resolved.origins["request_overrides"] == "preset:openrouter"
    both = resolve_options(values, origins | {"request_overrides.seed": "caller"})
    assert both.origins["request_overrides"] == "preset:openrouter, caller"
    assert resolve_options(values).origins["request_overrides"] == "caller"


def test_lists_become_tuples() -> None:
    """Options never change, also when they were given as lists."""
    options = resolve_options({"tool_allowlist": ["a", "b"]}).options
    assert options.tool_allowlist == ("a", "b")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        pytest.param("strip_code_fense", "'strip_code_fence'", id="misspelt"),
        pytest.param("Strip_Code_Fence", "'strip_code_fence'", id="case"),
        pytest.param("nothing like it", "Known: *, ", id="unlike any"),
        pytest.param("rescue_from_error_body", "'*' stands for all", id="cannot be switched off"),
    ],
)
def test_a_rule_that_does_not_exist_cannot_be_switched_off(name: str, hint: str) -> None:
    """A misspelt rule would stay on in silence, and a comparison would be wrong."""
    with pytest.raises(ConfigError) as caught:
        resolve_options({"disabled_rules": ["quote_key", name]}, {"disabled_rules": "config"})
    assert caught.value.code == Code.INVALID_OPTION
    assert f"disabled_rules names {name!r} (from config)" in caught.value.message
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("name", ["*", "assign_call_id", "strip_code_fence", "quote_bare_words"])
def test_every_rule_of_reading_can_be_switched_off(name: str) -> None:
    """Those about ids too, when they are named."""
    assert resolve_options({"disabled_rules": [name]}).options.disabled_rules == (name,)
