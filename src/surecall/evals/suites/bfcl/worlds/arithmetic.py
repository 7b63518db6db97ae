"""Sums, means and conversions; nothing is remembered."""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, ClassVar, Final, TypeVar

from msgspec import Struct

from .base import World

Result = dict[str, Any]
Number = TypeVar("Number", int, float)

_METRES: Final = {"km": 1000, "m": 1, "cm": 0.01, "mm": 0.001, "um": 1e-6, "nm": 1e-9}
_FACTORS: Final = {
    ("cm", "in"): 0.393701,
    ("in", "cm"): 2.54,
    ("m", "ft"): 3.28084,
    ("ft", "m"): 0.3048,
    ("m", "yd"): 1.09361,
    ("yd", "m"): 0.9144,
    ("km", "miles"): 0.621371,
    ("miles", "km"): 1.60934,
    ("kg", "lb"): 2.20462,
    ("lb", "kg"): 0.453592,
    ("celsius", "fahrenheit"): 1.8,
    ("fahrenheit", "celsius"): 5 / 9,
}
_NUMBERS: Final = "Both inputs must be numbers"
_LIST: Final = "All elements in the list must be numbers"
_TOO_LARGE: Final = "Conversion resulted in a value too large to represent"
_MAX_DIGITS: Final = 1_000
"""Of a precision, and of a power: a model may ask for more than a machine has time for."""


class ArithmeticWorld(World):
    """The leaderboard's `MathAPI`."""

    reads: ClassVar[str] = """
        logarithm mean standard_deviation si_unit_conversion imperial_si_conversion add subtract
        multiply divide power square_root absolute_value round_number percentage min_value
        max_value sum_values
    """

    def logarithm(self, value: float, base: float, precision: int) -> Result:
        """Return a logarithm with so many digits."""
        try:
            _check_digits(precision)
            return {"result": divide_logarithms(value, base, precision)}
        except Exception as error:
            return {"error": str(error)}

    def mean(self, numbers: list[float]) -> Result:
        """Return the mean."""
        return _reduce("calculate mean", numbers, _mean)

    def standard_deviation(self, numbers: list[float]) -> Result:
        """Return the standard deviation of a whole population."""
        return _reduce("calculate standard deviation", numbers, _deviate)

    def si_unit_conversion(self, value: float, unit_in: str, unit_out: str) -> Result:
        """Convert a length between metric units."""
        if not isinstance(value, (int, float)):
            return {"error": "Value must be a number"}
        if unit_in not in _METRES or unit_out not in _METRES:
            return _refuse_units(unit_in, unit_out)
        try:
            return {"result": value * _METRES[unit_in] * (1 / _METRES[unit_out])}
        except OverflowError:
            return {"error": _TOO_LARGE}

    def imperial_si_conversion(self, value: float, unit_in: str, unit_out: str) -> Result:
        """Convert a length, weight or temperature between the two systems."""
        if not isinstance(value, (int, float)):
            return {"error": "Value must be a number"}
        if unit_in == unit_out:
            return {"result": value}
        factor = _FACTORS.get((unit_in, unit_out))
        if factor is None:
            return _refuse_units(unit_in, unit_out)
        try:
            if unit_in == "celsius":
                return {"result": value * factor + 32}
            return {"result": (value - 32 if unit_in == "fahrenheit" else value) * factor}
        except OverflowError:
            return {"error": _TOO_LARGE}

    def add(self, a: float, b: float) -> Result:
        """Return the sum of two numbers."""
        return _try(lambda: a + b)

    def subtract(self, a: float, b: float) -> Result:
        """Return the difference of two numbers."""
        return _try(lambda: a - b)

    def multiply(self, a: float, b: float) -> Result:
        """Return the product of two numbers."""
        if not (isinstance(a, (int, float)) and isinstance(b, (int, float))):
            return {"error": _NUMBERS}
        return {"result": a * b}

    def divide(self, a: float, b: float) -> Result:
        """Return the quotient of two numbers."""
        return {"error": "Cannot divide by zero"} if b == 0 else _try(lambda: a / b)

    def power(self, base: float, exponent: float) -> Result:
        """Return a number raised to another."""
        if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
            _check_digits(max(0.0, exponent * math.log10(abs(base))))
        return _try(lambda: base**exponent)

    def square_root(self, number: float, precision: int) -> Result:
        """Return a square root with so many digits."""
        try:
            _check_digits(precision)
            if number < 0:
                return {"error": "Cannot calculate square root of a negative number"}
            return {"result": Decimal(number).sqrt(Context(prec=precision))}
        except (TypeError, InvalidOperation):
            what = "Input must be a number or computation resulted in an invalid operation"
            return {"error": what}

    def absolute_value(self, number: float) -> Result:
        """Return a number without its sign."""
        return _try(lambda: abs(number), "Input must be a number")

    def round_number(self, number: float, decimal_places: int = 0) -> Result:
        """Return a number with so many decimal places."""
        what = "First input must be a number, second input must be an integer"
        return _try(lambda: round(number, _check_digits(decimal_places)), what)

    def percentage(self, part: float, whole: float) -> Result:
        """Return a part in per cent of the whole."""
        return (
            {"error": "Whole value cannot be zero"}
            if whole == 0
            else _try(lambda: (part / whole) * 100)
        )

    def min_value(self, numbers: list[float]) -> Result:
        """Return the smallest."""
        return _reduce("find minimum", numbers, min)

    def max_value(self, numbers: list[float]) -> Result:
        """Return the largest."""
        return _reduce("find maximum", numbers, max)

    def sum_values(self, numbers: list[float]) -> Result:
        """Return the sum."""
        return _reduce("calculate sum", numbers, sum)


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def _deviate(numbers: list[float]) -> float:
    mean = _mean(numbers)
    return math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers))


def _reduce(task: str, numbers: list[float], function: Callable[[list[float]], Any]) -> Result:
    if not numbers:
        return {"error": f"Cannot {task} of an empty list"}
    return _try(lambda: function(numbers), _LIST)


def _try(compute: Callable[[], Any], problem: str = _NUMBERS) -> Result:
    try:
        return {"result": compute()}
    except TypeError:
        return {"error": problem}


def _check_digits(digits: Number) -> Number:
    if abs(digits) > _MAX_DIGITS:
        raise OverflowError(f"More than {_MAX_DIGITS} digits are not computed.")
    return digits


def _refuse_units(unit_in: str, unit_out: str) -> Result:
    return {"error": f"Conversion from '{unit_in}' to '{unit_out}' is not supported"}


_BITS_PER_DIGIT: Final = 3.3219280948873626
_DOUBLE_DIGITS: Final = 15
_GUARD_DIGITS: Final = 30


class Real(Struct, frozen=True):
    """A number that is written in full, and is not JSON."""

    digits: str

    def __repr__(self) -> str:
        return f"mpf('{self.digits}')"


def divide_logarithms(value: float, base: float, precision: int) -> Real:
    """Return the logarithm of a number to a base.

    Raises:
        ZeroDivisionError: The base is one.
        ValueError: A number is not positive, or none at all.
    """
    bits = max(1, round((int(precision) + 1) * _BITS_PER_DIGIT))
    above, below = (_find_logarithm(number, bits) for number in (value, base))
    if not below:
        raise ZeroDivisionError
    return Real(_write(_round(above / below, bits), _count_digits(bits)))


def _find_logarithm(number: float, bits: int) -> Fraction:
    exact = Decimal(number)
    if not exact.is_finite() or exact <= 0:
        raise ValueError("logarithms of numbers that are not positive are not computed")
    digits = int(bits / _BITS_PER_DIGIT) + _GUARD_DIGITS
    return _round(Fraction(exact.ln(Context(prec=digits))), bits)


def _round(number: Fraction, bits: int) -> Fraction:
    """Return the nearest number with so many bits; of two, the even one."""
    if not number:
        return number
    size = abs(number.numerator).bit_length() - number.denominator.bit_length()
    unit = Fraction(2) ** (size - bits)
    if abs(number) >= unit * 2**bits:
        unit *= 2
    return round(number / unit) * unit


def _count_digits(bits: int) -> int:
    digits = max(1, round(bits / _BITS_PER_DIGIT) - 1)
    return digits + (2 if digits == _DOUBLE_DIGITS else 3)


def _write(number: Fraction, digits: int) -> str:
    """Write a number in full, or with an exponent when it is very large or very small."""
    if not number:
        return "0.0"
    context = Context(prec=digits, rounding=ROUND_HALF_UP)
    short = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    exponent = short.adjusted()
    if min(-(digits // 3), -5) < exponent < digits:
        return _strip(f"{short:f}")
    return f"{_strip(f'{short.scaleb(-exponent):f}')}e{exponent:+}"


def _strip(text: str) -> str:
    if "." not in text:
        return f"{text}.0"
    text = text.rstrip("0")
    return f"{text}0" if text[-1] == "." else text
