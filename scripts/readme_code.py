"""Write the Python blocks of the README into one file, for the type checker.

python scripts/readme_code.py FILE
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> int:
    """Write the blocks in their order: later ones use what earlier ones define."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n\n".join(blocks), "utf-8")
    return 0 if blocks else 1


if __name__ == "__main__":
    sys.exit(main())
