"""Messages between the users of a workspace."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from msgspec import field

from .base import World

Result = dict[str, Any]

_USERS: Final = {"Alice": "USR001", "Bob": "USR002", "Catherine": "USR003", "Daniel": "USR004"}
_INBOX: Final = (
    {"USR002": "My name is Alice. I want to connect."},
    {"USR003": "Could you upload the file?"},
    {"USR004": "Could you upload the file?"},
)
_LOGGED_OUT: Final[Result] = {"error": "No user is currently logged in."}
_IDS: Final = (10_000, 99_999)


class MessageWorld(World):
    """The leaderboard's `MessageAPI`; each message is an object from its receiver to its text."""

    seed: ClassVar[int] = 200_191
    reads: ClassVar[str] = """
        list_users get_user_id message_get_login_status view_messages_sent search_messages
        get_message_stats
    """

    generated_ids: set[int] = field(default_factory=set[int])
    user_count: int = 4
    user_map: dict[str, str] = field(default_factory=_USERS.copy)
    inbox: list[dict[str, str]] = field(default_factory=lambda: [dict(each) for each in _INBOX])
    message_count: int = 3
    current_user: str | None = None

    def list_users(self) -> Result:
        """List the names of all users."""
        return {"user_list": list(self.user_map)}

    def get_user_id(self, user: str) -> Result:
        """Look up the id of a user."""
        if user not in self.user_map:
            return {"error": f"User '{user}' not found in the workspace."}
        return {"user_id": self.user_map[user]}

    def message_login(self, user_id: str) -> Result:
        """Log in a user that there is."""
        if user_id not in list(self.user_map.values()):
            return {"login_status": False, "message": f"User ID '{user_id}' not found."}
        self.current_user = user_id
        return {"login_status": True, "message": f"User '{user_id}' logged in successfully."}

    def message_get_login_status(self) -> Result:
        """Tell whether somebody is logged in."""
        return {"login_status": bool(self.current_user)}

    def send_message(self, receiver_id: str, message: str) -> Result:
        """Send a message to a user that there is."""
        if not self.current_user:
            return _LOGGED_OUT
        if receiver_id not in self.user_map.values():
            return {"error": f"Receiver ID '{receiver_id}' not found."}
        new_id = self._random.randint(*_IDS)
        while new_id in self.generated_ids:
            new_id = self._random.randint(*_IDS)
        self.generated_ids.add(new_id)
        self.inbox.append({receiver_id: message})
        self.message_count += 1
        return {
            "sent_status": True,
            "message_id": {"new_id": new_id},
            "message": f"Message sent to '{receiver_id}' successfully.",
        }

    def delete_message(self, receiver_id: str) -> Result:
        """Delete the last message to a receiver, or an earlier one that says the same."""
        if not self.current_user:
            return _LOGGED_OUT
        for message in reversed(self.inbox):
            if next(iter(message)) == receiver_id:
                self.inbox.remove(message)
                return {
                    "deleted_status": True,
                    "receiver_id": receiver_id,
                    "message": f"Receiver {receiver_id}'s latest message deleted successfully.",
                }
        return {"error": f"Receiver ID {receiver_id} not found."}

    def view_messages_sent(self) -> Result:
        """List the messages by their receivers."""
        if not self.current_user:
            return _LOGGED_OUT
        sent: dict[str, list[str]] = {}
        for receiver, text in self._messages():
            sent.setdefault(receiver, []).append(text)
        return {"messages": sent}

    def add_contact(self, user_name: str) -> Result:
        """Add a user under the next id."""
        if user_name in self.user_map:
            return {"error": f"User name '{user_name}' already exists."}
        self.user_count += 1
        user_id = f"USR{self.user_count:03}"
        if user_id in self.user_map.values():
            return {"error": f"User ID '{user_id}' already exists."}
        self.user_map[user_name] = user_id
        return {
            "added_status": True,
            "user_id": user_id,
            "message": f"Contact '{user_name}' added successfully.",
        }

    def search_messages(self, keyword: str) -> Result:
        """List the messages with a word in them."""
        if not self.current_user:
            return _LOGGED_OUT
        found = [
            {"receiver_id": receiver, "message": text}
            for receiver, text in self._messages()
            if keyword.lower() in text.lower()
        ]
        return {"results": found}

    def get_message_stats(self) -> Result:
        """Count the messages and their receivers."""
        if not self.current_user:
            return _LOGGED_OUT
        receivers = {receiver for receiver, _ in self._messages()}
        stats = {"received_count": len(self.inbox), "total_contacts": len(receivers)}
        return {"stats": stats}

    def _messages(self) -> Iterator[tuple[str, str]]:
        for message in self.inbox:
            yield next(iter(message.items()))
