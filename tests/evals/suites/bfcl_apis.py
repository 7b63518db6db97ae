"""Two APIs of our own, with the names and the shape of the leaderboard's: the source of a wheel."""

__all__ = ["SOURCES"]

_TICKETS = '''
from copy import deepcopy
from typing import Any, Dict, Optional

START = {"ticket_queue": [], "ticket_counter": 1, "current_user": None}


class TicketAPI:
    """Tickets."""

    def __init__(self):
        self._api_description = "Tickets."

    def _load_scenario(self, scenario: dict, long_context=False) -> None:
        start = deepcopy(START)
        for name in START:
            setattr(self, name, scenario.get(name, start[name]))

    def _find(self, ticket_id: int):
        return next(one for one in self.ticket_queue if one["id"] == ticket_id)

    def ticket_login(self, username: str, password: str) -> Dict[str, bool]:
        """Log in."""
        self.current_user = username
        return {"success": True}

    def create_ticket(self, title: str, description: str = "", priority: int = 1) -> Dict[str, Any]:
        """Open a ticket."""
        ticket = {
            "id": self.ticket_counter,
            "title": title,
            "description": description,
            "status": "Open",
            "priority": priority,
            "created_by": self.current_user,
        }
        self.ticket_queue.append(ticket)
        self.ticket_counter += 1
        return ticket

    def get_ticket(self, ticket_id: int) -> Dict[str, Any]:
        """Look at a ticket."""
        return self._find(ticket_id)

    def close_ticket(self, ticket_id: int) -> Dict[str, str]:
        """Close a ticket."""
        self._find(ticket_id)["status"] = "Closed"
        return {"status": f"{ticket_id} is closed"}

    def resolve_ticket(self, ticket_id: int, resolution: str) -> Dict[str, str]:
        """Resolve a ticket."""
        self._find(ticket_id).update(status="Resolved", resolution=resolution)
        return {"status": f"{ticket_id} is resolved"}

    def edit_ticket(self, ticket_id: int, updates: Dict[str, Any]) -> Dict[str, str]:
        """Change a ticket."""
        self._find(ticket_id).update(updates)
        return {"status": f"{ticket_id} is changed"}

    def get_user_tickets(self, status: Optional[str] = None) -> list:
        """List tickets."""
        return [one for one in self.ticket_queue if one["status"].lower() == status]

    def note_words(self, word: str, words: list = []) -> list:
        """Note a word."""
        words.append(word)
        return words

    def start_program(self, path: str) -> str:
        """Do what no API may do."""
        import subprocess

        return open(path).read()
'''
_MATHS = '''
import mpmath


class MathAPI:
    """Numbers."""

    def logarithm(self, value: float, base: float, precision: int) -> dict:
        """Return a logarithm."""
        try:
            mpmath.mp.dps = precision
            return {"result": mpmath.log(value) / mpmath.log(base)}
        except Exception as error:
            return {"error": str(error)}

    def square_root(self, number: float, precision: int) -> dict:
        """Return a square root."""
        return {"result": number**0.5}

    def round_number(self, number: float, decimal_places: int = 0) -> dict:
        """Round a number."""
        return {"result": round(number, decimal_places)}

    def power(self, base: float, exponent: float) -> dict:
        """Return a power."""
        return {"result": base**exponent}
'''
_FILES = '''
import subprocess
from copy import deepcopy


class Directory:
    """A folder."""

    def __init__(self, name):
        self.name, self.contents = name, {}

    def __eq__(self, other):
        return self.name == other.name and self.contents == other.contents


class GorillaFileSystem:
    """Folders."""

    def _load_scenario(self, scenario: dict, long_context=False) -> None:
        self.root = Directory("/")
        self.root.contents["a"] = Directory("a")

    def cp(self, source: str, destination: str) -> None:
        """Copy a folder into itself and beside itself."""
        copied = deepcopy(self.root.contents[source])
        self.root.contents[source].contents[destination] = copied
        self.root.contents[destination] = deepcopy(copied)

    def mv(self, source: str, destination: str) -> None:
        """Move a folder into itself."""
        self.root.contents[source].contents[source] = self.root.contents[source]
'''
SOURCES = {
    "ticket_api": ("TicketAPI", _TICKETS),
    "math_api": ("MathAPI", _MATHS),
    "gorilla_file_system": ("GorillaFileSystem", _FILES),
}
"""Name of the class and text, by the name of the file."""
