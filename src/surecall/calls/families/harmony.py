"""GPT-OSS's channels, also where a server dropped their tokens."""

from typing import Final, NamedTuple

from msgspec.structs import replace

from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt
from surecall.calls.formats import Found, Grade, OwnFormat, TextCall, Thinking, text_receipt
from surecall.calls.json_block import read_object
from surecall.calls.json_shapes import read_json_calls
from surecall.calls.source import Source
from surecall.calls.unmarked_json import code_call

_START: Final = "<|start|>assistant"
_CHANNEL: Final = "<|channel|>"
_CONSTRAIN: Final = "<|constrain|>"
_MESSAGE: Final = "<|message|>"
_FINAL: Final = "<|channel|>final<|message|>"
_ENDS: Final = ("<|end|>", "<|call|>", "<|return|>")
_BODY_ENDS: Final = (*_ENDS, "<|start|>", _CHANNEL)
# A body that is text for a person; nothing in it is a call.
_TEXT: Final = Thinking(
    ("<|end|>", "<|return|>", _START),
    kept=frozenset({_START}),
    ends_at_call=False,
    shown=True,
)
_HEADER_ENDS: Final = lazy_pattern(r"<\|(?:message|end|call|return|start)\|>")
_MAX_HEADER: Final = 512
_LONGEST_TOKEN: Final = len(_CONSTRAIN)

_TO: Final = (" to=", "to=functions.")
_ROLE: Final = lazy_pattern(r"\s*+(?:to=\S++)?+\s*+(?:json|code)?+\s*+")
_PART: Final = lazy_pattern(r"(\w++)(?:\s++to=\S++)?+\s*+(?:json|code|text)?+\s*+")
_STUB: Final = lazy_pattern(r"\w*+(?:\s++(?:to=\S*+|to?+)?+)?+(?:\s*+(?:json?+|js?+|code?+))?+\s*+")
_RECIPIENT: Final = lazy_pattern(r"\bto=([\w.:/-]++)")
_WORD: Final = lazy_pattern(r"\w*+")
_NOT_TOOLS: Final = frozenset({"assistant", "user", "system", "developer", "all"})
_NAMESPACE: Final = "functions."
_PARALLEL: Final = frozenset({"multi_tool_use.parallel", "multi_tool_use"})
_STRAY: Final = ("commentary", "analysis", "final")
_ANALYSIS: Final = Thinking(
    ("<|end|>", "<|return|>", _START, _FINAL), kept=frozenset({_START, _FINAL})
)


class _Header(NamedTuple):
    """What a header says, and how it ended."""

    text: str
    end: int
    """Where the body begins, or where the token stands that ended the header."""
    closed_by: str
    """`<|message|>`, another token, or nothing where none was found."""
    channel: str
    recipient: str


def _read_harmony(source: Source, at: int) -> Found | None:
    """Read one message, or the end of one when another follows."""
    if ended := source.starts_any(_ENDS, at):
        after = source.skip_space(at + len(ended))
        follows = source.starts_any((_START, _CHANNEL), after)
        return Found(end=after) if follows else None
    if not source.starts("<|", at) and not _is_role_call(source, at):
        return None
    header = _read_header(source, at)
    if header.closed_by != _MESSAGE:
        return _read_broken(source, at, header)
    if not _is_well_formed(header.text) or _is_foreign(header):
        return None
    if header.recipient:
        return _read_call(source, header)
    if header.channel == "analysis":
        return Found(end=header.end, opens=_ANALYSIS)
    return Found(end=header.end, opens=_TEXT)


HARMONY: Final = OwnFormat(
    "harmony", "Messages between tokens: reasoning, text for the user, and calls.",
    "gpt-oss, August 2025", trims=False, literals=(_START, _CHANNEL, _FINAL, *_TO, *_ENDS),
    reads=_read_harmony,
)  # fmt: skip


def _is_role_call(source: Source, at: int) -> bool:
    """Tell whether a recipient stands here that tokens of a header follow."""
    _, end = source.read_name(source.find("=", at) + 1)
    after = source.skip_space(end)
    if source.starts("json", after):
        after = source.skip_space(after + len("json"))
    return bool(source.starts_any((_CHANNEL, _CONSTRAIN, _MESSAGE), after))


def _is_foreign(header: _Header) -> bool:
    """Tell whether the header is one of the formats that have recipients but no channels."""
    return not header.channel and not header.recipient.startswith(_NAMESPACE)


def _read_header(source: Source, at: int) -> _Header:
    begun = at + len(source.starts_any((_START, _CHANNEL), at))
    last = at + _MAX_HEADER + _LONGEST_TOKEN
    match = _HEADER_ENDS.search(source.text, begun, last)
    if match is None and len(source.text) < last:
        source.at_end(len(source.text))
    end = match.start() if match else min(len(source.text), last)
    closed_by = match.group() if match else ""
    text = source.text[at:end]
    channel = recipient = ""
    for part in text.removeprefix(_START).split(_CHANNEL):
        for found in _RECIPIENT.finditer(part):
            is_complete = bool(closed_by) or not text.endswith(found.group())
            if is_complete and found[1] not in _NOT_TOOLS:
                recipient = found[1]
    parts = text.split(_CHANNEL)
    if len(parts) > 1 and (word := _WORD.match(parts[-1])):
        channel = word.group()
    end += len(_MESSAGE) if closed_by == _MESSAGE else 0
    return _Header(text, end, closed_by, channel, recipient)


def _is_well_formed(text: str, *, is_cut: bool = False) -> bool:
    """Tell whether this is a header, and not prose that mentions a token."""
    role, *parts = text.removeprefix(_START).split(_CHANNEL)
    if not _ROLE.fullmatch(role.partition(_CONSTRAIN)[0]):
        return is_cut and not parts and text.startswith(_START)
    plain = [part.partition(_CONSTRAIN)[0] for part in parts]
    last = _STUB if is_cut else _PART
    return all(map(_PART.fullmatch, plain[:-1])) and all(map(last.fullmatch, plain[-1:]))


def _read_broken(source: Source, at: int, header: _Header) -> Found | None:
    """Read a header without a body: cut off, or damaged."""
    started = header.text.startswith(_START)
    is_cut = not header.closed_by and source.final and header.end == len(source.text)
    if is_cut and _is_well_formed(header.text, is_cut=True):
        return Found(end=header.end, calls=_cut_call(source, header))
    if header.closed_by and not started:
        after = header.end + (len("<|end|>") if header.closed_by == "<|end|>" else 0)
        if not source.starts("<|start|>", after):
            return None
        return Found(end=after, reasoning=header.text.removeprefix(_CHANNEL).strip())
    if not started or not header.channel:
        return None
    body = at + header.text.rindex(_CHANNEL) + len(_CHANNEL) + len(header.channel)
    if header.channel == "analysis":
        return Found(end=body, opens=_ANALYSIS)
    return Found(end=body, opens=_TEXT)


def _cut_call(source: Source, header: _Header) -> tuple[TextCall, ...]:
    name, grade = _tool(source, header.recipient)
    return (TextCall(name=name, arguments="", state="cut"),) if grade else ()


def _tool(source: Source, recipient: str) -> tuple[str, Grade | None]:
    """Return the name a recipient stands for, and how sure it is that a tool is meant."""
    if recipient.startswith(_NAMESPACE):
        return recipient.removeprefix(_NAMESPACE), "marked"
    if recipient in _PARALLEL:
        return recipient, "marked"
    known = source.tools.resolve(recipient) if recipient else None
    return recipient, "damaged" if known else None


def _read_call(source: Source, header: _Header) -> Found:
    here = source.skip_space(header.end)
    while source.starts(_MESSAGE, here):
        here = source.skip_space(here + len(_MESSAGE))
    text, end, is_whole = _read_body(source, here)
    name, grade = _tool(source, header.recipient)
    if grade is None:  # a tool of the model's own that is not offered here
        return Found(end=end)
    if name in _PARALLEL:
        calls = read_json_calls(text, ended=is_whole, spend=source.spend_on_marks)
        return Found(end=end, calls=calls)
    call = TextCall(name=name, arguments=text or None, state="whole" if is_whole else "cut")
    is_ended = end < len(source.text) or bool(source.text[here + len(text) : end].strip())
    code = code_call(source.tools, text, is_ended=is_ended)
    if text and text[0] != "{" and code is not None and source.tools.resolve(name) == code.name:
        call = replace(code, name=name)
    if grade != "marked":
        call = replace(call, receipts=(_namespace_receipt(name),))
    return Found(end=end, calls=(call,), grade=grade)


def _namespace_receipt(name: str) -> Receipt:
    return text_receipt("add_namespace", name, _NAMESPACE + name, "it was left out")


def _read_body(source: Source, at: int) -> tuple[str, int, bool]:
    """Return the arguments, where the next message begins, and whether they are complete."""
    if source.at_end(at):
        return "", at, False
    end: int | None = at
    if source.char(at) == "{":
        end = source.value_end(at)
        if end is None:
            return source.text[at:], len(source.text), False
        after = source.skip_space(end)
        if source.at_end(after):
            return source.text[at:end], end, True
        if token := source.starts_any(_BODY_ENDS, after):
            return source.text[at:end], _skip_end(source, after, token), True
    stop, token = source.find_any(_BODY_ENDS, end)
    if stop < 0:
        if end > at and any(token.startswith(source.text[end:].lstrip()) for token in _BODY_ENDS):
            return source.text[at:end], len(source.text), True
        return source.text[at:].rstrip(), len(source.text), True
    return source.text[at:stop].rstrip(), _skip_end(source, stop, token), True


def _skip_end(source: Source, at: int, token: str) -> int:
    """Return where the text goes on behind the token that ended a call."""
    if token not in _ENDS:
        return at
    at += len(token)
    here = source.skip_space(at)
    word = "" if source.at_end(here) else source.starts_any(_STRAY, here)
    after = here + len(word)
    if word and (source.at_end(after) or source.starts("<|", after)):
        return after
    return at


_BARE_ANALYSIS: Final = "analysis"
_BARE_ROLE: Final = "assistant"
_BARE_RECIPIENT: Final = "to=functions."
_CALL: Final = f"commentary {_BARE_RECIPIENT}"
_ANSWER: Final = "assistantfinal"


def _read_stripped_harmony(source: Source, at: int) -> Found | None:
    """Read one call; its name must be known."""
    call = at + len(_BARE_ROLE)
    return _read_stripped_call(source, call) if source.starts(_CALL, call) else None


STRIPPED_HARMONY: Final = OwnFormat(
    "harmony", "A call after what is left of its header, in the middle of a text.",
    "gpt-oss behind servers that drop its tokens, August 2025",
    literals=(f"{_BARE_ROLE}commentary",), reads=_read_stripped_harmony,
)  # fmt: skip


def _read_stripped_harmony_start(source: Source, at: int) -> Found | None:
    """Read reasoning when the word for it is glued to it and a later header proves it."""
    if source.starts(_BARE_RECIPIENT, at):
        return _read_stripped_call(source, at, _BARE_RECIPIENT)
    if not source.starts(_BARE_ANALYSIS, at):
        return _read_stripped_call(source, at) if source.starts(_CALL, at) else None
    begun = at + len(_BARE_ANALYSIS)
    first = source.char(begun)
    if not (first.isalnum() or first in ('"', "*", "<", "{", "(")):
        return None
    # A second start without a header between them proves that the word is no header.
    stop, word = source.find_any((_ANSWER, _BARE_ROLE + _CALL, f"\n{_BARE_ANALYSIS}"), begun)
    if stop < 0 or word[0] == "\n":
        return None
    reasoning = source.text[begun:stop]
    if word == _ANSWER:
        return Found(end=stop + len(word), reasoning=reasoning, grade="damaged")
    found = _read_stripped_call(source, stop + len(_BARE_ROLE))
    if found is None:
        return None
    return Found(end=found.end, calls=found.calls, reasoning=reasoning, grade="damaged")


STRIPPED_HARMONY_START: Final = OwnFormat(
    "harmony", "Reasoning at the start of a text, up to the first call or the answer.",
    "gpt-oss behind servers that drop its tokens, August 2025", line_start=True,
    literals=(_BARE_ANALYSIS, "commentary", _BARE_RECIPIENT), reads=_read_stripped_harmony_start,
)  # fmt: skip


def _read_stripped_call(source: Source, at: int, head: str = _CALL) -> Found | None:
    name, end = source.read_name(at + len(head))
    here = source.skip_space(end)
    if source.at_end(here):
        return None
    for word in ("commentary", "json"):
        if source.starts(word, here):
            here = source.skip_space(here + len(word))
    if not name or source.char(here) != "{" or source.tools.resolve(name) is None:
        return None
    receipt = text_receipt(
        "restore_header", source.text[at:here], name, "the tokens of the header were missing"
    )
    call, stop = read_object(source, name, here)
    call = replace(call, receipts=(receipt,))
    if call.state == "cut":
        return Found(end=stop, calls=(call,), grade="damaged")
    after = source.skip_space(stop)
    if not source.at_end(after) and source.starts(_ANSWER, after):
        stop = after + len(_ANSWER)
    return Found(end=stop, calls=(call,), grade="damaged")
