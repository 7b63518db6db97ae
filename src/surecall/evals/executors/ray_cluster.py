"""A cluster to run on: one that is there, or a small one on this machine."""

import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from surecall.errors import Code, ConfigError

__all__ = ["connect_cluster", "load_ray"]


def load_ray() -> Any:
    """Import Ray, or raise `ConfigError` with how to install it."""
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            Code.EXTRA_MISSING,
            f"Ray cannot be imported: {error}.",
            hint="Run `pip install 'surecall[ray]'`, or use --engine processes.",
        ) from error
    return ray


@contextmanager
def connect_cluster(address: str | None, *, cpus: int | None = None) -> Generator[None]:
    """Be connected to a cluster; without an address one is started here and ended again.

    A connection that the program already has is used and left as it is.
    """
    ray = load_ray()
    if ray.is_initialized():
        yield
        return
    settings: dict[str, Any] = {"address": address}
    if address is None:
        # What can be imported here can be imported there.
        path = os.pathsep.join(entry or os.curdir for entry in sys.path)
        settings = {
            "num_cpus": cpus,
            "include_dashboard": False,
            "runtime_env": {"env_vars": {"PYTHONPATH": path}},
        }
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
    except Exception as error:
        raise ConfigError(
            Code.INVALID_CONFIG,
            f"there is no Ray cluster at {address or 'this machine'}: {error}.",
            hint="Check --ray-address, such as ray://host:10001 or host:6379.",
        ) from error
    try:
        yield
    finally:
        ray.shutdown()
