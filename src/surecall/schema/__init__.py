"""JSON Schema: inferred from Python, compiled to check arguments, rewritten for providers."""

from .bind import ArgumentBinder, ValueBinder
from .check import SchemaChecker
from .dialects import Loss, LossKind, Rewritten, rewrite_schema
from .fields import (
    below_partials,
    bind_method,
    describe_function,
    injected_parameters,
    is_unbound_method,
    name_function,
)
from .infer import infer_parameters, infer_schema
from .lint import LintFinding, clean_parameters, compile_foreign, lint_tool
from .parameters import (
    Coerced,
    coerce_arguments,
    property_schema,
    takes_text,
    type_text_value,
)
from .structure import References

__all__ = [
    "ArgumentBinder",
    "Coerced",
    "LintFinding",
    "Loss",
    "LossKind",
    "References",
    "Rewritten",
    "SchemaChecker",
    "ValueBinder",
    "below_partials",
    "bind_method",
    "clean_parameters",
    "coerce_arguments",
    "compile_foreign",
    "describe_function",
    "infer_parameters",
    "infer_schema",
    "injected_parameters",
    "is_unbound_method",
    "lint_tool",
    "name_function",
    "property_schema",
    "rewrite_schema",
    "takes_text",
    "type_text_value",
]
