"""A function as a model sees it: its name, what it says about itself, and what it takes."""

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, cast

from .docstrings import parse_docstring


def below_partials(function: Any) -> Any:
    """Return the function that partials were made of."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    return function


def name_function(function: Any) -> str:
    """Return the name of a function, or of the class of an object that can be called."""
    function = below_partials(function)
    return getattr(function, "__name__", type(function).__name__)


def describe_function(function: Any) -> str:
    """Return what the docstring of a function says, without its arguments."""
    function = below_partials(function)
    if inspect.isroutine(function):
        return parse_docstring(inspect.getdoc(function)).text
    kind = cast("type[Any]", type(function))
    return parse_docstring(kind.__call__.__doc__ or inspect.getdoc(kind)).text


def is_unbound_method(function: Any) -> bool:
    """Tell whether a function is a method that lacks its object."""
    if not inspect.isfunction(function):
        return False
    return next(iter(inspect.signature(function).parameters), "") == "self"


def bind_method(function: Any) -> Callable[..., Any]:
    """Return a function as its callers see it: a method without its first parameter."""
    return types.MethodType(function, object()) if is_unbound_method(function) else function
