"""Support tickets: a queue of them, and who is logged in."""

from typing import Any, ClassVar, Final

from msgspec import field

from .base import World

Ticket = dict[str, Any]
Result = dict[str, Any]

_EDITABLE: Final = ("title", "description", "status", "priority")
_MAX_PRIORITY: Final = 5


class TicketWorld(World):
    """The leaderboard's `TicketAPI`."""

    reads: ClassVar[str] = """
        get_ticket ticket_get_login_status get_user_tickets
    """

    ticket_queue: list[Ticket] = field(default_factory=list[Ticket])
    ticket_counter: int = 1
    current_user: str | None = None

    def create_ticket(self, title: str, description: str = "", priority: int = 1) -> Result:
        """Put a ticket of the current user into the queue."""
        if not self.current_user:
            return {"error": "User not authenticated. Please log in to create a ticket."}
        if not 1 <= priority <= _MAX_PRIORITY:
            return {"error": "Invalid priority. Priority must be between 1 and 5."}
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

    def get_ticket(self, ticket_id: int) -> Result:
        """Show a ticket."""
        return self._find(ticket_id) or _miss(ticket_id)

    def close_ticket(self, ticket_id: int) -> Result:
        """Close a ticket that is not closed."""
        return self._end(ticket_id, "Closed")

    def resolve_ticket(self, ticket_id: int, resolution: str) -> Result:
        """Resolve a ticket that is not resolved, and note how."""
        return self._end(ticket_id, "Resolved", resolution=resolution)

    def edit_ticket(self, ticket_id: int, updates: dict[str, Any]) -> Result:
        """Change some fields of a ticket."""
        ticket = self._find(ticket_id)
        if ticket is None:
            return _miss(ticket_id)
        unknown = [field for field in updates if field not in _EDITABLE]
        if unknown:
            return {"error": f"Invalid fields for update: {', '.join(unknown)}"}
        ticket.update({field: value for field, value in updates.items() if value is not None})
        return {"status": f"Ticket {ticket_id} has been updated successfully."}

    def ticket_login(self, username: str, password: str) -> Result:
        """Log in whoever has a name and a password."""
        if not (username and password):
            return {"success": False}
        self.current_user = username
        return {"success": True}

    def ticket_get_login_status(self) -> Result:
        """Tell whether somebody is logged in."""
        return {"login_status": bool(self.current_user)}

    def logout(self) -> Result:
        """Log out whoever is logged in."""
        if not self.current_user:
            return {"success": False}
        self.current_user = None
        return {"success": True}

    def get_user_tickets(self, status: str | None = None) -> list[Ticket]:
        """List the tickets of the current user, all or those of a status."""
        if not self.current_user:
            return [{"error": "User not authenticated. Please log in to view tickets."}]
        own = [ticket for ticket in self.ticket_queue if ticket["created_by"] == self.current_user]
        if not status:
            return own
        return [ticket for ticket in own if ticket["status"].lower() == status.lower()]

    def _find(self, ticket_id: int) -> Ticket | None:
        return next((each for each in self.ticket_queue if each["id"] == ticket_id), None)

    def _end(self, ticket_id: int, status: str, **noted: str) -> Result:
        ticket = self._find(ticket_id)
        if ticket is None:
            return _miss(ticket_id)
        if ticket["status"] == status:
            return {"error": f"Ticket with ID {ticket_id} is already {status.lower()}."}
        ticket.update(status=status, **noted)
        return {"status": f"Ticket {ticket_id} has been {status.lower()} successfully."}


def _miss(ticket_id: int) -> Result:
    return {"error": f"Ticket with ID {ticket_id} not found."}
