"""The tasks of the suite `errands`."""

from typing import Final

from .errand import Errand, MakeFact, Step


def _code(prefix: str) -> MakeFact:
    return lambda random: f"{prefix}{random.randrange(1000, 10_000)}"


def _number(low: int, high: int) -> MakeFact:
    return lambda random: random.randrange(low, high)


def _word(*words: str) -> MakeFact:
    return lambda random: random.choice(words)


ERRANDS: Final = (
    Errand(
        scenario="refund_order",
        request="Please refund the last order of {customer} in full.",
        stated={"customer": ("Mira Holt", "Jon Park", "Ada Winter", "Leo Brand")},
        hidden={"order_id": _code("ord-"), "amount": _number(20, 400)},
        about={
            "customer": "The full name of the customer.",
            "order_id": "The id of the order.",
            "amount": "The amount to refund, in whole euros.",
        },
        steps=(
            Step(
                tool="find_last_order",
                description="Find the last order of a customer, with its id and amount.",
                takes=("customer",),
                gives=("order_id", "amount"),
            ),
            Step(
                tool="create_refund",
                description="Pay money back for an order.",
                takes=("order_id", "amount"),
                effect="external",
            ),
        ),
    ),
    Errand(
        scenario="book_room",
        request="Book a meeting room for {guests} people at {hour} o'clock.",
        stated={"guests": (5, 6, 7), "hour": (10, 11, 14, 15)},
        hidden={"room": _word("Birch", "Falcon", "Harbour", "Quartz")},
        about={
            "guests": "How many people need a seat.",
            "hour": "The hour of the day, from 8 to 18.",
            "room": "The name of the room.",
        },
        steps=(
            Step(
                tool="find_free_room",
                description="Find a free room with enough seats at an hour.",
                takes=("guests", "hour"),
                gives=("room",),
            ),
            Step(
                tool="reserve_room",
                description="Reserve a room at an hour.",
                takes=("room", "hour"),
                effect="write",
            ),
        ),
    ),
    Errand(
        scenario="move_meeting",
        request="Move the meeting {title!r} to the next free slot.",
        stated={"title": ("Budget review", "Design critique", "Weekly sync")},
        hidden={"meeting_id": _code("m"), "slot": _word("Tue 09:30", "Wed 13:00", "Fri 16:15")},
        about={
            "title": "The title of the meeting.",
            "meeting_id": "The id of the meeting.",
            "slot": "Day and time, as the calendar writes it.",
        },
        steps=(
            Step(
                tool="find_meeting",
                description="Find a meeting by its title.",
                takes=("title",),
                gives=("meeting_id",),
            ),
            Step(
                tool="next_free_slot",
                description="Find the next slot that everyone in a meeting has free.",
                takes=("meeting_id",),
                gives=("slot",),
            ),
            Step(
                tool="reschedule_meeting",
                description="Move a meeting to a slot.",
                takes=("meeting_id", "slot"),
                effect="write",
            ),
        ),
    ),
    Errand(
        scenario="pay_invoice",
        request="Pay invoice {invoice}.",
        stated={"invoice": ("INV-311", "INV-542", "INV-897")},
        hidden={
            "supplier": _word("Northwind", "Kestrel", "Lumen"),
            "total": _number(100, 3000),
            "account": _code("ACC-"),
        },
        about={
            "invoice": "The number of the invoice.",
            "supplier": "The name of the supplier.",
            "account": "The account that the money goes to.",
            "total": "The amount to pay, in whole euros.",
        },
        steps=(
            Step(
                tool="read_invoice",
                description="Read an invoice: who sent it, and its total.",
                takes=("invoice",),
                gives=("supplier", "total"),
            ),
            Step(
                tool="supplier_account",
                description="Look up the account of a supplier.",
                takes=("supplier",),
                gives=("account",),
            ),
            Step(
                tool="make_payment",
                description="Pay an amount to an account.",
                takes=("account", "total"),
                effect="external",
            ),
        ),
    ),
    Errand(
        scenario="ship_parcel",
        request="Ship order {order} today.",
        stated={"order": ("A-17", "B-42", "C-08")},
        hidden={"shelf": _code("S"), "label": _code("LBL")},
        about={
            "order": "The number of the order.",
            "shelf": "The shelf that the goods lie on.",
            "label": "The number of the shipping label.",
        },
        steps=(
            Step(
                tool="locate_goods",
                description="Find out on which shelf the goods of an order lie.",
                takes=("order",),
                gives=("shelf",),
            ),
            Step(
                tool="print_label",
                description="Print the shipping label of an order.",
                takes=("order",),
                gives=("label",),
                effect="write",
            ),
            Step(
                tool="request_pickup",
                description="Have a parcel picked up from a shelf, with its label.",
                takes=("shelf", "label"),
                effect="external",
            ),
        ),
    ),
    Errand(
        scenario="reset_access",
        request="{email} has lost the phone for signing in. Reset the second factor.",
        stated={"email": ("kim@example.org", "noor@example.org", "sam@example.org")},
        hidden={"user_id": _code("u"), "ticket": _code("T-")},
        about={
            "email": "The email address of the user.",
            "user_id": "The id of the user.",
            "ticket": "The ticket that allows the reset.",
        },
        steps=(
            Step(
                tool="look_up_user",
                description="Find the id of a user by email address.",
                takes=("email",),
                gives=("user_id",),
            ),
            Step(
                tool="open_ticket",
                description="Open a ticket for a user; a reset needs one.",
                takes=("user_id",),
                gives=("ticket",),
                effect="write",
            ),
            Step(
                tool="reset_second_factor",
                description="Reset the second factor of a user.",
                takes=("user_id", "ticket"),
                effect="external",
            ),
        ),
    ),
)
"""Every task, in order."""
