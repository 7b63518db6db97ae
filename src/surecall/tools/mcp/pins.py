"""Pins: the digest of every definition that somebody has approved, in a file or in the program."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from surecall.base.errors import JSONTextError, invalid_config
from surecall.base.files import explain_write_errors, write_whole
from surecall.base.json_values import as_fields
from surecall.text import decode, encode_text

_MAX_FILE_BYTES: Final = 10 * 1024 * 1024
_HINT: Final = "Mend it, or delete it and approve the definitions again."


class PinFile:
    """A JSON file with the approved digests: `{server: {tool: digest}}`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def read(self, server: str) -> dict[str, str] | None:
        """Return the digests of a server's tools; `None` when it was never approved."""
        pins = self._read_all().get(server)
        return None if pins is None else dict(pins)

    def write(self, server: str, digests: Mapping[str, str]) -> None:
        """Approve these definitions of a server, and no others of it."""
        pins = {**self._read_all(), server: dict(sorted(digests.items()))}
        text = encode_text(dict(sorted(pins.items())), indent=2)
        with explain_write_errors(self.path), write_whole(self.path) as file:
            file.write(f"{text}\n".encode())

    def _read_all(self) -> dict[str, dict[str, str]]:
        try:
            with self.path.open("rb") as file:
                document = decode(file.read(_MAX_FILE_BYTES + 1), max_bytes=_MAX_FILE_BYTES)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise invalid_config(
                f"the pins in {self.path} cannot be read: {error.strerror or error}."
            ) from error
        except JSONTextError as error:
            raise invalid_config(f"{self.path} is not JSON: {error.message}", _HINT) from error
        servers = as_fields(document)
        if not isinstance(document, dict) or not all(map(_is_pins, servers.values())):
            raise invalid_config(f"{self.path} does not hold pins of servers.", _HINT)
        return servers


def _is_pins(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    items = cast("dict[Any, Any]", value).values()
    return all(isinstance(digest, str) for digest in items)
