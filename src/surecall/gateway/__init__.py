"""The gateway: any client's requests made reliable on their way to a provider.

Modules are loaded when they are first used, since each needs packages of its own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import Gateway
    from .settings.load import GatewaySettings, load_settings

__all__ = ["Gateway", "GatewaySettings", "load_settings"]

_HOMES = {
    "app": ("Gateway",),
    "settings": ("GatewaySettings", "load_settings"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
