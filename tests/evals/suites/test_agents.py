"""The four stages and the pipeline, played through the real loop."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evals.scenarios.playing import Played, perfect, play
from surecall.base.errors import ConfigError
from surecall.base.records import ModelRequest, ToolSpec
from surecall.evals.cases import Case, Ideal, IdealCall, Suite
from surecall.evals.facts import collect_facts
from surecall.evals.models import find_contenders, open_transport
from surecall.evals.records import Cell, Unit
from surecall.evals.strategies import settle
from surecall.evals.suites.agents import AgentCase, AgentsSuite
from surecall.evals.taxonomy import MEANINGS
from surecall.evals.trial import run_trial
from surecall.models.config import Config
from surecall.models.profiles import Catalog
from surecall.models.transport import assistant, tool_call

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "agents-suite.md"
SCENARIOS = ("intent", "table", "column_prune", "sql_generation", "pipeline")
WHY = "because"

INTENT = {"workspace_id": "shop", "confidence": 0.8, "reasoning": WHY}
TABLES = {"relevant_tables": ["customers", "orders"], "reasoning": WHY}
COLUMNS = {
    "relevant_columns": ["customers.id", "customers.name", "orders.customer_id"],
    "irrelevant_columns": [
        "customers.city",
        "customers.email",
        "customers.joined_on",
        "orders.id",
        "orders.ordered_on",
        "orders.status",
    ],
    "reasoning": WHY,
}
SQL = {
    "sql_query": "SELECT name FROM customers WHERE NOT EXISTS "
    "(SELECT 1 FROM orders WHERE orders.customer_id = customers.id)",
    "explanation": WHY,
    "tables_used": ["orders", "customers"],
}
BY_TOOL = {
    "classify_intent": INTENT,
    "select_tables": TABLES,
    "prune_columns": COLUMNS,
    "generate_sql": SQL,
}
TOOLS = dict(zip(SCENARIOS, BY_TOOL, strict=False))


def find(scenario: str, question: str = "shop-05") -> AgentCase:
    """Return one case."""
    (case,) = [case for case in AgentsSuite().cases(scenario) if case.id == question]
    return case


def say(tool: str, number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a reply that makes the right call for `shop-05`, with some arguments changed."""
    arguments = {**BY_TOOL[tool], **changes}
    arguments = {key: value for key, value in arguments.items() if value is not ...}
    return assistant(None, tool_call(tool, arguments, f"call_{number}"))


def results_of(played: Played) -> list[tuple[str, bool, tuple[str, ...]]]:
    """Return what every call was answered with."""
    trace = played.attempt.trace
    results = [result for turn in trace.turns for result in turn.results]
    return [(result.name, result.ok, result.envelope.error_codes) for result in results]


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_perfect_model_passes_every_question(scenario: str) -> None:
    """With what `ideal` says, both verdicts are yes and every call is exact."""
    cases = AgentsSuite().cases(scenario)
    assert len(cases) == 40
    calls = 4 if scenario == "pipeline" else 1
    for case in cases:
        played = await play(case, perfect(case))
        assert played.grades.original.ok, (case.id, played.grades.original)
        assert played.grades.strict.ok, (case.id, played.grades.strict)
        assert played.grades.exact == (True,) * calls, case.id


@dataclass(frozen=True)
class Mistake:
    """One wrong answer of one stage, and what the verdicts make of it."""

    id: str
    scenario: str
    changes: dict[str, Any]
    strict: tuple[str, ...]
    original: tuple[str, ...] = ()


REFUSED = ("RUN_FAILED", "CALL_NOT_ACCEPTED")
NOT_SOUND = ("RUN_FAILED", "CALL_NOT_VALID")

MISTAKES = [
    Mistake("other workspace", "intent", {"workspace_id": "clinic"}, ("INTENT_WRONG",)),
    Mistake("unknown workspace", "intent", {"workspace_id": "mobility"}, REFUSED, NOT_SOUND),
    Mistake("too sure", "intent", {"confidence": 1.5}, REFUSED, NOT_SOUND),
    Mistake("sure in words", "intent", {"confidence": "very"}, REFUSED, NOT_SOUND),
    Mistake("no reasoning", "intent", {"reasoning": ...}, REFUSED, NOT_SOUND),
    Mistake(
        "a table too few",
        "table",
        {"relevant_tables": ["customers"]},
        ("TABLES_MISSING",),
    ),
    Mistake(
        "a table too many",
        "table",
        {"relevant_tables": ["customers", "orders", "order_items"]},
        ("TABLES_NEEDLESS",),
    ),
    Mistake("unknown table", "table", {"relevant_tables": ["order"]}, REFUSED, NOT_SOUND),
    Mistake(
        "a column too few",
        "column_prune",
        {
            "relevant_columns": ["customers.name", "orders.customer_id"],
            "irrelevant_columns": [*COLUMNS["irrelevant_columns"], "customers.id"],
        },
        ("COLUMNS_MISSING",),
    ),
    Mistake(
        "a column too many",
        "column_prune",
        {
            "relevant_columns": [*COLUMNS["relevant_columns"], "customers.city"],
            "irrelevant_columns": COLUMNS["irrelevant_columns"][1:],
        },
        ("COLUMNS_NEEDLESS",),
    ),
    Mistake(
        "a key more is no harm",
        "column_prune",
        {
            "relevant_columns": [*COLUMNS["relevant_columns"], "orders.id"],
            "irrelevant_columns": [
                name for name in COLUMNS["irrelevant_columns"] if name != "orders.id"
            ],
        },
        (),
    ),
    Mistake(
        "a column left out of both",
        "column_prune",
        {"irrelevant_columns": COLUMNS["irrelevant_columns"][1:]},
        ("COLUMNS_UNSORTED",),
    ),
    Mistake(
        "a column in both",
        "column_prune",
        {"irrelevant_columns": [*COLUMNS["irrelevant_columns"], "customers.id"]},
        ("COLUMNS_UNSORTED",),
    ),
    Mistake(
        "unknown column",
        "column_prune",
        {"relevant_columns": ["customers.surname"]},
        REFUSED,
        NOT_SOUND,
    ),
    Mistake(
        "column without its table",
        "column_prune",
        {"relevant_columns": ["name"]},
        REFUSED,
        NOT_SOUND,
    ),
    Mistake(
        "other rows",
        "sql_generation",
        {"sql_query": "SELECT name FROM customers", "tables_used": ["customers"]},
        ("SQL_WRONG",),
    ),
    Mistake(
        "a column more in the answer",
        "sql_generation",
        {"sql_query": SQL["sql_query"].replace("SELECT name", "SELECT id, name")},
        ("SQL_WRONG",),
    ),
    Mistake(
        "the answer itself",
        "sql_generation",
        {"sql_query": "SELECT 'Hana Novak'", "tables_used": []},
        ("SQL_NOT_GENERAL",),
    ),
    Mistake(
        "other tables named",
        "sql_generation",
        {"tables_used": ["customers"]},
        ("TABLES_USED_WRONG",),
    ),
    Mistake(
        "a query that is wrong is still a text",
        "sql_generation",
        {"sql_query": "SELECT nothing FROM nowhere"},
        REFUSED,
        ("RUN_FAILED",),
    ),
    Mistake(
        "unknown table named",
        "sql_generation",
        {"tables_used": ["clients"]},
        REFUSED,
        ("RUN_FAILED",),
    ),
    Mistake("no query", "sql_generation", {"sql_query": None}, REFUSED, NOT_SOUND),
    Mistake(
        "a table that is no text", "sql_generation", {"tables_used": {"a": 1}}, REFUSED, NOT_SOUND
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.id)
async def test_a_mistake_is_seen(mistake: Mistake) -> None:
    """The strict verdict asks for the right answer, the loose one only for the form."""
    case = find(mistake.scenario)
    script = [say(TOOLS[mistake.scenario], **mistake.changes), "Done."]
    played = await play(case, script)
    assert played.strict_codes == list(mistake.strict)
    assert played.original_codes == list(mistake.original)
    is_right = not mistake.strict
    assert played.grades.exact == (is_right,)


async def test_no_call_at_all_is_told_as_that() -> None:
    """A model that only talks fails both verdicts."""
    played = await play(find("intent"), ["It is about the shop."])
    expected = ["RUN_FAILED", "STAGE_NOT_CALLED"]
    assert played.strict_codes == played.original_codes == expected


async def test_a_mistake_that_is_corrected_counts_as_right() -> None:
    """The refusal names the table that was probably meant, and the second call is judged."""
    script = [say("select_tables", relevant_tables=["orders", "customer"]), say("select_tables", 2)]
    played = await play(find("table"), [*script, "Done."])
    assert played.grades.original.ok
    assert played.grades.strict.ok
    assert results_of(played)[0] == ("select_tables", False, ("ARGUMENT_ERROR",))
    told = played.attempt.trace.turns[0].results[0].envelope.errors[0]
    assert told.message == "there is no table 'customer'."
    assert told.hint == "Did you mean 'customers'?"
    assert played.grades.exact == (False, True)
    assert played.grades.state["refused"] == [{"stage": "table", "code": "ARGUMENT_ERROR"}]


@pytest.mark.parametrize(
    ("sql", "code", "reasons"),
    [
        ("DROP TABLE customers", "SQL_NOT_ALLOWED", ["CHANGE_TRIED"]),
        ("SELECT name FROM customers; DELETE FROM orders", "SQL_NOT_ALLOWED", ["CHANGE_TRIED"]),
        ("SELECT city FROM customers", "SQL_NOT_ALLOWED", []),
        ("SELECT nam FROM customers", "SQL_ERROR", []),
    ],
)
async def test_the_model_reads_why_a_query_was_refused(
    sql: str, code: str, reasons: list[str]
) -> None:
    """An error has a code, and a better query can follow, unless the first was to do harm."""
    script = [say("generate_sql", sql_query=sql), say("generate_sql", 2), "Done."]
    played = await play(find("sql_generation"), script)
    assert results_of(played) == [("generate_sql", False, (code,)), ("generate_sql", True, ())]
    assert played.strict_codes == reasons


async def test_a_stage_forces_its_tool_and_shows_only_its_context() -> None:
    """The request is as the note has it: one tool, and a choice that names it."""
    prepared = find("column_prune").prepare(1)
    assert prepared.options["tool_choice"] == "prune_columns"
    assert [tool.name for tool in prepared.tools] == ["prune_columns"]
    assert prepared.system is not None
    assert "orders.status (TEXT): open, shipped" in prepared.system
    assert "products" not in prepared.system


# the pipeline


async def test_each_stage_gives_the_next_what_it_needs() -> None:
    """Results carry tables, then columns, then the schema, then rows."""
    script = [say(tool, number) for number, tool in enumerate(BY_TOOL)]
    played = await play(find("pipeline"), [*script, "Hana Novak has never ordered."])
    assert played.grades.strict.ok
    data = [turn.results[0].envelope.data for turn in played.attempt.trace.turns if turn.results]
    assert [table["name"] for table in data[0]["tables"]] == [
        "customers",
        "products",
        "orders",
        "order_items",
    ]
    assert data[1]["columns"][0] == "customers.id (INTEGER)"
    assert "email" not in data[2]["schema"]
    assert data[3] == {"columns": ["name"], "rows": [["Hana Novak"]], "complete": True}


async def test_a_stage_out_of_turn_is_refused() -> None:
    """Nothing can be chosen before the workspace is."""
    script = [say("select_tables"), *(say(tool, n) for n, tool in enumerate(BY_TOOL, 2)), "Done."]
    played = await play(find("pipeline"), script)
    assert results_of(played)[0] == ("select_tables", False, ("ARGUMENT_ERROR",))
    assert played.grades.strict.ok


async def test_what_was_pruned_cannot_be_queried() -> None:
    """The query is held to the columns that were kept; keeping one more lets it pass."""
    few = {
        "relevant_columns": ["customers.name"],
        "irrelevant_columns": ["orders.customer_id", "orders.status"],
    }
    tools = ["classify_intent", "select_tables"]
    script = [say(tool, number) for number, tool in enumerate(tools)]
    script += [say("prune_columns", 3, **few), say("generate_sql", 4)]
    script += [say("prune_columns", 5), say("generate_sql", 6)]
    played = await play(find("pipeline"), [*script, "Done."])
    assert results_of(played)[3] == ("generate_sql", False, ("SQL_NOT_ALLOWED",))
    assert results_of(played)[5] == ("generate_sql", True, ())
    assert played.grades.strict.ok


async def test_a_choice_made_again_takes_back_what_was_built_on_it() -> None:
    """After another workspace the tables have to be chosen again."""
    script = [
        say("classify_intent", 1, workspace_id="clinic"),
        say("select_tables", 2, relevant_tables=["doctors"]),
        say("classify_intent", 3),
        say("prune_columns", 4),
        say("select_tables", 5),
        say("prune_columns", 6),
        say("generate_sql", 7),
        "Done.",
    ]
    played = await play(find("pipeline"), script)
    assert [ok for _, ok, _ in results_of(played)] == [True, True, True, False, True, True, True]
    assert played.grades.strict.ok


async def test_needless_tables_do_not_spoil_a_right_answer() -> None:
    """In the pipeline only the workspace and the answer decide."""
    wide = {"relevant_tables": ["customers", "orders", "products"]}
    script = [
        say("classify_intent", 1),
        say("select_tables", 2, **wide),
        say("prune_columns", 3),
        say("generate_sql", 4),
        "Done.",
    ]
    played = await play(find("pipeline"), script)
    assert played.grades.strict.ok
    assert played.grades.exact == (True, False, True, True)


async def test_a_pipeline_that_stops_half_way_says_where() -> None:
    """The stages that were not called are named."""
    played = await play(find("pipeline"), [say("classify_intent"), "I give up."])
    missing = [reason.message for reason in played.grades.strict.reasons]
    assert missing == ["table", "column_prune", "sql_generation"]
    assert set(played.strict_codes) == set(played.original_codes) == {"STAGE_NOT_CALLED"}


async def test_the_wrong_workspace_is_wrong_whatever_follows() -> None:
    """Forms are right all the way, and the strict verdict is no."""
    script = [
        say("classify_intent", 1, workspace_id="library"),
        say("select_tables", 2, relevant_tables=["members"]),
        say(
            "prune_columns",
            3,
            relevant_columns=["members.name"],
            irrelevant_columns=["members.level"],
        ),
        say("generate_sql", 4, sql_query="SELECT name FROM members", tables_used=["members"]),
        "Done.",
    ]
    played = await play(find("pipeline"), script)
    assert played.grades.original.ok
    assert played.strict_codes == ["INTENT_WRONG", "SQL_WRONG"]


# what a good model does


async def test_a_perfect_model_makes_up_for_what_went_wrong_before() -> None:
    """After a wrong workspace was accepted, the right one is chosen and all that follows."""
    case = find("pipeline")
    ideal, sent = perfect(case), []

    def clumsy(wire: Any) -> Any:
        """Choose the wrong workspace first, and go on from there."""
        sent.append(wire)
        return say("classify_intent", 99, workspace_id="clinic") if len(sent) == 1 else ideal(wire)

    played = await play(case, clumsy)
    assert played.grades.strict.ok
    assert [name for name, _, _ in results_of(played)] == ["classify_intent", *BY_TOOL]


def test_without_tools_there_is_only_an_answer() -> None:
    """When asked without tools, a good model talks."""
    request = ModelRequest(model="m", messages=())
    assert find("sql_generation").ideal(request) == Ideal(text="Done.")
    assert find("pipeline").ideal(request) == Ideal(text="The answer is: Hana Novak.")


def test_the_ideal_call_of_a_stage_is_the_known_answer() -> None:
    """The known query is what a good model sends."""
    tool = ToolSpec(name="generate_sql")
    ideal = find("sql_generation", "shop-01").ideal(
        ModelRequest(model="m", messages=(), tools=(tool,))
    )
    assert ideal is not None
    assert ideal.calls == (
        IdealCall(
            "generate_sql",
            {
                "sql_query": "SELECT COUNT(*) FROM customers WHERE city = 'Oslo'",
                "explanation": "It reads the rows that the question asks about.",
                "tables_used": ["customers"],
            },
        ),
    )


# the suite


def test_the_suite_is_one_of_suites() -> None:
    """Names, order and version are as an experiment needs them."""
    suite: Suite = AgentsSuite()
    assert (suite.name, tuple(suite.scenarios())) == ("agents", SCENARIOS)
    case: Case = suite.cases("table")[0]
    assert (case.scenario, case.id, case.control) == ("table", "shop-01", False)
    assert suite.version == AgentsSuite().version
    assert len({AgentsSuite().version, AgentsSuite(every=4).version}) == 2


def test_a_sample_of_the_questions_can_be_taken() -> None:
    """Every n-th question, beginning with the first."""
    ids = [case.id for case in AgentsSuite(every=13).cases("intent")]
    assert ids == ["shop-01", "shop-14", "library-13", "clinic-13"]


def test_an_unknown_scenario_is_refused_with_the_closest() -> None:
    """A misspelt stage is no empty experiment."""
    with pytest.raises(ConfigError, match="Did you mean 'sql_generation'"):
        AgentsSuite().cases("sql_generator")


def test_every_reason_has_a_sentence_and_a_case() -> None:
    """No reason is without words, and the table above meets all but those of whole runs.

    Those about the calls as made and about the final text are in the suite of cheats.
    """
    assert all(text.endswith(".") for text in MEANINGS["agents"].values())
    met = {code for mistake in MISTAKES for code in (*mistake.strict, *mistake.original)}
    assert set(MEANINGS["agents"]) - met == {
        "STAGE_NOT_CALLED",
        "CHANGE_TRIED",
        "SEVERAL_ANSWERS",
        "SEVERAL_CALLS_AT_ONCE",
        "ANSWER_WRONG",
        "UNKNOWN_TOOL_CALLED",
        "CALL_NOT_MADE",
        "EMPTY_FINAL",
        "TEXT_CALL_LEAKED",
    }


def test_the_page_lists_every_reason() -> None:
    """Each reason is in the table of the documentation, once."""
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    named = " ".join(row.split("|")[1] for row in rows)
    assert {code: named.count(f"`{code}`") for code in MEANINGS["agents"]} == dict.fromkeys(
        MEANINGS["agents"], 1
    )


async def test_facts_know_which_calls_were_exact() -> None:
    """The grades fit the calls of the trace, one by one."""
    case = find("table")
    played = await play(case, [say("select_tables", relevant_tables=["orders"]), "Done."])
    facts = collect_facts(played.attempt.trace, exact=played.grades.exact)
    (call,) = facts.calls
    assert (call.exact, call.ok, call.valid_before, call.structured) == (False, True, True, True)


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_simulated_model_can_be_tried(scenario: str) -> None:
    """A steady model of the zoo passes through the same door as an experiment uses."""
    (contender,) = find_contenders("zoo:steady", config=Config())
    settled = settle("production", contender, catalog=Catalog.builtin())
    cell = Cell(model=contender.label, suite="agents", scenario=scenario)
    case = find(scenario, "clinic-10")
    unit = Unit(index=0, cell=cell, case=case.id)
    row, body = await run_trial(unit, case, contender, open_transport, settled)
    assert (row.original_ok, row.strict_ok, row.error) == (True, True, None)
    assert row.simulated
    assert len(body.state["accepted"]) == (4 if scenario == "pipeline" else 1)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_a_model_is_sent_does_not_give_the_query_away(scenario: str) -> None:
    """No known query is in any prompt or tool."""
    for case in AgentsSuite().cases(scenario):
        prepared = case.prepare(0)
        sent = f"{prepared.system} {prepared.messages} {prepared.tools.specs()}"
        assert case.question.sql.strip() not in sent
