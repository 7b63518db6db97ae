"""The gateway: reliability for any client that can change its base URL."""

__all__: list[str] = []
