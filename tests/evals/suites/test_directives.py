"""The suite of directives and its tool calls, with simulated models."""

from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.records import ModelRequest
from surecall.evals.cases import Attempt, Case
from surecall.evals.suites import load_suite
from surecall.evals.suites.directives import TASKS, DirectiveCase, DirectivesSuite, make_registry
from surecall.loop import Session
from surecall.loop.directives import Envelope, EnvelopeForm
from surecall.models.transport import ScriptedTransport
from surecall.text import encode_text

SUITE = DirectivesSuite()


async def play(case: Case, replies: list[Any], **options: Any) -> Attempt:
    """Let a script play a case."""
    prepared = case.prepare(0)
    session = Session(
        model="m",
        preset=(),
        transport=ScriptedTransport(replies),
        tools=prepared.tools,
        system=prepared.system,
        **{**prepared.options, **options},
    )
    error = result = None
    try:
        if prepared.output is None:
            result = await session.run(prepared.messages)
        else:
            result = await session.run(prepared.messages, output=prepared.output)
    except Exception as raised:
        error = raised
    trace = getattr(error, "trace", None) if result is None else result.trace
    text = "" if result is None else result.text
    return Attempt(prepared=prepared, result=result, error=error, trace=trace, text=text)


def find_case(name: str) -> Case:
    """Return the case of a scenario."""
    (case,) = SUITE.cases(name)
    return case


def test_the_suite_has_each_task_both_ways() -> None:
    """Directives and tool calls are in one report."""
    assert load_suite("directives").name == "directives"
    assert SUITE.scenarios() == (
        *("show_form", "toast", "patch_draft", "request_upload"),
        *("show_form_by_tool", "toast_by_tool", "patch_draft_by_tool", "request_upload_by_tool"),
    )


@pytest.mark.parametrize("name", SUITE.scenarios())
async def test_the_ideal_model_passes_both_verdicts(name: str) -> None:
    """What a good model does is right, loosely and strictly."""
    case = find_case(name)
    request = ModelRequest(model="m", messages=())
    ideal = case.ideal(request)
    assert ideal is not None
    replies: list[Any] = [ideal.text]
    if ideal.calls:
        call = ideal.calls[0]
        function = {"name": call.name, "arguments": encode_text(call.arguments)}
        calls = [{"id": "c", "type": "function", "function": function}]
        replies = [{"role": "assistant", "content": None, "tool_calls": calls}, "Done."]
    grades = case.grade(await play(case, replies))
    assert (grades.original.ok, grades.strict.ok) == (True, True), grades
    assert grades.exact == ((True,) if ideal.calls else ())


def answer(*directives: Any, text: str = "Done.") -> str:
    """Return an envelope as a model writes it."""
    return encode_text({"assistant_text": text, "directives": list(directives)})


FORM = {"type": "ui.show_form", "payload": {"form_id": "character_form"}}
TOAST = {"type": "ui.toast", "payload": {"message": "The draft was saved."}}


@pytest.mark.parametrize(
    ("reply", "original", "strict", "code"),
    [
        (answer(FORM), True, True, None),
        (answer(FORM, TOAST), True, False, "EXTRA_DIRECTIVE"),
        (answer(FORM, FORM), True, False, "EXTRA_DIRECTIVE"),
        (answer(FORM, text=" "), True, False, "EMPTY_FINAL"),
        (answer({**FORM, "payload": {"form_id": "x"}}), True, False, "PAYLOAD_WRONG"),
        (answer(FORM, {"type": "dance", "payload": {}}), True, False, "UNKNOWN_DIRECTIVE_TYPE"),
        (answer(TOAST), False, False, "NO_DIRECTIVE"),
        ("I show you the form.", False, False, "RUN_FAILED"),
    ],
)
async def test_the_strict_verdict_sees_more(
    reply: str, original: bool, strict: bool, code: str | None
) -> None:
    """The loose one asks for the kind of directive, the strict one for what it says."""
    case = find_case("show_form")
    grades = case.grade(await play(case, [reply] * 9, check_output=False))
    assert (grades.original.ok, grades.strict.ok) == (original, strict)
    assert code in ([reason.code for reason in grades.strict.reasons] or [None])


async def test_a_patch_without_a_value_does_not_count() -> None:
    """The loose verdict takes any value, the strict one only the right one."""
    case = find_case("patch_draft")
    for value, strict in (("bar", True), ("baz", False)):
        ops = [{"op": "set", "path": "/draft/foo", "value": value}]
        reply = answer({"type": "ui.patch", "payload": {"ops": ops}})
        grades = case.grade(await play(case, [reply]))
        assert (grades.original.ok, grades.strict.ok) == (True, strict)
    ops = [{"op": "set", "path": "/facts/foo", "value": "bar"}]
    reply = answer({"type": "ui.patch", "payload": {"ops": ops}})
    assert not case.grade(await play(case, [reply], check_output=False)).original.ok


async def test_semantic_repair_asks_again() -> None:
    """With the check on, a missing directive is asked for; what is kept counts it."""
    case = find_case("toast")
    attempt = await play(case, [answer(), answer(TOAST)])
    grades = case.grade(attempt)
    assert grades.strict.ok
    assert grades.state["attempts"] == 2
    assert grades.state["semantic_errors"] == 1
    assert grades.state["mode"] == "json_object"


def test_the_version_changes_with_the_tasks() -> None:
    """It is stable, and part of what makes two experiments comparable."""
    assert SUITE.version == DirectivesSuite().version
    other = DirectiveCase(replace(TASKS[0], asks="x"))
    assert other.prepare(0).messages[0].text == "x"
    form = EnvelopeForm(make_registry())
    assert isinstance(form.read(answer(FORM), "stop", "json_object").output, Envelope)
