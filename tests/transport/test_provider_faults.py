import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import Code, ProviderError, ProviderReplyError, ProviderStatusError
from surecall.wire.errors import check_body, kept_headers, parse_error, parse_error_object

JSON = {"content-type": "application/json"}
HTML = {"content-type": "text/html; charset=utf-8"}


@dataclass(frozen=True)
class Case:
    """An error answer and what it means."""

    id: str
    status: int
    body: Any
    code: Code
    retryable: bool
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON))


def error(message: str, **fields: Any) -> dict[str, Any]:
    """Return an error body in the usual shape."""
    return {"error": {"message": message, **fields}}


RATE_LIMIT_TEXT = (
    "Rate limit reached on tokens per min (TPM): Limit 10000, Used 9000. Please try again in 12s. "
    "You can increase your limit at https://platform.example.com/account/billing."
)
CASES = [
    Case("400", 400, error("bad"), Code.BAD_REQUEST, retryable=False),
    Case("401", 401, error("who"), Code.AUTH, retryable=False),
    Case("402", 402, error("pay"), Code.PAYMENT_REQUIRED, retryable=False),
    Case("403", 403, error("no"), Code.FORBIDDEN, retryable=False),
    Case("404", 404, error("no such model"), Code.NOT_FOUND, retryable=False),
    Case("408", 408, error("late"), Code.REQUEST_TIMEOUT, retryable=True),
    Case("409", 409, error("lock"), Code.CONFLICT, retryable=True),
    Case("413", 413, error("big"), Code.REQUEST_TOO_LARGE, retryable=False),
    Case("422", 422, error("odd"), Code.UNPROCESSABLE, retryable=False),
    Case("429", 429, error("slow down"), Code.RATE_LIMIT, retryable=True),
    Case("429 with a link to billing", 429, error(RATE_LIMIT_TEXT), Code.RATE_LIMIT, True),
    Case("500", 500, error("oops"), Code.UPSTREAM_5XX, retryable=True),
    Case("503 empty", 503, b"", Code.UPSTREAM_5XX, retryable=True),
    Case("504 text", 504, b"upstream timed out", Code.UPSTREAM_5XX, retryable=True),
    Case("529", 529, error("Overloaded", type="overloaded_error"), Code.OVERLOADED, True),
    Case("418", 418, error("teapot"), Code.HTTP_STATUS, retryable=False),
    Case("600", 600, b"", Code.HTTP_STATUS, retryable=False),
    Case("307", 307, b"", Code.UPSTREAM_REDIRECT, retryable=False),
    Case(
        "no tools here",
        404,
        error("No endpoints found that support tool use. To learn more", code=404),
        Code.NO_TOOL_USE_ENDPOINT,
        retryable=False,
    ),
    Case("quota code", 429, error("x", code="insufficient_quota"), Code.QUOTA_EXCEEDED, False),
    Case(
        "quota text",
        429,
        error("You exceeded your current quota, please check your plan and billing details."),
        Code.QUOTA_EXCEEDED,
        retryable=False,
        headers={"retry-after": "1"},
    ),
    Case(
        "spend limit",
        429,
        error("This would exceed your monthly spend limit.", type="rate_limit_error"),
        Code.QUOTA_EXCEEDED,
        retryable=False,
    ),
    Case("credit", 400, error("Your credit balance is too low"), Code.QUOTA_EXCEEDED, False),
    Case(
        "quota and a wish to retry",
        429,
        error("x", type="insufficient_quota"),
        Code.QUOTA_EXCEEDED,
        retryable=False,
        headers={"x-should-retry": "true"},
    ),
    Case("told to stop", 500, error("x"), Code.UPSTREAM_5XX, False, {"x-should-retry": "false"}),
    Case("told to go on", 400, error("x"), Code.BAD_REQUEST, True, {"x-should-retry": "true"}),
    Case("page 502", 502, b"<html><title>Bad gateway</title>", Code.UPSTREAM_HTML, True, HTML),
    Case("page 403", 403, b"<html>Attention required", Code.UPSTREAM_HTML, False, HTML),
    Case("page without a type", 503, b"\n <!doctype html>", Code.UPSTREAM_HTML, True, {}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_status_and_its_body_give_the_code(case: Case) -> None:
    """Both the status and the body decide what it is and whether trying again can help."""
    body = case.body if isinstance(case.body, bytes) else json.dumps(case.body).encode()
    fault = parse_error(case.status, case.headers, body)
    assert (fault.code, fault.retryable, fault.status) == (case.code, case.retryable, case.status)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param({"error": {"message": "told"}}, "told", id="error.message"),
        pytest.param({"error": "told"}, "told", id="error as text"),
        pytest.param({"message": "told"}, "told", id="message"),
        pytest.param({"detail": "told"}, "told", id="detail"),
        pytest.param({"detail": [{"loc": ["body"], "msg": "told"}]}, "told", id="detail list"),
        pytest.param({"errors": [{"message": "told"}]}, "told", id="errors"),
        pytest.param([{"error": {"message": "told"}}], "told", id="list"),
        pytest.param({"error": {"detail": "told"}}, "told", id="error.detail"),
        pytest.param("told", "told", id="json text"),
        pytest.param(
            error("Provider returned error", metadata={"provider_name": "Acme", "raw": "oh no"}),
            "Provider returned error (Acme: oh no)",
            id="metadata",
        ),
        pytest.param(error("", metadata={"raw": "oh no"}), "oh no", id="metadata only"),
        pytest.param({}, None, id="nothing"),
        pytest.param([], None, id="empty list"),
        pytest.param({"error": {"message": 5}}, None, id="message is a number"),
        pytest.param(None, None, id="null"),
    ],
)
def test_the_providers_own_words_are_found(body: Any, message: str | None) -> None:
    """Wherever a provider puts its message, it is shown."""
    fault = parse_error(400, JSON, json.dumps(body).encode())
    assert fault.provider_message == message
    assert (message or "without saying why") in str(fault)


def test_a_long_message_is_cut() -> None:
    """A provider cannot flood the log."""
    fault = parse_error(400, JSON, json.dumps(error("a" * 10_000)).encode())
    assert fault.provider_message is not None
    assert len(fault.provider_message) < 440
    assert len(str(fault)) < 500


def test_a_body_is_kept_as_far_as_a_reply_may_be_rescued_from_it() -> None:
    """A long generation inside an error is whole; what is longer says that it was cut."""
    for size, is_cut in ((400_000, False), (500_000, True), (900_000, True)):
        fault = parse_error(400, JSON, json.dumps(error("é" * (size // 6))).encode())
        assert fault.body is not None
        assert fault.body.endswith(" characters)") is is_cut
        assert len(fault.body) < 500_040


def test_what_the_answer_said_about_itself_is_kept() -> None:
    """Code, request id, useful headers and the start of the body stay with the error."""
    headers = {
        "content-type": "application/json",
        "x-request-id": "req_1",
        "retry-after": "9",
        "x-ratelimit-remaining": "0",
        "set-cookie": "a=b",
        "server": "x",
    }
    fault = parse_error(429, headers, b'{"error": {"message": "m", "code": "rate_limit_exceeded"}}')
    assert fault.provider_code == "rate_limit_exceeded"
    assert fault.request_id == "req_1"
    assert fault.body == '{"error": {"message": "m", "code": "rate_limit_exceeded"}}'
    assert sorted(fault.headers) == [
        "content-type",
        "retry-after",
        "x-ratelimit-remaining",
        "x-request-id",
    ]
    assert kept_headers(headers) == fault.headers


def test_the_request_id_may_be_in_the_body() -> None:
    """Some providers name the request in the body only."""
    assert parse_error(400, JSON, b'{"request_id": "req_2"}').request_id == "req_2"


@pytest.mark.parametrize(
    ("page", "title"),
    [
        pytest.param(
            b"<html><TITLE lang=en>\n 502  Bad\tgateway </TITLE>", "502 Bad gateway", id="a"
        ),
        pytest.param(b"<title>A &amp; B &lt;x&gt;</title>", "A & B <x>", id="entities"),
        pytest.param(b"<title>\x1b[31mred\x00</title>", "[31mred", id="control characters"),
        pytest.param(b"<title></title>", None, id="empty"),
        pytest.param(b"<title>never closed", None, id="open"),
        pytest.param(b"<p>secret stack trace</p>", None, id="none"),
        pytest.param("<title>İstanbul</title>".encode(), "İstanbul", id="lowering changes length"),
    ],
)
def test_only_the_title_of_a_page_is_shown(page: bytes, title: str | None) -> None:
    """Nothing of a page but its title gets into the error."""
    fault = parse_error(502, HTML, page)
    assert isinstance(fault, ProviderReplyError)
    assert fault.provider_message == title
    assert (f"titled {title!r}" if title else "without a title") in str(fault)
    assert "stack trace" not in str(fault)
    assert fault.body is None


def test_a_redirect_names_only_where_it_leads() -> None:
    """The target's host is told, not its path or query."""
    fault = parse_error(301, {"location": "https://other.example/a?key=hunter2"}, b"")
    assert "https://other.example," in str(fault)
    assert "hunter2" not in str(fault)
    assert "another path" in str(parse_error(301, {"location": "/x"}, b""))
    assert "unreadable" in str(parse_error(301, {"location": "http://[x"}, b""))


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        pytest.param(JSON, b"", Code.UPSTREAM_EMPTY, id="empty"),
        pytest.param(JSON, b" \n", Code.UPSTREAM_EMPTY, id="blank"),
        pytest.param(JSON, b"<html>", Code.UPSTREAM_HTML, id="page as json"),
        pytest.param(JSON, b"\xef\xbb\xbf<html>", Code.UPSTREAM_HTML, id="page with a mark"),
        pytest.param(HTML, b'{"choices": []}', Code.UPSTREAM_HTML, id="json as page"),
    ],
)
def test_a_success_without_a_reply_is_found_out(
    headers: dict[str, str], body: bytes, code: Code
) -> None:
    """A 200 that is a page or nothing is refused before anyone reads it."""
    fault = check_body(headers, body)
    assert fault is not None
    assert (fault.code, fault.status) == (code, 200)


def test_a_json_body_passes() -> None:
    """What may be a reply is left to the protocol."""
    assert check_body(JSON, b'{"choices": null}') is None
    assert check_body({"content-type": "text/plain"}, b"{}") is None


@dataclass(frozen=True)
class Inside:
    """An error inside a success, and what it means."""

    id: str
    body: Any
    code: Code
    retryable: bool


INSIDE = [
    Inside("number", error("x", code=429), Code.RATE_LIMIT, retryable=True),
    Inside("number as text", error("x", code="503"), Code.UPSTREAM_5XX, retryable=True),
    Inside("status", error("x", status=401), Code.AUTH, retryable=False),
    Inside("kind", error("x", type="overloaded_error"), Code.OVERLOADED, retryable=True),
    Inside("rate", error("x", code="rate_limit_exceeded"), Code.RATE_LIMIT, retryable=True),
    Inside("quota", error("insufficient_quota"), Code.QUOTA_EXCEEDED, retryable=False),
    Inside("transient", error("x", type="server_error"), Code.UPSTREAM_ERROR_BODY, True),
    Inside("unknown", error("x", type="odd"), Code.UPSTREAM_ERROR_BODY, retryable=False),
    Inside("text", {"error": "boom"}, Code.UPSTREAM_ERROR_BODY, retryable=False),
]


@pytest.mark.parametrize("case", INSIDE, ids=lambda case: case.id)
def test_an_error_inside_a_success_is_classified_by_what_it_says(case: Inside) -> None:
    """A 200 does not hide what kind of error its body is."""
    fault = parse_error_object(case.body, 200, {})
    assert isinstance(fault, ProviderStatusError)
    assert (fault.code, fault.retryable, fault.status) == (case.code, case.retryable, 200)


def test_an_error_event_of_no_known_kind_gets_the_code_of_its_caller() -> None:
    """A stream names its own code for what nobody can classify."""
    fault = parse_error_object({"message": "x"}, 200, {}, fallback=Code.STREAM_ERROR)
    assert fault.code == Code.STREAM_ERROR


@given(
    status=st.integers(100, 700),
    body=st.one_of(
        st.binary(max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["error", "errors", "message", "detail", "code", "metadata"]),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=8,
        ).map(lambda value: json.dumps(value).encode()),
    ),
)
@settings(max_examples=200)
def test_no_error_body_breaks_the_parser(status: int, body: bytes) -> None:
    """Whatever a provider sends with an error, an error comes out."""
    fault = parse_error(status, {}, body)
    assert isinstance(fault, ProviderError)
    assert fault.status == status
    assert len(str(fault)) < 1000
