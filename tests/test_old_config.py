"""A configuration file for an earlier surecall (commit a28da04) still says the same."""

import json
import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from surecall.loop import resolve_options
from surecall.models.config import Config, load_config
from surecall.models.profiles import resolve_capabilities
from surecall.reading.transforms import FAMILIES, Family, TransformRegistry

FILE: Final = Path(__file__).with_name("old_config") / "surecall.toml"
TABLE: Final = tomllib.loads(FILE.read_text("utf-8"))
FOLDERS: Final = ("cache_dir", "evals_dir", "journal_dir", "trace_dir")
FAMILY_OPTIONS: Final[dict[Family, str]] = {
    "messages": "message_transforms",
    "tools": "tool_transforms",
    "replies": "response_transforms",
    "calls": "tool_call_transforms",
    "results": "tool_result_transforms",
}


@pytest.fixture
def config() -> Config:
    """Read the file."""
    return load_config(path=FILE, environ={})


def plain(record: Any) -> dict[str, Any]:
    """Return the fields of a record as TOML has them."""
    return json.loads(msgspec.json.encode(record, enc_hook=str))


def test_every_old_setting_is_read(config: Config) -> None:
    """Each with the value in the file; folders are relative to the file."""
    found = plain(config)
    wanted = TABLE | {name: str(FILE.parent / TABLE[name]) for name in FOLDERS}
    assert {name: found[name] for name in wanted} == wanted


def test_every_old_option_is_accepted(config: Config) -> None:
    """With every rule of that version switched off by its name; `true` is `all` today."""
    found = plain(resolve_options(config.options).options)
    meant = TABLE["options"] | {"text_formats": "all"}
    assert TABLE["options"]["text_formats"] is True
    assert {name: found[name] for name in meant} == meant


def test_every_old_capability_is_known(config: Config) -> None:
    """Those that decide something and those that are only worth knowing."""
    resolved = resolve_capabilities(config.provider, config.model, overrides=config.capabilities)
    found = plain(resolved.capabilities) | plain(resolved.findings)
    assert {name: found[name] for name in TABLE["capabilities"]} == TABLE["capabilities"]


def test_every_old_transform_is_built_in() -> None:
    """In the same family."""
    registry = TransformRegistry.builtin()
    assert FAMILY_OPTIONS.keys() <= set(FAMILIES)
    for family, option in FAMILY_OPTIONS.items():
        assert set(TABLE["options"][option]) <= set(registry.names(family))
