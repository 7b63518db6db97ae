"""The tables of the file of settings, with their defaults; nothing is checked across them here."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from surecall.base.limits import MAX_BODY_BYTES, MIB
from surecall.exchange.policy import STEPS, LikelyCalls, RefusedCalls, StepName
from surecall.reading import ReadingLimits

LogFormat = Literal["text", "json"]
"""How lines of the log look."""
Role = Literal["call", "read-only", "admin"]
"""What a virtual key may do: ask models, look at what was done, or everything."""
ROLES: Final[tuple[Role, ...]] = ("call", "read-only", "admin")
"""What a key may do, the least first."""

DEFAULT_PORT: Final = 8787
"""Where a gateway listens unless the settings say otherwise."""
DEFAULT_UPSTREAM: Final = "default"
EMBEDDED_UPSTREAM: Final = "embedded"
DEFAULT_EMBEDDED_MODEL: Final = "embedded:smollm2-135m"
RELAYED_PATHS: Final = (
    "audio/speech",
    "POST batches",
    "GET batches/*",
    "POST batches/*/cancel",
    "completions",
    "decisions",
    "embeddings",
    "POST files",
    "GET files/*",
    "GET files/*/content",
    "images/generations",
    "messages/count_tokens",
    "moderations",
    "rerank",
    "responses/compact",
    "responses/input_tokens",
    "systemone",
)
"""What is relayed with a key of the gateway, apart from the endpoints that are read; a client
that brings its own key may use every path of its upstream. Files and batches are found by their
id only: a list would show one user what another one has."""

Positive = Annotated[float, Meta(gt=0)]
Price = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Amount = Annotated[int, Meta(ge=0)]


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file; a key that it does not know is an error."""


class ServerSettings(Table, frozen=True, kw_only=True):
    """Where the gateway listens, and who it lets in."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = DEFAULT_PORT
    allow_hosts: tuple[str, ...] = ()
    """Values of `Host` that are the gateway's own besides its addresses, such as `llm.lan:8787`."""
    workers: Count = 1
    drain_s: Positive = 30.0
    """How long requests may go on after SIGTERM."""


class LimitSettings(Table, frozen=True, kw_only=True):
    """What one worker takes on, and what a client may cost."""

    max_request_bytes: Count = MAX_BODY_BYTES
    max_header_bytes: Count = 64 * 1024
    header_s: Positive = 10.0
    """Until all headers of a request have arrived."""
    body_s: Positive = 60.0
    """Until its whole body has arrived."""
    min_body_bytes_per_s: Amount = 1024
    """How fast the body must come, on average over any `header_s`."""
    idle_s: Positive = 75.0
    """How long a connection is kept between two requests."""
    max_connections: Count = 4096
    max_in_flight: Count = 256
    max_waiting: Amount = 128
    max_wait_s: Positive = 5.0
    """How long a request waits for its turn before it is refused with 503."""
    max_unsent_bytes: Count = 256 * 1024
    """How much of a stream is held for a client that reads slowly."""


class RetrySettings(Table, frozen=True, kw_only=True):
    """What is tried again by the gateway, before any byte of an answer was used."""

    max_retries: Amount = 1
    max_wait_s: Annotated[float, Meta(ge=0)] = 20.0
    """How long an upstream may ask to wait; if it asks for more, the client learns of it."""
    budget_share: Annotated[float, Meta(ge=0, le=1)] = 0.2
    """How many of the requests in flight may be retries at once."""
    budget_floor: Amount = 3


class PolicySettings(Table, frozen=True, kw_only=True):
    """What may be done to make calls usable; see `Policy`."""

    observe: bool = False
    """Pass every byte untouched, and only record what would have been done."""
    steps: tuple[StepName, ...] = STEPS
    max_requests: Count = 3
    max_tokens: Count | None = None
    max_seconds: Positive = 120.0
    hold_calls_s: Positive = 5.0
    hold_calls_bytes: Count = 16_384
    likely_calls: LikelyCalls = "reask"
    likely_calls_by_tool: dict[str, LikelyCalls] = {}
    refused_calls: RefusedCalls = "auto"
    text_formats: bool = True
    repair_history: bool = True
    repeated_calls: Literal["note", "tell"] = "note"
    max_arguments_bytes: Count = ReadingLimits().max_arguments_bytes
    """How large the arguments of one call may be."""


class DeadlineSettings(Table, frozen=True, kw_only=True):
    """How long to wait for an upstream; unset means the default."""

    connect_s: Positive | None = None
    first_byte_s: Positive | None = None
    idle_s: Positive | None = None
    total_s: Positive | None = None


class UpstreamSettings(Table, frozen=True, kw_only=True):
    """One endpoint that answers."""

    url: str
    """Its address, or `embedded:NAME` for a model inside this process."""
    protocol: str = ""
    """Its wire format; empty means that of the provider, or chat completions."""
    provider: str = ""
    """Its name in the catalog; empty means by its host."""
    api_prefix: str | None = None
    api_key_env: str = ""
    api_key_file: str = ""
    key: Literal["needed", "none"] = "needed"
    """`none` says that it takes no key, so that it may be probed without one."""
    headers: dict[str, str] = {}
    """Sent with every request; no secrets."""
    models: tuple[str, ...] = ()
    """Which names of models belong here, with `*`; none means all."""
    max_in_flight: Count | None = None
    """Unset: all that a worker takes on if this is the only upstream, else half of it."""
    max_connections: Count | None = None
    """Unset: as many as requests may be in flight, and at least 256."""
    ca_file: str = ""
    """File with authorities to trust besides the system's; relative to this file."""
    client_cert_file: str = ""
    """File with the certificate to show, if the upstream asks for one."""
    client_key_file: str = ""
    """File with its key, unless `client_cert_file` has it."""
    deadlines: DeadlineSettings = DeadlineSettings()
    probe: Literal["auto", "off"] = "auto"
    refused_calls: RefusedCalls | None = None
    """Instead of what the policy says."""
    capabilities: dict[str, Any] = {}
    """What its models can do, where that is known better."""


class TargetSettings(Table, frozen=True, kw_only=True):
    """A model at an upstream, and how often it is chosen."""

    upstream: str
    model: str
    weight: Annotated[float, Meta(ge=0)] = 1.0


class RouteSettings(Table, frozen=True, kw_only=True):
    """A name that stands for one of several models, with others to fall back on, in order."""

    targets: Annotated[tuple[TargetSettings, ...], Meta(min_length=1)]
    fallbacks: tuple[TargetSettings, ...] = ()
    by: Literal["weight", "evidence"] = "weight"
    """`evidence` sends most requests to the target with the fewest broken calls."""
    min_requests: Count = 50
    """Until every target has had so many requests with tools, weights decide."""
    trying: Annotated[float, Meta(gt=0, le=0.5)] = 0.1
    """Which part of the requests goes to the targets that do not lead, in equal shares."""


class PriceSettings(Table, frozen=True, kw_only=True):
    """What a million tokens of a model cost, in one currency for all models."""

    input: Price
    output: Price
    cached_input: Price | None = None
    """For input that the provider read from its cache; unset means as other input."""
    cache_write: Price | None = None
    """For input that was put into the cache; unset means as other input."""


class ModelSettings(Table, frozen=True, kw_only=True):
    """What holds for one model, as the upstream names it."""

    upstream: str = ""
    """Only at this upstream; empty means everywhere."""
    preset: tuple[str, ...] = ()
    """Presets whose fields of the request are used; `auto` means those of the catalog."""
    request_defaults: dict[str, Any] = {}
    """Fields of the body for requests that do not have them."""
    request_overrides: dict[str, Any] = {}
    """Fields of the body that replace those of the client."""
    capabilities: dict[str, Any] = {}
    strategy: Literal["auto", "native", "taught"] = "auto"
    prices: PriceSettings | None = None
    policy: PolicySettings | None = None


class KeySettings(Table, frozen=True, kw_only=True):
    """A key that the gateway itself gives out."""

    id: str
    role: Role = "call"
    key_env: str = ""
    key_file: str = ""
    key_sha256: str = ""
    """The SHA-256 of the key in hexadecimal, so that the key itself is nowhere."""
    models: tuple[str, ...] = ()
    """Which names of models it may ask for, with `*`; none means all."""
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    requests_per_day: Count | None = None
    tokens_per_day: Count | None = None
    cost_per_month: Positive | None = None
    """How much it may spend in a month of the calendar, for models with prices only."""
    refused_calls: RefusedCalls | None = None
    """Instead of what upstream and policy say."""


class StoreSettings(Table, frozen=True, kw_only=True):
    """Where requests are recorded."""

    path: str = ""
    """A folder or file for SQLite, `off`, or empty for the default place."""
    url_env: str = ""
    """A variable with the address of a PostgreSQL server, for several gateways."""
    spool: str = ""
    """The file in which records wait while the store is away; by default next to the store."""
    spool_max_bytes: Count = 256 * MIB
    when_full: Literal["drop", "refuse"] = "drop"
    """What happens when neither the store nor the spool takes records: `drop` goes on without them,
    `refuse` answers new requests with 503."""
    keep_bodies: bool = False
    max_age_days: Positive | None = 30.0
    max_records: Count | None = 1_000_000


class ApprovalSettings(Table, frozen=True, kw_only=True):
    """Where the approvals are that the dashboard shows; nowhere by default."""

    store: str = ""
    """The file of an application's store, or the address of a PostgreSQL server."""
    url_env: str = ""
    """A variable with such an address."""


class LogSettings(Table, frozen=True, kw_only=True):
    """What is written to standard error."""

    format: LogFormat = "text"
    """`text` for sentences, `json` for an object on each line."""
    requests: bool = False
    """Whether every request leaves a line."""


class TelemetrySettings(Table, frozen=True, kw_only=True):
    """What is reported elsewhere; nothing by default."""

    otel: bool = False
    otel_content: bool = False


class SettingsFile(Table, frozen=True, kw_only=True):
    """The whole file."""

    server: ServerSettings = ServerSettings()
    limits: LimitSettings = LimitSettings()
    retry: RetrySettings = RetrySettings()
    policy: PolicySettings = PolicySettings()
    upstreams: dict[str, UpstreamSettings] = {}
    aliases: dict[str, str] = {}
    routes: dict[str, RouteSettings] = {}
    models: dict[str, ModelSettings] = {}
    keys: tuple[KeySettings, ...] = ()
    relay_paths: tuple[str, ...] = RELAYED_PATHS
    store: StoreSettings = StoreSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
