"""The APIs of the leaderboard's conversations: its own classes, each trial with state of its own.

Their source is read from the package like its data. It is run with the few modules of Python that
it needs, and with no way to open a file or to start a program. A call that would compute without
end, or fill the memory, is refused.
"""

import builtins
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from fractions import Fraction
from importlib import import_module
from importlib.abc import InspectLoader
from inspect import isfunction
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final, cast

from msgspec import Struct

from surecall.base.json_values import as_fields

from .data import BfclFiles, refuse_data

APIS: Final[Mapping[str, str]] = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
"""The APIs that there are, with the names of their files."""
_READS: Final = """
    pwd ls cat find wc sort grep du tail diff
    logarithm mean standard_deviation si_unit_conversion imperial_si_conversion add subtract
    multiply divide power square_root absolute_value round_number percentage min_value max_value
    sum_values
    list_users get_user_id message_get_login_status view_messages_sent search_messages
    get_message_stats
    posting_get_login_status list_all_following get_tweet get_user_tweets search_tweets
    get_tweet_comments get_user_stats
    get_ticket ticket_get_login_status get_user_tickets
    get_current_time get_symbol_by_name get_stock_info get_order_details get_account_info
    trading_get_login_status get_watchlist get_order_history get_transaction_history
    get_available_stocks filter_stocks_by_price notify_price_change
    travel_get_login_status get_budget_fiscal_year get_credit_card_balance get_all_credit_cards
    get_flight_cost retrieve_invoice get_booking_history list_all_airports compute_exchange_rate
    verify_traveler_information get_nearest_airport_by_city
    get_outside_temperature_from_weather_com displayCarStatus display_log
    estimate_drive_feasibility_by_mileage liter_to_gallon gallon_to_liter estimate_distance
    get_zipcode_based_on_city check_tire_pressure find_nearest_tire_shop
"""
READS: Final = frozenset(_READS.split())
"""The functions that change nothing and leave nothing to chance."""
_ERROR: Final = "Error during execution: "
_PLAIN: Final = (str, int, float, bool, list, dict, type(None))
_MODULES: Final = frozenset(
    {"_strptime", "copy", "datetime", "decimal", "math", "random", "time", "typing"}
)
_CLOSED: Final = ("breakpoint", "compile", "eval", "exec", "input", "open")
_MAX_DIGITS: Final = 1_000
"""Of a precision, and of a power: a model may ask for more than a machine has time for."""
_MAX_ENTRIES: Final = 5_000
"""Of a file system: copies of copies double it."""


class Outcome(Struct, frozen=True):
    """What came of a call."""

    value: Any
    """What the model is shown: plain JSON, or a text."""
    text: str
    """What verdicts compare: the value as Python writes it."""


class _Source(InspectLoader):
    """Runs a module whose text is at hand."""

    def __init__(self, text: bytes) -> None:
        self._text = text.decode()

    def get_source(self, fullname: str) -> str:
        return self._text


class ApiSource:
    """The classes of a package, each read when it is first asked for."""

    def __init__(self, files: BfclFiles) -> None:
        self._files = files
        self._classes: dict[str, type[Any]] = {}

    def find(self, api: str) -> type[Any]:
        """Return the class of an API.

        Raises:
            ConfigError: `SUITE_DATA_UNREADABLE`.
        """
        if api not in self._classes:
            name = f"{APIS[api]}.py"
            module = ModuleType(APIS[api])
            vars(module)["__builtins__"] = _limit_builtins()
            try:
                _Source(self._files.read_code(name)).exec_module(module)
                self._classes[api] = getattr(module, api)
            except (ImportError, AttributeError, SyntaxError, UnicodeDecodeError) as error:
                raise refuse_data(name, f"it is not as expected ({error!r})") from error
        return self._classes[api]


class Worlds:
    """The APIs of one case, each in the state that it begins with.

    Args:
        source: Where the classes come from.
        names: The APIs, by the leaderboard's names.
        config: The state of each.
    """

    def __init__(
        self, source: ApiSource, names: Sequence[str], config: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._apis: dict[str, Any] = {name: source.find(name)() for name in names}
        for name, api in self._apis.items():
            if hasattr(api, "_load_scenario"):
                api._load_scenario(deepcopy(dict(config.get(name, {}))))
        self._functions = {
            name: (api, each)
            for api in self._apis.values()
            for name, each in cast("dict[str, Any]", vars(api.__class__)).items()
            if isfunction(each) and name[0] != "_"
        }

    def call(self, function: str, arguments: Mapping[str, Any]) -> Outcome:
        """Call a function of any of them; whatever it raises is its result."""
        api, method = self._functions[function]
        try:
            _check_size(function, arguments, api)
            with localcontext():  # the source sets the precision of the whole process
                return _show(_renew(method)(api, **deepcopy(dict(arguments))))
        except Exception as error:
            return _show(f"{_ERROR}{error}")

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """Return a copy of the state of each that verdicts compare."""
        return {
            name: {key: deepcopy(value) for key, value in _list_fields(api) if key[0] != "_"}
            for name, api in self._apis.items()
        }


def _list_fields(api: Any) -> Iterable[tuple[str, Any]]:
    return cast("dict[str, Any]", vars(api)).items()


def is_same_state(one: Any, other: Any) -> bool:
    """Tell whether two values of a state are the same; a folder in itself is like no other."""
    try:
        return bool(one == other)
    except RecursionError:
        return False


def _renew(function: FunctionType) -> Callable[..., Any]:
    """Return a function whose defaults are its own: one that a call fills is seen by no other."""
    return FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        deepcopy(function.__defaults__),
        function.__closure__,
    )


def _show(value: Any) -> Outcome:
    """Write a value down; one that is not plain JSON is shown as it is written."""
    text = str(value)
    is_plain = all(isinstance(each, _PLAIN) for each in as_fields(value).values())
    return Outcome(deepcopy(value) if is_plain else text, text)


# what the source may do


def _limit_builtins() -> dict[str, Any]:
    own = {name: value for name, value in vars(builtins).items() if name not in _CLOSED}
    return {**own, "__import__": _import}


def _import(name: str, _globals: Any = None, _locals: Any = None, wanted: Any = (), *_: Any) -> Any:
    """Import what the classes need; of the rest only names that nothing here uses."""
    if name in _MODULES:
        return import_module(name)
    if name == "mpmath":
        return _make_logarithms()
    if name == "subprocess" or name.endswith(".long_context"):
        return SimpleNamespace(**dict.fromkeys(wanted or ()))
    raise ImportError(f"{name} may not be imported")


def _check_size(function: str, arguments: Mapping[str, Any], api: Any) -> None:
    digits = max(
        abs(arguments.get(name) or 0) if isinstance(arguments.get(name), int | float) else 0
        for name in ("precision", "decimal_places")
    )
    base, exponent = arguments.get("base"), arguments.get("exponent")
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
        digits = max(digits, exponent * math.log10(abs(base)))
    if digits > _MAX_DIGITS:
        raise OverflowError(f"More than {_MAX_DIGITS} digits are not computed.")
    if function == "cp" and _count_entries(api.root) > _MAX_ENTRIES:
        raise OSError("No space left on device")


def _count_entries(root: Any) -> int:
    waiting, seen = [root], set[int]()
    while waiting and len(seen) <= _MAX_ENTRIES:
        entry = waiting.pop()
        if id(entry) not in seen:
            seen.add(id(entry))
            waiting += getattr(entry, "contents", {}).values()
    return len(seen)


# the two functions of mpmath that are used, which need not be installed

_BITS_PER_DIGIT: Final = 3.3219280948873626
_DOUBLE_DIGITS: Final = 15
_GUARD_DIGITS: Final = 30


def _make_logarithms() -> Any:
    settings = SimpleNamespace(dps=_DOUBLE_DIGITS)

    def log(number: float) -> "_Logarithm":
        bits = max(1, round((int(settings.dps) + 1) * _BITS_PER_DIGIT))
        return _Logarithm(_find_logarithm(number, bits), bits)

    return SimpleNamespace(mp=settings, log=log)


class _Logarithm:
    """A logarithm with so many bits."""

    def __init__(self, value: Fraction, bits: int) -> None:
        self.value = value
        self.bits = bits

    def __truediv__(self, other: "_Logarithm") -> "_Logarithm":
        if not other.value:
            raise ZeroDivisionError
        return _Logarithm(_round(self.value / other.value, self.bits), self.bits)

    def __repr__(self) -> str:
        return f"mpf('{_write(self.value, _count_digits(self.bits))}')"


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
