"""A client's conversation: from contents to messages."""

from typing import Any, Final

from surecall.errors import Code, RequestError, did_you_mean
from surecall.records import Message, ToolCall

from .members import as_dict, as_list, member, shown
from .names import own_name
from .parts import parse_part
from .results import parse_response

__all__ = ["parse_contents", "parse_instruction"]

_ROLES: Final = ("function", "model", "user")


def parse_instruction(instruction: Any) -> list[Message]:
    """Turn the system instruction into a message, if there is one."""
    if isinstance(instruction, str):
        return [Message("system", instruction)]
    parts = [_parsed(item, "systemInstruction") for item in _parts(instruction)]
    return [Message("system", _content(parts))] if parts else []


def parse_contents(contents: Any) -> list[Message]:
    """Turn contents into messages; each result becomes one of its own.

    Calls without an id are given one, and results without one answer the first call of the turn
    before that has their name and no result yet.

    Raises:
        RequestError: `INVALID_MESSAGE`, naming the place of what is wrong.
    """
    if isinstance(contents, dict):
        contents = [contents]
    if not isinstance(contents, list) or not contents:
        raise RequestError(
            Code.INVALID_REQUEST,
            f"contents is {shown(contents)}.",
            hint="Send a list with at least one content.",
        )
    return _Conversation().parse(as_list(contents))


class _Conversation:
    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._open: list[tuple[str, str]] = []
        self._numbered = 0

    def parse(self, contents: list[Any]) -> list[Message]:
        for index, item in enumerate(contents):
            place = f"contents[{index}]"
            content = as_dict(item)
            role = content.get("role") or "user"
            if role not in _ROLES:
                hint = did_you_mean(role, _ROLES) if isinstance(role, str) else "Use text."
                raise _invalid(f"{place} has the role {shown(role)}.", hint)
            if role == "model":
                self._take_model(_parts(content), place)
            else:
                self._take_user(_parts(content), place)
        return self._messages

    def _take_user(self, parts: list[dict[str, Any]], place: str) -> None:
        """Add the results of a turn first, then what the user says."""
        said: list[dict[str, Any]] = []
        has_results = False
        for index, part in enumerate(parts):
            here = f"{place}.parts[{index}]"
            response = member(part, "functionResponse")
            if isinstance(response, dict):
                has_results = True
                self._messages.append(self._parse_result(as_dict(response), here))
            else:
                said.append(_parsed(part, here))
        if said or not has_results:
            self._messages.append(Message("user", _content(said)))

    def _parse_result(self, response: dict[str, Any], place: str) -> Message:
        name, call_id = response.get("name"), response.get("id")
        name = own_name(name) if isinstance(name, str) else ""
        if not isinstance(call_id, str) or not call_id:
            call_id = next((held for held, called in self._open if called == name), None)
            if call_id is None:
                raise _invalid(
                    f"{place} is the result of {name!r}, which was not called.",
                    "Put it behind the content with its functionCall.",
                )
        self._open = [entry for entry in self._open if entry[0] != call_id]
        text, is_error = parse_response(response.get("response") or {})
        extra = {"is_error": True} if is_error else {}
        shown = [_parsed(part, place) for part in _parts(response)]
        content: Any = [{"type": "text", "text": text}, *shown] if shown else text
        return Message("tool", content, tool_call_id=call_id, extra=extra)

    def _take_model(self, parts: list[dict[str, Any]], place: str) -> None:
        said: list[dict[str, Any]] = []
        thoughts: list[str] = []
        calls: list[ToolCall] = []
        extra: dict[str, Any] = {}
        self._open = []
        for index, part in enumerate(parts):
            here = f"{place}.parts[{index}]"
            signature = member(part, "thoughtSignature")
            call = member(part, "functionCall")
            if isinstance(call, dict):
                calls.append(self._parse_call(as_dict(call), signature, here))
                continue
            if isinstance(signature, str) and signature:
                extra["thought_signature"] = signature
            if part.get("thought") is True:
                thoughts += [part["text"]] if isinstance(part.get("text"), str) else []
            elif part.get("text") != "":
                said.append(_parsed(part, here))
        if thoughts:
            extra["reasoning_content"] = "".join(thoughts)
        content: Any = said
        if all(part["type"] == "text" for part in said):
            content = "".join(part["text"] for part in said) or None
        self._messages.append(Message("assistant", content, tuple(calls), extra=extra))

    def _parse_call(self, call: dict[str, Any], signature: Any, place: str) -> ToolCall:
        name, args, call_id = call.get("name"), call.get("args"), call.get("id")
        if not isinstance(name, str) or not name:
            raise _invalid(f"{place} is a call of {shown(name)}.", "Name the function.")
        if args is not None and not isinstance(args, dict):
            raise _invalid(f"{place} has the args {shown(args)}.", "Use an object.")
        if not isinstance(call_id, str) or not call_id:
            self._numbered += 1
            call_id = f"call_{self._numbered}"
        name = own_name(name)
        self._open.append((call_id, name))
        is_signed = isinstance(signature, str) and signature
        extra = {"thought_signature": signature} if is_signed else {}
        arguments = as_dict(args)
        return ToolCall(id=call_id, name=name, arguments=arguments, raw=arguments, extra=extra)


def _parts(content: Any) -> list[dict[str, Any]]:
    return [as_dict(part) for part in as_list(as_dict(content).get("parts"))]


def _parsed(part: dict[str, Any], place: str) -> dict[str, Any]:
    found = parse_part(part)
    if found is None:
        kinds = ", ".join(sorted(part)) or "empty"
        raise _invalid(f"{place} is {kinds}.", "Send text, inlineData or fileData.")
    return found


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return plain text where nothing more was said, since more servers take that."""
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _invalid(message: str, hint: str) -> RequestError:
    return RequestError(Code.INVALID_MESSAGE, message, hint=hint)
