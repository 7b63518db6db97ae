"""How likely the first token of a reply was, and what else it could have been."""

from typing import Any

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.text import decode


def parse_first_token(body: bytes) -> dict[str, float]:
    """Return the log-probabilities of what the first token could be; nothing without them."""
    try:
        document = decode(body, surrogates="replace")
    except JSONTextError:
        return {}
    choice = next(iter(as_list(as_fields(document).get("choices"))), None)
    tokens = as_list(as_fields(as_fields(choice).get("logprobs")).get("content"))
    first = as_fields(next(iter(tokens), None))
    found: dict[str, float] = {}
    for item in (*as_list(first.get("top_logprobs")), first):
        fields = as_fields(item)
        token: Any = fields.get("token")
        logprob: Any = fields.get("logprob")
        if isinstance(token, str) and isinstance(logprob, int | float):
            found.setdefault(token, float(logprob))
    return found
