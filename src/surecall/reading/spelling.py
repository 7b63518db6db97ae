"""Numbers for text fields, kept as the model spelled them: `1.10` is a version, `007` a code."""

from typing import Any

from msgspec.structs import replace

from surecall.errors import Code, JSONTextError
from surecall.jsontext import apply_patch, number_spellings
from surecall.records import ErrorDetail, Receipt
from surecall.schema import Coerced, SchemaChecker

__all__ = ["respell_numbers"]


def respell_numbers(text: str, fitted: Coerced, checker: SchemaChecker) -> Coerced:
    """Return fitted arguments in which every number that became text reads as it does in `text`."""
    if not any(map(_is_spelled_anew, fitted.receipts)):
        return fitted
    known = number_spellings(text)
    receipts: list[Receipt] = []
    changes: list[dict[str, Any]] = []
    errors: list[ErrorDetail] = []
    for receipt in fitted.receipts:
        spellings: list[str] = []
        if _is_spelled_anew(receipt):
            spellings = known.get((receipt.before.__class__.__name__, receipt.before), [])
        if len(spellings) > 1:
            errors.append(_unclear(receipt.place, spellings))
        if len(spellings) == 1 and spellings[0] != receipt.after:
            changes.append({"op": "replace", "path": receipt.place, "value": spellings[0]})
            receipts.append(replace(receipt, after=spellings[0]))
        else:
            receipts.append(receipt)
    if errors:
        return Coerced(fitted.value, fitted.receipts, (*fitted.errors, *errors))
    if not changes:
        return fitted
    try:
        value = apply_patch(fitted.value, changes)
    except JSONTextError:  # the place has another name by now
        errors = [_unclear(change["path"], [change["value"]]) for change in changes]
        return Coerced(fitted.value, fitted.receipts, (*fitted.errors, *errors))
    return Coerced(value, tuple(receipts), fitted.errors or checker.check(value))


def _is_spelled_anew(receipt: Receipt) -> bool:
    return receipt.rule == "write_as_text" and receipt.before.__class__ in (int, float)


def _unclear(place: str, spellings: list[str]) -> ErrorDetail:
    shown = " or ".join(spellings[:4])
    message = f"{place} must be a string, got a number that was spelled {shown}"
    return ErrorDetail(Code.ARGUMENTS_INVALID, message, "Send the text in quotes.", place)
