"""Travel: flights that are booked and insured, paid with credit cards, within a budget."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from msgspec import field

from .base import World

Result = dict[str, Any]

_PER_DOLLAR: Final = {
    "RMB": 7,
    "EUR": 0.8,
    "JPY": 110,
    "GBP": 0.7,
    "CAD": 1.3,
    "AUD": 1.4,
    "INR": 70,
    "RUB": 60,
    "BRL": 3.8,
    "MXN": 20,
}
_INVOICED: Final = (
    *("travel_date", "travel_from", "travel_to", "travel_class", "travel_cost", "transaction_id"),
)
_TOKEN_USES: Final = 2
_ADULT_YEARS: Final = 18
_DATE: Final = "%Y-%m-%d"
_SUPPORT: Final = (
    "Thank you for contacting customer support. Your message has been received and we will get "
    "back to you shortly."
)


class TravelWorld(World):
    """The leaderboard's `TravelAPI`."""

    seed: ClassVar[int] = 141_053
    reads: ClassVar[str] = """
        travel_get_login_status get_budget_fiscal_year get_credit_card_balance
        get_all_credit_cards get_flight_cost retrieve_invoice get_booking_history
        list_all_airports compute_exchange_rate verify_traveler_information
        get_nearest_airport_by_city
    """

    credit_card_list: dict[str, Result] = field(default_factory=dict[str, Result])
    booking_record: dict[str, Result] = field(default_factory=dict[str, Result])
    access_token: str | None = None
    token_type: str | None = None
    token_expires_in: int | None = None
    token_scope: str | None = None
    user_first_name: str | None = None
    user_last_name: str | None = None
    budget_limit: float | None = None

    def authenticate_travel(
        self,
        client_id: str,
        client_secret: str,
        refresh_token: str,
        grant_type: str,
        user_first_name: str,
        user_last_name: str,
    ) -> Result:
        """Give a token to whoever asks for it."""
        self.token_expires_in = _TOKEN_USES
        self.access_token = self._draw_digits(6)
        self.token_type = "Bearer"  # noqa: S105 - a kind of token
        self.token_scope = grant_type
        self.user_first_name, self.user_last_name = user_first_name, user_last_name
        return {
            "expires_in": self.token_expires_in,
            "access_token": self.access_token,
            "token_type": self.token_type,
            "scope": grant_type,
        }

    def travel_get_login_status(self) -> Result:
        """Tell whether there is a token that can be used."""
        return {"status": self.token_expires_in not in (None, 0)}

    def get_budget_fiscal_year(
        self, lastModifiedAfter: str | None = None, includeRemoved: str | None = None
    ) -> Result:
        """Show the fiscal year."""
        return {"budget_fiscal_year": "2018"}

    def register_credit_card(
        self,
        access_token: str,
        card_number: str,
        expiration_date: str,
        cardholder_name: str,
        card_verification_number: int,
    ) -> Result:
        """Register a card, with a balance that is left to chance."""
        if self.token_expires_in is None:
            return {"error": "Token not initialized"}
        problem = self._check_token(access_token)
        if problem is None and card_number in self.credit_card_list:
            problem = "Card already registered"
        if problem is not None:
            return {"error": problem}
        card_id = self._draw_digits(12)
        self.credit_card_list[card_id] = {
            "card_number": card_number,
            "expiration_date": expiration_date,
            "cardholder_name": cardholder_name,
            "card_verification_number": card_verification_number,
            "balance": int(self._draw_digits(5)),
        }
        return {"card_id": card_id}

    def get_credit_card_balance(self, access_token: str, card_id: str) -> Result:
        """Show the balance of a card."""
        problem = self._check_token(access_token)
        if problem is None and card_id not in self.credit_card_list:
            known = list(self.credit_card_list)
            problem = f"Card not registered. Here are a list of card_id's: {known}"
        if problem is not None:
            return {"error": problem}
        return {"card_balance": self.credit_card_list[card_id]["balance"]}

    def get_all_credit_cards(self) -> Result:
        """Show all cards."""
        return {"credit_card_list": self.credit_card_list}

    def get_flight_cost(
        self, travel_from: str, travel_to: str, travel_date: str, travel_class: str
    ) -> Result:
        """Show the price of a flight."""
        cost = find_cost(travel_from, travel_to, travel_date, travel_class)
        return {"travel_cost_list": [cost]}

    def book_flight(
        self,
        access_token: str,
        card_id: str,
        travel_date: str,
        travel_from: str,
        travel_to: str,
        travel_class: str,
    ) -> Result:
        """Book a flight and pay it with a card."""
        problem = self._check_token(access_token) or self._check_card(card_id)
        problem = problem or _check_flight(travel_from, travel_to, travel_date, travel_class)
        if problem is not None:
            return {"booking_status": False, "error": problem}
        try:
            cost = find_cost(travel_from, travel_to, travel_date, travel_class)
        except ValueError as error:
            return {"booking_status": False, "error": str(error)}
        card = self.credit_card_list[card_id]
        if card["balance"] < cost:
            return {"booking_status": False, "error": "Insufficient funds"}
        if self.budget_limit is not None and card["balance"] < self.budget_limit:
            return {"booking_status": False, "error": "Balance is less than budget limit"}
        card["balance"] -= cost
        booking_id, transaction_id = self._draw_digits(7), self._draw_digits(8)
        self.booking_record[booking_id] = {
            "card_id": card_id,
            "travel_date": travel_date,
            "travel_from": travel_from,
            "travel_to": travel_to,
            "travel_class": travel_class,
            "travel_cost": cost,
            "transaction_id": transaction_id,
        }
        return {
            "booking_id": booking_id,
            "transaction_id": transaction_id,
            "booking_status": True,
            "booking_history": {},
        }

    def retrieve_invoice(
        self, access_token: str, booking_id: str | None = None, insurance_id: str | None = None
    ) -> Result:
        """Show the invoice of a booking; one of an insurance alone is never found."""
        problem = self._check_token(access_token) or self._check_booking(booking_id)
        if problem is not None:
            return {"error": problem}
        booking = self.booking_record[str(booking_id)]
        return {
            "invoice": {"booking_id": booking_id, **{name: booking[name] for name in _INVOICED}}
        }

    def get_booking_history(self, access_token: str) -> Result:
        """Show all bookings."""
        problem = self._check_token(access_token)
        if problem is not None:
            return {"error": problem}
        return {"booking_history": deepcopy(self.booking_record)}

    def list_all_airports(self) -> list[str]:
        """List all airports."""
        return list(AIRPORTS)

    def cancel_booking(self, access_token: str, booking_id: str) -> Result:
        """Cancel a booking and pay the card back."""
        problem = self._check_token(access_token) or self._check_booking(booking_id)
        if problem is not None:
            return {"cancel_status": False, "error": problem}
        booking = self.booking_record[booking_id]
        self.credit_card_list[booking["card_id"]]["balance"] += booking["travel_cost"]
        del self.booking_record[booking_id]
        return {"cancel_status": True}

    def compute_exchange_rate(
        self, base_currency: str, target_currency: str, value: float
    ) -> Result:
        """Convert dollars to another currency, or back, which is rounded to cents."""
        if base_currency == "USD" and target_currency in _PER_DOLLAR:
            return {"exchanged_value": float(value * _PER_DOLLAR[target_currency])}
        if target_currency == "USD" and base_currency in _PER_DOLLAR:
            return {"exchanged_value": round(value / _PER_DOLLAR[base_currency], 2)}
        raise ValueError("No available exchange rate for the given currencies.")

    def verify_traveler_information(
        self, first_name: str, last_name: str, date_of_birth: str, passport_number: str
    ) -> Result:
        """Tell whether a traveller is the user, of age, and has a passport of the right country."""
        problem = None
        if (self.user_first_name, self.user_last_name) != (first_name, last_name):
            expected = f"{self.user_first_name} {self.user_last_name}"
            problem = "Cannot book flight information for another user."
            problem += f"Expected {expected}, got {first_name} {last_name}"
        else:
            problem = _check_age(date_of_birth)
            if problem is None and not passport_number.startswith("US"):
                problem = "Passport must be issued by the United States."
        if problem is not None:
            return {"verification_status": False, "verification_failure": problem}
        return {"verification_status": True}

    def set_budget_limit(self, access_token: str, budget_limit: float) -> Result:
        """Set the budget."""
        problem = self._check_token(access_token)
        if problem is not None:
            return {"error": problem}
        self.budget_limit = float(budget_limit)
        return {"budget_limit": self.budget_limit}

    def get_nearest_airport_by_city(self, location: str) -> Result:
        """Look up the airport of a city."""
        return {"nearest_airport": AIRPORT_OF.get(location, "Unknown")}

    def purchase_insurance(
        self,
        access_token: str,
        insurance_type: str,
        booking_id: str,
        insurance_cost: float,
        card_id: str,
    ) -> Result:
        """Insure a booking and pay with a card, within the budget."""
        problem = self._check_token(access_token)
        if problem is None and self.budget_limit is not None and self.budget_limit < insurance_cost:
            problem = "Exceeded budget limit"
        problem = problem or self._check_booking(booking_id)
        if problem is None and card_id not in self.credit_card_list:
            problem = "Credit card not registered"
        if problem is not None:
            return {"insurance_status": False, "error": problem}
        self.credit_card_list[card_id]["balance"] -= insurance_cost
        return {"insurance_id": self._draw_digits(9), "insurance_status": True}

    def contact_customer_support(self, booking_id: str, message: str) -> Result:
        """Send a message about a booking to somebody who says thank you."""
        problem = self._check_booking(booking_id)
        return {"error": problem} if problem else {"customer_support_message": _SUPPORT}

    def _draw_digits(self, count: int) -> str:
        return str(self._random.randint(10 ** (count - 1), 10**count - 1))

    def _check_token(self, access_token: str) -> str | None:
        if self.token_expires_in == 0:
            return "Token expired"
        return None if access_token == self.access_token else "Invalid access token"

    def _check_card(self, card_id: str) -> str | None:
        if card_id not in self.credit_card_list:
            return "Card not registered"
        return None if "balance" in self.credit_card_list[card_id] else "Balance not found"

    def _check_booking(self, booking_id: str | None) -> str | None:
        return None if booking_id in self.booking_record else "Booking not found"


def _check_flight(start: str, end: str, date: str, travel_class: str) -> str | None:
    for place, code in (("departure", start), ("destination", end)):
        if code not in AIRPORTS:
            return f"Invalid {place} airport code: {code}"
    try:
        datetime.strptime(date, _DATE).replace(tzinfo=UTC)
    except ValueError:
        return "Invalid date format. Use YYYY-MM-DD."
    if travel_class not in FACTORS:
        return f"Invalid travel class. Must be one of {', '.join(FACTORS)}"
    return None


def _check_age(date_of_birth: str) -> str | None:
    try:
        born = datetime.strptime(date_of_birth, _DATE).replace(tzinfo=UTC)
    except ValueError:
        return "Invalid date of birth format. Please use YYYY-MM-DD."
    today = datetime.now(UTC)
    years = today.year - born.year - ((today.month, today.day) < (born.month, born.day))
    return None if years >= _ADULT_YEARS else "Traveler must be at least 18 years old."


_PRICES: Final = """
SFO LAX=200 JFK=500 ORD=400 BOS=450 RMS=300 SBK=350 MPC=370 SVP=320 SHD=330 SSV=340 OKD=360 WLB=310
SFO CRH=380 ATV=390 PHV=420 GFD=430 CIA=700
LAX SFO=100 JFK=600 ORD=500 BOS=550 RMS=310 SBK=320 MPC=330 SVP=340 SHD=350 SSV=360 OKD=370 WLB=380
LAX CRH=390 ATV=400 PHV=410 GFD=420 HND=430
JFK ORD=300 BOS=250 RMS=450 SBK=460 MPC=470 SVP=480 SHD=490 SSV=500 OKD=510 WLB=520 CRH=530 ATV=540
JFK PHV=550 GFD=560 LAX=570 HND=800 PVG=950 PEK=1000
ORD LAX=180 BOS=200 RMS=350 SBK=360 MPC=370 SVP=380 SHD=390 SSV=400 OKD=410 WLB=420 CRH=430 ATV=440
ORD PHV=450 GFD=460
BOS RMS=400 SBK=410 MPC=420 SVP=430 SHD=440 SSV=450 OKD=460 WLB=470 CRH=480 ATV=490 PHV=500 GFD=510
RMS BOS=200 JFK=210 SBK=220 MPC=230 SVP=240 SHD=250 SSV=260 OKD=270 WLB=280 CRH=290 ATV=300 PHV=310
RMS GFD=320 LAX=330
SBK MPC=200 SVP=210 SHD=220 SSV=230 OKD=240 WLB=250 CRH=260 ATV=270 PHV=280 GFD=290
MPC SVP=210 SHD=220 SSV=230 OKD=240 WLB=250 CRH=260 ATV=270 PHV=280 GFD=290
SVP SHD=230 SSV=240 OKD=250 WLB=260 CRH=270 ATV=280 PHV=290 GFD=300
SHD SSV=220 OKD=230 WLB=240 CRH=250 ATV=260 PHV=270 GFD=280
SSV OKD=240 WLB=250 CRH=260 ATV=270 PHV=280 GFD=290
OKD WLB=230 CRH=240 ATV=250 PHV=260 GFD=270 LAX=220
WLB CRH=250 ATV=260 PHV=270 GFD=280
CRH ATV=240 PHV=250 GFD=260 SFO=270 RMS=280 HKG=290 JFK=300
ATV PHV=230 GFD=240
PHV GFD=220
LHR CDG=100
"""
"""Per line: where from, and for each place where to, the price in economy on an odd day."""

AIRPORTS: Final = (
    *("RMS", "SBK", "MPC", "SVP", "SHD", "CDG", "LHR", "SSV", "OKD", "WLB", "PEK", "HND"),
    *("HKG", "CIA", "CRH", "ATV", "PHV", "GFD", "SFO", "LAX", "JFK", "ORD", "BOS"),
)
"""Every airport, in the order in which they are listed."""
AIRPORT_OF: Final = {
    "Rivermist": "RMS",
    "Stonebrook": "SBK",
    "Maplecrest": "MPC",
    "Silverpine": "SVP",
    "Shadowridge": "SHD",
    "London": "LHR",
    "Paris": "CDG",
    "Sunset Valley": "SSV",
    "Oakendale": "OKD",
    "Willowbend": "WLB",
    "Crescent Hollow": "CRH",
    "Autumnville": "ATV",
    "Pinehaven": "PHV",
    "Greenfield": "GFD",
    "San Francisco": "SFO",
    "Los Angeles": "LAX",
    "New York": "JFK",
    "Chicago": "ORD",
    "Boston": "BOS",
    "Beijing": "PEK",
    "Hong Kong": "HKG",
    "Rome": "CIA",
    "Tokyo": "HND",
}
"""The airport of each city."""
FACTORS: Final = {"economy": 1, "business": 2, "first": 5}
"""How many times the price each class costs."""


def _read_prices() -> dict[tuple[str, str], int]:
    prices: dict[tuple[str, str], int] = {}
    for line in _PRICES.split("\n"):
        start, *flights = line.split() or [""]
        for flight in flights:
            end, _, price = flight.partition("=")
            prices[start, end] = int(price)
    return prices


_PRICE_OF: Final = _read_prices()


def find_cost(start: str, end: str, date: str, travel_class: str) -> float:
    """Return the price of a flight; a day whose digits have an even sum costs twice as much.

    Raises:
        ValueError: There is no such flight, or no such class.
    """
    price = _PRICE_OF.get((start, end))
    if price is None:
        raise ValueError("No available route for the given airports.")
    if travel_class not in FACTORS:
        raise ValueError("Invalid travel class. Options are: economy, business, first.")
    digits = sum(int(letter) for letter in date if letter.isdigit())
    return float(price * FACTORS[travel_class] * (1 if digits % 2 else 2))
