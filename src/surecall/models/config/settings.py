"""Every setting there is: its type, its default, what it does, and how one value is checked."""

import math
import os
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from surecall.base.errors import Code, ConfigError, did_you_mean, invalid_config
from surecall.base.redaction import excerpt, redact
from surecall.wire import PROTOCOLS

FREE_TABLES: Final = ("options", "capabilities", "headers")
"""Tables with keys of any name."""
SECRET_KEYS: Final = frozenset({"api_key", "apikey", "key", "password", "secret", "token"})
"""Names under which no value is kept in a configuration."""

_SECRET_WORDS = ("api_key", "apikey", "authorization", "password", "secret", "token")

Text = Annotated[str, Meta(min_length=1)]

_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")


class SettingKey(NamedTuple):
    """A key of the configuration: the type it must have, in words too, and what it does."""

    type: Any
    expected: str
    doc: str
    default: Any = None

    @property
    def plain_doc(self) -> str:
        """What it does, without the links of the page of settings."""
        return _LINK.sub(r"\1", self.doc)


def _text(doc: str) -> SettingKey:
    return SettingKey(Text, "a string", doc)


def _folder(doc: str) -> SettingKey:
    return SettingKey(Text, "a folder", doc)


def _file(doc: str) -> SettingKey:
    return SettingKey(Text, "a file", doc)


def _seconds(doc: str, default: float | None = None) -> SettingKey:
    return SettingKey(Annotated[float, Meta(gt=0)], "seconds above 0", doc, default)


def _whole_number(least: int, doc: str) -> SettingKey:
    kind = Annotated[int, Meta(ge=least)]
    return SettingKey(kind, f"a whole number, {least} or more", doc)


SETTINGS: Final[Mapping[str, SettingKey]] = {
    "model": _text("Model to ask, as the provider names it."),
    "base_url": SettingKey(
        Text,
        "an http or https address",
        "Address of the provider. When unset: `OPENAI_BASE_URL` if it is set, else what the "
        "[provider](providers.md) or the name of the model says.",
    ),
    "api_prefix": SettingKey(str, "a string", "Path between `base_url` and the endpoint."),
    "api_key_env": SettingKey(
        Text,
        "the name of a variable",
        "Variable that holds the key. When unset: `SURECALL_API_KEY`, then the key of the "
        "[provider](providers.md), which is sent to that provider only; `OPENAI_API_KEY` also "
        "goes where `OPENAI_BASE_URL` points.",
    ),
    "protocol": SettingKey(
        Text,
        "the name of a wire format",
        "Wire format of the provider: `chat_completions`, `responses`, `messages` or "
        "`gemini`. When unset, what the catalog says about the provider, or `chat_completions`.",
    ),
    "provider": _text(
        "Name of a [provider](providers.md): implies its address, wire format, key variable and "
        "what is known about it."
    ),
    "preset": SettingKey(
        list[Text] | str, "a name or a list of names", "Presets to apply, in order.", ()
    ),
    "profile": _text("Sampling profile to use."),
    "stream": SettingKey(bool, "true or false", "Whether every turn is streamed.", default=False),
    "journal_dir": _folder("Folder for journals; in a file it is relative to that file."),
    "trace_dir": _folder("Folder for traces; in a file it is relative to that file."),
    "cache_dir": _folder(
        "Folder for what can be fetched again, such as weights. When unset: `surecall` in "
        "`XDG_CACHE_HOME`, then `~/.cache/surecall`; in a file it is relative to that file.",
    ),
    "evals_dir": _folder(
        "Folder for the runs of `surecall eval`. When unset: `.surecall` in the current folder; in "
        "a file it is relative to that file.",
    ),
    "ca_file": _file(
        "File in PEM form with authorities to trust besides the system's, such as your company's; "
        "in a file it is relative to that file. `SSL_CERT_FILE` and `SSL_CERT_DIR` replace the "
        "system's, and `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name "
        "[proxies](../how-to/proxies-and-certificates.md).",
    ),
    "client_cert_file": _file("File with the certificate to show to servers that ask for one."),
    "client_key_file": _file("File with its key, unless `client_cert_file` has it."),
    "local.n_ctx": _whole_number(
        256, "Tokens that one request to an embedded model may have, its answer included."
    ),
    "local.threads": _whole_number(1, "Threads an embedded model computes with."),
    "probe": SettingKey(
        Literal["off", "auto"],
        "`off` or `auto`",
        "Whether a run with tools first probes if the model can call them, when that is not "
        "already known; at most three requests. Stored answers are used either way. "
        "For embedded models the default is `auto`.",
        "off",
    ),
    "max_probe_age_s": _seconds("How long an answer of a probe is believed.", 604_800),
    "local.passive_wait": SettingKey(
        bool,
        "true or false",
        "Whether the threads of an embedded model sleep while they wait for each other; false when "
        "unset and `OMP_WAIT_POLICY` is set.",
    ),
    "deadlines.connect_s": _seconds("Seconds until a connection must be made."),
    "deadlines.first_byte_s": _seconds("Seconds until the provider must begin to answer."),
    "deadlines.idle_s": _seconds("Seconds the provider may be silent inside an answer."),
    "deadlines.total_s": _seconds("Seconds one answer may take in all."),
    "retry.max_retries": _whole_number(0, "How often a failed request is sent again."),
    "retry.max_wait_s": SettingKey(
        Annotated[float, Meta(ge=0)],
        "seconds, 0 or more",
        "Seconds to wait between attempts, summed over one request.",
    ),
    "options.*": SettingKey(Any, "a value", "Any option of a run, see the options page."),
    "capabilities.*": SettingKey(Any, "a value", "Facts about the model that are known better."),
    "headers.*": SettingKey(str, "a string", "Headers to send with every request."),
}
"""Every key there is, with what it takes."""

TABLES: Final = {key.partition(".")[0] for key in SETTINGS if "." in key}
PLAIN_KEYS: Final = tuple(key for key in SETTINGS if not key.endswith(".*"))


def names_a_secret(name: str) -> bool:
    """Whether a header of this name usually carries a secret."""
    lowered = name.lower().replace("-", "_")
    return any(word in lowered for word in _SECRET_WORDS)


PREFIX: Final = "SURECALL_"


def variable_of(key: str) -> str:
    """Return the variable that sets a key."""
    return PREFIX + key.upper().replace(".", "__")


_ALL_SETTINGS = "`surecall docs settings` has them all."
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")


class Found(NamedTuple):
    """A value and where it came from."""

    value: Any
    origin: str


def put_setting(found: dict[str, Found], key: str, value: Any, origin: str, base: Path) -> None:
    """Check one value and keep it, replacing a weaker one; `base` is what paths are relative to."""
    table, _, name = key.partition(".")
    if _holds_a_secret(table, name, origin):
        raise invalid_config(
            f"{name_setting(key, origin)} would put a secret into the configuration.",
            "Keep the key in a variable and name that variable with api_key_env.",
        )
    if isinstance(value, os.PathLike):
        value = os.fspath(cast("os.PathLike[str]", value))
    known = SETTINGS.get(f"{table}.*" if name and table in FREE_TABLES else key)
    if key in TABLES:
        raise invalid_config(
            f"{name_setting(key, origin)} must be a table.", f"Write [{key}] above its keys."
        )
    if known is None:
        raise unknown_key(key, origin)
    more = _ALL_SETTINGS if table in FREE_TABLES else f"`surecall docs {key}` says what it does."
    try:
        value = msgspec.convert(value, known.type)
    except msgspec.ValidationError as error:
        raise invalid_config(
            f"{name_setting(key, origin)} must be {known.expected}{_given_instead(key, value)}.",
            more,
        ) from error
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid_config(
            f"{name_setting(key, origin)} must be {known.expected}, and finite.", more
        )
    check = _CHECKS.get(table if table == "headers" else key)
    found[key] = Found(check(key, value, origin, base) if check else value, origin)


def name_setting(key: str, origin: str) -> str:
    """Return a key with its origin, unless it was given where the error is seen."""
    return key if origin == "flag" else f"{key} (from {origin})"


def _given_instead(key: str, value: Any) -> str:
    return "" if key.startswith("headers.") else f", not {excerpt(repr(value), 60)}"


def _holds_a_secret(table: str, name: str, origin: str) -> bool:
    if table == "headers" or (not name and origin.startswith(PREFIX)):
        return False
    leaf = (name or table).rpartition(".")[2]
    return leaf.lower().replace("-", "_") in SECRET_KEYS


def _check_url(key: str, value: str, origin: str, _base: Path) -> str:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise invalid_config(
            f"{name_setting(key, origin)} is not an address.",
            "Write it like http://127.0.0.1:8000/v1; a port is a number up to 65535.",
        ) from None
    if not usable or not value.isprintable() or " " in value:
        raise invalid_config(
            f"{name_setting(key, origin)} must be an address such as https://host/v1.",
            "Begin it with http:// or https://, and leave no blanks.",
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise invalid_config(
            f"{name_setting(key, origin)} must have no user, password, query or fragment.",
            "Keep the key in a variable and name that variable with api_key_env.",
        )
    return value


def _check_variable(key: str, value: str, origin: str, _base: Path) -> str:
    if not _VARIABLE_NAME.fullmatch(value) or redact(value) != value:
        raise invalid_config(
            f"{name_setting(key, origin)} must be the name of a variable, not a key itself.",
            "For example: api_key_env = 'MY_PROVIDER_KEY'.",
        )
    return value


def _check_protocol(key: str, value: str, origin: str, _base: Path) -> str:
    if value not in PROTOCOLS:
        raise invalid_config(
            f"{name_setting(key, origin)} is {value!r}, which is not a wire format.",
            did_you_mean(value, PROTOCOLS),
        )
    return value


def _check_preset(_key: str, value: str | list[str], _origin: str, _base: Path) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    return tuple(name.strip() for name in names if name.strip())


def _resolve_path(_key: str, value: str, _origin: str, base: Path) -> Path:
    return base.absolute() / Path(value).expanduser()


def _check_header(key: str, value: str, origin: str, _base: Path) -> str:
    name = key.partition(".")[2]
    if not _HEADER_NAME.fullmatch(name) or not value.isprintable() or not value.isascii():
        raise invalid_config(
            f"{name_setting(key, origin)} is not a usable header.",
            "A name has letters, digits and hyphens, a value plain ASCII text on one line.",
        )
    if names_a_secret(name) and not origin.startswith(PREFIX) and origin != "flag":
        raise invalid_config(
            f"{name_setting(key, origin)} would put a secret into the configuration.",
            f"Use api_key_env, or the variable {PREFIX}HEADERS__{name.upper().replace('-', '_')}.",
        )
    return value


_CHECKS: Final[Mapping[str, Callable[[str, Any, str, Path], Any]]] = {
    "base_url": _check_url,
    "api_key_env": _check_variable,
    "preset": _check_preset,
    "protocol": _check_protocol,
    "ca_file": _resolve_path,
    "cache_dir": _resolve_path,
    "client_cert_file": _resolve_path,
    "client_key_file": _resolve_path,
    "evals_dir": _resolve_path,
    "journal_dir": _resolve_path,
    "trace_dir": _resolve_path,
    "headers": _check_header,
}


def unknown_key(key: str, origin: str) -> ConfigError:
    """Build the error for a key that does not exist, with the closest one that does."""
    table, _, name = key.partition(".")
    if table == "tool" and not name:
        hint = (
            "[tool.surecall] is for pyproject.toml; in a file of its own, leave that heading out."
        )
    elif origin.startswith(PREFIX):
        known = [variable_of(item) for item in (*PLAIN_KEYS, "api_key")]
        close = get_close_matches(origin, known, n=2)
        hint = f"Did you mean {' or '.join(close)}?" if close else _ALL_SETTINGS
    elif name and table in TABLES:
        names = [item.partition(".")[2] for item in PLAIN_KEYS if item.startswith(f"{table}.")]
        hint = did_you_mean(name, names)
    else:
        names = [*(k for k in PLAIN_KEYS if "." not in k), *TABLES]
        hint = did_you_mean(key, names, listed_by="surecall docs settings")
    return ConfigError(
        Code.UNKNOWN_CONFIG_KEY,
        f"There is no setting {name_setting(repr(key), origin)}.",
        hint=hint,
    )
