"""What is sent to the endpoint: the client's own bytes, or its request in another form."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, RequestError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Defect, Message, ModelRequest, Receipt, WireRequest
from surecall.reading.truncation import stopped_at_limit
from surecall.text import decode, encode
from surecall.wire import translate_asked
from surecall.wire.call_ids import find_id_shape, pair_calls
from surecall.wire.substitutes import name_limit
from surecall.wire.translate import part_features

from .chat_requests import fit_chat
from .history import Repeats, repair_body, repair_history
from .policy import Policy, Route
from .prompting import PromptMode, present_tools
from .provider_rules import HistoryRules, fit_history
from .request import ClientRequest, add_members, replace_model
from .signatures import EchoCache
from .wording import LOSSES_HINT, refuse_losses

Mode = Literal["native", "fenced", "object"]
"""How the model is to write its calls: as the endpoint defines it, as a fenced block, or as one
object that the endpoint holds it to."""

PROMPT_MODES: Final[dict[Mode, PromptMode]] = {
    "fenced": "taught",
    "native": "native",
    "object": "constrained",
}
_CHOICE_FIELDS: Final = ("tool_choice", "function_call", "toolConfig", "tool_config")
_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_RAISED: Final = 4
"""How many times as long a reply may be as one that was cut."""
_LEAST_RAISED: Final = 1024
_UNKNOWN_RAISED: Final = 4096
"""How many tokens it may have where nobody says how many the cut one had."""
_TOOL_FIELDS: Final = ("tools", "functions", "parallel_tool_calls")
_REFUSED_LOSSES: Final = frozenset(
    {
        "audio",
        "cachedContent",
        "cached_content",
        "mcp_servers",
        "messages.audio",
        "modalities",
        "response_format",
        "tool_choice",
        "tools",
        "web_search_options",
    }
)
"""What carries a part of the prompt or a tool, or says what the answer has to be."""


class Asked(Struct, frozen=True, kw_only=True):
    """One request to the endpoint."""

    body: bytes
    mode: Mode = "native"
    is_own: bool = True
    """Whether the endpoint was asked in the client's format, so that its reply is in it too."""
    renamed: dict[str, str] = {}
    losses: tuple[str, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    repeated: tuple[Defect, ...] = ()
    """Calls that the conversation has again and again."""
    offered: frozenset[str] | None = None
    """The tools that may be called, where these are fewer than the client has."""

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What the endpoint was not asked, because its format has no place for it."""
        lost = tuple(
            Defect(Code.FIELD_NOT_CARRIED, f"The endpoint's format has no place for {name}.", name)
            for name in self.losses
        )
        return (*lost, *self.repeated)


def pass_on(request: ClientRequest, route: Route) -> Asked | None:
    """Return a request that needs nothing but perhaps another model; `None` for any other."""
    if request.protocol.name != route.protocol.name or not route.takes_bytes or request.has_calls:
        return None
    return _fit(Asked(body=request.body_for(route.model, route.request_defaults)), route)


def _fit(asked: Asked, route: Route, *, is_translated: bool = False) -> Asked:
    """Return a request as its endpoint takes it, with what had to be left out."""
    if not route.protocol.traits.has_dialects:
        return asked
    body, losses = fit_chat(asked.body, route, is_translated=is_translated)
    if body is asked.body:
        return asked
    return replace(asked, body=body, losses=tuple(sorted({*asked.losses, *losses})))


class Preparation:
    """Prepares the requests that are made for one of a client."""

    def __init__(
        self,
        request: ClientRequest,
        route: Route,
        policy: Policy,
        echoes: EchoCache | None = None,
        scope: str = "",
    ) -> None:
        self._request = request
        self._route = route
        self._policy = policy
        self._echoes = echoes
        self._scope = scope
        self._is_same = request.protocol.name == route.protocol.name
        self._asked: ModelRequest | None = None
        self._receipts: tuple[Receipt, ...] = ()
        self._repeats = Repeats(tells=policy.repeated_calls == "tell")

    def first(self) -> Asked:
        """Prepare what the client asked.

        Raises:
            RequestError: The endpoint's format cannot carry it.
        """
        request, route = self._request, self._route
        if self._is_same and route.strategy == "native" and not self._needs_records():
            return self._pass_on()
        if request.choices > 1:
            raise _refuse(self._losses_in((request.protocol.traits.count_key,)))
        mode: Mode = "native" if route.strategy == "native" else "fenced"
        return self.render((), mode=mode)

    def render(
        self,
        follow_up: Sequence[Message],
        *,
        mode: Mode,
        forced_tool: str | None = None,
        must_call: bool = False,
        lists: bool = False,
    ) -> Asked:
        """Prepare the whole request in the endpoint's format, with what was said since.

        Raises:
            RequestError: The request has something that cannot be translated.
        """
        source, target = self._request.protocol, self._route.protocol
        asked = self._understand()
        texts = (message.text for message in reversed(asked.messages) if message.role == "user")
        wish = next(texts, "")
        asked = replace(asked, messages=(*asked.messages, *follow_up), stream=False)
        messages, _ = fit_history(asked.messages, self._rules())
        if self._route.lacks("supports_parallel_tools"):
            asked = replace(asked, parallel_tool_calls=None)
        asked = replace(asked, messages=messages, model=self._route.model)
        parts = {name for message in asked.messages for name in part_features(message)}
        if mode != "native":
            must_call = must_call or asked.tool_choice not in (None, "auto", "none")
            asked = present_tools(
                asked,
                PROMPT_MODES[mode],
                self._route.capabilities,
                forced_tool=forced_tool,
                must_call=must_call,
                lists=lists,
                wish=wish,
            )
        renamed: dict[str, str] = {}
        losses: tuple[str, ...] = ()
        if self._is_same:
            wire = source.render_request(asked)
        else:
            asked = name_limit(asked, self._route.capabilities.max_tokens_field)
            translated = translate_asked(asked, source, target)
            wire, renamed = translated.request, translated.renamed
            losses = (*translated.dropped, *self._request.left_out)
            refused = [name for name in losses if name in parts or name in _REFUSED_LOSSES]
            if refused:
                raise _refuse(self._losses_in(refused))
        body = wire.body
        if not target.traits.model_in_path:
            body = {**body, "model": self._route.model}
        written = encode(body)
        if self._route.request_defaults:
            written = add_members(written, self._route.request_defaults)
        made = Asked(
            body=written,
            mode=mode,
            is_own=self._is_same and mode == "native",
            renamed=renamed,
            losses=losses,
            receipts=self._receipts,
            repeated=self._repeats.defects,
            offered=None if forced_tool is None else frozenset({forced_tool}),
        )
        return self._fit(made)

    def _fit(self, asked: Asked) -> Asked:
        return _fit(asked, self._route, is_translated=not self._is_same)

    def continue_from(
        self,
        first: Asked,
        follow_up: Sequence[Message],
        *,
        forced_tool: str | None = None,
        is_strict: bool = False,
        keeps_choice: bool = True,
        offers_tools: bool = True,
    ) -> Asked:
        """Prepare a request that goes on from another one; all that was sent stays as it was.

        Args:
            first: The other one.
            follow_up: What was said since.
            forced_tool: The tool that the model has to call.
            is_strict: Whether its arguments are held to its schema.
            keeps_choice: Whether the client's choice of a tool stays.
            offers_tools: Whether the tools stay.
        """
        target = self._route.protocol
        document = as_fields(decode(first.body, surrogates="replace"))
        key = target.open_conversation({}).key
        items: Any = document.get(key)
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        elif isinstance(items, dict):
            items = [as_fields(items)]
        messages = tuple(_rename(message, first.renamed) for message in follow_up)
        if (pattern := self._rules().id_pattern) is not None:
            shape = find_id_shape(pattern)
            messages = pair_calls(messages, shape.open())
        added = self._render_messages(messages, key) if messages else []
        document = {**document, key: [*as_list(items), *added]}
        if not keeps_choice or not offers_tools:
            dropped = _CHOICE_FIELDS if offers_tools else (*_CHOICE_FIELDS, *_TOOL_FIELDS)
            document = {name: item for name, item in document.items() if name not in dropped}
        if forced_tool is not None:
            name = first.renamed.get(forced_tool, forced_tool)
            if "functions" in document:  # the older field, which has a choice of its own
                document |= {"function_call": {"name": name}}
            else:
                document |= self._render_choice(forced_tool, name, is_strict=is_strict)
        return self._fit(replace(first, body=encode(document)))

    def raise_limit(self, asked: Asked, finish: str | None, used: int) -> Asked | None:
        """Let a reply be longer than one that was cut at a limit of tokens.

        Where the model has room for no more, nothing is returned: the next reply would be cut too.

        Args:
            asked: What is asked next.
            finish: Why the reply ended.
            used: How many tokens it has, as far as that is known.
        """
        if not stopped_at_limit(finish):
            return asked
        if "context" in str(finish).lower():
            return None
        document = as_fields(decode(asked.body, surrogates="replace"))
        config = as_fields(document.get("generationConfig"))
        named = [name for name in _LIMITS if document.get(name)]
        limits = [document[name] for name in named] + [config.get("maxOutputTokens")]
        used = max([used, *(limit for limit in limits if limit.__class__ is int)])
        raised = max(_LEAST_RAISED, _RAISED * used) if used else _UNKNOWN_RAISED
        if named:
            changed: dict[str, Any] = dict.fromkeys(named, raised)
        else:
            bare = ModelRequest(model=self._route.model, messages=(Message("user", "x"),))
            bare = replace(bare, params={"max_tokens": raised})
            bare = name_limit(bare, self._route.capabilities.max_tokens_field)
            body = self._route.protocol.render_request(bare).body
            changed = {name: body[name] for name in (*_LIMITS, "generationConfig") if name in body}
            if config:
                changed = {"generationConfig": {**config, **changed.get("generationConfig", {})}}
        return replace(asked, body=encode({**document, **changed}))

    def ask_for_one(self, first: Asked) -> Asked:
        """Prepare the same request for one reply only."""
        document = as_fields(decode(first.body, surrogates="replace"))
        document = {name: item for name, item in document.items() if name != "n"}
        config = as_fields(document.get("generationConfig"))
        if "candidateCount" in config:
            kept = {name: item for name, item in config.items() if name != "candidateCount"}
            document["generationConfig"] = kept
        return replace(first, body=encode(document))

    def _render_messages(self, messages: tuple[Message, ...], key: str) -> list[Any]:
        """Render messages that go on from others: formats that begin with the user add one else."""
        leads = messages[0].role == "assistant"
        before = (Message("user", "x"),) if leads else ()
        bare = ModelRequest(model=self._route.model, messages=(*before, *messages))
        added = as_list(self._route.protocol.render_request(bare).body.get(key))
        return added[1:] if leads else added

    def _render_choice(self, tool: str, name: str, *, is_strict: bool) -> dict[str, Any]:
        """Render the choice of a tool under the name that it has at the endpoint.

        With strict arguments it is the only tool that is offered.
        """
        target = self._route.protocol
        specs = (spec for spec in self._request.tools.specs if spec.name == tool)
        bare = ModelRequest(
            model=self._route.model,
            messages=(Message("user", "x"),),
            tools=tuple(replace(spec, name=name) for spec in specs),
        )
        mode: PromptMode = "strict" if is_strict else "native"
        asked = present_tools(bare, mode, self._route.capabilities, forced_tool=name)
        key = target.traits.choice_keys[0]
        body = target.render_request(asked).body
        fields = (key, "tools") if is_strict else (key,)
        return {field: body[field] for field in fields}

    def _pass_on(self) -> Asked:
        request, route = self._request, self._route
        body, receipts = request.body, ()
        if self._policy.repair_history and request.has_calls:
            body, receipts = repair_body(
                body,
                request.protocol.name,
                echoes=self._echoes,
                scope=self._scope,
                with_reasoning=self.wants_reasoning(),
                repeats=self._repeats,
            )
        if route.model != request.model and not request.protocol.traits.model_in_path:
            body = replace_model(body, route.model)
        if route.request_defaults:
            body = add_members(body, route.request_defaults)
        return self._fit(Asked(body=body, receipts=receipts, repeated=self._repeats.defects))

    def _understand(self) -> ModelRequest:
        """Return the client's request with its history repaired, understood."""
        if self._asked is None:
            request = self._request
            if request.tools.others and not self._is_same:
                raise _refuse(self._losses_in(f"the tool {name}" for name in request.tools.others))
            if not request.has_calls:
                self._asked = request.ask()
                return self._asked
            with_reasoning = self.wants_reasoning()
            document, self._receipts = repair_history(
                request.document,
                request.protocol.name,
                echoes=self._echoes,
                scope=self._scope,
                with_reasoning=with_reasoning,
                repeats=self._repeats,
            )
            wire = WireRequest(path=request.path, body=document)
            asked = request.protocol.parse_request(wire)
            if self._echoes is not None:
                messages, restored = self._echoes.restore_messages(
                    asked.messages, self._scope, with_reasoning=with_reasoning
                )
                asked = replace(asked, messages=messages)
                self._receipts += restored
            self._asked = asked
        return self._asked

    @property
    def keeps_reasoning(self) -> bool:
        """Whether reasoning may be put back that the client has left out."""
        is_put_back = not self._is_same or self._route.protocol.traits.drops_reasoning
        return is_put_back and self.wants_reasoning()

    def wants_reasoning(self) -> bool:
        """Tell whether reasoning goes back: chat endpoints that do not ask for it may refuse it."""
        is_needed = bool(self._route.capabilities.needs_reasoning_echo)
        return is_needed or not self._route.protocol.traits.has_dialects

    def _rules(self) -> HistoryRules:
        """Return what is done to a conversation before it is rendered; chat is fitted after it."""
        capabilities = self._route.capabilities
        is_chat = self._route.protocol.traits.has_dialects
        return HistoryRules(
            one_call_each=self._route.lacks("supports_parallel_tools"),
            system_first=self._route.lacks("allows_midturn_system") and not is_chat,
            echo_reasoning=bool(capabilities.needs_reasoning_echo),
            id_pattern=None if is_chat else capabilities.tool_id_pattern,
        )

    def _needs_records(self) -> bool:
        """Tell whether the endpoint demands something that the client's bytes may not meet."""
        rules = self._rules()
        body = self._request.body
        if not any(rules):
            return False
        if self._request.tools.others or self._request.choices > 1:
            return False  # they pass untouched or not at all
        if rules.system_first and body.count(b'"system"') + body.count(b'"developer"') > 1:
            return True
        if rules.one_call_each and b'"parallel_tool_calls"' in body:
            return True
        return self._request.has_calls and (
            rules.one_call_each or rules.echo_reasoning or rules.id_pattern is not None
        )

    def _losses_in(self, names: Any) -> str:
        return refuse_losses(names, self._route.protocol.name)


def _rename(message: Message, renamed: dict[str, str]) -> Message:
    if not renamed or not message.tool_calls:
        return message
    calls = tuple(
        replace(call, name=renamed.get(call.name, call.name)) for call in message.tool_calls
    )
    return replace(message, tool_calls=calls)


def _refuse(message: str) -> RequestError:
    return RequestError(Code.CAPABILITY_UNSUPPORTED, message, hint=LOSSES_HINT)
