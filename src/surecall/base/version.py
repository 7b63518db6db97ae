"""The version of surecall, in one place."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
"""Also `surecall.__version__`; the package is built with it."""
