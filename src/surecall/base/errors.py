"""Every exception surecall raises, and every public code, once.

    SurecallError                 anything raised on purpose; has `.code` and `.hint`
    ├── SetupError                the program or its configuration is wrong; retrying cannot help
    │   ├── ConfigError           a setting, option, preset, transform or filter
    │   ├── ToolDefinitionError   a tool that cannot be registered
    │   └── RequestError          a request that must not be sent (preflight)
    ├── JSONTextError             text that is not the JSON we accept; has `.position`
    ├── ProviderError             the provider failed; has `.status`, `.retryable`, `.retry_after_s`
    │   ├── ProviderConnectionError   no usable connection (DNS, TLS, refused, reset)
    │   ├── ProviderTimeoutError      a deadline passed (connect, first byte, idle, total)
    │   ├── ProviderStatusError       an answer with an error status, or an error inside a 200
    │   └── ProviderReplyError        not a reply at all (HTML, cut, too large, no choices)
    ├── RunError                  a run ended without an answer; has `.trace` and `.history`
    │   ├── ToolUseError          tools were not used as demanded (NO_TOOL_CALLS, TOOL_ERROR,
    │   │                         REQUIRED_TOOL_MISSING)
    │   ├── OutputError           the value that was asked for did not come (OUTPUT_INVALID)
    │   └── RunLimitError         a limit ended the run (turns, calls, tokens, time, repeats)
    ├── ToolServerError           a server that has tools and cannot be used
    ├── JournalError              a journal that cannot be resumed
    └── StoreError                stored runs, requests or workspaces that cannot be read or written

`codes.toml` has the meaning of each code and what to do; `surecall docs CODE` prints both.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, cast

__all__ = [
    "Code",
    "ConfigError",
    "JSONTextError",
    "JournalError",
    "OutputError",
    "ProviderConnectionError",
    "ProviderError",
    "ProviderReplyError",
    "ProviderStatusError",
    "ProviderTimeoutError",
    "RequestError",
    "RowRefusedError",
    "RunError",
    "RunLimitError",
    "SetupError",
    "StoreError",
    "SurecallError",
    "ToolDefinitionError",
    "ToolServerError",
    "ToolUseError",
    "WorkspaceError",
    "did_you_mean",
    "invalid_config",
    "row_refused",
]

_MAX_REASON_CHARS = 300


class Code(StrEnum):
    """Every public code.

    For example:

        surecall.Code.TOOL_TIMEOUT == "TOOL_TIMEOUT"  # True
    """

    # what a model may read in a tool result
    APPROVAL_DENIED = "APPROVAL_DENIED"
    ARGUMENTS_HOLD_SECRET = "ARGUMENTS_HOLD_SECRET"  # noqa: S105 - a code, not a secret
    ARGUMENTS_INVALID = "ARGUMENTS_INVALID"
    ARGUMENTS_JSON_PARSE_ERROR = "ARGUMENTS_JSON_PARSE_ERROR"
    ARGUMENTS_TOO_DEEP = "ARGUMENTS_TOO_DEEP"
    ARGUMENTS_TOO_LARGE = "ARGUMENTS_TOO_LARGE"
    ARGUMENTS_TRUNCATED = "ARGUMENTS_TRUNCATED"
    ARGUMENT_ERROR = "ARGUMENT_ERROR"
    CALL_IN_TEXT_NOT_READ = "CALL_IN_TEXT_NOT_READ"
    CALL_NOT_CERTAIN = "CALL_NOT_CERTAIN"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    PATH_LOCKED = "PATH_LOCKED"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    SQL_ERROR = "SQL_ERROR"
    SQL_LIMIT_EXCEEDED = "SQL_LIMIT_EXCEEDED"
    SQL_NOT_ALLOWED = "SQL_NOT_ALLOWED"
    TOOL_DOES_NOT_FIT = "TOOL_DOES_NOT_FIT"
    TOOL_FAILED = "TOOL_FAILED"
    TOOL_NOT_ALLOWED = "TOOL_NOT_ALLOWED"
    TOOL_NOT_EXECUTED = "TOOL_NOT_EXECUTED"
    TOOL_NOT_IMPLEMENTED = "TOOL_NOT_IMPLEMENTED"
    TOOL_NOT_READY = "TOOL_NOT_READY"
    TOOL_OUTPUT_SERIALIZATION_ERROR = "TOOL_OUTPUT_SERIALIZATION_ERROR"
    TOOL_NOT_PINNED = "TOOL_NOT_PINNED"
    TOOL_OUTPUT_TOO_LARGE = "TOOL_OUTPUT_TOO_LARGE"
    TOOL_SERVER_ERROR = "TOOL_SERVER_ERROR"
    TOOL_SERVER_LOST = "TOOL_SERVER_LOST"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    VALUE_AMBIGUOUS = "VALUE_AMBIGUOUS"
    VALUE_INVALID = "VALUE_INVALID"
    VALUE_NOT_CERTAIN = "VALUE_NOT_CERTAIN"
    VALUE_NOT_FOUND = "VALUE_NOT_FOUND"
    VALUE_TRUNCATED = "VALUE_TRUNCATED"
    VERSION_NOT_FOUND = "VERSION_NOT_FOUND"
    WORKSPACE_CONFLICT = "WORKSPACE_CONFLICT"
    WORKSPACE_EXISTS = "WORKSPACE_EXISTS"
    WORKSPACE_NOT_FOUND = "WORKSPACE_NOT_FOUND"
    WORKSPACE_TOO_LARGE = "WORKSPACE_TOO_LARGE"

    # how a run may end without an answer
    ANSWER_IS_ECHO = "ANSWER_IS_ECHO"
    CALL_BUDGET_EXCEEDED = "CALL_BUDGET_EXCEEDED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    MAX_TURNS_REACHED = "MAX_TURNS_REACHED"
    NO_TOOL_CALLS = "NO_TOOL_CALLS"
    OUTPUT_INVALID = "OUTPUT_INVALID"
    REPEATED_CALL = "REPEATED_CALL"
    REQUIRED_TOOL_MISSING = "REQUIRED_TOOL_MISSING"
    RUN_CANCELLED = "RUN_CANCELLED"
    TOKEN_BUDGET_EXCEEDED = "TOKEN_BUDGET_EXCEEDED"  # noqa: S105 - a code, not a secret
    TOOL_ERROR = "TOOL_ERROR"

    # values and directives in place of a text
    ASSERTION_FAILED = "ASSERTION_FAILED"
    DIRECTIVE_NOT_OBJECT = "DIRECTIVE_NOT_OBJECT"
    DISALLOWED_DIRECTIVE_TYPE = "DISALLOWED_DIRECTIVE_TYPE"
    EMPTY = "EMPTY"
    INVALID_PATCH_INDEX = "INVALID_PATCH_INDEX"
    INVALID_PATCH_OP = "INVALID_PATCH_OP"
    INVALID_PATCH_PATH = "INVALID_PATCH_PATH"
    LANGUAGE_DRIFT = "LANGUAGE_DRIFT"
    MISSING_ASSISTANT_TEXT = "MISSING_ASSISTANT_TEXT"
    MISSING_DIRECTIVES = "MISSING_DIRECTIVES"
    MISSING_OPS = "MISSING_OPS"
    MISSING_PATCH_VALUE = "MISSING_PATCH_VALUE"
    MISSING_PAYLOAD = "MISSING_PAYLOAD"
    MISSING_TYPE = "MISSING_TYPE"
    NOT_OBJECT = "NOT_OBJECT"
    PAYLOAD_INVALID = "PAYLOAD_INVALID"
    PAYLOAD_VALIDATOR_ERROR = "PAYLOAD_VALIDATOR_ERROR"
    TOOL_CALLS_PRESENT = "TOOL_CALLS_PRESENT"
    TOO_LARGE = "TOO_LARGE"
    UNKNOWN_DIRECTIVE_TYPE = "UNKNOWN_DIRECTIVE_TYPE"

    # approvals
    APPROVAL_DECIDED = "APPROVAL_DECIDED"
    APPROVAL_EXPIRED = "APPROVAL_EXPIRED"
    APPROVAL_MISMATCH = "APPROVAL_MISMATCH"
    APPROVAL_MISSING = "APPROVAL_MISSING"
    APPROVAL_NOT_FOUND = "APPROVAL_NOT_FOUND"
    APPROVAL_PENDING = "APPROVAL_PENDING"
    APPROVAL_RULE_FAILED = "APPROVAL_RULE_FAILED"
    APPROVAL_USED = "APPROVAL_USED"
    APPROVER_FAILED = "APPROVER_FAILED"
    APPROVER_MISSING = "APPROVER_MISSING"
    PAUSED_RUN_UNREADABLE = "PAUSED_RUN_UNREADABLE"

    # JSON text
    DUPLICATE_KEY = "DUPLICATE_KEY"
    INVALID_JSON = "INVALID_JSON"
    INVALID_PATCH = "INVALID_PATCH"
    INVALID_POINTER = "INVALID_POINTER"
    INVALID_UTF8 = "INVALID_UTF8"
    JSON_TOO_DEEP = "JSON_TOO_DEEP"
    JSON_TOO_LARGE = "JSON_TOO_LARGE"
    LONE_SURROGATE = "LONE_SURROGATE"
    NON_FINITE_NUMBER = "NON_FINITE_NUMBER"
    NOT_SERIALIZABLE = "NOT_SERIALIZABLE"
    NUMBER_TOO_LONG = "NUMBER_TOO_LONG"
    REPAIR_BUDGET_EXCEEDED = "REPAIR_BUDGET_EXCEEDED"

    # the provider: statuses
    AUTH = "AUTH"
    BAD_REQUEST = "BAD_REQUEST"
    CONFLICT = "CONFLICT"
    FORBIDDEN = "FORBIDDEN"
    HTTP_STATUS = "HTTP_STATUS"
    NOT_FOUND = "NOT_FOUND"
    NO_TOOL_USE_ENDPOINT = "NO_TOOL_USE_ENDPOINT"
    OVERLOADED = "OVERLOADED"
    PAYMENT_REQUIRED = "PAYMENT_REQUIRED"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    RATE_LIMIT = "RATE_LIMIT"
    REQUEST_TIMEOUT = "REQUEST_TIMEOUT"
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    UNPROCESSABLE = "UNPROCESSABLE"
    UPSTREAM_5XX = "UPSTREAM_5XX"
    UPSTREAM_REDIRECT = "UPSTREAM_REDIRECT"

    # the provider: connection and deadlines
    CONNECTION_FAILED = "CONNECTION_FAILED"
    CONNECTION_LIMIT = "CONNECTION_LIMIT"
    CONNECTION_REFUSED = "CONNECTION_REFUSED"
    CONNECTION_RESET = "CONNECTION_RESET"
    CONNECT_TIMEOUT = "CONNECT_TIMEOUT"
    DNS_FAILURE = "DNS_FAILURE"
    FIRST_BYTE_TIMEOUT = "FIRST_BYTE_TIMEOUT"
    IDLE_TIMEOUT = "IDLE_TIMEOUT"
    PROXY_AUTH = "PROXY_AUTH"
    PROXY_REFUSED = "PROXY_REFUSED"
    TLS_FAILURE = "TLS_FAILURE"
    TOTAL_TIMEOUT = "TOTAL_TIMEOUT"

    # the provider: replies that are not replies
    CALLS_REFUSED = "CALLS_REFUSED"
    PROMPT_BLOCKED = "PROMPT_BLOCKED"
    STREAM_ERROR = "STREAM_ERROR"
    STREAM_TOO_LARGE = "STREAM_TOO_LARGE"
    STREAM_TRUNCATED = "STREAM_TRUNCATED"
    UPSTREAM_BAD_EVENT = "UPSTREAM_BAD_EVENT"
    UPSTREAM_BAD_FRAMING = "UPSTREAM_BAD_FRAMING"
    UPSTREAM_EMPTY = "UPSTREAM_EMPTY"
    UPSTREAM_ENCODING = "UPSTREAM_ENCODING"
    UPSTREAM_ERROR_BODY = "UPSTREAM_ERROR_BODY"
    UPSTREAM_HTML = "UPSTREAM_HTML"
    UPSTREAM_INVALID_JSON = "UPSTREAM_INVALID_JSON"
    UPSTREAM_NOT_A_REPLY = "UPSTREAM_NOT_A_REPLY"
    UPSTREAM_NO_CHOICES = "UPSTREAM_NO_CHOICES"
    UPSTREAM_TOO_LARGE = "UPSTREAM_TOO_LARGE"
    UPSTREAM_TRUNCATED_BODY = "UPSTREAM_TRUNCATED_BODY"

    # findings about the shape of a reply (defects); none of them is fatal
    ANSWER_EMPTY = "ANSWER_EMPTY"
    ARGUMENTS_AS_OBJECT = "ARGUMENTS_AS_OBJECT"
    ARGUMENTS_AS_TEXT = "ARGUMENTS_AS_TEXT"
    ARGUMENTS_BLANK = "ARGUMENTS_BLANK"
    CALLS_AS_OBJECT = "CALLS_AS_OBJECT"
    CALLS_IGNORED = "CALLS_IGNORED"
    CALL_ENTRY_DROPPED = "CALL_ENTRY_DROPPED"
    CHOICES_IGNORED = "CHOICES_IGNORED"
    CONTENT_AS_PARTS = "CONTENT_AS_PARTS"
    CONTENT_AS_TEXT = "CONTENT_AS_TEXT"
    CONTENT_NOT_USABLE = "CONTENT_NOT_USABLE"
    DELTAS_DIFFER = "DELTAS_DIFFER"
    FIELD_NOT_CARRIED = "FIELD_NOT_CARRIED"
    ID_NOT_USABLE = "ID_NOT_USABLE"
    ID_REPEATED = "ID_REPEATED"
    INDEX_NOT_USABLE = "INDEX_NOT_USABLE"
    LEGACY_FUNCTION_CALL = "LEGACY_FUNCTION_CALL"
    MALFORMED_FUNCTION_CALL = "MALFORMED_FUNCTION_CALL"
    NAME_NOT_USABLE = "NAME_NOT_USABLE"
    PART_NOT_KNOWN = "PART_NOT_KNOWN"
    READING_BUDGET_EXCEEDED = "READING_BUDGET_EXCEEDED"
    REPLY_IN_ERROR_BODY = "REPLY_IN_ERROR_BODY"
    SECRET_REDACTED = "SECRET_REDACTED"  # noqa: S105 - a code, not a secret
    TURN_PAUSED = "TURN_PAUSED"

    # set-up
    CAPABILITY_UNSUPPORTED = "CAPABILITY_UNSUPPORTED"
    DUPLICATE_TOOL = "DUPLICATE_TOOL"
    EXTRA_MISSING = "EXTRA_MISSING"
    FAULT_NOT_APPLICABLE = "FAULT_NOT_APPLICABLE"
    INVALID_CASE = "INVALID_CASE"
    INVALID_CONFIG = "INVALID_CONFIG"
    INVALID_FILTER = "INVALID_FILTER"
    INVALID_GATE = "INVALID_GATE"
    INVALID_MESSAGE = "INVALID_MESSAGE"
    INVALID_OPTION = "INVALID_OPTION"
    INVALID_REPLY = "INVALID_REPLY"
    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_SCHEMA = "INVALID_SCHEMA"
    INVALID_TOOL = "INVALID_TOOL"
    INVALID_TOOL_NAME = "INVALID_TOOL_NAME"
    INVALID_TRACE = "INVALID_TRACE"
    NOTHING_SELECTED = "NOTHING_SELECTED"
    PROMPT_TOO_LARGE = "PROMPT_TOO_LARGE"
    REMOTE_REF_REFUSED = "REMOTE_REF_REFUSED"
    RESERVED_KEY = "RESERVED_KEY"
    STATE_NOT_KEPT = "STATE_NOT_KEPT"
    SUITE_DATA_MISSING = "SUITE_DATA_MISSING"
    SUITE_DATA_UNREADABLE = "SUITE_DATA_UNREADABLE"
    TOOL_SERVER_UNREACHABLE = "TOOL_SERVER_UNREACHABLE"
    TOOLS_WITH_RESPONSE_FORMAT = "TOOLS_WITH_RESPONSE_FORMAT"
    UNKNOWN_CODE = "UNKNOWN_CODE"
    UNKNOWN_CONFIG_KEY = "UNKNOWN_CONFIG_KEY"
    UNKNOWN_FAULT = "UNKNOWN_FAULT"
    UNKNOWN_MODEL = "UNKNOWN_MODEL"
    UNKNOWN_OPTION = "UNKNOWN_OPTION"
    UNKNOWN_PRESET = "UNKNOWN_PRESET"
    UNKNOWN_PROVIDER = "UNKNOWN_PROVIDER"
    UNKNOWN_PROTOCOL = "UNKNOWN_PROTOCOL"
    UNKNOWN_SCENARIO = "UNKNOWN_SCENARIO"
    UNKNOWN_TOPIC = "UNKNOWN_TOPIC"
    UNKNOWN_TRANSFORM = "UNKNOWN_TRANSFORM"
    UNSUPPORTED_TYPE = "UNSUPPORTED_TYPE"

    # requests that a server on this machine does not take
    CLIENT_CLOSED = "CLIENT_CLOSED"
    FOREIGN_HOST = "FOREIGN_HOST"
    FOREIGN_ORIGIN = "FOREIGN_ORIGIN"
    UNSUPPORTED_CONTENT_TYPE = "UNSUPPORTED_CONTENT_TYPE"

    # models that run in this process
    ENGINE_MISSING = "ENGINE_MISSING"
    FETCH_FAILED = "FETCH_FAILED"
    FETCH_IN_PROGRESS = "FETCH_IN_PROGRESS"
    MODEL_NOT_LOADABLE = "MODEL_NOT_LOADABLE"
    MODEL_WEIGHTS_MISSING = "MODEL_WEIGHTS_MISSING"
    WEIGHTS_HASH_MISMATCH = "WEIGHTS_HASH_MISMATCH"

    # what a probe may say
    FACTS_UNUSABLE = "FACTS_UNUSABLE"
    PROBE_BUDGET_EXCEEDED = "PROBE_BUDGET_EXCEEDED"
    PROBE_INCONCLUSIVE = "PROBE_INCONCLUSIVE"
    UNKNOWN_QUESTION = "UNKNOWN_QUESTION"

    # files that are written
    DISK_FULL = "DISK_FULL"
    FILE_WRITE_FAILED = "FILE_WRITE_FAILED"

    # journal
    JOURNAL_CORRUPT = "JOURNAL_CORRUPT"
    JOURNAL_IN_USE = "JOURNAL_IN_USE"
    JOURNAL_MISMATCH = "JOURNAL_MISMATCH"
    JOURNAL_WRITE_FAILED = "JOURNAL_WRITE_FAILED"
    NOT_A_JOURNAL = "NOT_A_JOURNAL"

    # runs of an eval and requests of a gateway, as they are kept
    RECORD_NOT_FOUND = "RECORD_NOT_FOUND"
    RUNS_NOT_COMPARABLE = "RUNS_NOT_COMPARABLE"
    RUN_IN_USE = "RUN_IN_USE"
    RUN_MISMATCH = "RUN_MISMATCH"
    RUN_NOT_FOUND = "RUN_NOT_FOUND"
    STORE_CORRUPT = "STORE_CORRUPT"
    STORE_TOO_NEW = "STORE_TOO_NEW"
    STORE_WRITE_FAILED = "STORE_WRITE_FAILED"
    WORKER_LOST = "WORKER_LOST"


class SurecallError(Exception):
    """Any error that surecall raises on purpose; it holds no known secret.

    For example:

        surecall.SurecallError(surecall.Code.TOOL_TIMEOUT, "It was slow.").code  # 'TOOL_TIMEOUT'
    """

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        self.code = str(code)
        self.message = message
        self.hint = hint
        super().__init__(self.message)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, _redacted(value))

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return f"{text} {self.hint}" if self.hint else text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class SetupError(SurecallError):
    """The program or its configuration is wrong; retrying cannot help."""


class ConfigError(SetupError):
    """A setting, option, preset, transform or filter is not usable.

    For example:

        try:
            surecall.run_sync("Hi", model="small", max_turns=0)
        except surecall.ConfigError as error:
            code = error.code
        code  # 'INVALID_OPTION'
    """


class ToolDefinitionError(SetupError):
    """A tool that cannot be registered."""


class RequestError(SetupError):
    """A request that must not be sent."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.details = dict(details or {})
        self.trace: Any = None
        """The calls and turns before the error, when the run had begun."""
        self.history: tuple[Any, ...] = ()


class JSONTextError(SurecallError):
    """Text that is not the JSON we accept."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        position: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.position = position


class ProviderError(SurecallError):
    """The provider failed; says whether trying again can help.

    For example:

        busy = surecall.ProviderError("RATE_LIMITED", "Try later.", retryable=True)
        try:
            surecall.run_sync("Hi", model="small", transport=surecall.ScriptedTransport([busy]))
        except surecall.ProviderError as error:
            can_help = error.retryable
        can_help  # True
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        status: int | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        provider_code: str | None = None,
        provider_message: str | None = None,
        request_id: str | None = None,
        attempts: int = 1,
        headers: Mapping[str, str] | None = None,
        body: str | None = None,
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.provider_code = provider_code
        self.provider_message = provider_message
        self.request_id = request_id
        self.attempts = attempts
        self.headers = dict(headers or {})
        self.body = body
        """A bounded, redacted start of what the provider sent; no message or event shows it."""
        self.errors: tuple[Any, ...] = ()
        """The errors in the calls of a reply that is refused for them."""
        self.trace: Any = None
        """The trace up to the error, when it ended a run."""
        self.history: tuple[Any, ...] = ()


class ProviderConnectionError(ProviderError):
    """No usable connection to the provider."""


class ProviderTimeoutError(ProviderError):
    """A deadline passed while waiting for the provider."""


class ProviderStatusError(ProviderError):
    """The provider answered with an error."""


class ProviderReplyError(ProviderError):
    """The provider's answer is not a reply."""


class RunError(SurecallError):
    """A run ended without an answer; what happened until then is attached.

    For example:

        transport = surecall.ScriptedTransport(lambda request: "I do not know.")
        try:
            surecall.run_sync("Hi", model="small", transport=transport, output=int)
        except surecall.RunError as error:
            asked = error.history[0].content
        asked  # 'Hi'
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        trace: Any = None,
        history: Iterable[Any] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.trace = trace
        self.history = tuple(history)
        self.details = dict(details or {})


class ToolUseError(RunError):
    """The model did not use tools as the mode demands.

    For example:

        def ping() -> str:
            'Ask whether the service is there.'
            return "pong"

        options = {"transport": surecall.ScriptedTransport(lambda request: "No.")}
        options |= {"tools": [ping], "tool_use_mode": "enforced"}
        try:
            surecall.run_sync("Is it there?", model="small", **options)
        except surecall.ToolUseError as error:
            code = error.code
        code  # 'NO_TOOL_CALLS'
    """


class OutputError(RunError):
    """The model did not answer with a value of the form that was asked for."""


class RunLimitError(RunError):
    """A limit ended the run."""


class JournalError(SurecallError):
    """A journal that cannot be resumed."""


class ToolServerError(SurecallError):
    """A server that has tools of a run and cannot be used."""


class ApprovalError(SurecallError):
    """A decision that cannot be made, or an approval that cannot be used."""


class WorkspaceError(SurecallError):
    """A change that a workspace refuses; nothing of it was made."""


class StoreError(SurecallError):
    """Eval runs, requests of a gateway or workspaces that cannot be read, written or continued."""


class RowRefusedError(StoreError):
    """One row that its store will never take, although the store works and takes others."""


def _redacted(value: Any) -> Any:
    if isinstance(value, Code):
        return value
    if isinstance(value, str):
        from surecall.base.redaction import redact  # which loads more than the rest of an error

        return redact(value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_redacted(key): _redacted(item) for key, item in items}
    if isinstance(value, list):
        return [_redacted(item) for item in cast("list[Any]", value)]
    return value


def invalid_config(message: str, hint: str | None = None) -> ConfigError:
    """Build the error for a setting or an argument that cannot be used."""
    return ConfigError(Code.INVALID_CONFIG, message, hint=hint)


def explain(error: BaseException) -> str:
    """Return an error in words, without the notation of Python."""
    if isinstance(error, SurecallError):
        return error.message
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    return f"{type(error).__name__}: {_redacted(text)}" if text else type(error).__name__


def row_refused(place: object, error: Exception) -> RowRefusedError:
    """Build the error for a row that a store will never take."""
    reason = ascii(f"{type(error).__name__}: {error}")[1:-1]
    return RowRefusedError(
        Code.STORE_WRITE_FAILED,
        f"{place} does not take this row: {reason[:_MAX_REASON_CHARS].rstrip('.')}.",
        hint="A value in it cannot be stored.",
    )


def did_you_mean(name: str, known: Iterable[str], *, listed_by: str | None = None) -> str:
    """Return a sentence that suggests the closest known names, or lists some of them.

    Args:
        name: The name as it was written.
        known: The names that exist.
        listed_by: The command that lists all names, for those that are too many for a sentence.
    """
    from difflib import get_close_matches

    names = sorted(known)
    by_lower = {item.lower(): item for item in names}
    likely = (get_close_matches(name.lower(), by_lower, n=3, cutoff=rate) for rate in (0.8, 0.6))
    close = next(filter(None, likely), None)
    if close:
        return "Did you mean " + " or ".join(repr(by_lower[item]) for item in close) + "?"
    if not names:
        return "None are defined."
    shown = ", ".join(names[:12])
    if len(names) <= 12:
        return f"Known: {shown}."
    return f"Known: {shown}, …" + (f" `{listed_by}` lists them all." if listed_by else "")
