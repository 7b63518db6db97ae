"""The seam between records and one wire format.

The client side renders requests and parses replies; the server side parses requests and renders
replies, so that any format can be answered in any other.

A reply is parsed in two steps, so that named transforms can edit the assistant message in
between: `parse_body` (or a stream folder) finds the message, `parse_message` understands it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from surecall.base.errors import ProviderError, SurecallError
from surecall.base.json_values import as_fields, as_list, pick_fields
from surecall.base.records import ModelRequest, Reading, Reply, Usage, WireRequest

from .conversation import Conversation
from .errors import parse_error
from .events import EventReader, event_of
from .records import RawReply, StreamWriter, Traits, WireError
from .rewriting import Checks, Clean, EventRewriter, Patched, Plan


class WireProtocol(Protocol):
    """One wire format: renders requests onto it and parses replies from it, and the reverse.

    A format holds no state; what most formats have in common is written here.
    """

    name: str
    """The name of the format, as used in settings."""
    default_prefix: str = "/v1"
    """Where the endpoints are when an address has no path, such as `/v1`."""
    fixed_headers: Mapping[str, str] = MappingProxyType({})
    """Headers that every request has, besides those with a key."""
    takes_transforms: bool = False
    """Whether messages, tools and replies have the shape that named transforms edit."""
    stream_fields: Mapping[str, Any] = MappingProxyType({"stream": True})
    """Fields of a body that ask for a stream; none where the path does."""
    traits: Traits = Traits()
    """How it differs from the others."""

    def path_of(self, model: str, *, stream: bool) -> str:
        """Return the path of the endpoint that answers for a model."""
        return self.traits.path

    @staticmethod
    def render_auth(key: str) -> dict[str, str]:
        """Render the headers that carry a key, as most providers read it."""
        return {"Authorization": f"Bearer {key}"}

    @staticmethod
    def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Understand an error answer; nothing is raised."""
        return parse_error(status, headers, body)

    def as_functions(self, document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return a request whose tools are functions only, and the names of what is left out."""
        traits = self.traits
        kept: list[Any] = []
        left_out: list[str] = []
        for tool in map(as_fields, as_list(document.get("tools"))):
            if traits.declaring_keys:
                left_out += [f"tools.{key}" for key in tool if key not in traits.declaring_keys]
                tool = pick_fields(tool, traits.declaring_keys)
            elif tool.get("type") not in (None, *traits.function_types):
                left_out.append(f"tools.{tool.get('type')}")
                continue
            if tool:
                kept.append(tool)
        rest = {key: value for key, value in document.items() if key != "tools"}
        return ({**rest, "tools": kept} if kept else rest), tuple(dict.fromkeys(left_out))

    @staticmethod
    def join_parts(document: dict[str, Any], reading: Reading) -> dict[str, Any] | None:
        """Return a reply whose content is text, where it came in parts; else nothing."""
        return None

    @staticmethod
    def put_older_call(document: dict[str, Any]) -> dict[str, Any]:
        """Return a reply whose call is in an older field, where the format has one."""
        return document

    @staticmethod
    def write_events(document: dict[str, Any], request: Mapping[str, Any]) -> bytes:
        """Return the events of a whole reply, which came to its end.

        Args:
            document: The reply, which may have several choices.
            request: The request of the client.
        """
        return event_of(document)

    @staticmethod
    def says_why(document: dict[str, Any], error: ProviderError) -> bool:
        """Tell whether a reply is one of the format, and says itself why it holds no answer."""
        return False

    @staticmethod
    def is_waiting(document: dict[str, Any]) -> bool:
        """Tell whether a reply only names one in the background, which has no output yet."""
        return False

    @staticmethod
    def goes_on(body: bytes) -> bool:
        """Tell whether a request asks for a reply that goes on without the client."""
        return False

    @staticmethod
    def read_usage(document: dict[str, Any]) -> Usage | None:
        """Return the tokens of a reply that holds no answer."""
        return None

    @staticmethod
    def render_request(request: ModelRequest) -> WireRequest:
        """Render a request."""
        ...

    @staticmethod
    def parse_body(body: bytes, headers: Mapping[str, str] | None = None) -> RawReply:
        """Find the assistant message in a whole body, or raise `ProviderError`."""
        ...

    @staticmethod
    def parse_message(raw: RawReply) -> Reply:
        """Understand the assistant message; whatever shape it has, nothing is raised."""
        ...

    @staticmethod
    def open_stream(
        headers: Mapping[str, str] | None = None,
        *,
        skip_bad_events: bool = False,
        is_passed: bool = False,
        choices: int = 1,
        is_legacy: bool = False,
    ) -> EventReader:
        """Begin to read one streamed reply."""
        ...

    @staticmethod
    def open_rewriter(
        reader: Any, *, is_other: Callable[[Any, Mapping[str, Any]], bool] = ...
    ) -> EventRewriter[Any]:
        """Begin to write among the events of a reply that a reader of this format reads."""
        ...

    @staticmethod
    def open_conversation(document: Mapping[str, Any]) -> Conversation:
        """Return the conversation of a request."""
        ...

    @staticmethod
    def read_clean(body: bytes, checks: Checks) -> Clean | None:
        """Return what a whole reply has, or `None` if it is not surely clean."""
        ...

    @staticmethod
    def patch_reply(document: dict[str, Any], plan: Plan) -> Patched:
        """Put the calls that were read into the endpoint's own document, which has one choice."""
        ...

    @staticmethod
    def keep_found(document: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
        """Return a reply that begins with what the provider's own tools found in an earlier one."""
        return document

    @staticmethod
    def move_thought(document: dict[str, Any], thought: str, text: str) -> dict[str, Any]:
        """Return a reply with the reasoning that was split off its text in its own place."""
        ...

    @staticmethod
    def parse_request(request: WireRequest) -> ModelRequest:
        """Understand a request that a client sent, or raise `RequestError`."""
        ...

    @staticmethod
    def render_reply(reply: Reply, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Render a reply as a server's whole body.

        Args:
            reply: The reply.
            request: The body that the client sent, where the reply repeats some of it.
        """
        ...

    @staticmethod
    def open_writer(
        *,
        model: str,
        reply_id: str | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> StreamWriter:
        """Begin to write one streamed reply.

        Args:
            model: The model that answers.
            reply_id: The id of the reply.
            request: The body that the client sent, where the reply repeats some of it or depends
                on it; without it, everything that the format has is written.
        """
        ...

    @staticmethod
    def render_error(error: SurecallError) -> WireError:
        """Render an error as a server answers it."""
        ...
