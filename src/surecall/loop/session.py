"""A conversation that keeps its history, tools and connection between runs, and single runs."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final, Generic, Literal, Never, Required, Unpack, cast, overload
from uuid import uuid4

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.records import Message
from surecall.base.redaction import Secret, excerpt
from surecall.calls import ToolNames
from surecall.models.config import Config, load_config
from surecall.models.profiles import Catalog
from surecall.models.profiles.merge import REQUEST_FIELDS
from surecall.models.transport import Transport
from surecall.models.transport.interface import Closing
from surecall.reading.transforms import TransformRegistry
from surecall.tools import (
    ApprovalStore,
    Approver,
    Dispatcher,
    MaskedRegistry,
    OnceLedger,
    OutputLimits,
    Permission,
    ToolProvider,
)
from surecall.wire import WireProtocol

from .call_runner import Recorder
from .events import Listener, combine_listeners
from .journal import FileJournal, Journal
from .options import CallerArguments, Options
from .output import AnyForm, OutputForm, T, Wanted, make_form
from .paused import StoreJournal, load_waiting, unpack_run
from .plan import Plan, make_plan, parse_history
from .probing import ProbedModel
from .prompt_runner import PromptRunner
from .resolve import (
    AUTO_PRESET,
    ToolSource,
    choose_protocol,
    find_capabilities,
    find_provider,
    make_chain,
    make_registry,
    make_transport,
    merge_options,
    refuse_shaped_transforms,
)
from .result import OutputResult, Pause_co, PausedResult, RunResult, RunStream
from .tool_loop import ToolLoop
from .wording import EXTRACT

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


class Session(Closing, Generic[Pause_co]):
    """Runs that share history, tools and connection; use it as `async with Session(...)`.

        transport = surecall.ScriptedTransport(["Hello.", "Bye."])
        async with surecall.Session(model="small", transport=transport) as session:
            await session.run("Hi")
            result = await session.run("Bye")
        len(result.history)  # 4

    Args:
        model: The model to ask, as the provider names it.
        tools: Functions, tools, servers of tools, or a registry.
        system: Text sent before every request, never stored in the history.
        history: Messages to begin with.
        base_url: Address of the provider.
        api_key: Its key; by default it is taken from the environment.
        headers: Sent with every request.
        timeout: Seconds that one request may take; `deadline_s` is for the whole run.
        transport: A transport to use instead of `base_url`; the caller closes it.
        protocol: The wire format: `chat_completions`, `responses`, `messages`, `gemini`, or one of
            your own; by default the one that the provider is known to speak.
        provider: The provider's name in the catalog, when the address does not tell.
        preset: Names of presets; `auto` takes those the catalog names, an empty tuple none.
        profile: A sampling profile.
        capabilities: What the model can do, where the catalog does not know or is wrong.
        probe: `auto` asks the provider first whether the model can call tools, unless the
            caller, an earlier probe or the catalog has the answer: three requests at most.
        config: Settings to use instead of the environment.
        on_event: Called with every event; what it raises is ignored.
        approver: Asked before a tool runs; a plain function runs in a thread.
        approvals: Where calls that need an approval wait for it when there is no approver; the
            run pauses, and `resume` continues it.
        transforms: A registry with your own transforms.
        catalog: A catalog with your own models.
        options: Any option of `docs/reference/options.md`, and `temperature`, `max_tokens`,
            `seed` and `stop`, which are sent with every request.
    """

    @overload
    def __init__(
        self: "Session[Never]",
        *,
        approvals: None = None,
        **arguments: Unpack[ConnectionArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: "Session[PausedResult]",
        *,
        approvals: ApprovalStore,
        **arguments: Unpack[ConnectionArguments],
    ) -> None: ...

    def __init__(
        self,
        *,
        model: str | None = None,
        tools: ToolSource = (),
        system: str | None = None,
        history: Iterable[Any] = (),
        base_url: str | None = None,
        api_key: str | Secret | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        transport: Transport | None = None,
        protocol: str | WireProtocol | None = None,
        provider: str | None = None,
        preset: str | Iterable[str] | None = None,
        profile: str | None = None,
        capabilities: Mapping[str, Any] | None = None,
        probe: Literal["off", "auto"] | None = None,
        config: Config | None = None,
        on_event: Listener | None = None,
        approver: Approver | None = None,
        approvals: ApprovalStore | None = None,
        transforms: TransformRegistry | None = None,
        catalog: Catalog | None = None,
        **options: Unpack[CallerArguments],
    ) -> None:
        given: dict[str, Any] = {
            "model": model,
            "base_url": base_url,
            "api_key": api_key,
            "provider": provider,
            "profile": profile,
            "probe": probe,
        }
        refuse_misfits(timeout, headers, history, approvals)
        if transport is not None and not hasattr(transport, "send"):
            raise _misfit("transport", transport, "a transport, as in ScriptedTransport([reply])")
        if headers:
            given["headers"] = dict(headers)
        if timeout is not None:
            given["deadlines"] = {"total_s": timeout}
        self._config = _make_config(config, given)
        self._model = self._config.model or ""
        self._system = system
        self._history = parse_history(history)
        self._registry, self._providers = make_registry(tools)
        self._masked: tuple[Any, MaskedRegistry] | None = None
        self._opened: list[ToolProvider] = []
        self._opening = asyncio.Lock()
        self._owns_transport = transport is None
        self._transport = transport
        self._presets = _preset_names(preset, self._config)
        self._capabilities = {**self._config.capabilities, **(capabilities or {})}
        self._on_event = on_event
        self._approver = approver
        self._approvals = approvals
        self._transforms = transforms
        self._catalog = catalog or Catalog.builtin()
        self._protocol = choose_protocol(protocol, self._config, self._catalog)
        self._probed = ProbedModel(self._config, self._protocol, transport)
        refuse_options_of_a_run(options)
        self._options = options

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation so far; a run that failed leaves it as it was."""
        return self._history

    @overload
    async def run(
        self, prompt: Prompt, *, output: None = None, **arguments: Unpack[RunArguments]
    ) -> RunResult: ...

    @overload
    async def run(
        self,
        prompt: Prompt,
        *,
        output: Wanted[T],
        **arguments: Unpack[RunArguments],
    ) -> OutputResult[T] | Pause_co: ...

    async def run(
        self,
        prompt: Prompt,
        *,
        output: Any = None,
        on_event: Listener | None = None,
        journal: Journal | str | None = None,
        run_id: str | None = None,
        **options: Unpack[CallerArguments],
    ) -> RunResult:
        """Run the prompt to its answer and keep the conversation.

        Args:
            prompt: A text, a message, or several messages.
            output: The value to end with: a dataclass, Struct, TypedDict, pydantic model or other
                type, a JSON schema, or an `OutputForm`. Tools are used first, and the value is
                asked for without them.
            on_event: Called with every event of this run, besides the session's own listener.
            journal: A journal or the path of one; the run resumes when it is not empty.
            run_id: An id of your own.
            options: Options for this run only.

        Raises:
            ProviderError: The model could not be asked.
            RunError: The run ended without an answer, or without a value that fits `output`.
            SetupError: Something given is wrong.
        """
        await self._open_providers()
        form = None if output is None else make_form(output)
        plan = self.plan(prompt, output=form, **options)
        until, unknown = None, self._probed.find_unknown(plan)
        if unknown:
            until = _end_of_time(plan)
            # When asking takes all the time there is, the run itself says so.
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    for needed in unknown:
                        await self._probed.ask(needed, self._open_transport())
            plan = self.plan(prompt, output=form, **options)
        if isinstance(journal, str):
            journal = FileJournal(journal)
        loop = self._loop(
            plan,
            combine_listeners(self._on_event, on_event),
            Recorder(journal),
            run_id or uuid4().hex,
            form=form,
        )
        result = await loop.run(until)
        if not result.pending:
            self._history = result.history
        return result

    @overload
    async def resume(
        self, run_id: str, *, output: None = None, **arguments: Unpack[ResumeArguments]
    ) -> RunResult: ...

    @overload
    async def resume(
        self,
        run_id: str,
        *,
        output: Wanted[T],
        **arguments: Unpack[ResumeArguments],
    ) -> OutputResult[T] | PausedResult: ...

    async def resume(
        self,
        run_id: str,
        *,
        output: Any = None,
        on_event: Listener | None = None,
        **options: Unpack[CallerArguments],
    ) -> RunResult:
        """Continue a run that waits for approvals, as far as they are decided.

        The run has the messages, the system text and the options that it was started with; a tool
        that is gone or hidden now does not run.

        Args:
            run_id: The id of the run that paused.
            output: The value that the run is to end with, as it was given to it.
            on_event: Called with every event, besides the session's own listener.
            options: Options that are to be other than they were.

        Raises:
            ApprovalError: `APPROVAL_NOT_FOUND` or `PAUSED_RUN_UNREADABLE`.
            JournalError: `JOURNAL_IN_USE`, while another process has the run.
            ProviderError: The model could not be asked; the run can be resumed again.
            RunError: The run ended without an answer.
        """
        store = need_store(self._approvals)
        journal = StoreJournal(store, await load_waiting(store, run_id))
        state = journal.state
        await self._open_providers()
        form = None if output is None else make_form(output)
        if (form is None) != (state.trace.output is None):
            raise ConfigError(
                Code.INVALID_OPTION,
                f"The run {run_id!r} was started {'with' if form is None else 'without'} output.",
                hint="Give the same output that the run was started with.",
            )
        plan = self._plan(
            state.trace.messages,
            {**state.caller_options, **self._options, **options},
            state.trace.system if self._system is None else self._system,
            form,
        )
        loop = self._loop(
            plan,
            combine_listeners(self._on_event, on_event),
            Recorder(journal),
            run_id,
            form=form,
            paused=journal,
        )
        await journal.claim()
        try:
            result = await loop.run()
        except BaseException:
            await asyncio.shield(journal.release())
            raise
        await journal.stop()
        if not result.pending:
            self._history = result.history
        return result

    @overload
    def stream(
        self, prompt: Prompt, *, output: None = None, **arguments: Unpack[RunArguments]
    ) -> RunStream: ...

    @overload
    def stream(
        self,
        prompt: Prompt,
        *,
        output: Wanted[T],
        **arguments: Unpack[RunArguments],
    ) -> RunStream[OutputResult[T] | Pause_co]: ...

    def stream(
        self, prompt: Prompt, *, output: Any = None, **arguments: Unpack[RunArguments]
    ) -> RunStream:
        """Run the prompt and hand out its events as they happen; takes what `run` takes."""
        return stream_run(self.run, prompt, output, arguments)

    def plan(
        self,
        prompt: Prompt,
        *,
        output: AnyForm | None = None,
        **options: Unpack[CallerArguments],
    ) -> Plan:
        """Plan a run of this prompt without sending anything.

        Tools of a server are known from the first run on.
        """
        messages = self._history + parse_prompt(prompt)
        return self._plan(messages, {**self._options, **options}, self._system, output)

    def _plan(
        self,
        messages: tuple[Message, ...],
        options: Mapping[str, Any],
        system: str | None,
        output: AnyForm | None,
    ) -> Plan:
        refuse_unknown(options)
        provider = find_provider(self._config, self._catalog)
        resolved = merge_options(
            provider=provider,
            model=self._model,
            presets=self._presets,
            profile=self._config.profile,
            config=self._config,
            overrides=options,
            catalog=self._catalog,
        )
        refuse_shaped_transforms(self._protocol, resolved.options, resolved.origins)
        probed, probed_on = self._probed.known()
        known = find_capabilities(
            provider, self._model, self._capabilities, probed, probed_on, self._catalog
        )
        return make_plan(
            model=self._model,
            messages=messages,
            tools=self._mask(resolved.options).specs(),
            options=resolved.options,
            origins=resolved.origins,
            capabilities=known.capabilities,
            capability_origins=known.origins,
            system=system,
            protocol=self._protocol.name,
            probe=self._probed.note_record,
            findings=known.findings,
            output=None if output is None else output.spec,
        )

    async def aclose(self) -> None:
        """Close the connection and the servers of tools that the session opened."""
        while self._opened:
            await self._opened.pop().aclose()
        if self._owns_transport and self._transport is not None:
            await self._transport.aclose()
            self._transport = None

    async def _open_providers(self) -> None:
        if not self._opened and not self._providers:
            return
        async with self._opening:
            for provider in self._opened:
                if not provider.is_open:  # lost since the last run
                    await provider.open()
                    await provider.aclose()  # this session has opened it once, not twice
            while self._providers:
                provider = self._providers[0]
                tools = await provider.open()
                self._opened.append(provider)
                for tool in tools:
                    self._registry.add(tool)
                self._providers = self._providers[1:]

    def _open_transport(self) -> Transport:
        if self._transport is None:
            self._transport = make_transport(self._config, self._protocol)
        return self._transport

    def _mask(self, options: Options) -> MaskedRegistry:
        """Return the tools that a run may use; it is asked for twice in each."""
        allow, deny = options.tool_allowlist, options.tool_denylist
        key = (self._registry.names, allow, deny)
        if self._masked is None or self._masked[0] != key:
            self._masked = (key, MaskedRegistry(self._registry, allow=allow, deny=deny))
        return self._masked[1]

    def _loop(
        self,
        plan: Plan,
        listener: Listener | None,
        recorder: Recorder,
        run_id: str,
        *,
        form: AnyForm | None = None,
        paused: StoreJournal | None = None,
    ) -> ToolLoop:
        options = plan.options
        chain = make_chain(self._transforms, options)
        view = self._mask(options)
        return ToolLoop(
            plan,
            PromptRunner(
                self._open_transport(),
                protocol=self._protocol,
                transforms=chain,
                capabilities=plan.capabilities,
                skip_bad_events=options.skip_bad_events,
                own_fields=plan.own_fields,
                on_refused=self._probed.remember_refused,
            ),
            Dispatcher(
                view,
                permission=Permission(self._approver, self._approvals, options.approval_lifetime_s),
                once=OnceLedger(paused.state.once) if paused else None,
                limits=OutputLimits(max_bytes=options.max_tool_output_bytes),
                default_timeout_s=options.tool_timeout_s,
                max_arguments_bytes=options.max_tool_args_bytes,
                result_transforms=chain.apply_result,
                likely_calls=options.likely_calls,
            ),
            run_id=run_id,
            listener=listener,
            names=ToolNames(plan.tools, {tool.name: tool.checker for tool in view}),
            recorder=recorder,
            approvals=self._approvals,
            paused=paused,
            form=form,
            guards={
                tool.name: tool.available_when for tool in view if tool.available_when is not None
            },
        )


def _end_of_time(plan: Plan) -> float | None:
    seconds = plan.options.deadline_s
    return None if seconds is None else asyncio.get_running_loop().time() + seconds


def _make_config(config: Config | None, given: Mapping[str, Any]) -> Config:
    values = {name: value for name, value in given.items() if value is not None}
    if config is None:
        return load_config(overrides=values, search=False)
    return config.with_values(values) if values else config


def _preset_names(preset: str | Iterable[str] | None, config: Config) -> tuple[str, ...]:
    if preset is None:
        return config.preset or (AUTO_PRESET,)
    return (preset,) if isinstance(preset, str) else tuple(preset)


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


# One run

_OF_THE_RUN = frozenset({"journal", "run_id"}) | DECLARED_FOR_A_RUN


class UnpausedArguments(ConnectionArguments, RunArguments, total=False):
    """What a run takes that cannot wait for approvals."""

    approvals: None


class PausableArguments(ConnectionArguments, RunArguments, total=False):
    """What a run takes that may wait for approvals."""

    approvals: Required[ApprovalStore]


class Arguments(SessionArguments, RunArguments, total=False):
    """What `run`, `run_sync` and `stream` take: all of `Session` and `Session.run`."""


@overload
async def run(
    prompt: Prompt, *, output: None = None, **arguments: Unpack[Arguments]
) -> RunResult: ...


@overload
async def run(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[UnpausedArguments]
) -> OutputResult[T]: ...


@overload
async def run(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[PausableArguments]
) -> OutputResult[T] | PausedResult: ...


async def run(prompt: Prompt, *, output: Any = None, **arguments: Unpack[Arguments]) -> RunResult:
    """Run the prompt to its answer; takes every argument of `Session` and `Session.run`.

    Without a network, with a reply that is given:

        transport = surecall.ScriptedTransport(["Hello."])
        result = await surecall.run("Hi", model="small", transport=transport)
        result.text  # 'Hello.'
    """
    given = cast("dict[str, Any]", arguments)
    for_run = {name: given.pop(name) for name in _OF_THE_RUN & given.keys()}
    async with aclosing(Session(**given)) as session:
        return await session.run(prompt, output=output, **for_run)


@overload
async def resume(
    run_id: str, *, output: None = None, **arguments: Unpack[SessionArguments]
) -> RunResult: ...


@overload
async def resume(
    run_id: str, *, output: Wanted[T], **arguments: Unpack[SessionArguments]
) -> OutputResult[T] | PausedResult: ...


async def resume(
    run_id: str, *, output: Any = None, **arguments: Unpack[SessionArguments]
) -> RunResult:
    """Continue a run that waits for approvals; takes every argument of `Session`.

    Give it the store and the tools of the run, and its `output` if it had one. Model, messages,
    system text and options are those that the run was started with, unless others are given. In
    this example some names come from the example of `PausedResult`.

        await surecall.approve(store, waiting.id, by="ann")
        result = await surecall.resume(paused.run_id, **wiring)
        result.text  # 'Done.'
    """
    given = cast("dict[str, Any]", arguments)
    stored = await load_waiting(need_store(given.get("approvals")), run_id)
    if given.get("model") is None:
        given["model"] = unpack_run(stored).trace.model
    async with aclosing(Session(**given)) as session:
        return await session.resume(run_id, output=output)


@overload
def run_sync(
    prompt: Prompt, *, output: None = None, **arguments: Unpack[Arguments]
) -> RunResult: ...


@overload
def run_sync(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[UnpausedArguments]
) -> OutputResult[T]: ...


@overload
def run_sync(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[PausableArguments]
) -> OutputResult[T] | PausedResult: ...


def run_sync(prompt: Prompt, *, output: Any = None, **arguments: Unpack[Arguments]) -> RunResult:
    """Do what `run` does from code that is not asynchronous.

    Without a network, with a reply that is given:

        transport = surecall.ScriptedTransport(["Hello."])
        surecall.run_sync("Hi", model="small", transport=transport).text  # 'Hello.'
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run(prompt, output=output, **arguments))
    raise RuntimeError("an event loop is running here; use `await surecall.run(...)` instead")


@overload
def stream(prompt: Prompt, *, output: None = None, **arguments: Unpack[Arguments]) -> RunStream: ...


@overload
def stream(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[UnpausedArguments]
) -> RunStream[OutputResult[T]]: ...


@overload
def stream(
    prompt: Prompt, *, output: Wanted[T], **arguments: Unpack[PausableArguments]
) -> RunStream[OutputResult[T] | PausedResult]: ...


def stream(prompt: Prompt, *, output: Any = None, **arguments: Unpack[Arguments]) -> RunStream:
    """Run the prompt and hand out its events as they happen; takes what `run` takes.

    For example:

        transport = surecall.ScriptedTransport(["Hello."])
        events = surecall.stream("Hi", model="small", transport=transport)
        names = [type(event).__name__ async for event in events]
        names[0], names[-1]  # ('RunStarted', 'RunEnded')
    """
    return stream_run(run, prompt, output, arguments)


@overload
async def extract(
    source: Prompt, *, output: Wanted[T], **arguments: Unpack[UnpausedArguments]
) -> OutputResult[T]: ...


@overload
async def extract(
    source: Prompt, *, output: Wanted[T], **arguments: Unpack[PausableArguments]
) -> OutputResult[T] | PausedResult: ...


async def extract(
    source: Prompt, *, output: Any, **arguments: Unpack[Arguments]
) -> OutputResult[Any] | PausedResult:
    """Read a value out of a text or messages; nothing that is not in them is made up.

        schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        transport = surecall.ScriptedTransport(['{"city": "Rome"}'])
        text = "We met in Rome."
        result = await surecall.extract(text, output=schema, model="small", transport=transport)
        result.output  # {'city': 'Rome'}

    Args:
        source: The text, or messages that hold it.
        output: The value: a dataclass, Struct, TypedDict, pydantic model or other type, a JSON
            schema, or an `OutputForm`.
        arguments: Any argument of `run`; without `system`, the model is told to take everything
            from the text.

    Raises:
        ProviderError: The model could not be asked.
        RunError: No reply was a value that fits; `OutputError` says what was wrong each time.
        SetupError: Something given is wrong.
    """
    given: dict[str, Any] = {"system": EXTRACT, **arguments}
    form: OutputForm[Any] = make_form(output)
    return await run(source, output=form, **given)
