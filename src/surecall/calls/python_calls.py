"""Python call syntax with literal arguments, read without running or compiling anything.

The reader knows calls, literals and nothing else: a name, an operator or a nested call anywhere
makes the text not a call. A token that touches the end of the text is never taken as finished,
so a reading other than `cut` stays the same whatever text follows.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, cast

from msgspec import Struct

from surecall.base.limits import MAX_VALUE_DEPTH
from surecall.base.records import Receipt, clip

from .formats import text_receipt
from .python_literals import CutShort, LiteralReader, NotLiteral
from .source import spend_nothing

_MAX_CALLS: Final = 64
_UNREAD: Final = -1
_LAST: Final = -2
_MAY_GROW: Final = -3
_CLOSERS: Final = {"(": ")", "[": "]", "{": "}"}


class PythonCall(Struct, frozen=True, kw_only=True):
    """One call: its name as written, and what stands between its parentheses."""

    name: str
    keywords: dict[str, Any]
    positional: tuple[Any, ...] = ()
    padded: dict[str, str] = {}
    """Keywords whose whole number was written with leading zeros, and how it was written."""
    receipts: tuple[Receipt, ...] = ()
    variables: frozenset[str] = frozenset()
    """Words that may be the names of variables: nothing shows that they are values."""


class PythonSteps:
    """What was read of the rows in one text: most of a row is the next one, too."""

    __slots__ = ("calls", "following", "mended")

    def __init__(self) -> None:
        self.calls: dict[int, tuple[PythonCall, int]] = {}
        """By where it begins: a call, and where it ends."""
        self.following: dict[int, int] = {}
        """By where a call ends: where the next one begins, or why there is none."""
        self.mended: dict[int, tuple[PythonCall, int]] = {}
        """By where its arguments begin: a call that was read in another way, and where it ends."""


class PythonCalls(Struct, frozen=True, kw_only=True):
    """The calls that stand at a place, and where the last whole one ends."""

    state: Literal["whole", "cut", "not_calls"]
    calls: tuple[PythonCall, ...] = ()
    end: int = 0
    cut_name: str | None = None
    """The name of the call that the text ended in, or that is none, when it was complete."""
    cut_from: int = 0
    """Where the arguments of that call begin."""
    may_grow: bool = False
    """Whether more text could add calls: nothing but separators follows the last one."""
    doubt: str = ""
    """Why its calls are only likely, if they are."""


def read_python_calls(
    text: str,
    at: int,
    *,
    statements: bool = False,
    steps: PythonSteps | None = None,
    spend: Callable[[int], None] = spend_nothing,
) -> PythonCalls:
    """Read a list of calls, or calls in a row, from `at` on.

    Args:
        text: The text, as far as it is there.
        at: Where to begin; white space is skipped.
        statements: Accept `print(call)`, `target = call`, `await call` and comments.
        steps: Calls of this text that were read in the same way, to which more are added.
        spend: Receives what it costs, see `Source.spend_on_marks`.
    """
    return _CallReader(text, at, spend, steps or PythonSteps(), statements=statements).read()


class _Frame:
    """A call, list, tuple, set or dict that is open."""

    def __init__(self, opener: str, *, call: bool = False) -> None:
        self.opener = opener
        self.closer = _CLOSERS[opener]
        self.call = call
        self.items: list[Any] = []
        self.pairs: dict[str, Any] = {}
        self.key: str | None = None
        self.filled = False
        """Whether a value stands here that no comma has followed yet."""
        self.commas = 0

    def add(self, value: Any) -> None:
        if self.filled:
            raise NotLiteral
        self.filled = True
        if self.key is None:
            self.items.append(value)
            return
        if self.key in self.pairs:
            raise NotLiteral
        self.pairs[self.key] = value
        self.key = None

    def take_key(self) -> None:
        """Turn the last item into the key of a pair: a colon followed it."""
        if self.opener != "{" or not self.filled or len(self.items) != 1 or self.key is not None:
            raise NotLiteral
        self.key = _key_text(self.items.pop())
        self.filled = False

    def value(self) -> Any:
        if self.key is not None:
            raise NotLiteral
        if self.opener == "{":
            if self.items and self.pairs:
                raise NotLiteral
            return self.items or self.pairs
        if self.opener == "(" and len(self.items) == 1 and not self.commas:
            return self.items[0]
        return self.items


class _CallReader:
    """Reads calls; what a name or a literal is, its words know."""

    def __init__(
        self,
        text: str,
        at: int,
        spend: Callable[[int], None],
        steps: PythonSteps,
        *,
        statements: bool,
    ) -> None:
        self.words = LiteralReader(text, at, spend, has_comments=statements)
        self._text = text
        self._calls: list[PythonCall] = []
        self._name: str | None = None
        self._from = 0
        self._may_grow: bool = False
        self._last_end = at
        self._steps = steps

    def read(self) -> PythonCalls:
        try:
            if self.words.peek() == "[":
                self.words.at += 1
                self._read_list()
            else:
                self._read_row()
        except (CutShort, NotLiteral) as stopped:
            return PythonCalls(
                state="cut" if isinstance(stopped, CutShort) else "not_calls",
                calls=tuple(self._calls),
                end=self._last_end,
                cut_name=self._name,
                cut_from=self._from,
            )
        return PythonCalls(
            state="whole", calls=tuple(self._calls), end=self.words.at, may_grow=self._may_grow
        )

    def _read_list(self) -> None:
        while self.words.peek() != "]":
            self._read_step(self.words.at)
            if self.words.peek() == ",":
                self.words.at += 1
            elif self.words.peek() != "]":
                raise NotLiteral
        self.words.at += 1
        if not self._calls:
            raise NotLiteral

    def _read_row(self) -> None:
        """Read calls one after the other; what follows the last one is not looked at."""
        begun: int = self.words.at
        while begun >= 0:
            end = self._read_step(begun)
            if len(self._calls) == _MAX_CALLS:
                break
            begun = self._steps.following.get(end, _UNREAD)
            if begun == _UNREAD:
                begun = self._steps.following[end] = self._find_next()
        self._may_grow = begun == _MAY_GROW
        self.words.at = self._last_end

    def _read_step(self, begun: int) -> int:
        """Read the call that begins here, unless it was read before; return where it ends."""
        step = self._steps.calls.get(begun)
        if step is None:
            self.words.at = begun
            self._read_statement()
            step = self._steps.calls[begun] = self._calls[-1], self.words.at
        else:
            self._calls.append(step[0])
        self._last_end = self.words.at = step[1]
        return step[1]

    def _find_next(self) -> int:
        """Return where the next call of a row begins, or why there is none."""
        if self._is_call_next():
            return self.words.at
        return _MAY_GROW if self._may_grow else _LAST

    def _is_call_next(self) -> bool:
        """Move to the next call of a row, if one follows."""
        separated = False
        while self.words.at < len(self._text):
            char = self._text[self.words.at]
            if char == "#" and self.words.has_comments:
                self.words.skip_comment()
            elif char in " \t\r\n;,":
                separated = separated or char in "\n;,"
                self.words.at += 1
            else:
                break
        if self.words.at == len(self._text):
            self._may_grow = True
            return False
        name = self.words.match_name()
        if not name or not separated:
            return False
        after = self.words.at + len(name)
        if after == len(self._text) or (self._text[after] == "." and after + 1 == len(self._text)):
            raise CutShort
        return self._text[after] in ("( =" if self.words.has_comments else "(")

    def _read_statement(self) -> None:
        """Read a call, and what stands around it where statements are allowed."""
        wrapped = 0
        while self.words.has_comments:
            self.words.peek()
            begun, name = self.words.at, self.words.read_name()
            after = self.words.peek()
            if name == "print" and after == "(":
                self.words.at += 1
                wrapped += 1
            elif after == "=" and self.words.char_after() != "=":
                self.words.at += 1
            elif name != "await":
                self.words.at = begun
                break
        self._read_call()
        for _ in range(wrapped):
            if self.words.peek() != ")":
                raise NotLiteral
            self.words.at += 1

    def _read_call(self) -> None:
        if len(self._calls) == _MAX_CALLS:
            raise NotLiteral
        self.words.peek()
        name = self.words.read_name()
        if self.words.peek() != "(":
            raise NotLiteral
        self.words.at += 1
        self._name, self._from = name, self.words.at
        call, self.words.at = self._steps.mended.get(self._from) or self._read_arguments(name)
        self._name, self._last_end = None, self.words.at
        self._calls.append(call)

    def _read_arguments(self, name: str) -> tuple[PythonCall, int]:
        self.words.receipts, self.words.padded = [], {}
        frame = self._read_frame()
        call = PythonCall(
            name=name,
            keywords=frame.pairs,
            positional=tuple(frame.items),
            padded=self.words.padded,
            receipts=tuple(self.words.receipts),
        )
        return call, self.words.at

    def _read_frame(self) -> _Frame:
        frames = [_Frame("(", call=True)]
        while True:
            frame = frames[-1]
            char = self.words.peek()
            self.words.count_step()
            if char == frame.closer:
                self.words.at += 1
                frames.pop()
                if not frames:
                    if frame.key is not None:
                        raise NotLiteral
                    return frame
                frames[-1].add(frame.value())
            elif char == ",":
                if not frame.filled:
                    raise NotLiteral
                self.words.at += 1
                frame.filled = False
                frame.commas += 1
            elif char == ":":
                self.words.at += 1
                frame.take_key()
            elif char in _CLOSERS:
                if frame.filled or len(frames) == MAX_VALUE_DEPTH:
                    raise NotLiteral
                self.words.at += 1
                frames.append(_Frame(char))
            else:
                self._read_item(frame)

    def _read_item(self, frame: _Frame) -> None:
        if frame.filled:
            raise NotLiteral
        if frame.call and frame.key is None:
            keyword = self.words.read_keyword()
            if keyword:
                frame.key = keyword
                return
            if frame.pairs:
                raise NotLiteral
        begun, key = self.words.at, frame.key
        value = self.words.read_scalar()
        padded = self.words.padded_text(begun)
        if padded and frame.call and key:
            self.words.padded[key] = padded
        frame.add(value)


def _key_text(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool) or key is None:
        return {True: "true", False: "false", None: "null"}[key]
    if isinstance(key, int | float):
        return clip(repr(key))
    raise NotLiteral


def name_values(
    keywords: dict[str, Any], positional: tuple[Any, ...], declared: tuple[str, ...]
) -> tuple[dict[str, Any], tuple[Receipt, ...]] | None:
    """Return all values of a call by name: those without a keyword in the order of the schema."""
    if not positional:
        return keywords, ()
    if isinstance(positional[0], dict) and len(positional) == 1 and not keywords:
        return cast("dict[str, Any]", positional[0]), ()
    placed = dict(zip(declared, positional, strict=False))
    if len(declared) < len(positional) or placed.keys() & keywords.keys():
        return None
    why = "values without a keyword, in the order of the schema"
    before = clip(", ".join(map(repr, positional)))
    moved = text_receipt("name_positional_arguments", before, ", ".join(placed), why)
    return {**placed, **keywords}, (moved,)
