"""The headers that carry a key."""

__all__ = ["render_bearer"]


def render_bearer(key: str) -> dict[str, str]:
    """Render the header that most providers read a key from."""
    return {"Authorization": f"Bearer {key}"}
