"""The dashboard at `/ui`: what goes through the gateway, what was wrong, and whose fault it was."""

from .app import Dashboard

__all__ = ["Dashboard"]
