"""Calls as elements in angle brackets, whose parameters are elements too."""

import re
from collections.abc import Sequence
from typing import Any, Final

from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt
from surecall.calls.formats import CallFormat, Found, OwnFormat, TextCall, text_receipt
from surecall.calls.json_block import Marks, close_block, read_marked, read_object
from surecall.calls.source import NeedMore, Source
from surecall.calls.tagged_calls import found_calls, have_arguments, read_calls
from surecall.calls.tags import (
    Grammar,
    Tag,
    TagKind,
    ends_within,
    is_unfinished_tag,
    parse_attributes,
    run_end,
    skip_debris,
)
from surecall.calls.text_values import Builder, Padding, Parameter, build_declared, build_typed
from surecall.calls.unmarked_json import name_lone_text, note_only


class Elements(CallFormat, frozen=True, eq=False, kw_only=True):
    """Calls in a row, in a wrapper or without one."""

    grammar: Grammar
    wraps: bool = False
    """Whether the openers stand around calls; else they begin them."""
    proves: tuple[str, ...] = ()
    """Words of a call's tag that show the format; behind others the tool must exist."""
    canonical: str = ""
    """How the opener begins in sound text; in other text the tool must exist."""
    strays: tuple[str, ...] = ()
    """Words that leak before an opener."""
    begins: re.Pattern[str] | None = None
    """What stands between the bracket of an opener and the colon behind its prefix."""
    legacy: Grammar | None = None
    """The grammar of calls whose tag has no name."""
    padding: Padding = "none"
    build: Builder = build_typed
    takes_json: bool = True
    """Whether one object may stand in the place of parameters."""
    json_closer: str = ""
    """What ends JSON in the wrapper, if there may be any."""

    def read(self, source: Source, at: int) -> Found | None:
        """Read all calls up to the end of the wrapper, or those in a row."""
        if self.begins is not None:
            end = run_end(source, self.begins, at + 1)
            if source.char(end) != ":" or end == at + 1:
                return None
        opener = source.starts_any(self.literals if self.wraps else self.strays, at)
        begin = at + len(opener)
        here = skip_debris(source, begin)
        if self.json_closer and not source.at_end(here) and source.char(here) in ("{", "["):
            return read_marked(source, here, opener, Marks((self.json_closer,)))
        head = None if source.at_end(here) else self.grammar.tag(source, here)
        if head is not None and head.kind == "open_section":
            begin = head.end
            here = skip_debris(source, begin)
            head = None if source.at_end(here) else self.grammar.tag(source, here)
        grammar = self.grammar
        if self.legacy is not None and head and head.kind == "open_call" and not head.label:
            grammar = self.legacy
            head = grammar.tag(source, here)
        if head is None:
            return self._read_begun(source, grammar, at, here)
        return self._read_calls(source, grammar, at, begin, head)

    def _read_calls(
        self, source: Source, grammar: Grammar, at: int, begin: int, head: Tag
    ) -> Found | None:
        if head.kind != "open_call":
            return None
        is_marked = head.word in self.proves and not head.rule and source.starts(self.canonical, at)
        is_marked = is_marked and (not head.closed or self.wraps or bool(self.canonical))
        if not is_marked and source.tools.resolve(head.label) is None:
            return None
        if not self.takes_json:
            after = skip_debris(source, head.end)
            if not source.at_end(after) and source.char(after) == "{":
                return None
        calls, end = read_calls(source, grammar, begin, build=self.build, padding=self.padding)
        if not calls or not (self.wraps or self.canonical or have_arguments(calls)):
            return None
        return found_calls(source, calls, end, marked=is_marked)

    def _read_begun(self, source: Source, grammar: Grammar, at: int, here: int) -> Found | None:
        """Return the call whose tag the end of the text cut off, or drop the beginning of one."""
        if not source.at_end(here) and not grammar.is_begun(source, here):
            return None
        if self.wraps or (self.canonical and source.starts(self.canonical, at)):
            return Found(end=len(source.text))
        text = source.text[here:]
        name = parse_attributes(text).get("name", "")
        if source.tools.resolve(name) is not None:
            call = TextCall(name=name, arguments=text, state="cut")
            return Found(end=len(source.text), calls=(call,), grade="damaged")
        begun = text.partition("=")[2].strip("\"'")
        is_name = begun and source.tools.begin_with(begun)
        return Found(end=len(source.text)) if is_name else None


# calls with the name as an attribute

_NAMESPACE: Final = "antml:"
_PREFIX: Final = r"(?:[A-Za-z][\w.-]{0,31}+:)?+"
_NAME: Final = re.compile(r"[^\s<>\"'`{}()\[\]]*+")

_INVOKE: Final = Grammar(
    calls=("invoke", "call_record", "function_call", "call", "tool"),
    values=("parameter", "param", "argument", "arg"),
    sections=("function_calls", "tool_calls", "tool_call", "dots_function_call"),
    prefix=_PREFIX,
    label_keys=("name", "tool"),
)


class _LegacyGrammar(Grammar):
    """`<invoke><tool_name>N</tool_name><parameters><K>VALUE</K></parameters></invoke>`."""

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag that stands here; a call with its name."""
        tag = super().tag(source, at)
        if tag is None or tag.word != "invoke":
            return tag
        if tag.kind == "close_section":  # of one call; others may follow in the wrapper
            return tag._replace(kind="close_call")
        here = source.skip_space(tag.end)
        if source.at_end(here) or not source.starts("<tool_name>", here):
            return tag
        begin = source.skip_space(here + len("<tool_name>"))
        end = run_end(source, _NAME, begin)
        after = source.skip_space(end)
        if source.at_end(after) or not source.starts("</tool_name>", after):
            return tag
        after += len("</tool_name>")
        inner = source.skip_space(after)
        if not source.at_end(inner) and source.starts("<parameters>", inner):
            after = inner + len("<parameters>")
        return Tag("open_call", at, after, source.text[begin:end], "invoke")


_LEGACY: Final = _LegacyGrammar(
    calls=("parameters",), values=(), sections=("invoke", "function_calls"), prefix=_PREFIX
)


_SECTIONS: Final = ("<function_calls>", f"<{_NAMESPACE}function_calls>")
_ALONE: Final = ("<invoke", f"<{_NAMESPACE}invoke")
_STRAY_WORDS: Final = ("count\n", "call\n")

ANTHROPIC_XML: Final = Elements(
    "anthropic_xml",
    "`<function_calls>`, with or without the namespace prefix, and the form before it.",
    "Claude 2.1, November 2023", literals=_SECTIONS, wraps=True, proves=("invoke", "parameters"),
    grammar=_INVOKE, legacy=_LEGACY,
)  # fmt: skip
MINIMAX_M2: Final = Elements(
    "minimax_m2", "`<minimax:tool_call>`.", "MiniMax-M2, October 2025",
    literals=("<minimax:tool_call>",), wraps=True, proves=("invoke", "parameters"), grammar=_INVOKE,
    legacy=_LEGACY,
)  # fmt: skip
DOTS: Final = Elements(
    "dots", "`<dots_function_call>` around invokes or JSON.", "dots.llm, 2026",
    literals=("<dots_function_call>",), wraps=True, proves=("invoke", "parameters"),
    grammar=_INVOKE, legacy=_LEGACY, padding="trim", json_closer="</dots_function_call>",
)  # fmt: skip
ATEM_CALLS: Final = Elements(
    "muse", "`<atem:function_calls>` around invokes, or JSON where a grammar forces it.",
    "Muse, 2026", literals=("<atem:function_calls>",), wraps=True, proves=_INVOKE.calls,
    grammar=_INVOKE, json_closer="</atem:function_calls>",
)  # fmt: skip
BARE_INVOKE: Final = Elements(
    name="invoke",
    about="A call without a wrapper; the tool must exist.",
    origin="Claude 2.1, November 2023; MiniMax-M2, October 2025",
    line_start=True,
    literals=(
        *_ALONE, "<call name=", "<call_record", "<tool name=",
        *(f"{word}{tag}" for word in _STRAY_WORDS for tag in (*_ALONE, *_SECTIONS)),
    ),
    strays=_STRAY_WORDS,
    grammar=_INVOKE,
    legacy=_LEGACY,
)  # fmt: skip
PREFIXED_INVOKE: Final = Elements(
    "invoke", "Calls and wrappers with an unknown prefix; the tool must exist.",
    "Fine-tunes of 2025", line_start=True, literals=("<",),
    begins=re.compile(r"(?:[A-Za-z][\w.-]{0,31}+)?"), grammar=_INVOKE, legacy=_LEGACY,
)  # fmt: skip
MINICPM5: Final = Elements(
    "minicpm5", "Functions and parameters with their names as attributes; values may be CDATA.",
    "MiniCPM5, 2026", literals=("<function name=", "<functionname=", "<function\u0120name="),
    proves=("function",),
    grammar=Grammar(calls=("function",), values=("param", "parameter")),
)  # fmt: skip

# DSML


_BARS: Final = ("｜｜", "｜", "||", "|", "‖")

DSML: Final = Elements(
    name="dsml",
    about="A section of invokes, each with parameters that say whether they are strings.",
    origin="DeepSeek V3.2, December 2025",
    literals=(*(f"<{bar}DSML{bar}" for bar in _BARS), "<DSML"),
    canonical="<｜DSML｜",
    proves=("invoke",),
    grammar=Grammar(
        calls=("invoke",),
        values=("parameter",),
        sections=(
            "function_calls", "functioncalls", "tool_calls", "toolcalls", "tool_call", "calls",
        ),
        prefix=r"(?:[｜|‖]{1,2}+[ ]?DSML[ ]?[｜|‖]{1,2}+[ ]?|DSML[ :]?)",
    ),
    build=build_declared,
)  # fmt: skip

# the name behind an equals sign


class _QwenGrammar(Grammar):
    """The tags, and the ways in which the tag of a function is written wrongly."""

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag that stands here."""
        if source.char(at) == "f" and source.starts("function=", at):
            end = run_end(source, _NAME, at + len("function="))
            if source.char(end) != ">":
                return None
            label = source.text[at + len("function=") : end]
            return Tag("open_call", at, end + 1, label, "function", rule="missing_bracket")
        tag = super().tag(source, at)
        if tag is not None and tag.kind == "open_call" and not tag.label and not tag.closed:
            return self._with_child_name(source, tag)
        return tag

    def _with_child_name(self, source: Source, tag: Tag) -> Tag:
        """Read `<function>NAME</function>` and `<function><name>NAME</name>`."""
        here = source.skip_space(tag.end)
        within = not source.at_end(here) and source.starts("<name>", here)
        here += len("<name>") if within else 0
        end = run_end(source, _NAME, here)
        label = source.text[here:end]
        closing = "</name>" if within else f"</{tag.word}>"
        after = source.skip_space(end)
        if not label or source.at_end(after) or not source.starts(closing, after):
            return tag
        return tag._replace(end=after + len(closing), label=label, rule="name_as_text")


_QWEN: Final = _QwenGrammar(
    calls=("function", "invoke", "call"),
    values=("parameter", "param", "argument", "arg"),
    sections=("tool_call", "seed:tool_call"),
    style="=",
)

QWEN_XML: Final = Elements(
    "qwen_xml", "Functions in `<tool_call>`: Qwen, Nemotron, Step-3.5, MiMo.",
    "Qwen3-Coder, July 2025", literals=("<tool_call>",), never_json=True, wraps=True,
    proves=_QWEN.calls, grammar=_QWEN, padding="newline",
)  # fmt: skip
SEED_XML: Final = Elements(
    "qwen_xml", "The same in `<seed:tool_call>`, with values as they are.", "Seed-OSS, August 2025",
    literals=("<seed:tool_call>",), never_json=True, wraps=True, proves=_QWEN.calls, grammar=_QWEN,
)  # fmt: skip
BARE_QWEN_XML: Final = Elements(
    "qwen_xml", "A function whose wrapper is missing; its closing tag may be there.",
    "Qwen3-Coder, July 2025", literals=("<function=",), grammar=_QWEN, padding="newline",
    takes_json=False,
)  # fmt: skip

# Step 3

_CALL: Final = "<｜tool_call_begin｜>"
_SEP: Final = "<｜tool_sep｜>"
_TOKENS: Final[dict[str, TagKind]] = {
    "<｜tool_calls_begin｜>": "open_section", _CALL: "open_call",
    "<｜tool_call_end｜>": "close_section", "<｜tool_calls_end｜>": "close_section",
}  # fmt: skip
_TYPE: Final = re.compile(r"[^<\n]{0,64}+")


class _StepGrammar(Grammar):
    """The tags, and the tokens around them."""

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag or token that stands here; that of a call with all before its name."""
        if source.char(at) != "<":
            return None
        token = source.starts_any(_TOKENS, at)
        if not token:
            return super().tag(source, at)
        end = at + len(token)
        if token != _CALL:
            return Tag(_TOKENS[token], at, end, word=token)
        end = run_end(source, _TYPE, end)
        if not source.at_end(end) and source.starts(_SEP, end):
            end += len(_SEP)
        here = skip_debris(source, end)
        tag = None if source.at_end(here) else super().tag(source, here)
        return None if tag is None or tag.kind != "open_call" else tag._replace(start=at)

    def is_begun(self, source: Source, at: int) -> bool:
        """Tell whether the text ends for good inside a tag, or before that of a call."""
        if source.final and source.starts(_CALL, at):
            end = run_end(source, _TYPE, at + len(_CALL))
            end += len(_SEP) if source.starts(_SEP, end) else 0
            at = skip_debris(source, end)
        return source.at_end(at) or super().is_begun(source, at)


STEP3: Final = Elements(
    "step3", "A section of calls, each between its own tokens.", "Step-3, July 2025",
    literals=(*list(_TOKENS)[:2], "<steptml:invoke"), canonical="<｜", proves=("invoke",),
    grammar=_StepGrammar(calls=("invoke",), values=("parameter",), prefix="steptml:"),
)  # fmt: skip

# LangChain

_TOOL_NAME: Final = re.compile(r"[^<>\n]{0,256}+")
_INPUT: Final = ("<tool_input>", "</tool_input>")
_ESCAPED: Final = ("tool", "tool_input", "observation", "final_answer")


def _read_langchain(source: Source, at: int) -> Found | None:
    """Read the input of a tool that exists; text is the value of its only parameter."""
    begin = at + len("<tool>")
    end = run_end(source, _TOOL_NAME, begin)
    name = source.text[begin:end].strip()
    if source.tools.resolve(name) is None:
        return None
    if not source.starts("</tool>", end):
        return Found(end=len(source.text)) if ends_within(source, "</tool>", end) else None
    here = source.skip_space(end + len("</tool>"))
    if not source.starts(_INPUT[0], here):
        return Found(end=len(source.text)) if ends_within(source, _INPUT[0], here) else None
    here += len(_INPUT[0])
    value = source.skip_space(here)
    closed = source.value_end(value) if source.char(value) == "{" else None
    closed = source.find(_INPUT[1], here if closed is None else closed)
    if closed < 0:
        call = TextCall(name=name, arguments=source.text[here:], state="cut")
        return Found(end=len(source.text), calls=(call,), grade="damaged")
    arguments, receipts = _arguments_of(source, name, source.text[here:closed])
    call = TextCall(name=name, arguments=arguments, receipts=tuple(receipts))
    return found_calls(source, (call,), closed + len(_INPUT[1]), marked=False)


LANGCHAIN_XML: Final = OwnFormat(
    "langchain_xml", "One call: its name, then its input.", "XML agents of LangChain, 2023",
    literals=("<tool>",), reads=_read_langchain,
)  # fmt: skip


def _arguments_of(source: Source, name: str, text: str) -> tuple[Any, list[Receipt]]:
    receipts: list[Receipt] = []
    plain = text
    for word in _ESCAPED:
        for slash in ("", "/"):
            plain = plain.replace(f"[[{slash}{word}]]", f"<{slash}{word}>")
    if plain != text:
        receipts.append(text_receipt("unescape_tags", text, plain))
    if plain.lstrip().startswith("{"):
        return plain.strip(), receipts
    if not plain.strip():
        return None, receipts
    only = name_lone_text(source.tools.parameters(name), plain)
    if only is None:
        return plain, receipts
    receipts.append(note_only(plain, only))
    return source.typed(name, {only: plain}), receipts


# pairs of a key and a value

_TAG: Final = lazy_pattern(
    r"<(?P<slash>/?)(?:longcat_)?(?P<word>tool_calls|tool_call|tool_sep|arg_key|arg_value)"
    r"(?::[\w.-]{1,32})?>"
)
_KINDS: Final[dict[tuple[bool, str], TagKind]] = {
    (True, "tool_calls"): "close_section", (False, "tool_calls"): "open_section",
    (True, "tool_call"): "close_call", (True, "arg_value"): "close_value",
}  # fmt: skip
_LONGCAT: Final = "<longcat_tool_call>"
_LONGCAT_END: Final = "</longcat_tool_call>"
_PAIR_NAME: Final = lazy_pattern(r"[^\s<>{}()\[\]\"'`\\]*+")
_KEY: Final = lazy_pattern(r"[^<>]{0,256}+")


class _PairGrammar(Grammar):
    """A call is a tag and a name; a value is a pair of tags."""

    def __init__(self) -> None:
        super().__init__(calls=("tool_call",), values=("arg_key", "arg_value"), style="pair")
        self.stops = lazy_pattern(r"</?(?:longcat_)?(?:tool_call|arg_)")
        self.words = ("tool_calls", "tool_call", "tool_sep", "arg_key", "arg_value")

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag that stands here; a call with its name, a key with its value's tag."""
        raw = self.raw(source, at)
        if raw is None:
            return None
        closing, word, end = raw
        if not closing and word == "tool_call":
            return self._call(source, at, end)
        if not closing and word == "arg_key":
            return self._pair(source, at, end)
        kind = _KINDS.get((closing, word))
        return None if kind is None else Tag(kind, at, end, word=word)

    def is_begun(self, source: Source, at: int) -> bool:
        """Tell whether the text ends for good inside a tag, or between a key and its value."""
        if not source.final:
            return False
        raw = self.raw(source, at)
        if raw is None or raw[:2] != (False, "arg_key"):
            return is_unfinished_tag(source.text, at)
        end = run_end(source, _KEY, raw[2])
        return source.at_end(end) or is_unfinished_tag(source.text, end)

    def raw(self, source: Source, at: int) -> tuple[bool, str, int] | None:
        """Return whether a tag closes, its word and its end."""
        if source.char(at) != "<":
            return None
        match = _TAG.match(source.text, at)
        if match is None:
            if not source.final and is_unfinished_tag(source.text, at):
                raise NeedMore
            return None
        return bool(match["slash"]), match["word"], match.end()

    def _call(self, source: Source, at: int, end: int) -> Tag:
        """Read the name; it has a label only where something of a call follows."""
        nameless = Tag("open_call", at, end, word="tool_call")
        begin = skip_debris(source, end)
        name_end = run_end(source, _PAIR_NAME, begin)
        label = source.text[begin:name_end]
        if not label or source.at_end(name_end):
            return nameless
        named = nameless._replace(label=label, end=name_end)
        after = skip_debris(source, name_end)
        if source.at_end(after):
            return named
        if source.char(after) == ">":
            after = skip_debris(source, after + 1)
            named = named._replace(end=after, rule="stray_bracket")
            if source.at_end(after):
                return named
        if source.char(after) == "{":
            return named
        raw = self.raw(source, after)
        if raw is None:
            return named if self.is_begun(source, after) else nameless
        closing, word, tag_end = raw
        if not closing and word == "tool_sep":
            return named._replace(end=tag_end, word=word)
        if (not closing and word == "arg_key") or (closing and word in ("tool_call", "tool_calls")):
            return named
        return nameless

    def _pair(self, source: Source, at: int, end: int) -> Tag | None:
        key_end = run_end(source, _KEY, end)
        label = source.text[end:key_end].strip()
        raw = None if source.at_end(key_end) else self.raw(source, key_end)
        if raw is None or not label:
            return None
        if raw[:2] == (False, "arg_value"):
            return Tag("open_value", at, raw[2], label, "arg_value", rule="missing_closing_tag")
        if raw[:2] != (True, "arg_key"):
            return None
        here = skip_debris(source, raw[2])
        raw = None if source.at_end(here) else self.raw(source, here)
        if raw is not None and raw[:2] == (False, "arg_value"):
            return Tag("open_value", at, raw[2], label, "arg_value")
        return Tag("open_value", at, here, word="arg_key", closed=True, rule="key_without_value")


_PAIRS: Final = _PairGrammar()


def _read_pairs(source: Source, at: int) -> Found | None:
    """Read one call, or those of a section."""
    tag = _PAIRS.tag(source, at)
    if tag is None:
        return None
    if tag.kind == "open_section":
        here = skip_debris(source, tag.end)
        if source.at_end(here):
            return Found(end=here)
        begin, tag = tag.end, _PAIRS.tag(source, here)
        if tag is None or tag.kind != "open_call":
            return None
    else:
        begin = at
    if not tag.label:
        return _nameless(source, tag)
    calls, end = read_calls(source, _PAIRS, begin, build=_build_pairs)
    if not calls:
        return None
    bare = tag.word != "tool_sep" and all(call.arguments == {} for call in calls)
    return found_calls(source, calls, end, marked=not bare)


def _nameless(source: Source, tag: Tag) -> Found | None:
    """Drop the beginning of a name that exists at the very end of the text."""
    begin = skip_debris(source, tag.end)
    end = run_end(source, _PAIR_NAME, begin)
    begun = source.text[begin:end]
    if source.at_end(end) and source.tools.begin_with(begun):
        return Found(end=end)
    return None


def _read_longcat(source: Source, at: int) -> Found | None:
    """Read what stands in the tag."""
    begin = source.skip_space(at + len(_LONGCAT))
    if source.char(begin) in ("{", "["):
        return read_marked(source, begin, _LONGCAT, Marks((_LONGCAT_END,)))
    end = run_end(source, _PAIR_NAME, begin)
    if end > begin and source.char(end) == "(":
        value = source.skip_space(end + 1)
        if source.char(value) == "{":
            return _written(source, value, source.text[begin:end])
    return _read_pairs(source, at)


def _written(source: Source, at: int, name: str) -> Found:
    """Read the object between the parentheses of a call."""
    call, end = read_object(source, name, at)
    if call.state == "cut":
        return Found(end=end, calls=(call,))
    end = source.skip_space(end)
    if source.char(end) == ")":
        end += 1
    return found_calls(source, (call,), close_block(source, end, (_LONGCAT_END,))[0])


def _build_pairs(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return typed arguments; newlines around every value come from a template."""
    padded = bool(parameters) and all(
        len(text) > 1 and text[0] == "\n" and text[-1] == "\n" for _, text, _ in parameters
    )
    if not padded:
        return build_typed(source, name, parameters)
    first = parameters[0].text
    bare = [parameter._replace(text=parameter.text[1:-1]) for parameter in parameters]
    arguments, receipts = build_typed(source, name, bare)
    return arguments, [text_receipt("strip_value_padding", first, first[1:-1]), *receipts]


GLM: Final = OwnFormat(
    "glm", "`<tool_call>NAME` and pairs, each call in its own tag.", "GLM-4.5, July 2025",
    literals=("<tool_call>", "<tool_call:"), never_json=True, reads=_read_pairs,
)  # fmt: skip
HUNYUAN_V3: Final = OwnFormat(
    "hunyuan_v3", "`<tool_calls>` around calls of the same kind; every tag may have a suffix.",
    "Hunyuan Hy3, 2026", literals=("<tool_calls>", "<tool_calls:"), never_json=True,
    reads=_read_pairs,
)  # fmt: skip
LONGCAT: Final = OwnFormat(
    "longcat", "`<longcat_tool_call>` around pairs, a JSON object, or a call with one object.",
    "LongCat-Flash, September 2025", literals=(_LONGCAT,), reads=_read_longcat,
)  # fmt: skip
