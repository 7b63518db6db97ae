"""What is known of a model, and how it is asked."""

__all__: list[str] = []
