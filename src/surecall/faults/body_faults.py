"""Faults of bodies: pages, errors and odd JSON where a reply should be."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import Code

from .answers import Answer, json_answer, with_body
from .drafts import Occasion
from .edits import edit_json_body
from .errors import error_answer
from .records import Fault

__all__ = ["BODY_FAULTS"]

WireEdit = Callable[[Answer, Occasion], Answer]

_USAGE: Final = {
    "chat_completions": ("usage", "prompt_tokens"),
    "gemini": ("usageMetadata", "promptTokenCount"),
}
_WITH_CHOICES: Final = ("chat_completions", "gemini")
_PAGE: Final = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head></html>"


def _page(status: int) -> WireEdit:
    headers = {"content-type": "text/html; charset=utf-8"}
    return lambda _, __: Answer(status=status, headers=headers, pieces=(_PAGE,))


def _raw(body: bytes, status: int = 200) -> WireEdit:
    headers = {"content-type": "application/json"}
    return lambda _, __: Answer(status=status, headers=headers, pieces=(body,))


def _value(value: Any) -> WireEdit:
    return lambda _, __: json_answer(value)


def _choices(value: Any) -> WireEdit:
    """Answer with a whole reply whose list of choices is this."""

    def apply(_: Answer, occasion: Occasion) -> Answer:
        name = "candidates" if occasion.protocol.name == "gemini" else "choices"
        return json_answer({"id": "x", name: value})

    return apply


def _error_in_200(status: int, message: str) -> WireEdit:
    def apply(_: Answer, occasion: Occasion) -> Answer:
        answer = error_answer(occasion.protocol, status, message, request_id=occasion.request_id)
        return replace(answer, status=200)

    return apply


def _odd_usage(answer: Answer, occasion: Occasion) -> Answer:
    key, count = _USAGE.get(occasion.protocol.name, ("usage", "input_tokens"))
    return edit_json_body(answer, lambda body: {**body, key: {count: None, "x": "many"}})


def _with_unknown_fields(answer: Answer, _: Occasion) -> Answer:
    unknown = {"x_groq": {"id": "1"}, "service_tier": None, "timings": '{"ms":1}'}
    return edit_json_body(answer, lambda body: {**body, **unknown})


def _broken(name: str, does: str, wire: WireEdit, code: Code, **fields: Any) -> Fault:
    return Fault(
        name=name,
        group="body",
        does=does,
        seen="proxies, login pages and servers under load",
        repairable=False,
        code=code,
        wire=wire,
        **fields,
    )


def _whole_body(name: str, does: str, wire: WireEdit, seen: str) -> Fault:
    return Fault(name=name, group="body", does=does, seen=seen, reach="whole", wire=wire)


BODY_FAULTS: Final = (
    _broken("html_200", "Answers 200 with a web page.", _page(200), Code.UPSTREAM_HTML),
    _broken("html_502", "Answers 502 with a web page.", _page(502), Code.UPSTREAM_HTML),
    _broken("empty", "Answers 200 with nothing.", _raw(b""), Code.UPSTREAM_EMPTY),
    _broken(
        "invalid_json",
        "Answers with something that is not JSON.",
        _raw(b"upstream connect error or disconnect"),
        Code.UPSTREAM_INVALID_JSON,
        reach="whole",
    ),
    _broken(
        "not_utf8",
        "Answers in another character encoding.",
        _raw('{"choices": "é"}'.encode("latin-1")),
        Code.UPSTREAM_INVALID_JSON,
        reach="whole",
    ),
    _broken(
        "array",
        "Answers with a list.",
        _value([{"choices": []}]),
        Code.UPSTREAM_NOT_A_REPLY,
        codes={"gemini": Code.UPSTREAM_NO_CHOICES},
    ),
    _broken(
        "choices_null",
        "Answers with `choices: null`.",
        _choices(None),
        Code.UPSTREAM_NO_CHOICES,
        protocols=_WITH_CHOICES,
    ),
    _broken(
        "choices_empty",
        "Answers with no choices.",
        _choices([]),
        Code.UPSTREAM_NO_CHOICES,
        protocols=_WITH_CHOICES,
    ),
    _broken(
        "error_200",
        "Answers 200 with an error inside.",
        _error_in_200(500, "Internal error, try again."),
        Code.UPSTREAM_ERROR_BODY,
        codes={"gemini": Code.UPSTREAM_5XX},
    ),
    _broken(
        "error_429_in_200",
        "Answers 200 with a rate limit inside.",
        _error_in_200(429, "Slow down."),
        Code.RATE_LIMIT,
    ),
    _whole_body(
        "blank_lines_before",
        "Sends blank lines before the JSON to keep the line alive.",
        lambda answer, _: with_body(answer, b"\n\n   \n" + answer.body),
        "DeepSeek and OpenRouter under load",
    ),
    _whole_body(
        "bom_before",
        "Sends a byte order mark before the JSON.",
        lambda answer, _: with_body(answer, b"\xef\xbb\xbf" + answer.body),
        "text that went through an editor or another encoding",
    ),
    _whole_body(
        "usage_odd",
        "Counts tokens with nulls and texts.",
        _odd_usage,
        "OpenAI-compatible servers",
    ),
    _whole_body(
        "unknown_fields",
        "Adds fields that nobody knows.",
        _with_unknown_fields,
        "most OpenAI-compatible servers",
    ),
)
