"""The page itself, its sheet and its script: the same for everybody, and without any data."""

from collections.abc import Mapping
from functools import cache
from string import Template
from typing import Final

from surecall.base.pages import SHARED_SCRIPTS, SHEET, hash_text, join_scripts, read_asset

SCRIPTS: Final = (
    "server.js",
    "frame.js",
    "charts.js",
    "overview.js",
    "requests.js",
    "request.js",
    "approvals.js",
    "approval.js",
    "proposal.js",
    "models.js",
    "main.js",
)
"""The dashboard's own pieces of script, in the order in which they are joined."""

_POLICY: Final = (
    b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    b"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
PAGE_HEADERS: Final = (
    (b"content-security-policy", _POLICY),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
FOREVER: Final = b"public, max-age=31536000, immutable"
"""How long an asset may be kept: its name changes with its content."""


@cache
def list_assets() -> Mapping[str, tuple[str, bytes]]:
    """Return the type and the bytes of each asset, by its name."""
    sheet = read_asset(SHEET)
    script = join_scripts(
        (
            *(read_asset(name) for name in SHARED_SCRIPTS),
            *(read_asset(name, __package__ or "") for name in SCRIPTS),
        )
    )
    return {
        f"surecall.{hash_text(sheet)}.css": ("text/css; charset=utf-8", sheet.encode()),
        f"dashboard.{hash_text(script)}.js": ("text/javascript; charset=utf-8", script.encode()),
    }


@cache
def render_page() -> bytes:
    """Return the page."""
    sheet, script = list_assets()
    text = read_asset("dashboard.html", __package__ or "")
    return Template(text).substitute(sheet=sheet, script=script).encode()
