"""Transforms of parsed calls, before their arguments are read."""

from msgspec.structs import replace

from surecall.records import RawCall, Receipt, clip

__all__ = ["assistant_tool_calls_arguments_blank_to_empty_object"]


def assistant_tool_calls_arguments_blank_to_empty_object(
    calls: list[RawCall],
) -> tuple[list[RawCall], tuple[Receipt, ...]]:
    """Read blank argument text as an empty object."""
    receipts: list[Receipt] = []
    result: list[RawCall] = []
    for index, call in enumerate(calls):
        arguments = call.arguments
        if isinstance(arguments, str) and not arguments.strip():
            receipts.append(
                Receipt(
                    rule="assistant_tool_calls_arguments_blank_to_empty_object",
                    place=f"/calls/{index}/arguments",
                    before=clip(arguments),
                    after="{}",
                    why="no argument text was sent",
                )
            )
            call = replace(call, arguments="{}")
        result.append(call)
    return (result, tuple(receipts)) if receipts else (calls, ())
