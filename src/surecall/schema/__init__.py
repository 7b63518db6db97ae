"""JSON Schema: inferred from Python, compiled to check arguments, linted for providers."""

from .bind import ArgumentBinder, bind_arguments
from .check import MAX_ERRORS, SchemaChecker
from .docstrings import Docstring, parse_docstring
from .fields import injected_parameters
from .infer import infer_parameters, infer_schema
from .lint import LintFinding, clean_parameters, lint_tool

__all__ = [
    "MAX_ERRORS",
    "ArgumentBinder",
    "Docstring",
    "LintFinding",
    "SchemaChecker",
    "bind_arguments",
    "clean_parameters",
    "infer_parameters",
    "infer_schema",
    "injected_parameters",
    "lint_tool",
    "parse_docstring",
]
