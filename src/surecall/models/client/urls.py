"""From a base URL, a prefix and a path to the one URL a request goes to."""

from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

from surecall.base.errors import ConfigError, invalid_config

_KEPT: Final = "/%:@!$&'()*+,;=~-._"
"""What the path of a URL may have as it is; escapes are not escaped again."""


def split_base_url(base_url: str) -> SplitResult:
    """Return the parts of a usable base URL; raise `ConfigError` for any other.

    Messages never repeat the URL: it may hold a password or a key.
    """
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in base_url):
        raise _refusal("contains a space or a control character", "Remove it.")
    try:
        parts = urlsplit(base_url)
        port_is_usable = parts.port != 0
        ascii_host(parts)
    except ValueError:
        raise _refusal("is not a URL", "Write it like https://api.example.com/v1.") from None
    if parts.scheme not in {"http", "https"}:
        raise _refusal(
            "does not begin with http:// or https://", "Write it like http://127.0.0.1:8000."
        )
    if "@" in parts.netloc:
        raise _refusal(
            "contains user information",
            "Give the key apart from it; it is sent in a header.",
        )
    if not parts.hostname or not port_is_usable:
        raise _refusal("has no usable host or port", "Write it like https://api.example.com/v1.")
    if "?" in base_url or "#" in base_url:
        raise _refusal(
            "contains a query or a fragment",
            "Leave it off; what the provider needs with every request goes into headers.",
        )
    return parts


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    name = host.strip("[]").lower()
    return name in {"localhost", "::1"} or name.startswith("127.")


def ascii_host(parts: SplitResult) -> str:
    """Return the host of a URL as it is looked up and sent; raise `ValueError` for none."""
    host = parts.hostname or ""
    return host if host.isascii() else host.encode("idna").decode("ascii")


def split_url(url: str) -> tuple[str, str]:
    """Return the origin of a URL and the target of a request there, all of it in ASCII."""
    parts = urlsplit(url)
    target = quote(parts.path or "/", safe=_KEPT) + (f"?{parts.query}" if parts.query else "")
    return f"{parts.scheme}://{parts.netloc}", target


def join_url(
    base_url: str, api_prefix: str | None, path: str, *, default_prefix: str = "/v1"
) -> str:
    """Return the URL of `path` below the provider's prefix.

    Without a prefix given (`None`), the default is used for a base URL that has no path, and the
    base URL's own path otherwise. A base URL that already ends in the prefix keeps it once.
    """
    parts = split_base_url(base_url)
    base_path = parts.path.rstrip("/")
    tail = "/" + path.strip("/")
    if tail != "/" and base_path.endswith(tail):
        raise _refusal(f"already ends in {tail}", f"Leave {tail} off; it is added for you.")
    if api_prefix is None:
        prefix = "" if base_path else default_prefix
    else:
        prefix = _clean_prefix(api_prefix)
    if prefix and (base_path == prefix or base_path.endswith(prefix)):
        prefix = ""
    return f"{parts.scheme}://{parts.netloc}{base_path}{prefix}{tail.rstrip('/')}"


def _clean_prefix(api_prefix: str) -> str:
    if any(ord(char) <= 0x20 or char in "?#" for char in api_prefix) or "//" in api_prefix:
        raise invalid_config(
            f"The API prefix {api_prefix!r} is not a plain path.",
            "Write it like /v1, or '' for none.",
        )
    trimmed = api_prefix.strip("/")
    return f"/{trimmed}" if trimmed else ""


def _refusal(problem: str, hint: str) -> ConfigError:
    return invalid_config(f"The base URL {problem}.", hint)
