"""Every setting there is: its type, its default, and what it does."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta

__all__ = [
    "FREE_TABLES",
    "PLAIN_KEYS",
    "SECRET_KEYS",
    "SETTINGS",
    "TABLES",
    "SettingKey",
    "Text",
    "names_a_secret",
]

FREE_TABLES: Final = ("options", "capabilities", "headers")
"""Tables whose keys are not settings of their own."""
SECRET_KEYS: Final = frozenset({"api_key", "apikey", "key", "password", "secret", "token"})
"""Names under which no value is kept in a configuration."""

_SECRET_WORDS = ("api_key", "apikey", "authorization", "password", "secret", "token")

Text = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0)]


class SettingKey(NamedTuple):
    """A key of the configuration: the type it must have, in words too, and what it does."""

    type: Any
    expected: str
    doc: str
    default: Any = None


SETTINGS: Final[Mapping[str, SettingKey]] = {
    "model": SettingKey(Text, "text", "Model to ask, as the provider names it."),
    "base_url": SettingKey(
        Text,
        "an http or https address",
        "Address of the provider. When unset, `OPENAI_BASE_URL` is used if it is set.",
    ),
    "api_prefix": SettingKey(str, "text", "Path between `base_url` and the endpoint."),
    "api_key_env": SettingKey(
        Text,
        "the name of a variable",
        "Variable that holds the key. When unset: `SURECALL_API_KEY`; then `OPENROUTER_API_KEY`, "
        "sent to `openrouter.ai` only, `OPENAI_API_KEY`, sent to `openai.com` or where "
        "`OPENAI_BASE_URL` points, `ANTHROPIC_API_KEY`, sent to `anthropic.com` only, and "
        "`GEMINI_API_KEY` or `GOOGLE_API_KEY`, sent to `googleapis.com` only.",
    ),
    "protocol": SettingKey(
        Text,
        "the name of a wire format",
        "Wire format the provider speaks: `chat_completions`, `responses`, `messages` or "
        "`gemini`. When unset, what the catalog says of the provider, or `chat_completions`.",
    ),
    "provider": SettingKey(Text, "text", "Name of the provider, to choose what is known of it."),
    "preset": SettingKey(
        list[Text] | str, "a name or a list of names", "Presets to apply, in order.", ()
    ),
    "profile": SettingKey(Text, "text", "Sampling profile to use."),
    "stream": SettingKey(bool, "true or false", "Whether every turn is streamed.", default=False),
    "journal_dir": SettingKey(
        Text, "a folder", "Folder for journals; in a file it is relative to that file."
    ),
    "trace_dir": SettingKey(
        Text, "a folder", "Folder for traces; in a file it is relative to that file."
    ),
    "cache_dir": SettingKey(
        Text,
        "a folder",
        "Folder for what can be fetched again, such as weights. When unset: `surecall` in "
        "`XDG_CACHE_HOME`, then `~/.cache/surecall`; in a file it is relative to that file.",
    ),
    "evals_dir": SettingKey(
        Text,
        "a folder",
        "Folder for the runs of `surecall eval`. When unset: `.surecall` in the current folder; in "
        "a file it is relative to that file.",
    ),
    "local.n_ctx": SettingKey(
        Annotated[int, Meta(ge=256)],
        "a whole number, 256 or more",
        "Tokens that one request to an embedded model may have, its answer included.",
    ),
    "local.threads": SettingKey(
        Annotated[int, Meta(ge=1)],
        "a whole number, 1 or more",
        "Threads an embedded model computes with.",
    ),
    "probe": SettingKey(
        Literal["off", "auto"],
        "`off` or `auto`",
        "Whether a run with tools asks the provider first whether the model can call them, when "
        "nobody has said so: three requests at most. Answers that are stored are used either way. "
        "For embedded models the default is `auto`.",
        "off",
    ),
    "max_probe_age_s": SettingKey(
        Seconds, "seconds above 0", "How long an answer of a probe is believed.", 604_800
    ),
    "local.passive_wait": SettingKey(
        bool,
        "true or false",
        "Whether the threads of an embedded model sleep while they wait for each other; false when "
        "unset and `OMP_WAIT_POLICY` is set.",
    ),
    "deadlines.connect_s": SettingKey(
        Seconds, "seconds above 0", "Seconds until a connection must be made."
    ),
    "deadlines.first_byte_s": SettingKey(
        Seconds, "seconds above 0", "Seconds until the provider must begin to answer."
    ),
    "deadlines.idle_s": SettingKey(
        Seconds, "seconds above 0", "Seconds the provider may be silent inside an answer."
    ),
    "deadlines.total_s": SettingKey(
        Seconds, "seconds above 0", "Seconds one answer may take in all."
    ),
    "retry.max_retries": SettingKey(
        Count, "a whole number, 0 or more", "How often a failed request is sent again."
    ),
    "retry.max_wait_s": SettingKey(
        Annotated[float, Meta(ge=0)],
        "seconds, 0 or more",
        "Seconds to wait between attempts, summed over one request.",
    ),
    "options.*": SettingKey(Any, "a value", "Any option of a run, see the options page."),
    "capabilities.*": SettingKey(Any, "a value", "Facts about the model that are known better."),
    "headers.*": SettingKey(str, "text", "Headers to send with every request."),
}
"""Every key there is, with what it takes."""

TABLES: Final = {key.partition(".")[0] for key in SETTINGS if "." in key}
PLAIN_KEYS: Final = tuple(key for key in SETTINGS if not key.endswith(".*"))


def names_a_secret(name: str) -> bool:
    """Whether a header of this name usually carries a secret."""
    lowered = name.lower().replace("-", "_")
    return any(word in lowered for word in _SECRET_WORDS)
