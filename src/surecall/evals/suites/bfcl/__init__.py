"""The suite `bfcl`: cases of the Berkeley leaderboard, from its own data."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.records import Message, ModelRequest, ToolSpec, clip
from surecall.evals.cases import (
    Attempt,
    Case,
    Grades,
    Ideal,
    IdealCall,
    Prepared,
    make_grades,
    refuse_scenario,
    run_failed,
)
from surecall.evals.made_calls import check_plain_answer
from surecall.evals.records import Reason, Verdict
from surecall.evals.scenarios.scene import Conversation
from surecall.evals.suites.bfcl.data import (
    BfclEntry,
    BfclFiles,
    find_bfcl,
    list_files,
    refuse_data,
    tool_names,
    tools_of,
)
from surecall.evals.suites.bfcl.rules import check_calls
from surecall.evals.suites.bfcl.worlds import APIS, READS, ApiSource, Worlds, is_same_state
from surecall.evals.suites.single_turn import SingleTurnCase, Wish
from surecall.tools import ToolRegistry

__all__ = ["BFCL_CATEGORIES", "SINGLE_TURN", "BfclSuite", "case_of"]

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
    """The words of the user, turn by turn."""
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


_MAX_REPLIES: Final = 21
"""Within one turn of the user: twenty with calls, as the leaderboard allows, and the answer."""
_MAX_SHOWN: Final = 120


class Turn(Struct, frozen=True):
    """One turn of the user as it was played."""

    calls: tuple[IdealCall, ...]
    results: tuple[str, ...]
    """What each call returned."""
    state: Mapping[str, Mapping[str, Any]]
    """What each API remembered afterwards."""


class Play:
    """Plays the turns of a conversation on fresh APIs, and keeps what came of them."""

    def __init__(self, conversation: BfclConversation) -> None:
        self.worlds = Worlds(conversation.source, conversation.apis, conversation.config)
        self.turns: list[Turn] = []
        self._calls: list[IdealCall] = []
        self._results: list[str] = []

    def call(self, call: IdealCall) -> Any:
        """Make a call, and return what the model is shown."""
        outcome = self.worlds.call(call.name, call.arguments)
        self._calls.append(call)
        self._results.append(outcome.text)
        return outcome.value

    def end_turn(self) -> None:
        """Keep what the turn left behind."""
        turn = Turn(tuple(self._calls), tuple(self._results), self.worlds.snapshot())
        self.turns.append(turn)
        self._calls, self._results = [], []


def play_turns(
    conversation: BfclConversation, turns: Sequence[Sequence[IdealCall]]
) -> tuple[Turn, ...]:
    """Make the calls of each turn, and return what came of them."""
    play = Play(conversation)
    for calls in turns:
        for call in calls:
            play.call(call)
        play.end_turn()
    return tuple(play.turns)


def check_state(expected: Sequence[Turn], made: Sequence[Turn]) -> Iterator[Reason]:
    """Yield what is in another state after a turn than it should be."""
    for number, (wanted, turn) in enumerate(zip(expected, made, strict=False), start=1):
        if not wanted.calls:
            continue
        for api, fields in wanted.state.items():
            for name, value in fields.items():
                if not is_same_state(turn.state[api][name], value):
                    yield Reason("wrong_state", f"turn {number}: {name} of {api}")


def check_results(expected: Sequence[Turn], made: Sequence[Turn]) -> Iterator[Reason]:
    """Yield turns that were not played or had no call, and calls whose result never came."""
    so_far: list[str] = []
    for number, wanted in enumerate(expected, start=1):
        if number > len(made):
            yield Reason("turn_not_played", f"turn {number}")
            continue
        turn = made[number - 1]
        so_far += turn.results
        if wanted.calls and not turn.calls:
            yield Reason("no_call", f"turn {number}")
            continue
        left = list(so_far)
        for call, result in zip(wanted.calls, wanted.results, strict=True):
            if result in left:
                left.remove(result)
            else:
                shown = clip(f"{call.name} {call.arguments}", _MAX_SHOWN)
                yield Reason("missing_result", f"turn {number}: {shown}")


class ConversationCase(Struct, frozen=True, kw_only=True):
    """A conversation, played on APIs of its own.

    The strict verdict is the leaderboard's. The loose one asks only whether a function that was
    expected ran in each turn. `exact` tells for each call whether it is an expected one.
    """

    scenario: str
    conversation: BfclConversation
    control: bool = False
    drawn: bool = True

    @property
    def id(self) -> str:
        """The leaderboard's name of the case."""
        return self.conversation.id

    def prepare(self, seed: int) -> Prepared:
        """Set up one trial; what the APIs leave to chance is the same in each."""
        play = Play(self.conversation)

        async def run(name: str, arguments: dict[str, Any]) -> Any:
            return play.call(IdealCall(name, arguments))

        def reply(answer: str) -> tuple[Message, ...]:
            play.end_turn()
            turns = self.conversation.turns
            return turns[len(play.turns)] if len(play.turns) < len(turns) else ()

        return Prepared(
            tools=ToolRegistry.from_executor(self._list_tools(), run),
            messages=self.conversation.turns[0],
            reply=reply,
            options={"max_turns": _MAX_REPLIES},
            state=play,
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Compare each turn with what the expected calls do."""
        made: list[Turn] = attempt.prepared.state.turns
        expected = play_turns(self.conversation, self.conversation.expected)
        failure = [] if attempt.error is None else [run_failed(attempt.error)]
        wanted = [call for turn in expected for call in turn.calls]
        return make_grades(
            original=Verdict.of([*failure, *_check_loosely(expected, made)]),
            state=check_state(expected, made),
            process=[*failure, *check_results(expected, made)],
            answer=check_plain_answer(attempt, may_be_empty=True),
            exact=tuple(
                IdealCall(call.name, call.arguments or {}) in wanted for _, call, _ in attempt.calls
            ),
            kept={"turns": [_describe_turn(turn) for turn in made]},
        )

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Make the next expected call of the turn; then answer."""
        turn, said = self._find_turn(request.messages)
        waiting = list(self.conversation.expected[turn])
        for made in Conversation(replace(request, messages=said)).calls:
            if made.ok and waiting and made.name == waiting[0].name:
                del waiting[0]
        return Ideal(calls=(waiting[0],)) if waiting else Ideal(text="Done.")

    def _find_turn(self, messages: tuple[Message, ...]) -> tuple[int, tuple[Message, ...]]:
        """Return the turn that a request belongs to, and the messages since it began."""
        turn, begin = -1, 0
        for place, message in enumerate(messages):
            following = self.conversation.turns[turn + 1 : turn + 2]
            if following and message.role == "user" and following[0][-1].text in message.text:
                turn, begin = turn + 1, place
        return max(turn, 0), messages[begin:]

    def _list_tools(self) -> list[ToolSpec]:
        return [
            tool if tool.name in READS else replace(tool, effect="write")
            for tool in tools_of(self.conversation.functions)
        ]


def _check_loosely(expected: Sequence[Turn], made: Sequence[Turn]) -> Iterator[Reason]:
    for number, wanted in enumerate(expected, start=1):
        names = {call.name for call in wanted.calls}
        ran = made[number - 1].calls if number <= len(made) else ()
        if names and not any(call.name in names for call in ran):
            yield Reason("no_call", f"turn {number}: no expected function was called")


def _describe_turn(turn: Turn) -> dict[str, Any]:
    return {
        "calls": [
            {"name": call.name, "arguments": call.arguments, "result": result}
            for call, result in zip(turn.calls, turn.results, strict=True)
        ]
    }


SINGLE_TURN: Final = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "irrelevance",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "live_irrelevance",
    "live_relevance",
)
"""The categories that are one request each, with functions in Python."""
BFCL_CATEGORIES: Final = (*SINGLE_TURN, CONVERSATIONS)
"""Every category that is offered."""

_CHECKER: Final = "3"
"""Changes with the rule of the verdicts."""


class BfclSuite:
    """The leaderboard's cases, each category a scenario; judged by its own rule.

    Args:
        path: A wheel of `bfcl-eval`; without it the installed package is used.
        every: Take only each n-th case of a category, beginning with the first.
    """

    name = "bfcl"

    def __init__(self, path: "str | Path | None" = None, *, every: int = 1) -> None:
        self._path = path
        self._every = every
        self._files: BfclFiles | None = None
        self._cases: dict[str, tuple[Case, ...]] = {}

    @property
    def version(self) -> str:
        """Version of the package, hash of its data, version of the checks, and the sampling."""
        files = self._open()
        step = f"/{self._every}" if self._every > 1 else ""
        names = [name for category in SINGLE_TURN for name in list_files(category)]
        fingerprint = files.fingerprint((*names, *list_conversation_files()))
        return f"{files.version}+{fingerprint}.{_CHECKER}{step}"

    def scenarios(self) -> Sequence[str]:
        """Name the categories."""
        return BFCL_CATEGORIES

    def cases(self, scenario: str) -> Sequence[Case]:
        """Return the cases of a category, in the order of its file."""
        if scenario not in BFCL_CATEGORIES:
            raise refuse_scenario(self.name, scenario, BFCL_CATEGORIES)
        if scenario not in self._cases:
            self._cases[scenario] = tuple(self._read(scenario)[:: self._every])
        return self._cases[scenario]

    def _read(self, scenario: str) -> Sequence[Case]:
        files = self._open()
        if scenario == CONVERSATIONS:
            return [
                ConversationCase(scenario=scenario, conversation=conversation)
                for conversation in read_conversations(files)
            ]
        return [case_of(scenario, entry) for entry in files.entries(scenario)]

    def _open(self) -> BfclFiles:
        if self._files is None:
            self._files = find_bfcl(self._path)
        return self._files


def case_of(scenario: str, entry: BfclEntry) -> SingleTurnCase:
    """Make a case of what the package states."""
    return SingleTurnCase(
        scenario=scenario,
        id=entry.id,
        messages=entry.messages,
        tools=tools_of(entry.functions),
        functions={function["name"]: function for function in entry.functions},
        names={
            tool: function["name"]
            for tool, function in zip(tool_names(entry.functions), entry.functions, strict=True)
        },
        answers=entry.answers or (),
        wish=_find_wish(scenario),
        check=check_calls,
    )


def _find_wish(scenario: str) -> Wish:
    if "irrelevance" in scenario:
        return "no_call"
    return "a_call" if "relevance" in scenario else "calls"
