"""Shared by all pages: one sheet, pieces of script, and names with the hash of their content.

Pieces of script have no imports: they are joined, in order, inside one function, so that a page
can hold them or name them.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Final

__all__ = ["SHARED_SCRIPTS", "SHEET", "hash_text", "join_scripts", "read_asset"]

SHEET: Final = "surecall.css"
"""The one sheet of all pages."""
SHARED_SCRIPTS: Final = ("dom.js", "figures.js", "marks.js", "lane.js", "looks.js", "keys.js")
"""Pieces that every page can use, in the order in which they are joined."""

_HASH_CHARS: Final = 16


@cache
def read_asset(name: str, package: str = __name__) -> str:
    """Return the text of a file in the folder `assets` of a package."""
    found = resources.files(package).joinpath("assets", name)
    # A browser hashes what it parsed, and it parses every line end as a line feed.
    return found.read_text("utf-8").replace("\r\n", "\n")


def join_scripts(pieces: Iterable[str]) -> str:
    """Return one script of several pieces, which see each other and are seen by nobody else."""
    joined = "\n".join(pieces)
    return f'(() => {{\n"use strict";\n{joined}\n}})();\n'


def hash_text(text: str) -> str:
    """Return the part of a file's name that changes with its content."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_HASH_CHARS]
