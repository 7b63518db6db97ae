"""MiniMax-M3: every tag of a call has a token before it, and parameters are tags of their own."""

import re
from typing import Any, Final

from surecall.base.records import CallState, Receipt
from surecall.calls.blocks import Block, cut_call, found_calls
from surecall.calls.element_tree import Node, value_of
from surecall.calls.formats import Found, OwnFormat, TextCall
from surecall.calls.json_block import close_block
from surecall.calls.source import NeedMore, Source
from surecall.calls.tags import MAX_TAG_CHARS, is_unfinished_tag, parse_attributes, tag_receipt

_TOKEN: Final = "]<]minimax[>["  # noqa: S105 - a marker in text
_TAG: Final = re.compile(
    r"""<(?P<slash>/?)(?P<word>[^\s<>/"'=]{1,128}+)(?P<rest>(?:[^<>"'\n]|"[^"\n]*+"|'[^'\n]*+')*+)>"""
)
_PLAIN_CLOSER: Final = "</invoke>"
_PLAIN_END: Final = "</tool_call>"
_SPACE: Final = re.compile(r"\s*+")
_MAX_DEPTH: Final = 32
_TRACE: Final = re.compile(r"\]<|>\[|minimax|</?[A-Za-z_]|\A>|<\Z")
_SWALLOWED: Final = "A value holds what may be a damaged tag of the call."


class _Tag:
    __slots__ = ("closing", "end", "label", "self_closed", "start", "word")

    def __init__(self, match: re.Match[str], start: int) -> None:
        rest: str = match["rest"]
        self.start = start
        self.end = match.end()
        self.word: str = match["word"]
        self.closing = bool(match["slash"])
        self.self_closed = rest.rstrip().endswith("/")
        self.label = parse_attributes(rest).get("name", "")


def _read_minimax_m3(source: Source, at: int) -> Found | None:
    """Read all invokes of a call, or one whose outer tag is missing."""
    calls: list[TextCall] = []
    end, opened = at, False
    while True:
        here = source.skip_space(end)
        if source.at_end(here) or _is_cut(source, here):
            end = len(source.text)
            break
        tag = _tag_at(source, here)
        if tag is None:
            break
        if tag.word == "tool_call":
            if opened and not tag.closing:
                break
            opened, end = True, tag.end
            if tag.closing:
                break
            continue
        if tag.word != "invoke":
            break
        if tag.closing:
            end = tag.end
            continue
        if not tag.label:
            break
        block = _InvokeReader(source, tag).run()
        calls.append(block.call)
        end = block.end
    if not calls:
        return Found(end=end) if end > at and (opened or source.at_end(end)) else None
    end, _ = close_block(source, end, (_PLAIN_END,))
    return found_calls(source, calls, end)


MINIMAX_M3: Final = OwnFormat(
    "minimax_m3", '`<tool_call>` and `<invoke name="N">`, each tag after its token.',
    "MiniMax-M3, 2026", literals=(_TOKEN,), reads=_read_minimax_m3,
)  # fmt: skip


class _InvokeReader:
    """Builds a tree of the tags of one invoke."""

    def __init__(self, source: Source, head: _Tag) -> None:
        self._source = source
        self._head = head
        self._root = Node("invoke")
        self._stack = [self._root]
        self._receipts: list[Receipt] = []
        self._readable = True

    def run(self) -> Block:
        source, here = self._source, self._head.end
        if self._head.self_closed:
            return self._whole(here)
        if source.char(source.skip_space(here)) == "<":
            plain = self._without_tokens(here)
            if plain is not None:
                return plain
        while True:
            stop = source.find(_TOKEN, here)
            if stop < 0 or _is_cut(source, stop):
                return cut_call(source, self._head.label, self._head.end)
            tag = _tag_at(source, stop)
            if tag is None:
                self._readable = False
                self._add_text(source.text[here : stop + len(_TOKEN)])
                here = stop + len(_TOKEN)
                continue
            self._add_text(source.text[here:stop])
            if tag.closing:
                end = self._close(tag, here, stop)
                if end is not None:
                    return self._whole(end)
            else:
                self._open(tag)
            here = tag.end

    def _without_tokens(self, at: int) -> Block | None:
        """Read an invoke none of whose tags has its token, if it is one."""
        source = self._source
        stop, found = source.find_any((_TOKEN, _PLAIN_CLOSER), at)
        if found != _PLAIN_CLOSER:
            return None
        self._root.text = source.text[at:stop]
        self._read_plain_tags()
        if self._readable:
            return self._whole(stop + len(_PLAIN_CLOSER))
        self._root, self._readable = Node("invoke"), True
        self._stack = [self._root]
        return None

    def _whole(self, end: int) -> Block:
        source, name = self._source, self._head.label
        parameters = source.tools.parameters(name)
        arguments: Any = value_of(self._root, parameters) if self._root.children else {}
        state: CallState = "whole"
        if not isinstance(arguments, dict) or not self._readable:
            arguments = source.text[self._head.end : end]
            state = "unreadable" if self._root.children else "whole"
        has_traces = any(_TRACE.search(node.text) for node in self._root.all())
        call = TextCall(
            name=name,
            arguments=arguments,
            state=state,
            doubt=_SWALLOWED if has_traces else "",
            receipts=tuple(self._receipts),
        )
        return Block(call, end)

    def _open(self, tag: _Tag) -> None:
        node = Node(tag.word)
        self._leave_closed_without_token()
        top = self._stack[-1]
        if top.text.strip() or len(self._stack) > _MAX_DEPTH:
            self._readable = False
        top.children.append(node)
        if not tag.self_closed and len(self._stack) <= _MAX_DEPTH:
            self._stack.append(node)

    def _close(self, tag: _Tag, begin: int, stop: int) -> int | None:
        """Close a tag; return the end of the invoke when that is what it closes."""
        source = self._source
        self._leave_closed_without_token()
        if tag.word in ("invoke", "tool_call"):
            if len(self._stack) > 1:
                self._note("missing_closing_tag", source.text[begin : tag.end], tag.word)
                self._readable = False
            elif self._root.text.strip():
                self._read_plain_tags()
            return tag.end if tag.word == "invoke" else stop
        if len(self._stack) == 1:
            self._readable = False
            return None
        if self._stack[-1].key != tag.word:
            self._note("wrong_closing_tag", f"</{tag.word}>", f"</{self._stack[-1].key}>")
        self._stack.pop()
        return None

    def _add_text(self, text: str) -> None:
        top = self._stack[-1]
        if not top.children or text.strip():
            top.text += text
        if top.children and text.strip() and len(self._stack) > 1:
            self._readable = False

    def _leave_closed_without_token(self) -> None:
        """Leave a tag whose closing tag had no token before it."""
        top = self._stack[-1]
        closing = f"</{top.key}>"
        if len(self._stack) > 1 and top.text.rstrip().endswith(closing):
            self._note("missing_token", closing, closing)
            top.text = top.text.rstrip().removesuffix(closing)
            self._stack.pop()

    def _read_plain_tags(self) -> None:
        """Read parameters whose tags have no tokens at all: `<room>hall</room>`."""
        text, at = self._root.text.strip(), 0
        while at < len(text):
            match = _TAG.match(text, at)
            closing = "" if match is None else f"</{match['word']}>"
            end = -1 if match is None else text.find(closing, match.end())
            if match is None or match["slash"] or end < 0:
                self._readable = False
                return
            self._root.children.append(Node(match["word"], text[match.end() : end]))
            spaces = _SPACE.match(text, end + len(closing))
            at = spaces.end() if spaces else end + len(closing)
        self._note("missing_token", text, "parameters")

    def _note(self, rule: str, before: str, after: str) -> None:
        self._receipts.append(tag_receipt(rule, before, after))


def _tag_at(source: Source, at: int) -> _Tag | None:
    """Return the tag after a token that stands here; white space may be between them."""
    if source.char(at) != "]" or not source.starts(_TOKEN, at):
        return None
    here = source.skip_space(at + len(_TOKEN))
    if source.char(here) != "<":
        return None
    match = _TAG.match(source.text, here, here + MAX_TAG_CHARS)
    if match is None:
        if not source.final and is_unfinished_tag(source.text, here):
            raise NeedMore
        return None
    return _Tag(match, at)


def _is_cut(source: Source, at: int) -> bool:
    """Tell whether the text ends for good inside a token or the tag after it."""
    if not source.final:
        return False
    if len(source.text) - at < len(_TOKEN):
        return _TOKEN.startswith(source.text[at:])
    if not source.starts(_TOKEN, at):
        return False
    here = source.skip_space(at + len(_TOKEN))
    return source.at_end(here) or is_unfinished_tag(source.text, here)
