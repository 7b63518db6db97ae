"""One request of a client made reliable, whatever endpoint answers it.

The reply is read, repaired and checked; what cannot be used is asked for again within one budget,
and refused with reasons when that does not help. Nothing here knows a server or a database.
"""

from .policy import Policy

__all__ = ["Policy"]
