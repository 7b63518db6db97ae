"""What a gateway is told: upstreams, names of models, keys, limits; read from TOML and checked.

No key is ever in the file: it names a variable, a file, or the digest of a virtual key. Unknown
keys are errors, and every error says which file and which key.
"""

from .load import GatewaySettings, UpstreamEntry, VirtualKey, add_key, load_settings
from .tables import (
    DEFAULT_PORT,
    RELAYED_PATHS,
    ROLES,
    ApprovalSettings,
    KeySettings,
    LimitSettings,
    LogFormat,
    LogSettings,
    ModelSettings,
    PolicySettings,
    Role,
    RouteSettings,
    ServerSettings,
    SettingsFile,
    StoreSettings,
    TargetSettings,
    UpstreamSettings,
)

__all__ = [
    "DEFAULT_PORT",
    "RELAYED_PATHS",
    "ROLES",
    "ApprovalSettings",
    "GatewaySettings",
    "KeySettings",
    "LimitSettings",
    "LogFormat",
    "LogSettings",
    "ModelSettings",
    "PolicySettings",
    "Role",
    "RouteSettings",
    "ServerSettings",
    "SettingsFile",
    "StoreSettings",
    "TargetSettings",
    "UpstreamEntry",
    "UpstreamSettings",
    "VirtualKey",
    "add_key",
    "load_settings",
]
