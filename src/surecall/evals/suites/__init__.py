"""Suites: families of cases that an experiment can try."""

from .bfcl import BFCL_CATEGORIES, BfclSuite
from .one_tool import OneToolSuite

__all__ = ["BFCL_CATEGORIES", "BfclSuite", "OneToolSuite"]
