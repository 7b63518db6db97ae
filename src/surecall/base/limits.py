"""Every default limit that more than one part of surecall keeps; a user's option starts here."""

from typing import Final

__all__ = [
    "APPROVAL_LIFETIME_S",
    "MAX_ARGUMENTS_BYTES",
    "MAX_BODY_BYTES",
    "MAX_EMBEDDED_TOKENS",
    "MAX_ID_CHARACTERS",
    "MAX_INLINE_CHARACTERS",
    "MAX_JSON_DEPTH",
    "MAX_LINE_BYTES",
    "MAX_LOCKS",
    "MAX_OPEN_PROPOSALS",
    "MAX_OUTPUT_BYTES",
    "MAX_PATCH_BYTES",
    "MAX_PATCH_OPERATIONS",
    "MAX_REPORTED_TOKENS",
    "MAX_SCHEMA_DEPTH",
    "MAX_SERVER_TOOLS",
    "MAX_TOOL_DESCRIPTION_CHARACTERS",
    "MAX_TURN_ARGUMENTS_BYTES",
    "MAX_VALUE_DEPTH",
    "MAX_WORKSPACE_PART_BYTES",
    "MIB",
    "TOOL_SERVER_CONNECT_S",
    "TOOL_SERVER_TIMEOUT_S",
]

MIB: Final = 1024 * 1024

APPROVAL_LIFETIME_S: Final = 24 * 60 * 60.0
"""How long an approval can be decided and used."""

MAX_ARGUMENTS_BYTES: Final = 200_000
"""The arguments of one call."""
MAX_TURN_ARGUMENTS_BYTES: Final = MIB
"""The arguments of all calls of one reply."""
MAX_OUTPUT_BYTES: Final = 200_000
"""The result of one tool."""

MAX_SERVER_TOOLS: Final = 1_000
"""Tools of one server, or operations of one document."""
MAX_TOOL_DESCRIPTION_CHARACTERS: Final = 4_096
"""The description of a tool that somebody else wrote."""
TOOL_SERVER_CONNECT_S: Final = 30.0
"""Until a server that has tools must have answered first."""
TOOL_SERVER_TIMEOUT_S: Final = 60.0
"""One call of a tool that a server has."""

MAX_JSON_DEPTH: Final = 128
"""Objects and arrays in one another in JSON."""
MAX_VALUE_DEPTH: Final = 64
"""Containers in one another in values that are written in another notation than JSON."""
MAX_SCHEMA_DEPTH: Final = 64
"""Schemas in one another in a schema that is rewritten."""

MAX_EXPERIMENT_TRIALS: Final = 1_000_000
"""Trials of one eval run."""

MAX_EMBEDDED_TOKENS: Final = 512
"""An answer of an embedded model to a client that sets no limit."""

MAX_INLINE_CHARACTERS: Final = 64 * 1024
"""Text that is longer is read in a thread: that may take long enough to delay everything else."""

MAX_BODY_BYTES: Final = 32 * MIB
"""A request or an answer over HTTP, decompressed."""
MAX_LINE_BYTES: Final = 16 * MIB
"""One line of a stream."""

MAX_REPORTED_TOKENS: Final = 100_000_000
"""Tokens of one kind that a provider says it used for one request; no model reads or makes more."""

MAX_WORKSPACE_PART_BYTES: Final = MIB
"""The facts, the draft or the ui state of a workspace, as JSON."""
MAX_PATCH_BYTES: Final = 200_000
"""The operations of one patch or the facts of one proposal, as JSON."""
MAX_PATCH_OPERATIONS: Final = 1_000
"""Operations of one patch, or facts of one proposal."""
MAX_OPEN_PROPOSALS: Final = 100
"""Proposals of one workspace that wait for a decision."""
MAX_LOCKS: Final = 1_000
"""Locks of one workspace."""
MAX_ID_CHARACTERS: Final = 200
"""The id of a workspace or of a request."""
