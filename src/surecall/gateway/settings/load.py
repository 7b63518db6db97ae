"""Settings read from a file and the command line, checked as a whole."""

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import ConfigError, did_you_mean, invalid_config
from surecall.base.redaction import Secret
from surecall.models.client.network import Network
from surecall.models.client.urls import join_url
from surecall.models.config import parse_key, read_key, read_network
from surecall.models.config.sources import read_toml
from surecall.models.profiles import (
    RESERVED_REQUEST_KEYS,
    Catalog,
    embedded_name,
    find_preset,
    join_capabilities,
    merge_presets,
    presets_for,
    split_capabilities,
)
from surecall.models.transport import EMBEDDED_DEADLINES, Deadlines
from surecall.wire import DEFAULT_PROTOCOL, PROTOCOLS, find_protocol

from .tables import (
    DEFAULT_EMBEDDED_MODEL,
    DEFAULT_UPSTREAM,
    EMBEDDED_UPSTREAM,
    RELAYED_PATHS,
    ApprovalSettings,
    KeySettings,
    LimitSettings,
    ModelSettings,
    PolicySettings,
    RetrySettings,
    RouteSettings,
    ServerSettings,
    SettingsFile,
    StoreSettings,
    TargetSettings,
    TelemetrySettings,
    UpstreamSettings,
)

_S = TypeVar("_S", bound=Struct)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_HOST: Final = re.compile(r"[A-Za-z0-9.\-\[\]:]{1,255}")


class UpstreamEntry(Struct, frozen=True, kw_only=True):
    """An upstream, checked and with its key."""

    name: str
    settings: UpstreamSettings
    protocol: str
    provider: str | None
    base: str = ""
    """Where its endpoints are, without a slash at the end; empty for an embedded model."""
    embedded: str = ""
    """The name of the embedded model, if it is one."""
    key: Secret | None = None
    deadlines: Deadlines = Deadlines()
    network: Network = Network()

    @property
    def may_be_probed(self) -> bool:
        """Whether questions may be asked there: with a key of ours, or where none is needed."""
        return not self.needs_client_key and self.settings.probe == "auto"

    @property
    def needs_client_key(self) -> bool:
        """Whether it may want a key that only clients have."""
        return self.key is None and not self.embedded and self.settings.key != "none"


class VirtualKey(Struct, frozen=True, kw_only=True):
    """A key of the gateway, known by its digest only."""

    settings: KeySettings
    digest: bytes
    secret: Secret | None = None
    """Held while it is known, so that it is taken out of everything that is kept or shown."""


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """All settings in force."""

    server: ServerSettings = ServerSettings()
    limits: LimitSettings = LimitSettings()
    retry: RetrySettings = RetrySettings()
    policy: PolicySettings = PolicySettings()
    upstreams: dict[str, UpstreamEntry] = {}
    aliases: dict[str, str] = {}
    routes: dict[str, RouteSettings] = {}
    models: dict[str, ModelSettings] = {}
    keys: tuple[VirtualKey, ...] = ()
    relay_paths: tuple[str, ...] = RELAYED_PATHS
    store: StoreSettings = StoreSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    path: Path | None = None

    @property
    def example_key(self) -> str | None:
        """What a client presents as its key; `None` where it is the one that it has anyway."""
        if self.keys:
            return "YOUR_KEY"
        needs = any(entry.needs_client_key for entry in self.upstreams.values())
        return None if needs else "unused"


def load_settings(
    path: "Path | None" = None,
    *,
    upstream: str | None = None,
    server: Mapping[str, Any] | None = None,
    store: str | None = None,
    approvals: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> GatewaySettings:
    """Read the file, if there is one, and what the command line says, which wins.

    Args:
        path: The file.
        upstream: The address of the only upstream, or the one that is asked before those of the
            file; without either, the embedded model answers.
        server: Host, port and workers of the command line; `None` means not given.
        store: Where requests are recorded, as in `store.path`.
        approvals: Where approvals are, as in `approvals.store`.
        environ: Variables that hold keys; those of the process by default.

    Raises:
        ConfigError: `INVALID_CONFIG`, naming the key that is wrong.
    """
    shown = str(path) if path is not None else "the command line"
    read = _read(path, shown) if path is not None else SettingsFile()
    given = {name: value for name, value in (server or {}).items() if value is not None}
    listening = _convert({**msgspec.to_builtins(read.server), **given}, ServerSettings, shown)
    upstreams = dict(read.upstreams)
    if upstream is not None:
        upstreams = {DEFAULT_UPSTREAM: UpstreamSettings(url=upstream), **upstreams}
    elif not upstreams:
        upstreams = {EMBEDDED_UPSTREAM: UpstreamSettings(url=DEFAULT_EMBEDDED_MODEL)}
    base = path.parent if path is not None else Path()
    entries = {
        name: _check_upstream(name, item, base, shown, environ) for name, item in upstreams.items()
    }
    checked = _Checker(read, entries, shown)
    checked.check()
    settings = GatewaySettings(
        server=listening,
        limits=read.limits,
        retry=read.retry,
        policy=read.policy,
        upstreams=entries,
        aliases=read.aliases,
        routes=read.routes,
        models={name: _resolve_model(name, item, shown) for name, item in read.models.items()},
        keys=tuple(_read_virtual(item, base, shown, environ) for item in read.keys),
        relay_paths=tuple(item.strip("/") for item in read.relay_paths),
        store=read.store if store is None else replace(read.store, path=store, url_env=""),
        approvals=read.approvals if approvals is None else ApprovalSettings(store=approvals),
        telemetry=read.telemetry,
        path=path,
    )
    _check_approvals(settings.approvals, shown, environ)
    _check_keys(settings, shown)
    _check_exposure(settings, shown)
    return settings


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    name = host.strip("[]").lower()
    return name in {"localhost", "::1"} or name.startswith("127.")


def _read(path: Path, shown: str) -> SettingsFile:
    return _convert(read_toml(path, shown), SettingsFile, shown)


def _convert(value: Any, kind: type[_S], shown: str) -> _S:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise invalid_config(
            f"{shown}: {error}.", "`surecall docs gateway` has all settings."
        ) from error


# Upstreams


def _check_upstream(
    name: str, item: UpstreamSettings, base: Path, shown: str, environ: Mapping[str, str] | None
) -> UpstreamEntry:
    place = f"{shown}: upstreams.{name}"
    if not _NAME.fullmatch(name):
        raise invalid_config(f"{place} is not a usable name.", "Use letters, digits, - and _.")
    _check_capabilities(item.capabilities, place)
    embedded = embedded_name(item.url)
    if embedded is not None:
        if not embedded:
            raise invalid_config(f"{place}.url names no model.", "Write embedded:smollm2-135m.")
        if item.protocol not in ("", DEFAULT_PROTOCOL):
            raise invalid_config(f"{place}.protocol: an embedded model has {DEFAULT_PROTOCOL}.")
        return UpstreamEntry(
            name=name,
            settings=item,
            protocol=DEFAULT_PROTOCOL,
            provider="embedded",
            embedded=embedded,
            deadlines=_deadlines(item, EMBEDDED_DEADLINES),
        )
    for header, value in item.headers.items():
        if not _HEADER.fullmatch(header) or not (value.isascii() and value.isprintable()):
            raise invalid_config(f"{place}.headers.{header} is not a usable header.")
        if any(word in header.lower() for word in ("auth", "key", "token", "secret", "cookie")):
            raise invalid_config(
                f"{place}.headers.{header} would put a secret into the file.",
                "Use api_key_env or api_key_file.",
            )
    provider, protocol = _know_upstream(item, place)
    try:
        prefix = find_protocol(protocol).default_prefix
        address = join_url(item.url, item.api_prefix, "", default_prefix=prefix)
    except ConfigError as error:
        raise invalid_config(f"{place}.url: {error.message}", error.hint) from error
    return UpstreamEntry(
        name=name,
        settings=item,
        protocol=protocol,
        provider=provider,
        base=address.rstrip("/"),
        key=_read_key(item.api_key_env, item.api_key_file, base, f"{place}.api_key", environ)
        or _find_key(item, provider, environ),
        deadlines=_deadlines(item, Deadlines()),
        network=_read_network(item, base, place, environ),
    )


def _read_network(
    item: UpstreamSettings, base: Path, place: str, environ: Mapping[str, str] | None
) -> Network:
    """Return how an upstream is reached: as the environment says, with the files that are set."""
    names = ("ca_file", "client_cert_file", "client_key_file")
    files = {name: str(base / path) for name in names if (path := getattr(item, name))}
    network = replace(read_network(environ), **files)
    if files:
        try:
            network.tls_context()
        except ConfigError as error:
            raise invalid_config(f"{place}: {error.message}", error.hint) from error
    return network


def _know_upstream(item: UpstreamSettings, place: str) -> tuple[str | None, str]:
    """Return the provider and the wire format of an upstream."""
    catalog = Catalog.builtin()
    parts = urlsplit(item.url)
    provider = item.provider or (catalog.provider_at(parts.hostname) if parts.hostname else None)
    protocol = item.protocol
    if not protocol and not parts.path.rstrip("/").endswith("/openai"):
        entry = catalog.find_provider(provider) if provider else None
        protocol = entry.protocol or "" if entry else ""
    protocol = protocol or DEFAULT_PROTOCOL
    if protocol not in PROTOCOLS:
        raise invalid_config(
            f"{place}.protocol is {protocol!r}, which is not a wire format.",
            did_you_mean(protocol, PROTOCOLS),
        )
    return provider, protocol


def _deadlines(item: UpstreamSettings, base: Deadlines) -> Deadlines:
    given = {
        name: value
        for name in item.deadlines.__struct_fields__
        if (value := getattr(item.deadlines, name)) is not None
    }
    return replace(base, **given)


def _check_capabilities(values: Mapping[str, Any], place: str) -> None:
    try:
        known = join_capabilities(*split_capabilities(dict(values)))
    except (msgspec.ValidationError, ConfigError) as error:
        raise invalid_config(f"{place}.capabilities: {error}.") from error
    for name in values:
        if name not in known:
            raise invalid_config(
                f"{place}.capabilities has no {name!r}.", did_you_mean(name, known)
            )


# Keys


def _find_key(
    item: UpstreamSettings, provider: str | None, environ: Mapping[str, str] | None
) -> Secret | None:
    """Return the key that the environment has for a provider, if its upstream may take one."""
    entry = Catalog.builtin().find_provider(provider) if provider else None
    variables = entry.key_env if entry is not None and item.key == "needed" else ()
    found = (read_key(variable, environ) for variable in variables)
    return next((key for key in found if key is not None), None)


def _read_key(
    variable: str, file: str, base: Path, place: str, environ: Mapping[str, str] | None
) -> Secret | None:
    if variable and file:
        raise invalid_config(f"{place}_env and {place}_file are both given.", "Leave one out.")
    if variable:
        key = read_key(variable, environ)
        where = f"the variable {variable}"
    elif file:
        path = base / Path(file).expanduser()
        try:
            key = parse_key(path.read_text("utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise invalid_config(f"{place}_file: {path} cannot be read: {error}.") from error
        where = str(path)
    else:
        return None
    if key is None:
        raise invalid_config(f"{place}: {where} holds no key.", "Set it, or leave the entry out.")
    return key


def _read_virtual(
    item: KeySettings, base: Path, shown: str, environ: Mapping[str, str] | None
) -> VirtualKey:
    place = f"{shown}: the key {item.id!r}"
    if not _NAME.fullmatch(item.id):
        raise invalid_config(f"{place} has an unusable id.", "Use letters, digits, - and _.")
    if item.key_sha256:
        digest = item.key_sha256.strip().lower()
        if not _DIGEST.fullmatch(digest) or item.key_env or item.key_file:
            raise invalid_config(
                f"{place}: key_sha256 must be 64 hexadecimal digits, and the only one given."
            )
        return VirtualKey(settings=item, digest=bytes.fromhex(digest))
    secret = _read_key(item.key_env, item.key_file, base, f"{place}: key", environ)
    if secret is None:
        raise invalid_config(f"{place} has no key.", "Give key_env, key_file or key_sha256.")
    if len(secret.reveal()) < 16:
        raise invalid_config(
            f"{place} is shorter than 16 characters.",
            "Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return VirtualKey(
        settings=item, digest=sha256(secret.reveal().encode()).digest(), secret=secret
    )


def _check_keys(settings: GatewaySettings, shown: str) -> None:
    ids = [key.settings.id for key in settings.keys]
    digests = [key.digest for key in settings.keys]
    if len(set(ids)) < len(ids) or len(set(digests)) < len(digests):
        raise invalid_config(f"{shown}: two keys have the same id or the same value.")


def _check_approvals(item: ApprovalSettings, shown: str, environ: Mapping[str, str] | None) -> None:
    if item.store and item.url_env:
        raise invalid_config(f"{shown}: approvals.store and approvals.url_env are both given.")
    if item.url_env and read_key(item.url_env, environ) is None:
        raise invalid_config(
            f"{shown}: approvals.url_env names {item.url_env}, which is not set.",
            "Set it to a postgresql:// address.",
        )


def _check_exposure(settings: GatewaySettings, shown: str) -> None:
    server = settings.server
    for host in server.allow_hosts:
        if not _HOST.fullmatch(host):
            raise invalid_config(f"{shown}: server.allow_hosts has {host!r}, which is not a host.")
    if not is_loopback(server.host) and not settings.keys:
        raise invalid_config(
            f"{server.host} can be reached from other machines, and there is no key.",
            "Add a [[keys]] entry to the file of --config, or listen on 127.0.0.1.",
        )


# Names of models


class _Checker:
    """Checks that every name leads somewhere."""

    def __init__(
        self, read: SettingsFile, upstreams: Mapping[str, UpstreamEntry], shown: str
    ) -> None:
        self._read = read
        self._upstreams = upstreams
        self._shown = shown

    def check(self) -> None:
        read = self._read
        for name, route in read.routes.items():
            for target in (*route.targets, *route.fallbacks):
                self._check_target(f"routes.{name}", target)
            if not any(target.weight for target in route.targets):
                raise self._invalid(f"routes.{name} has no target with a weight.")
        for name, target in read.aliases.items():
            if name in read.routes:
                raise self._invalid(f"{name!r} is an alias and a route.")
            if target in read.aliases:
                raise self._invalid(f"aliases.{name} leads to another alias, {target!r}.")
        for name, model in read.models.items():
            place = f"{self._shown}: models.{name}"
            _check_capabilities(model.capabilities, place)
            if model.upstream and model.upstream not in self._upstreams:
                raise self._unknown(f"models.{name}", model.upstream)
            for field in ("request_defaults", "request_overrides"):
                for key in getattr(model, field):
                    if key in RESERVED_REQUEST_KEYS:
                        raise self._invalid(f"models.{name}.{field} may not set {key!r}.")

    def _check_target(self, place: str, target: TargetSettings) -> None:
        if target.upstream not in self._upstreams:
            raise self._unknown(place, target.upstream)

    def _unknown(self, place: str, upstream: str) -> ConfigError:
        return invalid_config(
            f"{self._shown}: {place} names the upstream {upstream!r}, which there is not.",
            did_you_mean(upstream, self._upstreams),
        )

    def _invalid(self, message: str) -> ConfigError:
        return invalid_config(f"{self._shown}: {message}")


def _resolve_model(name: str, item: ModelSettings, shown: str) -> ModelSettings:
    """Return what holds for a model, with the fields that its presets set."""
    if not item.preset:
        return item
    try:
        found = [
            preset
            for wanted in item.preset
            for preset in (presets_for(None, name) if wanted == "auto" else (find_preset(wanted),))
        ]
        merged = merge_presets([preset.layer for preset in found]).values
    except ConfigError as error:
        raise invalid_config(
            f"{shown}: models.{name}.preset: {error.message}", error.hint
        ) from error
    return replace(
        item,
        request_defaults={**merged.get("request_defaults", {}), **item.request_defaults},
        request_overrides={**merged.get("request_overrides", {}), **item.request_overrides},
    )
