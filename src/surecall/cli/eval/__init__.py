"""`surecall eval`: models, profiles and strategies compared on scenarios."""

from .command import evaluate

__all__ = ["evaluate"]
