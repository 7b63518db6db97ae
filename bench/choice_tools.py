"""Tools of the tasks in `choices.toml`: the second call of each finds several things.

Nothing is kept: what a tool answers depends on its arguments alone.
"""

from typing import Any

import surecall
from surecall.base.errors import Code
from surecall.tools import ToolFailed


def _know(known: bool, what: str) -> None:
    if not known:
        raise ToolFailed(Code.ARGUMENT_ERROR, f"there is no such {what}.", "Copy it exactly.")


@surecall.tool(effect="read")
def find_account(email: str) -> dict[str, Any]:
    """Find the account that belongs to an email address."""
    _know(email == "vera@lindqvist.example", "account")
    return {"account_id": "AC-5821"}


@surecall.tool(effect="read", requires=("find_account",))
def list_subscriptions(account_id: str) -> dict[str, Any]:
    """List the subscriptions of an account."""
    _know(account_id == "AC-5821", "account")
    return {
        "subscriptions": [
            {"subscription_id": "SB-1107", "plan": "Music", "price": 9.99},
            {"subscription_id": "SB-2290", "plan": "Video", "price": 12.99},
            {"subscription_id": "SB-3346", "plan": "Cloud storage", "price": 2.99},
        ]
    }


@surecall.tool(effect="external", requires=("list_subscriptions",))
def cancel_subscription(subscription_id: str) -> dict[str, Any]:
    """Cancel one subscription."""
    return {"cancelled": subscription_id}


@surecall.tool(effect="read")
def find_booking(reference: str) -> dict[str, Any]:
    """Find a train booking by its reference: where from, where to, and on which day."""
    _know(reference == "KX74Q", "booking")
    return {"from_station": "Turin", "to_station": "Genoa", "day": "2026-12-03"}


@surecall.tool(effect="read", requires=("find_booking",))
def list_trains(from_station: str, to_station: str, day: str) -> dict[str, Any]:
    """List the trains between two stations on a day."""
    _know((from_station, to_station, day) == ("Turin", "Genoa", "2026-12-03"), "connection")
    return {
        "trains": [
            {"train": "IC 505", "departure": "07:15"},
            {"train": "IC 511", "departure": "11:20"},
            {"train": "IC 517", "departure": "16:40"},
            {"train": "IC 523", "departure": "19:05"},
        ]
    }


@surecall.tool(effect="external", requires=("list_trains",))
def change_booking(reference: str, train: str) -> dict[str, Any]:
    """Change a booking to another train of the same day."""
    return {"reference": reference, "train": train}


@surecall.tool(effect="read")
def find_machine(serial_number: str) -> dict[str, Any]:
    """Find out which model a machine is, by its serial number."""
    _know(serial_number == "904417", "machine")
    return {"model": "Aquila 7"}


@surecall.tool(effect="read", requires=("find_machine",))
def list_parts(model: str) -> dict[str, Any]:
    """List the spare parts of a model."""
    _know(model == "Aquila 7", "model")
    return {
        "parts": [
            {"part_number": "P-310", "name": "door seal"},
            {"part_number": "P-322", "name": "drain pump"},
            {"part_number": "P-345", "name": "water inlet valve"},
            {"part_number": "P-371", "name": "drum belt"},
        ]
    }


@surecall.tool(effect="external", requires=("list_parts",))
def order_part(part_number: str, quantity: int) -> dict[str, Any]:
    """Order a spare part."""
    return {"ordered": quantity, "part_number": part_number}
