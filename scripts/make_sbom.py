"""Write the bill of materials of surecall in CycloneDX, from the hashed requirement files.

python scripts/make_sbom.py [FILE]

What the package needs is `required`, what its extras need is `optional`, and what only tests,
checks and pages need is `excluded`. The hashes of a component are those of all its files on the
package index, and the file is the same for the same requirements.
"""

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

from surecall.base.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^ ;\\]+)(?: *; *(?P<marker>[^\\\n]+))?")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Pin(NamedTuple):
    """One pinned release, and the files it may be installed from."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Return the address of the release that all tools know."""
        return f"pkg:pypi/{self.name}@{self.version}"


def normalize(name: str) -> str:
    """Return a name as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(text: str) -> Iterator[Pin]:
    """Yield the pins of a requirement file."""
    for block in re.split(r"\n(?=\S)", text.strip()):
        found = PIN.match(block)
        if found:
            marker = (found["marker"] or "").strip()
            hashes = tuple(HASH.findall(block))
            yield Pin(normalize(found["name"]), found["version"], marker, hashes)


def requirement_name(line: str) -> str:
    """Return the package that a requirement names."""
    found = re.match(r"[\w.-]+", line)
    return normalize(found.group()) if found else ""


def needs_of(name: str) -> list[str]:
    """Name what an installed package needs without its extras; nothing if it is not here."""
    try:
        lines = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    return sorted({requirement_name(line) for line in lines if "extra ==" not in line})


def close_over(names: Iterable[str]) -> set[str]:
    """Return packages with all that they need."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs_of(name)
    return found


def describe_pin(pin: Pin, scope: str) -> dict[str, Any]:
    """Return the component for a pin."""
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": pin.purl,
        "name": pin.name,
        "version": pin.version,
        "scope": scope,
        "purl": pin.purl,
        "hashes": [{"alg": "SHA-256", "content": value} for value in pin.hashes],
    }
    if pin.marker:
        component["properties"] = [{"name": "surecall:marker", "value": pin.marker}]
    return component


def make_document(project: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """Return the document for a project and the texts of its requirement files."""
    pins = sorted({pin.purl: pin for text in files.values() for pin in read_pins(text)}.values())
    required = {pin.name for pin in read_pins(files["base.txt"])}
    extras = (line for lines in project["optional-dependencies"].values() for line in lines)
    optional = close_over(map(requirement_name, extras))
    refs: dict[str, list[str]] = {}
    for pin in pins:
        refs.setdefault(pin.name, []).append(pin.purl)

    def refs_of(names: Iterable[str]) -> list[str]:
        return [ref for name in sorted(set(names)) for ref in refs.get(name, [])]

    def scope(name: str) -> str:
        return "required" if name in required else "optional" if name in optional else "excluded"

    own = f"pkg:pypi/{project['name']}@{VERSION}"
    direct = refs_of(map(requirement_name, project["dependencies"]))
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": project["name"],
                "version": VERSION,
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
            }
        },
        "components": [describe_pin(pin, scope(pin.name)) for pin in pins],
        "dependencies": [
            {"ref": own, "dependsOn": direct},
            *({"ref": pin.purl, "dependsOn": refs_of(needs_of(pin.name))} for pin in pins),
        ],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{serial}"}


def main() -> int:
    """Write the document to the file, or to `dist`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    files = {path.name: path.read_text("utf-8") for path in (ROOT / "requirements").glob("*.txt")}
    document = make_document(project, files)
    target = Path(*sys.argv[1:2] or [str(ROOT / "dist" / f"surecall-{VERSION}.cdx.json")])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    print(f"{target.name}: {len(document['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit(main())
