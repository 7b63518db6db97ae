"""Settings read from a file and the command line, checked as a whole."""

import re
import tomllib
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import ConfigError, did_you_mean, invalid_config
from surecall.base.json_values import as_fields, as_list
from surecall.base.redaction import Secret, looks_like_key
from surecall.models.client.network import Network, is_loopback, join_url
from surecall.models.config import find_keys, keys_at, parse_key, read_key, read_network
from surecall.models.config.load import read_toml
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

from .errors import Key, SettingError, find_errors, refuse, refuse_syntax
from .tables import (
    DEFAULT_EMBEDDED_MODEL,
    DEFAULT_UPSTREAM,
    EMBEDDED_UPSTREAM,
    RELAYED_PATHS,
    ApprovalSettings,
    KeySettings,
    LimitSettings,
    LogFormat,
    LogSettings,
    ModelSettings,
    PolicySettings,
    RetrySettings,
    RouteSettings,
    ServerSettings,
    SettingsFile,
    StoreSettings,
    TelemetrySettings,
    UpstreamSettings,
)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRET_WORDS: Final = ("auth", "key", "token", "secret", "cookie")
_NAMED: Final = frozenset({"aliases", "models", "routes", "upstreams"})
"""Tables whose keys are names of the user's."""
_NEW_KEY: Final = "`surecall config keys new ID` makes one."
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
    log: LogSettings = LogSettings()
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
    log: LogFormat | None = None,
    observe: bool = False,
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
        log: The format of the log, with a line for every request.
        observe: Whether every byte is passed on untouched, as `policy.observe` says.
        environ: Variables that hold keys; those of the process by default.

    Raises:
        ConfigError: `INVALID_CONFIG`, naming every key that is wrong, with its line.
    """
    loader = _Loader(path, environ)
    given = {name: value for name, value in (server or {}).items() if value is not None}
    settings = loader.load(upstream, given, store, approvals, log)
    if observe:
        return replace(settings, policy=replace(settings.policy, observe=True))
    return settings


def add_key(path: Path | None, name: str, entry: str) -> None:
    """Check the name of a virtual key, and add its table to the end of a file if there is one.

    Raises:
        ConfigError: The name is not usable or taken, or the file cannot be read or written.
    """
    if not _NAME.fullmatch(name):
        raise invalid_config(f"{name!r} is not a usable id.", "Use letters, digits, - and _.")
    if path is None:
        return
    document = read_toml(path, str(path)) if path.exists() else {}
    if any(as_fields(item).get("id") == name for item in as_list(document.get("keys"))):
        raise invalid_config(f"{path} has a key {name!r} already.", "Choose another id.")
    try:
        text = path.read_text("utf-8") if path.exists() else ""
        path.write_text(f"{text.rstrip()}\n\n{entry}".lstrip(), "utf-8")
    except OSError as error:
        raise invalid_config(f"{path} cannot be written: {error.strerror or error}.") from error


class _Loader:
    """Reads and checks everything, and refuses it with all errors at once."""

    def __init__(self, path: Path | None, environ: Mapping[str, str] | None) -> None:
        self._path = path
        self._shown = str(path) if path is not None else "the command line"
        self._base = path.parent if path is not None else Path()
        self._environ = environ
        self._errors: list[SettingError] = []

    def load(
        self,
        upstream: str | None,
        server: Mapping[str, Any],
        store: str | None,
        approvals: str | None,
        log: LogFormat | None,
    ) -> GatewaySettings:
        document = self._read_document()
        read = self._convert(document)
        upstreams, names = dict(read.upstreams), {*as_fields(document.get("upstreams"))}
        if upstream is not None:
            upstreams = {DEFAULT_UPSTREAM: UpstreamSettings(url=upstream), **upstreams}
        elif not names:
            upstreams = {EMBEDDED_UPSTREAM: UpstreamSettings(url=DEFAULT_EMBEDDED_MODEL)}
        entries = {name: self._check_upstream(name, item) for name, item in upstreams.items()}
        self._check_names(read, {*upstreams, *names})
        keys = [self._read_virtual(number, item) for number, item in enumerate(read.keys)]
        settings = GatewaySettings(
            server=self._convert_server(read.server, server),
            limits=read.limits,
            retry=read.retry,
            policy=read.policy,
            upstreams=entries,
            aliases=read.aliases,
            routes=read.routes,
            models={name: self._resolve_model(name, item) for name, item in read.models.items()},
            keys=tuple(key for key in keys if key is not None),
            relay_paths=tuple(item.strip("/") for item in read.relay_paths),
            store=read.store if store is None else replace(read.store, path=store, url_env=""),
            approvals=read.approvals if approvals is None else ApprovalSettings(store=approvals),
            log=read.log if log is None else LogSettings(format=log, requests=True),
            telemetry=read.telemetry,
            path=self._path,
        )
        self._check_prices(settings)
        self._check_databases(settings)
        self._check_exposure(settings, has_keys=bool(document.get("keys")))
        if self._errors:
            raise refuse(self._shown, self._path, self._errors)
        return settings

    def _refuse(self, key: Key, message: str, hint: str | None = None) -> None:
        self._errors.append(SettingError(key, message, hint))

    def _refuse_as(self, key: Key, error: ConfigError) -> None:
        self._refuse(key, f"cannot be used: {error.message}", error.hint)

    def _read_document(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            return read_toml(self._path, self._shown)
        except ConfigError as error:
            if isinstance(error.__cause__, tomllib.TOMLDecodeError):
                raise refuse_syntax(self._shown, self._path, error.__cause__) from error
            raise

    def _convert(self, document: dict[str, Any]) -> SettingsFile:
        """Return what the file says; entries that are wrong are left out, and noted."""
        try:
            return msgspec.convert(document, SettingsFile)
        except msgspec.ValidationError as error:
            found = find_errors(document, SettingsFile)
            self._errors += found
            broken = {item.key[: 2 if item.key[0] in _NAMED else 1] for item in found}
            sound = {
                table: {name: item for name, item in value.items() if (table, name) not in broken}
                if table in _NAMED
                else value
                for table, value in document.items()
                if (table,) not in broken
            }
            try:
                return msgspec.convert(sound, SettingsFile)
            except msgspec.ValidationError:
                raise invalid_config(f"{self._shown}: {error}.") from error

    def _convert_server(self, read: ServerSettings, given: Mapping[str, Any]) -> ServerSettings:
        try:
            return msgspec.convert({**msgspec.to_builtins(read), **given}, ServerSettings)
        except msgspec.ValidationError:
            found = find_errors(dict(given), ServerSettings)
            self._errors += [item._replace(key=("server", *item.key)) for item in found]
            return read

    # Upstreams

    def _check_upstream(self, name: str, item: UpstreamSettings) -> UpstreamEntry:
        place: Key = ("upstreams", name)
        if not _NAME.fullmatch(name):
            self._refuse(place, "is not a usable name.", "Use letters, digits, - and _.")
        self._check_capabilities(place, item.capabilities)
        embedded = embedded_name(item.url)
        if embedded is not None:
            if not embedded:
                self._refuse((*place, "url"), "names no model.", "Write embedded:smollm2-135m.")
            if item.protocol not in ("", DEFAULT_PROTOCOL):
                self._refuse(
                    (*place, "protocol"), f"must be {DEFAULT_PROTOCOL!r} for an embedded model."
                )
            return UpstreamEntry(
                name=name,
                settings=item,
                protocol=DEFAULT_PROTOCOL,
                provider="embedded",
                embedded=embedded,
                deadlines=_deadlines(item, EMBEDDED_DEADLINES),
            )
        for header, value in item.headers.items():
            key = (*place, "headers", header)
            if not _HEADER.fullmatch(header) or not (value.isascii() and value.isprintable()):
                self._refuse(key, "is not a usable header.")
            elif any(word in header.lower() for word in _SECRET_WORDS):
                self._refuse(
                    key, "would put a secret into the file.", "Use api_key_env or api_key_file."
                )
        provider, protocol = self._know_upstream(place, item)
        address = ""
        try:
            prefix = find_protocol(protocol).default_prefix
            address = join_url(item.url, item.api_prefix, "", default_prefix=prefix)
        except ConfigError as error:
            self._refuse_as((*place, "url"), error)
        return UpstreamEntry(
            name=name,
            settings=item,
            protocol=protocol,
            provider=provider,
            base=address.rstrip("/"),
            key=self._read_key(place, "api_key", item.api_key_env, item.api_key_file)
            or self._find_key(item, provider),
            deadlines=_deadlines(item, Deadlines()),
            network=self._read_network(place, item),
        )

    def _read_network(self, place: Key, item: UpstreamSettings) -> Network:
        """Return how an upstream is reached: as the environment says, with the files it names."""
        names = ("ca_file", "client_cert_file", "client_key_file")
        files = {name: str(self._base / file) for name in names if (file := getattr(item, name))}
        network = replace(read_network(self._environ), **files)
        if files:
            try:
                network.tls_context()
            except ConfigError as error:
                self._refuse_as((*place, next(iter(files))), error)
        return network

    def _know_upstream(self, place: Key, item: UpstreamSettings) -> tuple[str | None, str]:
        """Return the provider and the wire format of an upstream."""
        catalog = Catalog.builtin()
        parts = urlsplit(item.url)
        provider = item.provider or (
            catalog.provider_at(parts.hostname) if parts.hostname else None
        )
        protocol = item.protocol
        if not protocol and not parts.path.rstrip("/").endswith("/openai"):
            entry = catalog.find_provider(provider) if provider else None
            protocol = entry.protocol or "" if entry else ""
        protocol = protocol or DEFAULT_PROTOCOL
        if protocol not in PROTOCOLS:
            self._refuse(
                (*place, "protocol"),
                f"is {protocol!r}, which is not a wire format.",
                did_you_mean(protocol, PROTOCOLS),
            )
            protocol = DEFAULT_PROTOCOL
        return provider, protocol

    def _check_capabilities(self, place: Key, values: Mapping[str, Any]) -> None:
        if not values:
            return
        place = (*place, "capabilities")
        try:
            known = join_capabilities(*split_capabilities(dict(values)))
        except (msgspec.ValidationError, ConfigError) as error:
            self._refuse(place, f"cannot be used: {error}.")
            return
        for name in values:
            if name not in known:
                self._refuse((*place, name), "is not a capability.", did_you_mean(name, known))

    # Keys

    def _find_key(self, item: UpstreamSettings, provider: str | None) -> Secret | None:
        """Return the environment's key for a provider, if its upstream may take one."""
        entry = Catalog.builtin().find_provider(provider) if provider else None
        variables = entry.key_env if entry is not None and item.key == "needed" else ()
        found = (read_key(variable, self._environ) for variable in variables)
        return next((key for key in found if key is not None), None)

    def _read_key(self, place: Key, name: str, variable: str, file: str) -> Secret | None:
        """Return the key in a variable or a file, if one is named."""
        by_env, by_file = (*place, f"{name}_env"), (*place, f"{name}_file")
        if variable and file:
            self._refuse(by_env, f"and {name}_file are both given.", "Leave one out.")
        elif variable:
            if not _VARIABLE.fullmatch(variable) or looks_like_key(variable):
                self._refuse(
                    by_env,
                    "must be the name of a variable, not a key.",
                    f'Put the key into a variable and write {name}_env = "ITS_NAME".',
                )
            elif (key := read_key(variable, self._environ)) is not None:
                return key
            else:
                self._refuse(
                    by_env,
                    f"names the variable {variable}, which holds no key.",
                    self._suggest_variable(variable),
                )
        elif file:
            path = self._base / Path(file).expanduser()
            try:
                if (key := parse_key(path.read_text("utf-8"), str(path))) is not None:
                    return key
                self._refuse(by_file, f"names {path}, which holds no key.")
            except (OSError, UnicodeDecodeError) as error:
                self._refuse(by_file, f"names {path}, which cannot be read: {error}.")
            except ConfigError as error:
                self._refuse_as(by_file, error)
        return None

    def _suggest_variable(self, variable: str) -> str:
        """Return a hint with a variable that is set and has a similar name."""
        close = get_close_matches(variable, [name for _, name in find_keys(self._environ)], n=1)
        return f"Did you mean {close[0]!r}?" if close else "Set it, or leave the entry out."

    def _read_virtual(self, number: int, item: KeySettings) -> VirtualKey | None:
        place: Key = ("keys", number)
        if not _NAME.fullmatch(item.id):
            self._refuse((*place, "id"), "is not usable.", "Use letters, digits, - and _.")
        if item.key_sha256:
            digest = item.key_sha256.strip().lower()
            if not _DIGEST.fullmatch(digest) or item.key_env or item.key_file:
                self._refuse(
                    (*place, "key_sha256"),
                    "must be 64 hexadecimal digits, and the only one given.",
                    _NEW_KEY,
                )
                return None
            return VirtualKey(settings=item, digest=bytes.fromhex(digest))
        before = len(self._errors)
        secret = self._read_key(place, "key", item.key_env, item.key_file)
        if secret is not None and len(secret.reveal()) < 16:
            self._refuse(
                (*place, "key_env" if item.key_env else "key_file"),
                "names a key that is shorter than 16 characters.",
                _NEW_KEY,
            )
        elif secret is None and len(self._errors) == before:
            self._refuse(place, f"({item.id}) has no key.", "Give key_env, key_file or key_sha256.")
        if secret is None:
            return None
        digest = sha256(secret.reveal().encode()).digest()
        return VirtualKey(settings=item, digest=digest, secret=secret)

    def _check_prices(self, settings: GatewaySettings) -> None:
        if not any(model.prices for model in settings.models.values()):
            for number, key in enumerate(settings.keys):
                if key.settings.cost_per_month is not None:
                    self._refuse(
                        ("keys", number, "cost_per_month"),
                        "needs a model with prices.",
                        'Write [models."NAME".prices] with input and output, per million tokens.',
                    )

    def _check_databases(self, settings: GatewaySettings) -> None:
        approvals, store = settings.approvals, settings.store
        if approvals.store and approvals.url_env:
            self._refuse(
                ("approvals", "url_env"), "and approvals.store are both given.", "Leave one out."
            )
        for key, variable in (("approvals", approvals.url_env), ("store", store.url_env)):
            if variable and read_key(variable, self._environ) is None:
                self._refuse(
                    (key, "url_env"),
                    f"names {variable}, which is not set.",
                    "Set it to a postgresql:// address.",
                )

    def _check_exposure(self, settings: GatewaySettings, *, has_keys: bool) -> None:
        server = settings.server
        for host in server.allow_hosts:
            if not _HOST.fullmatch(host):
                self._refuse(("server", "allow_hosts"), f"has {host!r}, which is not a host.")
        for attribute, label in (("id", "id"), ("digest", "value")):
            seen: dict[Any, int] = {}
            for number, key in enumerate(settings.keys):
                value = key.digest if attribute == "digest" else key.settings.id
                if seen.setdefault(value, number) != number:
                    self._refuse(("keys", number), f"has the same {label} as another key.")
        for name, entry in settings.upstreams.items() if has_keys else ():
            variables = keys_at(entry.settings.url) if entry.needs_client_key else ()
            if variables:  # a client's key ends here, so none would reach the upstream
                self._refuse(
                    ("upstreams", name),
                    f"has no API key, and {' and '.join(variables)} "
                    f"{'is' if len(variables) == 1 else 'are'} not set.",
                    f"Set {variables[0]}, or name another variable with api_key_env.",
                )
        if not is_loopback(server.host) and not has_keys:
            self._refuse(
                ("server", "host"),
                f"is {server.host}, which other machines can reach, and there is no key.",
                "Add a [[keys]] entry to the file of --config, or listen on 127.0.0.1.",
            )

    # Names of models

    def _check_names(self, read: SettingsFile, upstreams: Collection[str]) -> None:
        """Check that every name leads somewhere."""
        for name, route in read.routes.items():
            for field in ("targets", "fallbacks"):
                for number, target in enumerate(getattr(route, field)):
                    key = ("routes", name, field, number, "upstream")
                    self._check_target(key, target.upstream, upstreams)
            if not any(target.weight for target in route.targets):
                self._refuse(
                    ("routes", name, "targets"), "has no target with a weight.", "Set weight = 1."
                )
        for name, target in read.aliases.items():
            if name in read.routes:
                self._refuse(("aliases", name), "is also a route.", "Rename one of them.")
            if target in read.aliases:
                self._refuse(
                    ("aliases", name),
                    f"leads to another alias, {target!r}.",
                    f'Write {name} = "{read.aliases[target]}".',
                )
        for name, model in read.models.items():
            place = ("models", name)
            self._check_capabilities(place, model.capabilities)
            if model.upstream:
                self._check_target((*place, "upstream"), model.upstream, upstreams)
            for field in ("request_defaults", "request_overrides"):
                for key in RESERVED_REQUEST_KEYS & getattr(model, field).keys():
                    self._refuse((*place, field, key), "is set by clients only.", "Leave it out.")

    def _check_target(self, key: Key, upstream: str, upstreams: Collection[str]) -> None:
        if upstream not in upstreams:
            self._refuse(
                key,
                f"is {upstream!r}, which is not an upstream.",
                did_you_mean(upstream, upstreams),
            )

    def _resolve_model(self, name: str, item: ModelSettings) -> ModelSettings:
        """Return what holds for a model, with the fields that its presets set."""
        if not item.preset:
            return item
        try:
            found = [
                preset
                for wanted in item.preset
                for preset in (
                    presets_for(None, name) if wanted == "auto" else (find_preset(wanted),)
                )
            ]
        except ConfigError as error:
            self._refuse_as(("models", name, "preset"), error)
            return item
        merged = merge_presets([preset.layer for preset in found]).values
        return replace(
            item,
            request_defaults={**merged.get("request_defaults", {}), **item.request_defaults},
            request_overrides={**merged.get("request_overrides", {}), **item.request_overrides},
        )


def _deadlines(item: UpstreamSettings, base: Deadlines) -> Deadlines:
    given = {
        name: value
        for name in item.deadlines.__struct_fields__
        if (value := getattr(item.deadlines, name)) is not None
    }
    return replace(base, **given)
