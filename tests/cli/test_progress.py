"""Events as lines for people."""

import io

from rich.console import Console

from surecall.base.records import (
    CallRepeated,
    ErrorDetail,
    Event,
    Final,
    FixEmptyFinal,
    ModelRequestEnded,
    ModelRequestFailed,
    ModelRequestRetried,
    ModelRequestStarted,
    Receipt,
    RunEnded,
    RunStarted,
    ToolCall,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from surecall.cli.event_lines import Progress, call_text, count_of, duration_text


def shown(*events: Event, width: int = 100) -> list[str]:
    """Return the lines a progress shows for the events."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, markup=False, highlight=False, emoji=False)
    progress = Progress(console)
    for event in events:
        progress(event)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def started(turn: int = 0) -> ModelRequestStarted:
    """Build the start of a request."""
    return ModelRequestStarted(
        turn=turn,
        tool_use_mode="relaxed",
        tool_failure_policy="fatal",
        tools_enabled=True,
        messages_count=1,
        tools_count=1,
        tool_choice="auto",
        request_attempts_left=0,
    )


def ended(**fields: object) -> ModelRequestEnded:
    """Build the end of a request."""
    given = {
        "tool_use_mode": "relaxed",
        "tool_failure_policy": "fatal",
        "tools_enabled": True,
        "elapsed_ms": 812.4,
        "finish_reason": "tool_calls",
        "assistant_content_bytes": 0,
        "usage": None,
        "tool_calls_count": 1,
        "ignored_tool_calls_count": 0,
        "tool_calls": (),
    }
    return ModelRequestEnded(**{**given, **fields})


def call_events(call: ToolCall, **fields: object) -> tuple[ToolCallStarted, ToolCallEnded]:
    """Build both events of one call."""
    given = {
        "tool_call_id": call.id,
        "name": call.name,
        "ok": True,
        "elapsed_ms": 12.0,
        "output_bytes": 10,
        "output_replaced": False,
        "error_codes": (),
        "executed": True,
    }
    start = ToolCallStarted(
        tool_call_id=call.id, name=call.name, arguments_bytes=3, parse_status="ok", call=call
    )
    return start, ToolCallEnded(**{**given, **fields})


def test_a_turn_is_aligned_and_numbered_once() -> None:
    """The number of the turn stands on its first line; symbols and words are in columns."""
    call = ToolCall(id="c", name="weather", arguments={"city": "Oslo", "days": 2})
    usage = Usage(input_tokens=120, output_tokens=15)
    assert shown(started(1), ended(usage=usage), *call_events(call)) == [
        "turn 1   · answered  812 ms · 1 call · 120 + 15 tokens",
        '         → call      weather(city="Oslo", days=2)',
        "         ✓ ok        12 ms",
    ]


def test_each_change_is_shown_before_the_call() -> None:
    """A receipt shows rule, place, before and after; a lossy one says so."""
    receipts = (
        Receipt("strip_code_fence", "", '```json\n{"a": 1}\n```', '{"a": 1}'),
        Receipt("drop_tail", "/a", [1, 2], [1], lossless=False),
    )
    call = ToolCall(id="c", name="sum", arguments={"a": 1}, receipts=receipts)
    assert shown(*call_events(call))[:2] == [
        '         ~ changed   strip_code_fence  ```json\\n{"a": 1}\\n``` → {"a": 1}',
        "         ~ changed   drop_tail /a  (may lose meaning)  [1,2] → [1]",
    ]


def test_long_changes_are_shortened_to_the_width() -> None:
    """No line is longer than the terminal, whatever the model wrote."""
    receipt = Receipt("strip_code_fence", "", "x" * 5000, "y" * 5000)
    call = ToolCall(id="c", name="sum", arguments={"a": "z" * 5000}, receipts=(receipt,))
    for width in (40, 80, 100):
        lines = shown(*call_events(call), width=width)
        assert max(map(len, lines)) <= width
        assert any("→ y" in line for line in lines)


def test_a_refused_call_has_code_words_and_no_doubt() -> None:
    """A refusal says that the tool was not run, and where the arguments are wrong."""
    call = ToolCall(id="c", name="sum", arguments={"a": "b"})
    errors = (ErrorDetail("ARGUMENTS_INVALID", "must be an integer", path="/a"),)
    lines = shown(*call_events(call, ok=False, executed=False, errors=errors))
    assert lines[1:] == [
        "         ✗ refused   ARGUMENTS_INVALID  not run; the model is told why",
        "                     /a: must be an integer",
    ]


def test_a_failed_tool_is_not_called_refused() -> None:
    """A tool that ran and failed is told apart, also when only its codes are known."""
    call = ToolCall(id="c", name="sum", arguments={})
    lines = shown(*call_events(call, ok=False, error_codes=("TOOL_TIMEOUT",)))
    assert lines[1] == "         ✗ failed    TOOL_TIMEOUT  the model is told why"


def test_many_errors_are_counted() -> None:
    """Three errors are shown, the rest is counted."""
    call = ToolCall(id="c", name="sum", arguments={})
    errors = tuple(ErrorDetail("ARGUMENTS_INVALID", f"wrong {n}") for n in range(5))
    lines = shown(*call_events(call, ok=False, executed=False, errors=errors))
    assert sum("✗ refused" in line for line in lines) == 3
    assert lines[-1].strip() == "and 2 more errors"


def test_everything_worth_seeing_is_shown() -> None:
    """Failures, retries, defects, ignored calls, repeats and the empty answer have their line."""
    failed = ModelRequestFailed(
        tools_enabled=True,
        code="BAD_REQUEST",
        status=400,
        error_class="ProviderStatusError",
        message="no tools here",
        elapsed_ms=5.0,
    )
    lines = shown(
        RunStarted(model="m", fingerprint="f", tools=("a", "b"), resumed=True),
        started(),
        failed,
        ModelRequestRetried(tools_enabled=False, request_attempts_left=0),
        ended(
            finish_reason="length",
            ignored_tool_calls_count=2,
            defect_codes=("CALLS_AS_OBJECT", "CALLS_AS_OBJECT"),
            receipts=(Receipt("strip_markers", "0:3", "<x>", ""),),
        ),
        CallRepeated(name="a", count=3),
        FixEmptyFinal(disable_tools=True, user_text_bytes=3),
        Final(assistant_content_bytes=1, any_tool_calls_seen=True, any_tool_success_seen=True),
        RunEnded(ok=False, code="TOOL_ERROR", turns=2, calls=1, usage=Usage(), elapsed_ms=12_345.0),
    )
    assert lines == [
        "         · model     m  a, b  resumed from its journal",
        "turn 0   ✗ no reply  BAD_REQUEST  no tools here  (status 400, 5 ms)",
        "         ↻ retry     the request is sent again without tools",
        "         ! answered  812 ms · 1 call · finish_reason length",
        "         ! defects   CALLS_AS_OBJECT",
        "         ~ changed   strip_markers 0:3  <x> →",
        "         ! ignored   2 further calls  see the trace",
        "         ! repeated  a, 3 times with the same arguments  the model is warned",
        "         ↻ empty     the answer is empty; the model is asked again, without tools",
        "         ✓ answer    1 byte",
        "run      ✗ ended     TOOL_ERROR  2 turns · 1 call · 12.3 s",
    ]


def test_nothing_of_a_model_reaches_the_terminal_raw() -> None:
    """Names, arguments, receipts and messages are neutralised, and markup means nothing."""
    evil = "\x1b[2J[bold]x[/bold]\u202e"
    call = ToolCall(
        id="c",
        name=evil,
        arguments={evil: evil},
        receipts=(Receipt(evil, evil, evil, {evil: evil}),),
    )
    errors = (ErrorDetail(evil, evil, path=evil),)
    text = "\n".join(shown(*call_events(call, ok=False, errors=errors), width=200))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\x1b[2J[bold]x[/bold]\u202e" in text


def test_unread_arguments_are_shown_as_they_came() -> None:
    """A call without readable arguments shows what arrived."""
    call = ToolCall(id="c", name="sum", arguments=None, raw='{"a": 1', state="cut")
    assert call_text(call) == 'sum  ← {"a": 1'


def test_numbers_read_well() -> None:
    """Counts and durations are written as people say them."""
    assert [count_of(n, "call") for n in (0, 1, 2)] == ["0 calls", "1 call", "2 calls"]
    assert [duration_text(ms) for ms in (0.4, 9_999.0, 61_500.0)] == ["0 ms", "9999 ms", "61.5 s"]
