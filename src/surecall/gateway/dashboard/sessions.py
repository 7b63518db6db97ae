"""Who looks at the dashboard: a cookie in place of a key, and a token for everything that acts.

A cookie names a key and when it ends, and is signed with a secret of this process and with the
digest of the key: it ends with the process, and with the key. Workers are forks, so they share the
secret of the process that loaded this module.
"""

import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac
from typing import Final

from surecall.gateway.keys import Caller, Keyring

SESSION_S: Final = 12 * 3600
"""How long a session lasts."""
CSRF_HEADER: Final = b"x-surecall-csrf"

_SECRET: Final = secrets.token_bytes(32)
_MAX_COOKIE_CHARS: Final = 1024


def cookie_name(port: int) -> str:
    """Return the name of the cookie; browsers share cookies between the ports of a host."""
    return f"surecall_ui_{port}"


def begin_session(caller: Caller, digest: bytes, now: float | None = None) -> str:
    """Return the value of the cookie for a key."""
    ends = int((time.time() if now is None else now) + SESSION_S)
    name = urlsafe_b64encode(caller.id.encode("utf-8")).decode("ascii").rstrip("=")
    payload = f"{name}.{ends}.{secrets.token_hex(8)}"
    return f"{payload}.{_sign(digest, payload)}"


def find_session(cookie: str, keyring: Keyring, now: float | None = None) -> Caller | None:
    """Return the key that a cookie stands for; `None` when it is over, or not ours."""
    payload, _, signature = cookie.rpartition(".")
    name, _, rest = payload.partition(".")
    ends = rest.partition(".")[0]
    if len(cookie) > _MAX_COOKIE_CHARS or not (ends.isascii() and ends.isdigit()):
        return None
    try:
        key_id = urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode("utf-8")
    except (Base64Error, ValueError):
        return None
    found = keyring.find_named(key_id)
    if found is None or int(ends) <= (time.time() if now is None else now):
        return None
    caller, digest = found
    is_ours = compare_digest(_sign(digest, payload).encode(), signature.encode("utf-8"))
    return caller if is_ours else None


def csrf_token(cookie: str) -> str:
    """Return the token that goes with a cookie, or with none."""
    return _sign(b"csrf", cookie)


def is_csrf_token(token: str, cookie: str) -> bool:
    """Tell whether a token goes with a cookie."""
    return compare_digest(token.encode("utf-8"), csrf_token(cookie).encode())


def read_cookie(headers: Iterable[tuple[bytes, bytes]], name: str) -> str:
    """Return the value of a cookie, empty when there is none."""
    wanted = name.encode("ascii")
    for header, value in headers:
        if header != b"cookie":
            continue
        for item in value.split(b";"):
            key, _, found = item.strip().partition(b"=")
            if key == wanted:
                return found.decode("latin-1")
    return ""


def _sign(digest: bytes, text: str) -> str:
    return hmac(_SECRET + digest, text.encode("utf-8", "surrogateescape"), sha256).hexdigest()
