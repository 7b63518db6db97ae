"""A defect: something about a reply that is not as the wire format says."""

from msgspec import Struct

__all__ = ["Defect"]


class Defect(Struct, frozen=True):
    """A finding about the shape of a reply; it changes nothing by itself."""

    code: str
    message: str
    place: str = ""
