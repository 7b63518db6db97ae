"""Logarithms with so many digits, rounded and written as the leaderboard's library does.

That library computes in binary: each step is rounded to the bits that the digits need, and the
last one is written with a few digits more. A verdict compares the text, so the rounding counts.
"""

from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Final

from msgspec import Struct

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
