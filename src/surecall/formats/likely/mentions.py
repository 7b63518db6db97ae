"""Whether calls in a text are made there, or only spoken of.

What is judged is the text around them: the line, the fence, the sentence before and the one
behind. A question, an example, a condition, a quotation, a program or a report of what was done
make a call a mention.
"""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from surecall.formats.base import TextCall

_FENCE_LINE: Final = re.compile(r"^[ \t]{0,12}+(```+|~~~+)[ \t]*+([^\n`]*+)$", re.MULTILINE)
_CALL_LANGUAGES: Final = frozenset(
    {
        "", "json", "json5", "jsonc", "jsonl", "python", "python3", "py", "text", "txt",
        "plaintext", "xml", "tool_code", "tool_call", "tool_calls", "tool", "tool_use",
        "function", "functions",
        "function_call", "function_calls", "api", "call", "action", "tool_json", "code",
    }
)  # fmt: skip
_SENTENCE_STOP: Final = re.compile(r"[.!?\n](?=\s|\Z)")
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)|\n\s*+\n|\n(?=\s*+(?:[-*•]|\d++[.)])\s)")
_MAX_LEAD: Final = 300
_MAX_TRAIL: Final = 400


def _phrases(lines: str) -> re.Pattern[str]:
    """Return a pattern that finds any of the phrases, one a line, as whole words."""
    phrases = [line.strip() for line in lines.strip().splitlines()]
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


_SPEAKS_OF: Final = _phrases(
    r"""
    (?:you|one|we|they|users?|developers?|someone|anyone|programmers?|clients?|it)[ '](?:\w+ )?(?:can|could|may|might|would|should|need to|have to|must|d)
    for (?:example|instance)
    e\.g
    i\.e
    such as
    examples?
    sample
    would (?:look|be|have|return|give|call|use|run|need|invoke|then|mean)
    looks? like
    syntax|signature|usage|template|document(?:ation|ed)|docs
    (?:don'?t|do not|never|cannot|can'?t|won'?t|shouldn'?t|should not|wouldn'?t|will not|not) (?:\w+ ){0,3}(?:call|use|run|invoke|execute|send|make|do|write|try|need)
    (?:no need to|not going to|unable to|refuse to) (?:call|use|run|invoke|execute|send|make)
    (?:avoid|instead of|rather than|without) (?:call|us|runn|invok|execut|send|mak)ing
    earlier|previously|last (?:time|response|call|request|answer|message)|from the (?:ticket|chat|mail|report)|yesterday|already|used to|in the past
    history|logs?|transcript|tutorial|unit test|test case|pseudo-?code
    hypothetical(?:ly)?|imagine|suppose|assum(?:e|ing) (?:you|we|that you)
    quot(?:e|es|ed|ing)
    user (?:said|wrote|asked|pasted)
    deprecated|wrong|incorrect(?:ly)?|invalid|mistake|error was|failed|broken|bad
    if (?:you|we|i|the user|it|that|this|there|needed|necessary|so)
    how to|what happens|the difference|explain|describe[sd]?|definition|defined as
    (?:is|are|be) (?:used|called|written|invoked) (?:like|as|so|with|by)
    what (?:i|we) (?:ran|called|did|used|sent|tried|wrote)
    i(?: have|'ve|’ve)?(?: just)? (?:ran|called|executed|invoked|tried)
    refus(?:e|es|ed|ing)|dangerous|forbidden|possible|previous|instead of|typos?|propos(?:e|al)
    (?:must|should|need|can) ?not|isn't|aren't|not allowed
    demos?|the (?:assistant|agent|model) (?:answers|replies|says|writes|calls|runs)
    (?:script|code|file|log|trace|program|line|test) (?:has|had|was|is|reads|contains|says)
    traceback|this trace|the trace
    \|---
    zum beispiel|z\. ?b|beispiel(?:e|aufruf)?|könnte[nst]*|nicht|syntaxe?
    par exemple|exemples?|pourrai(?:t|s|ent)|ne|jamais
    schrieb|sagte|nutzer|a écrit|a dit|utilisateur|escribió|dijo|usuario
    por ejemplo|ejemplos?|podrías?|podría(?:n|mos)|nunca
    """  # noqa: E501 - one phrase a line
)
"""A lead like this makes what follows an example, a condition, a report or a refusal."""

_MAKES: Final = re.compile(
    r"\b(?:i[’']?ll|i will|i[’']?m|i am|let me|let[’']?s|we[’']?ll|we will|we are"
    r"|(?:i|we) (?:can|need|have to|want|now|must|shall|use|call|make|send)"
    r"|ich (?:rufe|werde|führe|suche|hole|sende)|je (?:vais|lance|cherche)|voy a|déjame"
    r"|calling|executing|invoking|performing|using)\b|我将|我来|让我|正在|我会"
    r"|\bhere(?: is|[’']s| are)\b[^:.\n]{0,60}+(?<=[\w:])"
    r"|(?:\A\W*+|\b(?:the|my|final|first|second|third|fourth|next|last|correct|corrected|function|tool"
    r"|api|necessary|needed|required)[ _])"
    r"(?:calls?|actions?|answers?|outputs?|results?|responses?|solution|api request|function)"
    r"(?: (?:is|are|to|for|with)\b[^:.\n]{0,160}+)?+:?+\Z",
    re.IGNORECASE,
)
"""A lead like this says that what follows is done now."""
_HERE_IS_OTHER: Final = re.compile(
    r"\bhere(?: is|[’']s| are)\b[^:.\n]{0,40}?\b(?:codes?|commands?|drafts?|scripts?|lines?|snippets?"
    r"|requests? (?:you|we|that)|templates?|formats?|what)\b|\w > \w",
    re.IGNORECASE,
)
_REFERS: Final = _phrases(
    r"""
    you|your|yours
    this|these|the following|below|such|something like
    was|were|had|sent|returned|responded|responds|said|says|wrote|answered|received|is|are|has|have|contains?
    might|may|could|should|would|must|not|never
    codes?|scripts?|lines?|drafts?|general form|formats?|requests?|messages?|input|commands?|console|synopsis
    quick ?start|getting started|agreed|in case|after|before|tools? (?:returned|said)|response from
    """  # noqa: E501 - one phrase a line
)
"""A lead that speaks of the text itself, and not of the task that the call is for."""
_WRAPPER_TAG: Final = re.compile(
    r"<[^<>\s]{0,40}?(?:tool|func|call|action|invoke|exec)[^<>\n]{0,80}+>\s*+\Z", re.IGNORECASE
)
_MARKUP: Final = re.compile(r"<[|/?!]?+[\w:. =\"'-]{0,80}+[|?/]?+>|<!--|-->")
_WORD: Final = re.compile(r"[^\W\d_]{3,}+|\d{2,}+")
_MAX_SUBJECTS: Final = 400
_STEM: Final = 6
"""How much of a word has to be the same: `calculate` and `calculation` are about the same."""
_MIN_WORDS: Final = 3
_GOES_ON: Final = re.compile(
    r"\W*+(?:(?:first|second|third|fourth|fifth|last)(?:ly)?+[,:.!]|next\b|now\b|then\b|finally\b"
    r"|lastly\b|also\b|step\b|task\b|question\b|sure\b|ok\b|okay\b|alright\b|great\b|certainly\b"
    r"|of course|got it|yes\b|no problem|absolutely\b|understood\b|one moment|thanks?\b|done\b"
    r"|action\b|tool\b|(?:function|tool)_calls?\b|[^\W\d_]{2,}?ing\b)",
    re.IGNORECASE,
)
"""A lead like this goes on with the work."""
_HELPS: Final = re.compile(
    r"\b(?:anything else|any (?:other|more|further)|else|help|assist|more about|other questions)\b",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(r"[^.!?\n\"'(){}\[\]<>]++[?？](?=[\s*_)”]|\Z)")
_WAITS: Final = _phrases(
    r"""
    (?:please |to )?(?:confirm|approve)|approval|your (?:permission|consent|ok|okay|go-ahead|review)
    once you|when you (?:are|say)|tell me when|your (?:pick|choice|call)|nothing (?:has been|was)
    not (?:been )?(?:run|executed|sent|made) yet|lean towards
    say (?:yes|so|the word)|waiting for|awaiting|review it|any objections|pick one|choose one
    """
)
_SPEAKS_OF_IN_CHINESE: Final = re.compile("例如|比如|示例|可以使用|不会|不要|如果|已经|写道")

_ASKS: Final = _phrases(
    r"""
    (?:shall|should|may|can|could) (?:i|we)
    would you (?:like|prefer|want|mind)
    do(?:es)? (?:you|that|this) (?:want|need|like|look|seem|sound|work|mean)
    (?:want|like) me to
    ok(?:ay)? (?:if|to|with)
    is (?:this|that|it) (?:ok|okay|right|correct|fine|what)
    go ahead|proceed|confirm|permission|approve
    let me know (?:if|whether|when) (?:i|you(?:'d| would| want)|this|that|it|we)
    which (?:one|of (?:them|these|the))|what do you (?:think|prefer|say)|what happens
    soll(?:en)? (?:ich|wir)|darf ich|kann ich|möchte(?:n|st) (?:sie|du)|woll(?:en|t) sie|willst du
    voulez-vous|veux-tu|dois-je|puis-je|est-ce que|souhaitez-vous
    quieres?|debo|puedo|te parece|lo ejecuto|desea[s]?
    """
)
"""A question with one of these asks for leave."""
_ASKS_IN_CHINESE: Final = re.compile("(?:吗|要我|需要我|是否|好不好)[^。！\n]{0,80}+？|吗？")
_TAKES_BACK: Final = re.compile(
    r"[\W_]{0,8}+(?:(?:actually|oh|oops|hmm?|sorry|no|well|but|correction)\b[,.: ]{0,3}+){0,3}+"
    r"(?:wait\b|hold on|correction|i (?:should|do|did|must|need|will) ?not|i don[’']t"
    r"|(?:ignore|forget|disregard|undo|cancel|scratch|strike|drop|discard|withdraw|revert)"
    r" (?:that|this|it|the (?:above|line|call|last))\b"
    r"|never ?mind|on second thoughts?|no (?:tool |function )?calls? (?:is|are|was) needed"
    r"|on reflection|do not (?:run|use|send)|don[’']t (?:run|use|send)"
    r"|(?:that|this|it|the above)(?: (?:tool|call|one|line))? (?:is|was|can) ?(?:not\b|wrong|the wrong|only |just |merely |simply ))",
    re.IGNORECASE,
)
"""Words right behind a call that take it back."""
_REPORTS: Final = re.compile(
    r"[\W_]{0,8}+(?:(?:it|this|that|which|the (?:call|tool|function)) (?:returned|gave|failed|worked))\b",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"(?:in case|should the|assuming|after you|before you|if|once|unless|when(?:ever)?|as soon as"
    r"|until|pending|only|wenn|falls|sobald|si|cuando|quand|lorsque)\b",
    re.IGNORECASE,
)
_STEP: Final = re.compile(r"[\s*#]{0,8}+(?:step )?\d{1,2}+[.:)]", re.IGNORECASE)
_TIME_OF_DAY: Final = re.compile(
    r"(?<!\d)[012]?+\d:[0-5]\d(?!\d)|^\W{0,2}+(?:INFO|DEBUG|WARN|WARNING|ERROR|TRACE)\b"
)
_SPEAKER: Final = re.compile(r"\s*+[^\W\d][^\n:]{0,40}+:\s*+")
_NEXT_SPEAKER: Final = re.compile(r"[ \t*]*+[^\W\d][\w .()-]{0,40}+:[ \t*]++\S")
_CHOICE: Final = re.compile(
    r"[\s*#-]{0,8}+(?:option|version|variant|alternative|choice) \w{1,3}+[):.]", re.IGNORECASE
)
_DIFF: Final = re.compile(r"^(?:@@ -\d|\+\+\+ |diff --git )", re.MULTILINE)
_TABLE_RULE: Final = re.compile(r"^[ \t|:]{0,8}+-{3,}+[ \t:]{0,8}+\|", re.MULTILINE)
_COMMENT_LINE: Final = re.compile(r"\s*+(?:#|//|--|/\*|<!--)")

_ANNOUNCES: Final = _phrases(
    r"""
    i[’']?ll|i will|i[’']?m|i am|let me|let[’']?s|going to|need to|want to|have to|must
    calling|running|executing|invoking|using|performing|making|issuing
    """
)
_COMMANDS: Final = re.compile(
    r"(?:^|[.!:;,]\s|\b(?:and|then|now|first|next|please),? )"
    r"(?:call|invoke|execute|run|use|make)\b",
    re.IGNORECASE,
)
_NAMES_IT: Final = re.compile(
    r"\b(?:calls?|action|answer|output|response|result|command|function|tool|step \d++)\b"
    r"[^.!?\n]{0,40}+(?<=[:=→>s])\Z",
    re.IGNORECASE,
)
_MAX_ANNOUNCEMENT: Final = 60
_STOPS: Final = re.compile(r"[.!?\n]")
ECHOES: Final = (
    "tool_response", "tool_result", "tool_results", "tool_output", "function_result",
    "function_results", "function_response", "observation", "result", "results",
)  # fmt: skip
"""Tags around the result of a call, which a model repeats or makes up."""
_ECHO_LABEL: Final = re.compile(
    r"(?:^|\n)[*#\[ ]{0,4}+(?:observation|(?:tool|function|api)[ _](?:result|output|response|answer)s?)\b[^\n]{0,20}+\Z",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"(?:[^\n.!?:]|:(?!\s*+\Z)){0,80}+:\s*+\Z")
_ASSIGNMENT: Final = re.compile(
    r"(?:(?:const|let|var|await|return|yield|(?:print|str|json\.dumps)(?:\(|\Z))\s*+"
    r"|[^\W\d][\w.]*+(?:\[[^\]\n]*+\])?+\s*+=\s*+)++\Z"
)
_ITEM: Final = re.compile(r"\s*+(?:[-*+•→]|\(?\d{1,3}+[.):]|[a-z][.)])?+\s*+")
_QUOTED_LINE: Final = re.compile(r"\s*+(?:>|>>>|\||//|#|\$|%|!|\+\+\+|---|@@|\d{4}-\d\d-\d\d)")
_NOT_CALLED: Final = re.compile(
    r"\b(?:def|class|assert|import|from|function|fn|func|new|async def)\s"
)
_QUOTES: Final = "\"'“”„‘«»‹›"
_AROUND: Final = "`*_([ "
_AFTER_AROUND: Final = "`*_)] \"'"
_CODE_INDENT: Final = 4
_AFTER_CALL: Final = re.compile(
    r"\s*+(?:->|=>|→|==?|!=|—|–|:\s*+\w|-\s++\w|vs\b|\(\d"
    r"|(?:returns?|would|could|can|is|was|were|are|will|gives?|takes?|means?|should|might|may|has"
    r"|had|works?|fail(?:s|ed)?|raises?|took|did|does|looks?|seems?|or|when|if|instead)\b)",
    re.IGNORECASE,
)
_PROGRAM: Final = re.compile(
    r"^\s*+(?:def|class|import|from|for|while|if|elif|else|try|except|with|assert|function|return|"
    r"raise|async|public|private|const|let|var|\$|>>>|\.\.\.)\b|^\s*+(?:>>>|\$ )",
    re.MULTILINE,
)


class Fence(Struct, frozen=True):
    """A block of code: where it and its body begin and end, and its language."""

    start: int
    body: int
    body_end: int
    end: int
    language: str


def find_fences(text: str) -> list[Fence]:
    """Return the fenced blocks of a text; one that is not closed goes to its end."""
    fences: list[Fence] = []
    opened: re.Match[str] | None = None
    for line in _FENCE_LINE.finditer(text):
        if opened is None:
            opened = line
        elif line[1].startswith(opened[1]) and not line[2].strip():
            fences.append(_fence(opened, line.start(), line.end()))
            opened = None
    if opened is not None:
        fences.append(_fence(opened, len(text), len(text)))
    return fences


def _fence(opened: re.Match[str], body_end: int, end: int) -> Fence:
    language = opened[2].strip().lower()
    return Fence(opened.start(), opened.end() + 1, body_end, end, language)


class Place(Struct, frozen=True):
    """Calls next to each other: where they stand, and how much of the text they are."""

    start: int
    end: int
    is_in_list: bool = False
    """Whether brackets stand around them, or quotes inside brackets."""
    has_arguments: bool = True
    subjects: frozenset[str] = frozenset()
    """Words that the calls are about."""


def why_mention(text: str, place: Place, fence: Fence | None, rest: list[tuple[int, int]]) -> str:
    """Return why calls are only spoken of; empty when they are made.

    Args:
        text: The whole text.
        place: Where the calls stand.
        fence: The block of code they are in, if any.
        rest: Where other calls stand in the same block of code.
    """
    start, end = place.start, place.end
    if fence is not None:
        if fence.language.split(" ")[0] not in _CALL_LANGUAGES:
            return "it is in a block of code of another language"
        if _is_program(text, fence, rest):
            return "it is a part of a program"
        if _COMMENT_LINE.match(text, text.rfind("\n", 0, start) + 1, start):
            return "it is in a comment"
        start, end = fence.start, fence.end
    else:
        why = _judge_line(text, place, rest)
        if why:
            return why
    lead, trail = lead_of(text, start), trail_of(text, end)
    if speaks_of(lead, place.subjects):
        return "the text before it speaks of a call that could be made"
    if _asks(trail) or _asks_leave(trail):
        return "the text asks whether to make it"
    if _TAKES_BACK.match(trail.lstrip(_AFTER_AROUND + "\n")):
        return "the text behind it takes it back"
    if _REPORTS.match(trail.lstrip(_AFTER_AROUND + "\n")):
        return "the text behind it says what became of it"
    if _is_instruction(text, start, trail, rest):
        return "it is a step of an instruction"
    return ""


def subjects_of(calls: Iterable[TextCall]) -> frozenset[str]:
    """Return what calls are about: the words of their names and arguments."""
    words = _WORD.findall(" ".join(f"{call.name} {call.arguments}" for call in calls).lower())
    return _stems(words[:_MAX_SUBJECTS])


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in words)


def speaks_of(lead: str, subjects: frozenset[str]) -> bool:
    """Tell whether words before a call make it one that is only spoken of, or asked about."""
    if _CONDITION.match(lead.lstrip()):
        return True
    if _SPEAKS_OF.search(lead) or _SPEAKS_OF_IN_CHINESE.search(lead) or _ECHO_LABEL.search(lead):
        return True
    return _asks(lead) or _refers_to_it(lead, subjects)


def _refers_to_it(lead: str, subjects: frozenset[str]) -> bool:
    """Tell whether the last words before a call speak of it as a text, or need it to go on.

    An announcement ("I'll look it up:") does not, nor does a task ("The weather in Oslo:"), which
    has words with the call in common.
    """
    lines = [line for line in _MARKUP.sub(" ", lead).split("\n") if line.strip(" -=*#")]
    clause = lines[-1] if lines else ""
    clause = clause.rpartition("}")[2].strip("*_ `#-")
    if _HERE_IS_OTHER.search(clause):
        return True
    if _MAKES.search(clause):
        return False
    if _REFERS.search(clause):
        return True
    if clause.endswith((".", "!")) or not _WORD.search(clause) or _GOES_ON.match(clause):
        return False
    leads_in = clause.endswith(":") or len(clause.split()) >= _MIN_WORDS
    return leads_in and subjects.isdisjoint(_stems(_WORD.findall(clause.lower())))


def _asks_leave(trail: str) -> bool:
    """Tell whether the text behind a call waits for an answer before it is made."""
    if _WAITS.search(trail):
        return True
    return any(not _HELPS.search(it.group()) for it in _QUESTION.finditer(trail))


def _is_instruction(text: str, start: int, trail: str, rest: list[tuple[int, int]]) -> bool:
    """Tell whether a call is in one of several steps, and the next one is not a call."""
    step = _STEP.match(trail)
    if step is None or any(begun > start and begun - start < len(trail) for begun, _ in rest[1:]):
        return False
    return any(map(_STEP.match, text[max(0, start - _MAX_LEAD) : start].split("\n")))


def _is_program(text: str, fence: Fence, rest: list[tuple[int, int]]) -> bool:
    body: list[str] = []
    here = fence.body
    for start, end in sorted(rest):
        if fence.body <= start and end <= fence.body_end:
            body.append(text[here:start])
            here = end
    body.append(text[here : fence.body_end])
    return bool(_PROGRAM.search("_".join(body)))


def _is_dialogue(text: str, at: int, rest: list[tuple[int, int]]) -> bool:
    """Tell whether somebody else speaks on the next line, which ends no call."""
    if at < 0 or any(at < begun for begun, _ in rest):
        return False
    return _NEXT_SPEAKER.match(text, at + 1) is not None


def _judge_line(text: str, place: Place, rest: list[tuple[int, int]]) -> str:
    """Return why calls among text are only spoken of, by the line they stand on."""
    begun = text.rfind("\n", 0, place.start) + 1
    stop = text.find("\n", place.end)
    prefix = text[begun : place.start]
    suffix = text[place.end : len(text) if stop < 0 else stop]
    if prefix.strip() and _QUOTED_LINE.match(prefix):
        return "it is in a quoted line"
    if _TIME_OF_DAY.search(prefix):
        return "it is in a log"
    if _SPEAKER.fullmatch(prefix.rstrip(_AROUND)) and _is_dialogue(text, stop, rest):
        return "it is in a dialogue"
    if _CHOICE.match(prefix):
        return "it is one of several ways"
    if _DIFF.search(text, 0, place.start):
        return "it is in a list of changes"
    if "|" in prefix and _TABLE_RULE.search(text, 0, place.start):
        return "it is in a table"
    if _is_indented(prefix) and text[:begun].strip():
        return "it is in an indented block"
    if _NOT_CALLED.search(prefix):
        return "it is a definition"
    if "~~" in prefix and "~~" in suffix:
        return "it is struck through"
    is_in_quotes = prefix.rstrip(_AROUND)[-1:] in _QUOTES and bool(prefix.strip(_AROUND))
    if (is_in_quotes and not place.is_in_list) or _is_quoted_part(prefix, suffix):
        rest = text[: place.start] + text[place.end :]
        if rest.strip(f"{_AROUND}{_AFTER_AROUND}\n"):  # else all of the message is in them
            return "it is in quotation marks"
    prefix = _WRAPPER_TAG.sub("", prefix.rstrip(_AROUND + _QUOTES))
    return _judge_sentence(prefix, suffix, place)


def _is_indented(prefix: str) -> bool:
    margin = len(prefix) - len(prefix.lstrip())
    if not prefix.startswith("\t") and margin < _CODE_INDENT:
        return False
    return prefix.isspace() or bool(_ASSIGNMENT.fullmatch(prefix.lstrip()))


def _judge_sentence(prefix: str, suffix: str, place: Place) -> str:
    """Return why calls are only spoken of, by the words before and behind them on their line."""
    follows = suffix.lstrip(_AFTER_AROUND)
    if not place.has_arguments and (prefix.strip() or follows.strip("; .")):
        return "only its name is mentioned"
    words = _ITEM.sub("", prefix, count=1) if prefix.strip() else ""
    stands_alone = not words or _LABEL.fullmatch(words) or _ASSIGNMENT.search(words)
    if not stands_alone and not _is_announced(words, goes_on=follows[:1].isalpha()):
        return "it is a part of a sentence"
    if words and speaks_of(words, place.subjects):
        return "the sentence speaks of a call that could be made"
    if _AFTER_CALL.match(follows):
        return "the sentence goes on about it"
    if follows.rstrip().endswith("?"):
        return "it is a part of a question"
    return ""


def _is_announced(words: str, *, goes_on: bool) -> bool:
    """Tell whether the words before a call say that it is made now.

    A command whose sentence goes on behind it, as in `run ... at home`, is for somebody else.
    """
    if _NAMES_IT.search(words):
        return True
    for pattern in (_ANNOUNCES,) if goes_on else (_ANNOUNCES, _COMMANDS):
        for found in pattern.finditer(words):
            rest = words[found.end() :]
            if len(rest) <= _MAX_ANNOUNCEMENT and not _STOPS.search(rest):
                return True
    return False


def _is_quoted_part(prefix: str, suffix: str) -> bool:
    """Tell whether a quotation that began with other words on the line holds the call."""
    for opened, closed in (("“", "”"), ("«", "»"), ("„", "“"), ("‹", "›"), ("»", "«")):
        if prefix.rfind(opened) > prefix.rfind(closed) and closed in suffix:
            return True
    return prefix.count('"') % 2 == 1 and suffix.count('"') % 2 == 1


def lead_of(text: str, start: int) -> str:
    """Return the sentence before a place, and what precedes the place on its line."""
    before = text[max(0, start - _MAX_LEAD) : start].rstrip("`*_([{ \"'\n\t")
    cut = 0
    for found in _SENTENCE_END.finditer(before):
        if found.end() < len(before.rstrip()):
            cut = found.end()
    return before[cut:]


def trail_of(text: str, end: int) -> str:
    """Return the text behind a place, as far as it may still be about it."""
    return text[end : end + _MAX_TRAIL]


def _asks(text: str) -> bool:
    """Tell whether a question for leave stands in a text."""
    if _ASKS_IN_CHINESE.search(text):
        return True
    for found in _ASKS.finditer(text):
        stop = _SENTENCE_STOP.search(text, found.start())
        if (stop and stop.group() == "?") or found.group().lower().startswith("let me know"):
            return True
    return False
