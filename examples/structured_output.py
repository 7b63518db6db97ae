"""A value of your own type out of a reply that is almost JSON.

python examples/structured_output.py
"""

from dataclasses import dataclass
from typing import Literal

import surecall


@dataclass
class Invoice:
    """What a mail asks to be paid."""

    number: str
    total: float
    currency: Literal["EUR", "USD"] = "EUR"


MAIL = "Please pay invoice A-17 over 249,90 euros until Friday."
REPLY = """Here is the invoice:
```json
{'number': 'A-17', "total": 249.90, // with tax
}
```"""

if __name__ == "__main__":
    script = surecall.ScriptedTransport([REPLY])
    result = surecall.run_sync(
        f"Read the invoice: {MAIL}", model="demo", output=Invoice, transport=script
    )
    assert isinstance(result, surecall.OutputResult)
    print(result.output)
