import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from .doors import Door
from .sample_tools import Ledger

_KNOWN = Path(__file__).with_name("requests.json")
_RECORD = "SURECALL_RECORD_REQUESTS"


@pytest.fixture(params=["scripted", "http"])
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    """The same test against a script in the process and against a server on a socket.

    What is sent must stay the same to the byte: no test here declares what would change it. With
    the variable `SURECALL_RECORD_REQUESTS` set to a file, the digests are added to it instead.
    """
    door = Door(request.param)
    yield door
    body = json.dumps(door.requests, ensure_ascii=False)
    digest = sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    name = request.node.nodeid.rpartition("/")[2]
    record = os.environ.get(_RECORD)
    if record:
        with Path(record).open("a", encoding="utf-8") as file:
            file.write(json.dumps([name, digest]) + "\n")
        return
    known: dict[str, str] = json.loads(_KNOWN.read_text("utf-8"))
    assert digest == known.get(name, digest), "the requests differ from those that were recorded"


@pytest.fixture
def ledger() -> Ledger:
    """Tools that write down every call they run."""
    return Ledger()
