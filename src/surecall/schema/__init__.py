"""JSON Schema: inferred from Python, compiled to check arguments, linted for providers."""

from .bind import ArgumentBinder, bind_arguments
from .check import MAX_ERRORS, SchemaChecker
from .coerce import ArgumentCoercer, Coerced, coerce_arguments
from .coerce_text import property_schema, type_text_value
from .dialects import Dialect, Loss, LossKind, Rewritten, rewrite_schema
from .docstrings import Docstring, parse_docstring
from .fields import injected_parameters
from .infer import infer_parameters, infer_schema
from .lint import LintFinding, clean_parameters, lint_tool

__all__ = [
    "MAX_ERRORS",
    "ArgumentBinder",
    "ArgumentCoercer",
    "Coerced",
    "Dialect",
    "Docstring",
    "LintFinding",
    "Loss",
    "LossKind",
    "Rewritten",
    "SchemaChecker",
    "bind_arguments",
    "clean_parameters",
    "coerce_arguments",
    "infer_parameters",
    "infer_schema",
    "injected_parameters",
    "lint_tool",
    "parse_docstring",
    "property_schema",
    "rewrite_schema",
    "type_text_value",
]
