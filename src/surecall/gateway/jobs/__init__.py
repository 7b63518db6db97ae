"""One request at a time: for a model, or for another path of an upstream.

`client` is what all share, from the body to the last byte; `asking` reaches an upstream, delivers
and records; `streaming` passes streams on; `model` ties these together. `relaying` passes on what
is not read.
"""

from .model import Job
from .relaying import RelayJob, list_models

__all__ = ["Job", "RelayJob", "list_models"]
