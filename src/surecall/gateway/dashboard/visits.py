"""One request to the dashboard: who makes it, and how it is answered.

A cookie stands for a key. It names the key and when it ends, and is signed with a secret of this
process and with the digest of the key: it ends with the process, and with the key. Workers are
forks, so they share the secret of the process that loaded this module.
"""

import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac
from typing import Any, Final
from urllib.parse import parse_qs

from msgspec import Struct

from surecall.base.errors import (
    ApprovalError,
    Code,
    ProviderStatusError,
    StoreError,
    SurecallError,
    WorkspaceError,
)
from surecall.base.json_values import as_fields
from surecall.gateway.endpoints import Endpoint
from surecall.gateway.headers import Head, read_body
from surecall.gateway.keys import Caller, Keyring
from surecall.gateway.state import State
from surecall.text import decode
from surecall.tools.outputs import encode_kept

SESSION_S: Final = 12 * 3600
"""How long a session lasts."""

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


_MAX_BODY_BYTES: Final = 64 * 1024
_NOT_THERE: Final = frozenset(
    {Code.APPROVAL_NOT_FOUND, Code.RECORD_NOT_FOUND, Code.WORKSPACE_NOT_FOUND}
)
_UNFIT: Final = frozenset({Code.ARGUMENTS_INVALID, Code.ARGUMENT_ERROR, Code.WORKSPACE_TOO_LARGE})


class Visit(Struct, frozen=True):
    """One request to the dashboard."""

    endpoint: Endpoint
    state: State
    head: Head
    scope: Any
    receive: Any
    cookie: str
    caller: Caller | None

    @property
    def item(self) -> str:
        """What the path names where its pattern has a name in braces."""
        at = self.endpoint.path.split("/").index(
            "{id}" if "{id}" in self.endpoint.path else "{name}"
        )
        return self.scope["path"].split("/")[at]

    @property
    def query(self) -> dict[str, str]:
        """The query of the address; of a name that comes twice, the last."""
        text = self.scope["query_string"].decode("latin-1")
        found = parse_qs(text, keep_blank_values=False, max_num_fields=50, errors="replace")
        return {name: values[-1] for name, values in found.items()}

    @property
    def may_act(self) -> bool:
        """Whether whoever asks may do more than look; without keys, everybody on this machine."""
        return not self.state.keyring or (self.caller is not None and self.caller.may("admin"))


class Answer(Struct, frozen=True):
    """What is answered."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    cache: bytes = b"no-store"


def not_found(message: str, hint: str | None = None) -> ProviderStatusError:
    """Return the refusal of something that is not there."""
    return ProviderStatusError(Code.NOT_FOUND, message, hint=hint, status=404)


def render_json(
    body: Any, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Answer:
    """Return an answer with a value as JSON."""
    return Answer(encode_kept(body), status, headers=headers)


def render_error(error: SurecallError) -> Answer:
    """Return the answer to what cannot be done."""
    status = _status_of(error)
    shown = {"code": str(error.code), "message": error.message, "hint": error.hint}
    extra = ((b"www-authenticate", b"Bearer"),) if status == 401 else ()
    return render_json({"error": shown}, status, headers=extra)


def _status_of(error: SurecallError) -> int:
    if isinstance(error, ProviderStatusError) and error.status:
        return error.status
    if error.code in _NOT_THERE:
        return 404
    if error.code in _UNFIT:
        return 400
    if isinstance(error, ApprovalError | WorkspaceError):
        return 409
    return 503 if isinstance(error, StoreError) else 500


async def read_fields(visit: Visit, max_bytes: int = _MAX_BODY_BYTES) -> dict[str, Any]:
    """Return the fields of a body, which must be JSON."""
    if not visit.head.is_json or visit.head.encoding not in (b"", b"identity"):
        raise ProviderStatusError(
            Code.UNSUPPORTED_CONTENT_TYPE, "The body must be application/json.", status=415
        )
    body = await read_body(visit.receive, visit.head, max_bytes)
    try:
        return as_fields(decode(body, max_bytes=max_bytes))
    except SurecallError as error:
        raise ProviderStatusError(Code.INVALID_REQUEST, "It is not JSON.", status=400) from error


def name_of_cookie(scope: Any) -> str:
    """Return the name of the cookie at the address that was asked."""
    address = scope["server"]
    return cookie_name(address[1] if address is not None else 0)


def set_cookie(scope: Any, value: str) -> tuple[bytes, bytes]:
    """Return the header that sets the cookie, or takes it away."""
    origin = dict(scope["headers"]).get(b"origin", b"")
    parts = [
        f"{name_of_cookie(scope)}={value}",
        "Path=/ui",
        "HttpOnly",
        "SameSite=Strict",
        f"Max-Age={SESSION_S if value else 0}",
        *(["Secure"] if origin.startswith(b"https:") else []),
    ]
    return b"set-cookie", "; ".join(parts).encode("latin-1")
