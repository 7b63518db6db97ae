"""What the main process and its workers say to each other: JSON, nothing that could run."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from surecall.errors import Code, ConfigError, SurecallError
from surecall.evals.records import Unit, encode_kept
from surecall.jsontext import decode_own

from .base import Finished, Job
from .sharded import Began

__all__ = [
    "Beat",
    "Drain",
    "Failed",
    "Leave",
    "Order",
    "Ready",
    "RunShard",
    "ShardOver",
    "WorkerMessage",
    "failure_of",
    "pack",
    "unpack_job",
    "unpack_message",
    "unpack_order",
]


class RunShard(Struct, frozen=True, tag="run"):
    """Run these units."""

    units: Sequence[Unit]


class Drain(Struct, frozen=True, tag="drain"):
    """Begin nothing more."""


class Leave(Struct, frozen=True, tag="leave"):
    """Stop everything and end."""


class Ready(Struct, frozen=True, tag="ready"):
    """The job is open."""


class ShardOver(Struct, frozen=True, tag="over"):
    """The shard is finished, or as much of it as was begun."""


class Beat(Struct, frozen=True, tag="beat"):
    """The worker lives."""


class Failed(Struct, frozen=True, tag="failed"):
    """The worker cannot work at all."""

    code: str
    message: str
    hint: str | None = None

    def as_error(self) -> SurecallError:
        """Return it as an error that can be raised."""
        return ConfigError(self.code, self.message, hint=self.hint)


Order = RunShard | Drain | Leave
WorkerMessage = Began | Finished | Ready | ShardOver | Beat | Failed


def failure_of(error: BaseException) -> Failed:
    """Say what kept a worker from working."""
    if isinstance(error, SurecallError):
        return Failed(error.code, error.message, error.hint)
    return Failed(Code.INTERNAL_ERROR, f"{type(error).__name__}: {error}")


def pack(message: Any) -> bytes:
    """Return a message as bytes."""
    return encode_kept(message)


def unpack_order(data: bytes) -> Order:
    """Return the order of the main process."""
    return msgspec.convert(decode_own(data), Order)


def unpack_message(data: bytes) -> WorkerMessage:
    """Return what a worker said."""
    return msgspec.convert(decode_own(data), WorkerMessage)


def unpack_job(data: bytes) -> Job:
    """Return the job a worker was started for."""
    return msgspec.convert(decode_own(data), Job)
