"""What a chunk of a chat completion has, as far as it decides anything; and the two usual kinds."""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Raw, Struct

from surecall.text import decoder_of

from .wire import NOTHING


class _Function(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class Call(Struct, gc=False):
    """A piece of a call."""

    index: int
    id: str | None = None
    type: str | None = None
    function: _Function | None = None


class Delta(Struct, gc=False):
    """What a choice brings."""

    role: Raw = NOTHING
    content: str | None = None
    tool_calls: list[Call] | None = None
    function_call: Raw = NOTHING
    refusal: str | None = None


class Choice(Struct, gc=False):
    """One of the replies in a chunk."""

    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None
    message: Raw = NOTHING
    error: Raw = NOTHING


class Chunk(Struct, gc=False):
    """Any chunk."""

    choices: list[Choice] | None = None
    error: Raw = NOTHING
    usage: Raw = NOTHING
    model: str | None = None
    object: str | None = None


class _TextDelta(Struct, gc=False):
    content: Annotated[str, Meta(min_length=1)]
    tool_calls: None = None
    function_call: None = None


class _TextChoice(Struct, gc=False):
    delta: _TextDelta
    index: Literal[0] = 0
    finish_reason: None = None
    message: None = None
    error: None = None


class _TextChunk(Struct, gc=False):
    """A chunk that brings nothing but text; another cannot be decoded as one."""

    choices: tuple[_TextChoice]
    error: None = None
    usage: None = None
    object: Literal["chat.completion.chunk"] | None = None


_Blank: TypeAlias = Literal[""] | None


class _MoreArguments(Struct, gc=False):
    arguments: str
    name: _Blank = None
    thought_signature: None = None
    provider_specific_fields: None = None


class _MoreCall(Struct, gc=False):
    index: int
    function: _MoreArguments
    id: _Blank = None
    extra_content: None = None
    thought_signature: None = None
    provider_specific_fields: None = None


class _MoreDelta(Struct, gc=False):
    tool_calls: tuple[_MoreCall]
    content: _Blank = None
    function_call: None = None
    reasoning: _Blank = None
    reasoning_content: _Blank = None
    reasoning_details: None = None
    thinking_blocks: None = None
    extra_content: None = None
    provider_specific_fields: None = None


class _MoreChoice(Struct, gc=False):
    delta: _MoreDelta
    index: Literal[0] = 0
    finish_reason: None = None
    message: None = None
    error: None = None


class _MoreChunk(Struct, gc=False):
    """A chunk that only goes on with the arguments of a call; another cannot be decoded as one.

    So it has nothing either that a client would have to send back.
    """

    choices: tuple[_MoreChoice]
    error: None = None
    usage: None = None
    object: Literal["chat.completion.chunk"] | None = None


decode_chunk: Final = decoder_of(Chunk)
decode_text: Final = decoder_of(_TextChunk)
decode_texts: Final = decoder_of(list[_TextChunk])
decode_piece: Final = decoder_of(_MoreChunk)
decode_pieces: Final = decoder_of(list[_MoreChunk])
