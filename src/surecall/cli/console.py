"""Where everything goes: data to standard output, words for people to standard error."""

import contextlib
import errno
import sys
import traceback
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TextIO, cast

from surecall.base.errors import (
    ApprovalError,
    Code,
    ProviderError,
    RunError,
    SetupError,
    StoreError,
    SurecallError,
    ToolServerError,
)

from .terminal import escape_json, line_of, make_table, printable, styled

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

SCHEMA_VERSION: Final = 1
"""Version of every JSON document; raised when a field changes its meaning or goes away."""

Color = Literal["auto", "always", "never"]

_PLAIN_WIDTH: Final = 100
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_OPENING_WORDS: Final = frozenset(
    {"a", "all", "an", "another", "cannot", "every", "it", "its"}
    | {"no", "nothing", "only", "the", "there", "this", "two", "what"}
)
"""Begin a sentence and get a capital; any other first word may be somebody's name."""


class ExitCode(IntEnum):
    """How a command ended."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        """Make a member with its meaning in words."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    OK = 0, "Success."
    NO_ANSWER = (
        1,
        "No answer or an empty one, a reply that is refused or differs, or a failed gate.",
    )
    INTERRUPTED = 2, "Interrupted; an eval, or a run with a journal, can be resumed."
    INTERNAL = 3, "An error inside surecall."
    USAGE = 4, "Something in the command, the settings or the tools is wrong."
    NOTHING_SELECTED = 5, "The filter selected nothing."
    PROVIDER = (
        6,
        "The provider or a server of tools cannot be used: no connection, permission or reply.",
    )
    PARTIAL = 7, "Some parts failed, others worked."


def exit_code_of(error: BaseException) -> ExitCode:
    """Return the exit code for an error that ended a command."""
    if isinstance(error, RunError):
        return ExitCode.NO_ANSWER
    if isinstance(error, ProviderError | ToolServerError):
        return ExitCode.PROVIDER
    if isinstance(error, SurecallError):
        if error.code == Code.NOTHING_SELECTED:
            return ExitCode.NOTHING_SELECTED
        is_usage = isinstance(error, ApprovalError | SetupError | StoreError)
        is_usage = is_usage or error.code.startswith("JOURNAL_")
        return ExitCode.USAGE if is_usage else ExitCode.INTERNAL
    return ExitCode.INTERNAL


@dataclass
class Output:
    """How a command speaks: set by its flags, used by everything that prints."""

    json: bool = False
    debug: bool = False
    color: Color = "auto"
    quiet: bool = False
    stdout: TextIO = field(default_factory=lambda: sys.stdout)
    """Kept, so that what a tool prints cannot get between the data."""
    stderr: TextIO = field(default_factory=lambda: sys.stderr)

    def data(self, document: Any) -> None:
        """Write a mapping or a record as one JSON document on one line."""
        import msgspec

        from surecall.base.redaction import mask_known
        from surecall.text import encode_text

        fields = _with_valid_text(msgspec.to_builtins(document))
        text = mask_known(encode_text({"schema_version": SCHEMA_VERSION, **fields}))
        self.stdout.write(escape_json(text) + "\n")
        self.stdout.flush()

    def text(self, text: str) -> None:
        """Write text that is the answer itself, safe for a terminal."""
        from surecall.base.redaction import mask_known

        self.stdout.write(printable(mask_known(text)).rstrip("\n") + "\n")
        self.stdout.flush()

    @property
    def is_attended(self) -> bool:
        """Whether somebody can be asked."""
        return sys.stdin.isatty() and self.stderr.isatty()

    def drop_reader(self) -> None:
        """Write to nobody from now on, where standard output or error cannot be written."""
        import os

        for stream in (self.stdout, self.stderr):
            try:
                stream.flush()
            except OSError:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)

    def is_lost_with(self, error: OSError) -> bool:
        """Return whether the error is that standard output cannot be written."""
        try:
            self.stdout.flush()
        except OSError:
            return True
        # Without a buffer nothing is left to flush; other files have their own errors by now.
        return error.filename is None and error.errno in _FULL

    def report_loss(self, error: OSError) -> None:
        """Tell on standard error, if that is still there, why nothing more is written."""
        with contextlib.suppress(OSError):
            self.note(f"standard output cannot be written: {error.strerror or error}")
        self.drop_reader()

    @contextlib.contextmanager
    def waiting(self, words: str) -> Generator[None]:
        """Show at a terminal what is being waited for; it is taken away afterwards."""
        if self.json or self.quiet or not self.stderr.isatty():
            yield
            return
        with self.people().status(styled((f"{line_of(words)} …", "dim")), spinner="dots"):
            yield

    def note(self, words: str) -> None:
        """Write one line for people to standard error."""
        self.stderr.write(line_of(words) + "\n")
        self.stderr.flush()

    def answer(self, data: Mapping[str, Any], words: str) -> None:
        """Write what was done: as a JSON document, or in words."""
        if self.json:
            self.data(data)
        else:
            self.text(words)

    def table(
        self,
        columns: Mapping[str, str],
        rows: "Iterable[Iterable[RenderableType]]",
        *,
        headings: bool = True,
        optional: Sequence[str] = (),
    ) -> None:
        """Write a table that fits the terminal; see `make_table`."""
        self.page().print(make_table(columns, rows, headings=headings, optional=optional))

    def listing(
        self,
        data: Mapping[str, Any],
        columns: Mapping[str, str],
        rows: "Iterable[Iterable[RenderableType]]",
        **looks: Any,
    ) -> None:
        """Write a list: as a JSON document, or as a table."""
        if self.json:
            self.data(data)
        else:
            self.table(columns, rows, **looks)

    def facts(self, facts: "Iterable[tuple[str, RenderableType]]") -> None:
        """Write names with what they stand for, one a line."""
        self.table({"what": "dim whole", "text": ""}, facts, headings=False)

    def page(self, *, record: bool = False) -> "Console":
        """Return a console on standard output, for tables and reports."""
        return self._console(self.stdout, record=record)

    def people(self) -> "Console":
        """Return a console on standard error, for progress and problems."""
        return self._console(self.stderr)

    def problem(self, code: str, message: str, hint: str | None = None) -> None:
        """Tell that something went wrong: as a JSON document, or in words with what to do."""
        if self.json:
            self.data({"type": "error", "code": code, "message": message, "hint": hint})
            return
        console = self.people()
        message = printable(message.strip())
        if message.partition(" ")[0] in _OPENING_WORDS:
            message = message[:1].upper() + message[1:]
        rows = [("✗", f"{code}  ", message)]
        if hint:
            rows.append((" ", "fix   ", printable(hint)))
        rows.append((" ", "more  ", f"surecall docs {code}"))
        for symbol, label, words in rows:
            style = "bold" if symbol == "✗" else "dim"
            line = styled((f"{symbol} ", "bold red"), (label, style), words)
            console.print(line, soft_wrap=True)

    def error(self, error: BaseException) -> None:
        """Tell about an error; its traceback only with `--debug`, and never a secret."""
        from surecall.base.redaction import redact

        if self.debug:
            self.stderr.write(printable(redact("".join(traceback.format_exception(error)))))
        if isinstance(error, SurecallError):
            self.problem(error.code, error.message, error.hint)
            return
        message = redact(f"{type(error).__name__}: {error}") if str(error) else type(error).__name__
        hint = None if self.debug else "Run again with --debug to see where."
        self.problem(Code.INTERNAL_ERROR, message.split("\n", 1)[0], hint)

    def _console(self, stream: TextIO, *, record: bool = False) -> "Console":
        import shutil

        from rich.console import Console

        settings: dict[str, Any] = {
            "file": stream,
            "record": record,
            "markup": False,
            "highlight": False,
            "emoji": False,
        }
        plain: dict[str, Any] = {"no_color": True, "color_system": None, "force_terminal": False}
        if self.color == "never":
            settings |= plain
        elif self.color == "always":
            settings |= {"no_color": False, "color_system": "256", "force_terminal": True}
        if not stream.isatty():
            settings["width"] = shutil.get_terminal_size((_PLAIN_WIDTH, 24)).columns
        console = Console(**settings)
        if self.color == "auto" and console.no_color:
            # NO_COLOR: rich would still send bold and dim.
            console = Console(**(settings | plain))
        console.on_broken_pipe = _reader_left
        return console


def _reader_left() -> None:
    """Let the command end quietly; rich would exit with 1."""
    raise BrokenPipeError


def select_fields(record: Any, *names: str) -> dict[str, Any]:
    """Return some fields of a record as data."""
    return {name: getattr(record, name) for name in names}


def _with_valid_text(value: Any) -> Any:
    """Return plain data in which text that is not valid Unicode is kept readable."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_with_valid_text(key): _with_valid_text(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_with_valid_text(item) for item in cast("list[Any]", value)]
    return value
