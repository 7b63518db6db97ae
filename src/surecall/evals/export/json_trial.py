"""One trial as a JSON document: the fields of the original's files, and ours beside them."""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from surecall.evals.original import add_old_names
from surecall.evals.records import TrialBody, TrialRow

from .files import utc_text
from .layout import Layout, Task

__all__ = ["NO_LANGUAGE_POLICY", "error_text", "identify", "reads_text", "render_trial"]

NO_LANGUAGE_POLICY: Final = "off"
"""The original could demand a language; nothing here does."""

_TAGS: Final = "assistant_content_tool_call_tags_to_tool_calls"


def identify(layout: Layout, task: Task, model_base: str) -> dict[str, Any]:
    """Return the fields that say what was compared, under the names of the original."""
    return {
        "model": layout.label(task),
        "model_base": model_base,
        "strategy": task.strategy,
        "fallback_profile": task.fallback,
        "sampling_profile": task.profile,
        "simulated": task.model in layout.simulated,
    }


def error_text(row: TrialRow) -> str | None:
    """Return what went wrong by the loose verdict, worded as the original words it."""
    if row.original_ok or row.error is not None:
        return row.error
    told = "; ".join(reason.message or reason.code for reason in row.original_reasons)
    return f"{row.category or 'ASSERTION_FAILED'}: {told}"


def reads_text(body: TrialBody | None) -> bool | None:
    """Tell whether calls were looked for in text; None when nothing says so."""
    options = _options(body)
    if not options:
        return None
    transforms = cast("list[Any]", options.get("response_transforms") or [])
    return options.get("text_formats") is True or _TAGS in transforms


def render_trial(
    run_id: str, row: TrialRow, body: TrialBody | None, layout: Layout, model_base: str
) -> dict[str, Any]:
    """Return a trial with its transcript."""
    options = _options(body)
    policy = {"id": NO_LANGUAGE_POLICY, "enabled": False, "target_lang": None, "strict": False}
    of_original: dict[str, Any] = {
        **identify(layout, Task.of(row.cell), model_base),
        "empty_response_retry": {"max_retries": 0, "attempts": 1},
        "language_policy": policy,
        "llm_options_defaults": options.get("request_defaults", {}),
        "content_tag_tool_call_fallback": reads_text(body),
        "scenario": layout.scenario(row.cell),
        "trial": row.trial,
        "ok": row.original_ok,
        "elapsed_ms": row.elapsed_ms,
        "tool_use_mode": options.get("tool_use_mode"),
        "tools_enabled": bool(body and body.request.get("tools")),
        "context_tool_calling": options,
        "assistant_text": row.text,
        "draft": body.state.get("draft") if body else None,
        "error": error_text(row),
        "error_status": row.error_status,
        "error_body": None,
        "error_raw_body": None,
        "error_category": row.category,
        "history": _history(body) if body else [],
        "trace": body.transcript if body else (),
    }
    return of_original | add_old_names(_ours(run_id, row, body))


def _ours(run_id: str, row: TrialRow, body: TrialBody | None) -> dict[str, Any]:
    return {
        "run": run_id,
        "index": row.index,
        "suite": row.cell.suite,
        "case": row.case,
        "seed": row.seed,
        "control": row.control,
        "started_at": utc_text(row.started_at),
        "strict_ok": row.strict_ok,
        "original_reasons": msgspec.to_builtins(row.original_reasons),
        "strict_reasons": msgspec.to_builtins(row.strict_reasons),
        "outcome": row.outcome,
        "code": row.code,
        "cut_by_limit": row.cut_by_limit,
        "censored": row.censored,
        "turns": row.turns,
        "requests": row.requests,
        "attempts": row.attempts,
        "usage": msgspec.to_builtins(row.usage),
        "cost_usd": row.cost_usd,
        "escalations": row.escalations,
        "fabrications": row.fabrications,
        "rules": row.rules,
        "saved_by": row.saved_by,
        "calls": msgspec.to_builtins(row.calls),
        "request": body.request if body else {},
        "config": body.config if body else {},
        "state": body.state if body else {},
    }


def _options(body: TrialBody | None) -> dict[str, Any]:
    options: Any = body.config.get("options") if body else None
    return cast("dict[str, Any]", options) if isinstance(options, dict) else {}


def _history(body: TrialBody) -> list[Any]:
    """Return the conversation: what was asked first, then replies and results in turn."""
    history: list[Any] = []
    if body.request.get("system"):
        history.append({"role": "system", "content": body.request["system"]})
    history += body.request.get("messages") or []
    for turn in body.transcript:
        if turn.get("raw") is not None:
            history.append(turn["raw"])
        results: list[dict[str, Any]] = turn.get("results", [])
        history += [_tool_message(result) for result in results]
    return history


def _tool_message(result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": result.get("id", result.get("call_id")),
        "name": result.get("name"),
        "content": result.get("text"),
    }
