"""The leaderboard's conversations: what the user says in each turn, and the calls that follow."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from surecall.base.records import Message
from surecall.evals.cases import IdealCall

from .data import BfclFiles, list_files, refuse_data
from .worlds import APIS, ApiSource

CONVERSATIONS: Final = "multi_turn_base"
"""The category of conversations."""
_KINDS: Final[Mapping[str, Any]] = {
    "array": list,
    "boolean": bool,
    "dict": dict,
    "float": (int, float),
    "integer": int,
    "string": str,
}


class BfclConversation(Struct, frozen=True, kw_only=True):
    """One case as the package states it."""

    id: str
    turns: tuple[tuple[Message, ...], ...]
    """What the user says, turn by turn."""
    functions: tuple[dict[str, Any], ...]
    apis: tuple[str, ...]
    config: dict[str, dict[str, Any]]
    """The state that each API begins with."""
    source: ApiSource
    """Where the APIs come from."""
    expected: tuple[tuple[IdealCall, ...], ...]
    """The calls of each turn; a turn without any expects nothing in particular."""


def list_conversation_files() -> tuple[str, ...]:
    """Return every file that conversations are read from."""
    return (*list_files(CONVERSATIONS), *map(_name_doc, APIS))


def read_conversations(files: BfclFiles) -> tuple[BfclConversation, ...]:
    """Read all conversations, with their functions and expected calls.

    Raises:
        ConfigError: `SUITE_DATA_UNREADABLE`, also when a case needs an API that is not known here.
    """
    questions, answers = list_files(CONVERSATIONS)
    source = ApiSource(files)
    docs = {api: tuple(files.rows(_name_doc(api))) for api in APIS}
    try:
        expected = {row["id"]: row["ground_truth"] for row in files.rows(answers)}
        return tuple(
            _read_conversation(row, expected[row["id"]], docs, source)
            for row in files.rows(questions)
        )
    except (KeyError, TypeError, ValueError, SyntaxError) as error:
        raise refuse_data(questions, f"a row is not as expected ({error!r})") from error


def parse_call(text: str, functions: Mapping[str, Mapping[str, Any]]) -> IdealCall:
    """Read a call as Python writes it; arguments without a name are named by their place.

    Raises:
        ValueError: It is something else, or calls no function that is known.
    """
    call = ast.parse(text.strip(), mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(f"{text!r} is not a call")
    function = functions.get(call.func.id)
    if function is None:
        raise ValueError(f"{call.func.id!r} is not a function of the case")
    places = list(function["parameters"]["properties"])
    arguments = {places[place]: value for place, value in enumerate(call.args)}
    arguments |= {str(keyword.arg): keyword.value for keyword in call.keywords}
    return IdealCall(
        call.func.id, {name: ast.literal_eval(value) for name, value in arguments.items()}
    )


def _read_conversation(
    row: dict[str, Any],
    expected: Sequence[Sequence[str]],
    docs: Mapping[str, Any],
    source: ApiSource,
) -> BfclConversation:
    apis: tuple[str, ...] = tuple(row["involved_classes"])
    unknown = [api for api in apis if api not in APIS]
    if unknown:
        raise ValueError(f"{row['id']} needs the API {', '.join(unknown)}")
    functions = {function["name"]: function for api in apis for function in docs[api]}
    turns = tuple(
        tuple(Message(message["role"], message["content"]) for message in turn)
        for turn in row["question"]
    )
    calls = tuple(tuple(parse_call(text, functions) for text in turn) for turn in expected)
    if len(calls) != len(turns):
        raise ValueError(f"{row['id']} has {len(turns)} turns and answers to {len(calls)}")
    return BfclConversation(
        id=row["id"],
        turns=turns,
        functions=tuple(_admit_calls(functions, [call for turn in calls for call in turn])),
        apis=apis,
        config=row["initial_config"],
        source=source,
        expected=calls,
    )


def _admit_calls(
    functions: Mapping[str, dict[str, Any]], calls: Sequence[IdealCall]
) -> Iterator[dict[str, Any]]:
    """Yield the functions, with any value allowed where an expected one has another type."""
    for name, function in functions.items():
        properties = dict(function["parameters"]["properties"])
        for call in calls:
            for key, value in call.arguments.items() if call.name == name else ():
                kinds = _KINDS.get(properties[key]["type"], object)
                if not isinstance(value, kinds):
                    properties[key] = {**properties[key], "type": "any"}
        yield {**function, "parameters": {**function["parameters"], "properties": properties}}


def _name_doc(api: str) -> str:
    return f"multi_turn_func_doc/{APIS[api]}.json"
