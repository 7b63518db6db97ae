"""Write the reference pages that are made from the code; `--check` only compares.

python scripts/generate_reference.py [--check]
"""

import sys
from collections.abc import Callable
from pathlib import Path

from reference.catalogs import (
    experiment_page,
    faults_page,
    scenarios_page,
    text_formats_page,
    transforms_page,
)
from reference.interface import api_page
from reference.runs import (
    codes_page,
    events_page,
    metrics_page,
    options_page,
    providers_page,
    settings_page,
)

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
NOTE = "<!-- Made by scripts/generate_reference.py; changes here are lost. -->\n\n"

PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "codes.md": codes_page,
    "events.md": events_page,
    "faults.md": faults_page,
    "metrics.md": metrics_page,
    "options.md": options_page,
    "providers.md": providers_page,
    "scenarios.md": scenarios_page,
    "settings.md": settings_page,
    "text-formats.md": text_formats_page,
    "transforms.md": transforms_page,
    "../how-to/coming-from-the-experiment.md": experiment_page,
}


def page_text(name: str) -> str:
    """Return the whole text of a page as it must be on disk."""
    heading, _, rest = PAGES[name]().partition("\n")
    return f"{heading}\n\n{NOTE}{rest.strip()}\n"


def main() -> int:
    """Write all pages, or with `--check` say which are out of date."""
    stale: list[str] = []
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        path, text = REFERENCE / name, page_text(name)
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, "utf-8")
    if "--check" in sys.argv and stale:
        print(f"out of date: {', '.join(stale)}; run `make docs`")
        return 1
    print(f"{len(PAGES)} pages, {len(stale)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
