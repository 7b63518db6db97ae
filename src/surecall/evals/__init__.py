"""The reliability experiment: models, profiles and strategies compared on scenarios."""

__all__: list[str] = []
