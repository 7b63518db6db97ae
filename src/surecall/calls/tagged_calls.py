"""Calls whose arguments are tagged text values: one call, or all calls of a section."""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from surecall.base.records import Receipt
from surecall.text import repair_json

from .formats import Found, TextCall, add_receipts, text_receipt
from .names import parameter_names
from .source import NeedMore, Source
from .tags import (
    Grammar,
    Tag,
    has_only_attributes,
    is_near,
    leaves_traces,
    skip_debris,
)
from .text_values import (
    ARGUMENT_CONTAINERS,
    STRAY_CLOSERS,
    Builder,
    Padding,
    Parameter,
    ValueEnd,
    build_typed,
    find_value_end,
    lone_container,
    strip_padding,
)

_NAMESPACE: Final = "antml" + ":"
RESULT_MARKERS: Final = (
    "<tool_response", "<tool_result", "<function_result", "<function_output", "<observation>",
    "<|tool_response|>", *(f"<{_NAMESPACE}function_{word}" for word in ("result", "output")),
)  # fmt: skip
"""What a model writes when it makes up the result of its own call."""

_MAX_OTHER_CHARS: Final = 1024
_MAX_TAG_CHARS: Final = 200
_WORD: Final = re.compile(r"[^\W\d][\w.-]*+")
_TAG_END: Final = re.compile(r"[^\n<>]{0,60}+(?:>|</)")
_CLOSERS: Final = ("close_section", "close_call", "close_value")
_CDATA: Final = ("<![CDATA[", "]]>")
_CDATA_STARTS: Final = ("<![", "![CDATA", "<!CDATA", "<[CDATA", "[CDATA[", "<![CDATA")
_TWO_SECTIONS: Final = "two sections in a row are one value only around a closer inside it"
_LABELS: Final = frozenset({"name", "tool"})
_VALUE: Final = "value"
_VALUE_ATTRIBUTES: Final = frozenset({*_LABELS, _VALUE, "string", "type"})
_ABOUT_THE_CALL: Final = frozenset({"id", "index", "type", "string"})
"""Attributes of a call's tag that are no arguments, unless the tool has such a parameter."""
_SWALLOWED: Final = "A value holds tags of the call's own kind, so one of them may be damaged."
_NOT_CLOSED: Final = "Something else than a closing tag stands behind the arguments."
_LOSSY: Final = frozenset({"key_without_value", "missing_closing_tag"})
"""What was to come before the tag that is missing cannot be known."""


class Block(NamedTuple):
    """A call that was read, and where it ends."""

    call: TextCall
    end: int


def cut_call(source: Source, name: str, at: int) -> Block:
    """Return the call that the end of the text cut off; its arguments begin at `at`."""
    if not source.final:
        raise NeedMore
    return Block(TextCall(name=name, arguments=source.text[at:], state="cut"), len(source.text))


def read_calls(
    source: Source,
    grammar: Grammar,
    at: int,
    *,
    build: Builder = build_typed,
    padding: Padding = "none",
) -> tuple[list[TextCall], int]:
    """Read calls in a row, and the tag that closes their section if there is one."""
    calls: list[TextCall] = []
    begin = end = at
    closed = set[str]()
    while True:
        here = skip_debris(source, end)
        if source.at_end(here):
            return calls, len(source.text) if calls else end
        tag = grammar.tag(source, here)
        if tag is None:
            cut = grammar.is_begun(source, here)
            return calls, len(source.text) if cut and calls else end
        if tag.kind == "open_call" and not closed:
            block = read_block(source, grammar, tag, build=build, padding=padding)
            if block is None:
                return calls, end
            calls.append(block.call)
            begin, end = here, block.end
        elif calls and tag.kind in _CLOSERS:
            written = source.text[tag.start : tag.end]
            is_repeated = written in closed or source.text.endswith(written, begin, end)
            if is_repeated or tag.kind == "close_value":
                calls[-1:] = add_receipts(
                    calls[-1:], text_receipt("stray_closing_tag", written, "")
                )
            if tag.kind == "close_section":
                closed.add(written)
            end = tag.end
        else:
            return calls, end


def have_arguments(calls: Sequence[TextCall]) -> bool:
    """Tell whether no call has mere text where its arguments should be."""
    return all(
        call.state == "cut"
        or not isinstance(call.arguments, str)
        or call.arguments.lstrip()[:1] in ("{", "<")
        for call in calls
    )


def found_calls(
    source: Source, calls: Sequence[TextCall], end: int, *, marked: bool = True
) -> Found:
    """Return calls as they were found, without the result that the model made up after them."""
    here = source.skip_space(end)
    invented = not source.at_end(here) and bool(source.starts_any(RESULT_MARKERS, here))
    return Found(
        end=here if invented else end,
        calls=tuple(calls),
        grade="marked" if marked else "damaged",
        ends_message=invented,
    )


def read_block(
    source: Source,
    grammar: Grammar,
    head: Tag,
    *,
    build: Builder = build_typed,
    padding: Padding = "none",
) -> Block | None:
    """Read the parameters after the tag that opens a call, up to its end."""
    if not head.label:
        return None
    return _BlockReader(source, grammar, head, padding).run(build)


class _BlockReader:
    def __init__(self, source: Source, grammar: Grammar, head: Tag, padding: Padding) -> None:
        self._source = source
        self._grammar = grammar
        self._head = head
        self._padding: Padding = padding
        self._parameters: list[Parameter] = []
        self._receipts: list[Receipt] = []
        self._properties = parameter_names(source.tools.parameters(head.label))
        self._is_certain = True
        self._doubt = ""
        self._is_left_open = False
        """Whether the last value has no closing tag of its own, only that of the call."""
        if head.rule:
            self._note(head.rule, head.start, head.end, head.label)

    def run(self, build: Builder) -> Block | None:
        source, head = self._source, self._head
        if head.closed:
            return self._whole(build, head.end)
        here = head.end
        while True:
            here = skip_debris(source, here)
            if source.at_end(here):
                return self._unclosed(build)
            tag = self._grammar.tag(source, here)
            if tag is None:
                tag = self._property_tag(here)
            if tag is None:
                return self._other_body(here, build)
            if tag.kind == "open_value":
                resume = self._read_value(tag)
                if resume is None:
                    return cut_call(source, head.label, head.end)
                here = resume
            elif tag.kind == "close_value":
                self._note("stray_closing_tag", tag.start, tag.end, "")
                here = tag.end
            elif tag.kind == "close_call":
                return self._whole(build, tag.end)
            elif tag.kind == "close_section":
                self._note("missing_closing_tag", tag.start, tag.end, "the call ends here")
                return self._whole(build, tag.start)
            else:
                if not self._parameters:
                    call = TextCall(name=head.label, arguments="", state="cut")
                    return Block(call, here)
                self._note("missing_closing_tag", tag.start, tag.end, "the call ends before this")
                return self._whole(build, here)

    def _unclosed(self, build: Builder) -> Block:
        """Return a call whose text ends behind a closed value: whole if the model stopped there."""
        cut = cut_call(self._source, self._head.label, self._head.end)
        if not self._parameters or not self._is_certain or self._is_left_open:
            return cut
        self._note("missing_closing_tag", cut.end, cut.end, "the call ends with the text")
        call = self._whole(build, cut.end).call
        return Block(replace(call, state="cut", unclosed=call.arguments), cut.end)

    def _whole(self, build: Builder, end: int) -> Block:
        name = self._head.label
        self._take_attributes()
        arguments, receipts = build(self._source, name, self._parameters)
        if not self._is_certain:
            arguments = self._source.text[self._head.end : end] or self._written(self._head)
        call = TextCall(
            name=name,
            arguments=arguments,
            state="whole" if self._is_certain else "unreadable",
            may_go_on=self._is_left_open,
            doubt=self._doubt,
            id=self._head.attributes.get("id") or self._head.attributes.get("index"),
            receipts=(*self._receipts, *receipts),
        )
        return Block(call, end)

    def _take_attributes(self) -> None:
        """Take arguments that the tag of the call has as attributes, `<invoke name="N" k="V"/>`.

        Next to parameters of their own, only attributes that can be nothing else are arguments.
        """
        head, given = self._head, {parameter.key for parameter in self._parameters}
        for key, text in () if self._grammar.has_tokens else head.attributes.items():
            is_known = key in ARGUMENT_CONTAINERS or key in self._properties
            is_about_call = key in _ABOUT_THE_CALL and (given or not is_known)
            if key in _LABELS or is_about_call or (given and not is_known):
                continue
            is_clear = not given or not (key in given or key in ARGUMENT_CONTAINERS)
            is_clear = is_clear and has_only_attributes(self._written(head))
            self._is_certain = self._is_certain and is_clear
            self._note("attribute_arguments", head.start, head.end, key)
            self._parameters.append(Parameter(key, text, head))

    def _written(self, tag: Tag) -> str:
        return self._source.text[tag.start : tag.end]

    def _read_value(self, tag: Tag) -> int | None:
        if tag.rule:
            self._note(tag.rule, tag.start, tag.end, tag.label)
        if tag.closed:
            if tag.label:
                self._parameters.append(Parameter(tag.label, self._text_of(tag, ""), tag))
            self._is_certain = self._is_certain and bool(tag.label or not tag.attributes)
            return tag.end
        self._is_certain = self._is_certain and bool(tag.label)
        tag = self._skip_repeated(tag)
        if self._source.starts(_CDATA[0], skip := skip_debris(self._source, tag.end)):
            return self._read_cdata(tag, skip + len(_CDATA[0]))
        seen = {parameter.key for parameter in self._parameters} | {tag.label}

        def expects(key: str) -> bool:
            known = not self._properties or key in self._properties
            return bool(key) and key not in seen and known

        found = find_value_end(self._source, self._grammar, tag.end, tag.word, expects)
        if found is None:
            return None
        text = self._source.text[tag.end : found.end]
        self._is_left_open = found.rule == "missing_closing_tag"
        if self._is_left_open:
            text = self._drop_wrong_closer(text, tag)
        if found.rule:
            self._note(found.rule, found.end, max(found.resume, found.end), tag.label)
        is_certain = found.certain and not self._swallows_key(found, seen)
        self._is_certain = self._is_certain and is_certain
        if _leaves_cdata(text):
            self._note("missing_closing_tag", tag.end, found.end, tag.label)
        if leaves_traces(text, self._grammar.words) or _leaves_cdata(text):
            self._doubt = _SWALLOWED
        text = self._text_of(tag, strip_padding(text, self._padding))
        self._parameters.append(Parameter(tag.label, text, tag))
        return found.resume

    def _swallows_key(self, found: ValueEnd, seen: set[str]) -> bool:
        """Tell whether a value goes on behind a closing tag with what may be a parameter's tag.

        One that is damaged would take its parameter into the value before it.
        """
        if found.passed < 0:
            return False
        rest = self._source.text[found.passed : min(found.end, found.passed + _MAX_TAG_CHARS)]
        line = rest.lstrip().partition("\n")[0]
        missing = set(self._properties) - seen
        return any(
            word.group() in missing and _TAG_END.match(line, word.end())
            for word in _WORD.finditer(line)
        )

    def _text_of(self, tag: Tag, inner: str) -> str:
        """Return the text of a value, which may be an attribute: `<param name="K" value="V"/>`."""
        if inner.strip():
            self._is_certain = self._is_certain and _VALUE not in tag.attributes
            return inner
        if tag.closed or _VALUE in tag.attributes:
            is_clear = has_only_attributes(self._written(tag))
            is_clear = is_clear and tag.attributes.keys() <= _VALUE_ATTRIBUTES
            self._is_certain = self._is_certain and (is_clear or not tag.attributes)
        if _VALUE not in tag.attributes:
            return inner
        self._note("attribute_arguments", tag.start, tag.end, tag.label)
        return tag.attributes[_VALUE]

    def _skip_repeated(self, tag: Tag) -> Tag:
        """Return the tag of a value, or the same tag right behind it."""
        written = self._written(tag)
        here = skip_debris(self._source, tag.end)
        if self._source.at_end(here) or not self._source.starts(written, here):
            return tag
        self._note("doubled_word", tag.start, tag.end, written)
        return tag._replace(start=here, end=here + len(written))

    def _read_cdata(self, tag: Tag, at: int) -> int | None:
        text = ""
        while True:
            closed = self._source.find(_CDATA[1], at)
            if closed < 0:
                return None
            text += self._source.text[at:closed]
            here = closed + len(_CDATA[1])
            if self._source.at_end(here) or not self._source.starts(_CDATA[0], here):
                break
            at = here + len(_CDATA[0])
            if not (text.endswith("]]") and self._source.starts(">", at)):
                # XML needs two sections only for the closer of a section inside one.
                self._receipts.append(
                    text_receipt("doubled_word", text, tag.label, _TWO_SECTIONS, lossless=False)
                )
        self._parameters.append(Parameter(tag.label, text, tag))
        here = skip_debris(self._source, here)
        closer = None if self._source.at_end(here) else self._grammar.tag(self._source, here)
        return closer.end if closer is not None and closer.kind == "close_value" else here

    def _drop_wrong_closer(self, text: str, tag: Tag) -> str:
        """Take off what stands for the closing tag: one of another word, or a line's end."""
        bare = text.rstrip()
        opened = bare.rfind("</")
        closes = opened >= 0 and bare.endswith(">")
        if closes and self._grammar.pairs_words:
            word = bare[opened + 2 : -1]
            closes = f"<{word}" not in text and _is_word(word)
        elif closes:
            closer = self._grammar.tag(self._source, tag.end + opened)
            closes = (
                len(bare) - opened < _MAX_TAG_CHARS
                and is_near(bare[opened + 2 : -1], self._grammar.words)
                if closer is None
                else closer.kind == "close_call"
            )
        if closes:
            after = f"</{tag.word}>"
            self._receipts.append(text_receipt("wrong_closing_tag", bare[opened:], after))
            return bare[:opened]
        if self._padding == "none" and text[:1] != "\n" and "\n" in text[len(bare) :]:
            return text[: text.rindex("\n")]
        return text

    def _property_tag(self, at: int) -> Tag | None:
        """Read `<room>` as a parameter, where the tool has one of that name."""
        grammar = self._grammar.with_properties(self._properties)
        tag = None if grammar is None else grammar.tag(self._source, at)
        if grammar is None or tag is None or tag.kind != "open_value":
            return None
        self._grammar = grammar
        self._padding = "pair"
        self._note("property_tag", tag.start, tag.end, tag.label)
        return tag

    def _other_body(self, at: int, build: Builder) -> Block | None:
        """Read what is no tag: a JSON object, or something that only a person can read."""
        source, head = self._source, self._head
        if source.char(at) == "{" and not self._parameters:
            return self._json_body(at)
        if self._grammar.is_begun(source, at):
            return cut_call(source, head.label, head.end)
        if self._parameters and source.final and STRAY_CLOSERS.fullmatch(source.text, at):
            return self._unclosed(build)
        stop = self._grammar.stops.search(source.text, at, at + _MAX_OTHER_CHARS)
        if stop is None and not source.final and len(source.text) < at + _MAX_OTHER_CHARS:
            raise NeedMore
        tag = None if stop is None else self._grammar.tag(source, stop.start())
        if tag is None or tag.kind != "close_call":
            return cut_call(source, head.label, head.end) if self._parameters else None
        raw = source.text[head.end : tag.start].strip()
        return Block(
            TextCall(name=head.label, arguments=raw, receipts=tuple(self._receipts)), tag.end
        )

    def _json_body(self, at: int) -> Block | None:
        source, head = self._source, self._head
        end = source.value_end(at)
        if end is None:
            return cut_call(source, head.label, at)
        text = source.text[at:end]
        here = skip_debris(source, end)
        if not source.at_end(here):
            tag = self._grammar.tag(source, here)
            if tag is None and not self._grammar.is_begun(source, here):
                if self._grammar.style == "=":
                    return None  # an object behind such a tag needs no closer
                self._note("missing_closing_tag", here, here, "the call ends with its object")
                self._doubt = _NOT_CLOSED
            if tag is not None and tag.kind == "close_call":
                end = tag.end
        self._receipts.append(text_receipt("json_body", text, "arguments"))
        if not ARGUMENT_CONTAINERS.isdisjoint(head.attributes):  # two sets of arguments
            call = TextCall(name=head.label, arguments=text, state="unreadable")
            return Block(call, end)
        call = TextCall(
            name=head.label,
            arguments=_inner_object(source, head.label, text),
            doubt=self._doubt,
            receipts=tuple(self._receipts),
        )
        return Block(call, end)

    def _note(self, rule: str, start: int, end: int, after: str) -> None:
        found = self._source.text[start:end]
        self._receipts.append(text_receipt(rule, found, after, lossless=rule not in _LOSSY))


def _leaves_cdata(text: str) -> bool:
    """Tell whether a value begins or ends like a section of CDATA, and is none as a whole."""
    return text.lstrip().startswith(_CDATA_STARTS) or text.rstrip().endswith(_CDATA[1])


def _is_word(text: str) -> bool:
    return text.replace("-", "_").isidentifier()


def _inner_object(source: Source, name: str, text: str) -> Any:
    """Return what a JSON body holds, without one more wrapper such as `arguments`."""
    value: Any = repair_json(text, ended=True).value
    items = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    inner = items.get(lone_container(source, name, items))
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else text
