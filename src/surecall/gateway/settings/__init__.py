"""What a gateway is told: upstreams, names of models, keys, limits; read from TOML and checked.

No key is ever in the file: it names a variable, a file, or the digest of a virtual key. Unknown
keys are errors, and every error says which file and which key.
"""

from .load import GatewaySettings, load_settings

__all__ = ["GatewaySettings", "load_settings"]
