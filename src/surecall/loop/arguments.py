"""What a session and a run are given, and how it is taken."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, cast

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.records import Message
from surecall.base.redaction import Secret, excerpt
from surecall.models.config import Config
from surecall.models.profiles import Catalog
from surecall.models.profiles.merge import REQUEST_FIELDS
from surecall.models.transport import Transport
from surecall.reading.transforms import TransformRegistry
from surecall.tools import ApprovalStore, Approver
from surecall.wire import WireProtocol

from .events import Listener, combine_listeners
from .history import parse_history
from .journal import Journal
from .options import CallerArguments
from .resolve import ToolSource
from .result import RunResult, RunStream

Prompt = str | Mapping[str, Any] | Message | Iterable[Any]


class RunArguments(CallerArguments, total=False):
    """What `Session.run` takes besides the prompt."""

    on_event: Listener | None
    journal: Journal | str | None
    run_id: str | None


class ConnectionArguments(CallerArguments, total=False):
    """What `Session` takes, but for a store in which its runs can wait."""

    model: str | None
    tools: ToolSource
    system: str | None
    history: Iterable[Any]
    base_url: str | None
    api_key: str | Secret | None
    headers: Mapping[str, str] | None
    timeout: float | None
    transport: Transport | None
    protocol: str | WireProtocol | None
    provider: str | None
    preset: str | Iterable[str] | None
    profile: str | None
    capabilities: Mapping[str, Any] | None
    probe: Literal["off", "auto"] | None
    config: Config | None
    on_event: Listener | None
    approver: Approver | None
    transforms: TransformRegistry | None
    catalog: Catalog | None


class SessionArguments(ConnectionArguments, total=False):
    """What `Session` takes."""

    approvals: ApprovalStore | None


class ResumeArguments(CallerArguments, total=False):
    """What `Session.resume` takes besides the run and its output."""

    on_event: Listener | None


def parse_prompt(prompt: Prompt) -> tuple[Message, ...]:
    """Return what was asked as messages."""
    if isinstance(prompt, str):
        return (Message("user", prompt),) if prompt.strip() else ()
    if isinstance(prompt, Message | Mapping):
        return parse_history((cast("Message | Mapping[str, Any]", prompt),))
    if not isinstance(prompt, Iterable):
        raise _misfit("the prompt", prompt, "a text, a message or a list of messages")
    return parse_history(prompt)


def _misfit(name: str, value: Any, words: str) -> ConfigError:
    return ConfigError(
        Code.INVALID_OPTION, f"{name} must be {words}, not {excerpt(repr(value), 60)}."
    )


def refuse_misfits(timeout: Any, headers: Any, history: Any, approvals: Any) -> None:
    """Refuse arguments of types that nothing can be done with, by their names."""
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise _misfit("timeout", timeout, "seconds above 0")
    if headers is not None and not isinstance(headers, Mapping):
        raise ConfigError(Code.INVALID_OPTION, "headers must be a dict of names and values.")
    if isinstance(history, str | Mapping) or not isinstance(history, Iterable):
        raise _misfit("history", history, "a list of messages")
    if isinstance(approvals, str):
        raise _misfit("approvals", approvals, "a store, as in MemoryApprovals()")


def need_store(approvals: ApprovalStore | None) -> ApprovalStore:
    """Return the store that a run waits in, or raise that none was given."""
    if approvals is None:
        raise ConfigError(
            Code.INVALID_OPTION,
            "no store for approvals was given.",
            hint="Pass approvals=..., the store that the run was started with.",
        )
    return approvals


_OUTPUT: Final = "Did you mean output=..., as in run(prompt, output=MyType)?"
_NAMES_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("output_schema", "output_type", "response_model", "response_schema", "result_type"),
        _OUTPUT,
    ),
    "response_format": f"{_OUTPUT} A field of the request goes into request_overrides.",
    **dict.fromkeys(
        ("max_retries", "num_retries", "retries"),
        "How often a failed request is sent again is the setting retry.max_retries "
        "(SURECALL_RETRY__MAX_RETRIES=2); how often a call that cannot be read is asked for "
        "again is max_parse_retries=..., and a value max_output_retries=...",
    ),
    **dict.fromkeys(
        ("instructions", "system_instruction", "system_message", "system_prompt"),
        "Did you mean system=...?",
    ),
    **dict.fromkeys(
        ("input", "messages", "prompt"), "The first argument takes a text or messages."
    ),
    **dict.fromkeys(
        ("max_iterations", "max_rounds", "max_steps", "recursion_limit"),
        "Did you mean max_turns=...?",
    ),
    **dict.fromkeys(("functions", "toolset", "toolsets"), "Did you mean tools=[...]?"),
    **dict.fromkeys(("max_completion_tokens", "max_output_tokens"), "Did you mean max_tokens=...?"),
    **dict.fromkeys(("api_base", "endpoint", "url"), "Did you mean base_url=...?"),
    **dict.fromkeys(("request_timeout", "timeout_s"), "Did you mean timeout=...?"),
    **dict.fromkeys(("callback", "callbacks", "hooks"), "Did you mean on_event=...?"),
    "client": "A client of your own goes into surecall.wrap(client).",
}
"""What other libraries call an argument, and what to write here."""


def refuse_unknown(options: Mapping[str, Any]) -> None:
    """Refuse a name that nothing has, with the name that was probably meant."""
    for name in options.keys() - CallerArguments.__optional_keys__:
        hint = did_you_mean(
            name, SessionArguments.__optional_keys__, listed_by="surecall docs options"
        )
        if name in _NAMES_ELSEWHERE:
            hint = _NAMES_ELSEWHERE[name]
        elif name in SessionArguments.__optional_keys__:
            hint = f"It belongs to the session, as in Session({name}=...)."
        elif name in REQUEST_FIELDS:
            hint = (
                "Fields of the request go into request_overrides, as in "
                f'request_overrides={{"{name}": ...}} or --option request_overrides.{name}=VALUE.'
            )
        raise ConfigError(
            Code.UNKNOWN_OPTION, f"there is no option {name!r} (from the caller).", hint=hint
        )


DECLARED_FOR_A_RUN: Final = frozenset({"after_required", "required_tools"})
"""Options that a session does not take."""


def refuse_options_of_a_run(options: Mapping[str, Any]) -> None:
    """Refuse what only a run can be asked to do: what succeeded in one says nothing of the next."""
    for name in sorted(DECLARED_FOR_A_RUN & options.keys()):
        raise ConfigError(
            Code.INVALID_OPTION,
            f"{name} is for a run, not for a session.",
            hint=f"Pass it to the run: await session.run(prompt, {name}=...).",
        )


def stream_run(
    start: Callable[..., Awaitable[RunResult]],
    prompt: Prompt,
    output: Any,
    arguments: Mapping[str, Any],
) -> RunStream:
    """Return the events of a run that `start` makes of the prompt."""
    given: dict[str, Any] = {"stream": True, "output": output, **arguments}
    on_event: Listener | None = given.pop("on_event", None)
    return RunStream(
        lambda listener: start(prompt, on_event=combine_listeners(on_event, listener), **given)
    )
