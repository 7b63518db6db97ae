"""OpenAPI: the operations of a described HTTP API as tools of a run."""

from .tools import openapi_tools

__all__ = ["openapi_tools"]
