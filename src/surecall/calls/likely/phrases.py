"""The words and marks around a call that make it a mention, or show that it is made."""

import re
from typing import Final

from surecall.base.patterns import lazy_pattern

FENCE_LINE: Final = lazy_pattern(r"^[ \t]{0,12}+(```++|~~~++)[ \t]*+([^\n`]*+)$", re.MULTILINE)
CALL_LANGUAGES: Final = frozenset(
    {
        "", "json", "json5", "jsonc", "jsonl", "python", "python3", "py", "text", "txt",
        "plaintext", "xml", "tool_code", "tool_call", "tool_calls", "tool", "tool_use",
        "function", "functions",
        "function_call", "function_calls", "api", "call", "action", "tool_json", "code",
    }
)  # fmt: skip
SENTENCE_STOP: Final = lazy_pattern(r"[.!?\n](?=\s|\Z)")
SENTENCE_END: Final = lazy_pattern(r"[.!?](?=\s)|\n\s*+\n|\n(?=\s*+(?:[-*•]|\d++[.)])\s)")
MAX_LEAD: Final = 300
MAX_TRAIL: Final = 400


def _phrases(lines: str) -> re.Pattern[str]:
    """Return a pattern that finds any of the phrases, one a line, as whole words."""
    phrases = [line.strip() for line in lines.strip().splitlines()]
    return lazy_pattern(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


SPEAKS_OF: Final = _phrases(
    r"""
    (?:you|one|we|they|users?|developers?|someone|anyone|programmers?|clients?|it)[ '](?:\w++ )?(?:can|could|may|might|would|should|need to|have to|must|d)
    for (?:example|instance)
    e\.g
    i\.e
    such as
    examples?
    sample(?=:|\Z| (?:calls?|code|json|requests?|usage|inputs?|outputs?|queries|query|tool|function)\b)
    would (?:look|be|have|return|give|call|use|run|need|invoke|then|mean)
    looks? like
    syntax|signature|usage|template|document(?:ation|ed)|docs
    (?:don'?t|do not|never|cannot|can'?t|won'?t|shouldn'?t|should not|wouldn'?t|will not|not) (?:\w++ ){0,3}(?:call|use|run|invoke|execute|send|make|do|write|try|need)
    (?:no need to|not going to|unable to|refuse to) (?:call|use|run|invoke|execute|send|make)
    (?:avoid|instead of|rather than|without) (?:call|us|runn|invok|execut|send|mak)ing
    earlier|previously|last (?:time|response|call|request|answer|message)|from the (?:ticket|chat|mail|report)|yesterday|already|used to|in the past
    history|logs?|transcript|tutorial|unit test|test case|pseudo-?code
    hypothetical(?:ly)?|imagine|suppose|assum(?:e|ing) (?:you|we|that you)|let[’']?s (?:say|assume|pretend|suppose)
    (?:this|that|these|it|which|what) (?:was|were|had)|next time|from now on
    quot(?:e|es|ed|ing)
    user (?:said|wrote|asked|pasted)
    afraid|sorry|apolog(?:y|ies|i[sz]e[sd]?)|regret(?:s|tably)?|unfortunately|declined?|unable|not able
    (?:have|has|had|with|is|are|there's) no|no (?:access|permission|right|need)
    deprecated|wrong|incorrect(?:ly)?|invalid|mistake|error was|failed|broken|bad
    if (?:you|we|i|the user|it|that|this|there|needed|necessary|so)
    (?:when(?:ever)?|once|as soon as|until|should|unless|provided) (?:you|i have your)|(?:(?<!based )on|at|with|pending) your
    i(?:[’']d| would) (?:go|use|call|try|run|send|suggest|do|start|pick|choose|propose|issue)|illustrat\w++
    (?:calls?|requests?|actions?|commands?) (?:rejected|denied|blocked|cancell?ed|skipped|aborted|dropped|ignored|queued|logged|recorded|stored|sent|executed)
    expects?|accepts?|supports|(?:takes|requires|wants|returns) (?:an?|one|two|its|as|no|only|either)
    how to|what happens|the difference|explain|describe[sd]?|definition|defined as
    (?:is|are|be) (?:used|called|written|invoked) (?:like|as|so|with|by)
    what (?:i|we) (?:ran|called|did|used|sent|tried|wrote)
    i(?: have|'ve|’ve)?(?: just)? (?:ran|called|executed|invoked|tried)
    refus(?:e|es|ed|ing)|dangerous|forbidden|possible|previous|instead of|typos?|propos(?:e|al)
    (?:must|should|need|can) ?not|isn't|aren't|not allowed
    demos?|the (?:assistant|agent|model) (?:answers|replies|says|writes|calls|runs)
    (?:script|code|file|log|trace|program|line|test) (?:has|had|was|is|reads|contains|says)
    traceback|this trace|the trace
    (?:response|request|message) body|payload|(?:steps?|actions?|calls?|measures?) (?:taken|made|done|performed|completed)
    \|---
    zum beispiel|z\. ?b|beispiel(?:e|aufruf)?|könnte(?:n|st)?|nicht|syntaxe?
    par exemple|exemples?|pourrai(?:t|s|ent)|ne|jamais
    schrieb|sagte|nutzer|a écrit|a dit|utilisateur|escribió|dijo|usuario
    por ejemplo|ejemplos?|podrías?|podría(?:n|mos)|nunca
    """  # noqa: E501 - one phrase a line
)
"""A lead like this makes what follows an example, a condition, a report or a refusal."""

MAKES: Final = lazy_pattern(
    r"\b(?:i[’']ll|i will|(?:i[’']m|i am|we[’']re|we are) (?:now |just |also )?+\w++(?<=ing)"
    r"|let me|let[’']?s|we[’']ll|we will"
    r"|(?:i|we) (?:need|have to|want|now|must|shall|use|call|make|send)"
    r"|ich (?:rufe|werde|führe|suche|hole|sende)|je (?:vais|lance|cherche)|voy a|déjame"
    r"|(?:function|tool) calls? (?:is|are)(?=:)"
    r"|calling|executing|invoking|performing|using)\b|我将|我来|让我|正在|我会|我先|现在|(?:します|致します|みます|ましょう)[。：:]?\Z"
    r"|\bhere(?: is|[’']s| are)\b[^:.\n]{0,60}+(?<=[\w:])"
    r"|(?:\A\W*+|\b(?:the|my|final|first|second|third|fourth|next|last|correct|corrected|function|tool"
    r"|api|necessary|needed|required)[ _])"
    r"(?:calls?|actions?|answers?|outputs?|results?|responses?|solution|api request|function)"
    r"(?: (?:is|are|to|for|with)\b[^:.\n]{0,160}+)?+:?+\Z",
    re.IGNORECASE,
)
"""A lead like this says that what follows is done now."""
HERE_IS_OTHER: Final = lazy_pattern(
    r"\bhere(?: is|[’']s| are)\b[^:.\n]{0,40}?\b(?:codes?|commands?|drafts?|scripts?|lines?"
    r"|snippets?"
    r"|requests? (?:you|we|that)|templates?|formats?|what)\b|\w > \w",
    re.IGNORECASE,
)
HANDS_OVER: Final = lazy_pattern(r"(?:\w++[,!.] )?here (?:you go|it is|we go)[:.!]?", re.IGNORECASE)
"""All that is said when something is handed over."""
REFERS: Final = _phrases(
    r"""
    you|your|yours
    this|these|the following|below|such|something like
    was|were|had|sent|returned|responded|responds|said|says|wrote|answered|received|is|are|has|have|contains?
    might|may|could|should|would|must|not|never
    codes?|scripts?|lines?|drafts?|general form|formats?|requests?|messages?|input|commands?|console|synopsis
    quick ?start|getting started|see also|agreed|in case|after|before|tools? (?:returned|said)|response from
    """  # noqa: E501 - one phrase a line
)
"""A lead that speaks of the text itself, and not of the task that the call is for."""
WRAPPER_TAG: Final = lazy_pattern(
    r"(?:<[^<>\s]{0,40}?(?:tool|func|call|action|invoke|exec)[^<>\n]{0,80}+>"
    r"|\[(?:tool|func|call|action)[\w ]{0,20}+\]|(?:^|[>\s])(?:tool|function)_calls?+>?+"
    r"|(?:^|>)call:(?:default_api:)?+)\s*+\Z",
    re.IGNORECASE,
)
TOKENS: Final = lazy_pattern(r"(?:<\|[\w ]{1,40}+\|>\s*+|<\?xml[^<>\n]{0,80}+>\s*+|<!\[CDATA)++\Z")
"""Tokens of a template, or the start of a document, right before a call."""
MARKUP: Final = lazy_pattern(r"<[|/?!]?+[\w:. =\"'-]{0,80}+[|?/]?+>|<!--|-->")
GOES_ON_BEHIND: Final = lazy_pattern(
    r"[\s.,;:!*`\"'()\]}>]*+(?:\Z|\n|[A-Z<#+&|]|//|--|\[\s*+[-\d\"'/]|\.\w|(?:to|for|and|then|so|as|while"
    r"|because|since|which will|please|now(?! \w++(?<=s)\b)|next)\b)"
)
"""What may stand behind a call on its line: a new sentence, a comment, indexing or a purpose."""
EAST_ASIAN: Final = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""A letter of a script that puts no spaces between words."""
GOES_ON_BELOW: Final = lazy_pattern(r"[`*_ \t]{0,8}+\n\s{0,8}+(?:[a-z]{2,}+,? ){1}[a-z]{2,}+\b")
"""A line behind a call that begins like the middle of a sentence."""
IN_ELEMENT: Final = lazy_pattern(r"<([^\W\d][\w.:-]{0,60}+)(?:\s[^<>]{0,200}+)?+>\Z")
AROUND_CALLS: Final = lazy_pattern(
    "tool|func|call|action|invoke|use|exec|answer|response|assistant", re.IGNORECASE
)
"""Names of elements that models put around calls."""
WORD: Final = lazy_pattern(r"[^\W\d_]{3,}+|\d{2,}+")
MAX_SUBJECTS: Final = 400
STEM: Final = 6
"""How much of a word has to be the same: `calculate` and `calculation` are about the same."""
MAX_REMARK_WORDS: Final = 4
"""A finished sentence of so few words, such as "I look.", is a remark and speaks of nothing."""
GOES_ON: Final = lazy_pattern(
    r"\W*+(?:(?:first|second|third|fourth|fifth|last)(?:ly)?+[,:.!]|next\b|now\b|then\b|finally\b"
    r"|lastly\b|also\b|step\b|task\b|question\b|sure\b|ok\b|okay\b|alright\b|great\b|certainly\b"
    r"|of course|got it|yes\b|no problem|absolutely\b|understood\b|one moment"
    r"|thanks?\b|done\b"
    r"|action\b|tool\b|assistant\s*+:?+\s*+\Z|(?:thoughts?|reasoning):|(?:function|tool|api)_\w++|[^\W\d_]{2,30}?ing\b)",
    re.IGNORECASE,
)
"""A lead like this goes on with the work."""
HELPS: Final = lazy_pattern(
    r"\b(?:anything else|any (?:other|more|further)|else|help|assist|more about|other questions"
    r"|another|more information|explain)\b",
    re.IGNORECASE,
)
MAKES_IT: Final = lazy_pattern(
    r"\b(?:run|call|proceed|go ahead|execute|send|continue|do (?:it|this|that)|this|it)\b",
    re.IGNORECASE,
)
QUESTION: Final = lazy_pattern(r"[^.!?\n\"'(){}\[\]<>]++[?？](?=[\s*_)”]|\Z)")
WAITS: Final = _phrases(
    r"""
    (?:please |to )?(?:confirm|approve)|approval|your (?:permission|consent|ok|okay|go-ahead|review)
    from you|once you|when you (?:are|say)|tell me when|your (?:pick|choice|call)
    nothing (?:has been|was)
    not (?:been )?(?:run|executed|sent|made) yet|lean towards
    say (?:yes|so|the word)|waiting for|awaiting|review it|any objections|pick one|choose one
    """
)
WAITS_IN_CHINESE: Final = lazy_pattern("确认|同意|许可|批准|確認|承認|許可|告诉我")
SPEAKS_OF_IN_CHINESE: Final = lazy_pattern(
    "例如|比如|示例|可以使用|不会|不能|不要|无法|如果|已经|写道|抱歉|遗憾|之后|以后"
    "|确认|同意|许可|批准|格式|形式|確認|承認|許可"
    "|例えば|たとえば|ません|ました|でした|申し訳|もし"
)

ASKS: Final = _phrases(
    r"""
    (?:shall|should|may|can|could) (?:i|we)
    would you (?:like|prefer|want|mind)
    do(?:es)? (?:you|that|this) (?:want|need|like|look|seem|sound|work|mean)
    (?:want|like) me to
    ok(?:ay)? (?:if|to|with)
    is (?:this|that|it) (?:ok|okay|right|correct|fine|what)
    go ahead|proceed|confirm|permission|approve
    let me know (?:if|whether|when) (?:i|you(?:'d| would| want)|this|that|it|we)
    tell me (?:if|whether|when)
    which (?:one|of (?:them|these|the))|what do you (?:think|prefer|say)|what happens
    soll(?:en)? (?:ich|wir)|darf ich|kann ich|möchte(?:n|st) (?:sie|du)|woll(?:en|t) sie|willst du
    voulez-vous|veux-tu|dois-je|puis-je|est-ce que|souhaitez-vous
    quieres?|debo|puedo|te parece|lo ejecuto|desea[s]?
    """
)
"""A question with one of these asks for leave."""
ASKS_IN_CHINESE: Final = lazy_pattern(
    "(?:吗|要我|需要我|是否|好不好)[^。！\n]{0,80}+？|吗？|(?:か|でしょう|かな)[？?。]"
)
FILL_IN: Final = lazy_pattern(
    r"\b(?:replace|substitute|fill in|insert)\b[^.!?\n]{1,80}+[.!]?+", re.IGNORECASE
)
"""Words behind a call that leave its values to the reader."""
TAKES_BACK: Final = lazy_pattern(
    r"[\W_]{0,8}+(?:(?:actually|oh|oops|hmm?|sorry|no|well|but|correction)\b[,.: ]{0,3}+){0,3}+"
    r"(?:wait\b|hold on|correction|i (?:should|do|did|must|need|will) ?not|i don[’']t"
    r"|(?:ignore|forget|disregard|undo|cancel|scratch|strike|drop|discard|withdraw|revert)"
    r" (?:that|this|it|the (?:above|line|call|last))\b"
    r"|never ?mind|on second thoughts?|no (?:tool |function )?calls? (?:is|are|was) needed"
    r"|on reflection|or rather|(?:rather|better) not|(?:do not|don[’']t) (?:run|use|send)"
    r"|(?:that|this|it) would be (?:wrong|a mistake)"
    r"|(?:that|this|it|the above)(?: (?:tool|call|one|line))? (?:is|was|can) ?"
    r"(?:not\b|wrong|the wrong|only |just |merely |simply ))",
    re.IGNORECASE,
)
"""Words right behind a call that take it back."""
REPORTS: Final = lazy_pattern(
    r"[\W_]{0,8}+(?:it|this|that|which|the (?:call|tool|function))"
    r" (?:returned|gave|failed|worked)\b",
    re.IGNORECASE,
)
CONDITION: Final = lazy_pattern(
    r"(?:in case|should the|assuming|after you|before you|if|once|unless|when(?:ever)?|as soon as"
    r"|until|pending|only|wenn|falls|sobald|si|cuando|quand|lorsque)\b",
    re.IGNORECASE,
)
STEP: Final = lazy_pattern(r"[\s*#]{0,8}+(?:step )?\d{1,2}+[.:)]", re.IGNORECASE)
TIME_OF_DAY: Final = lazy_pattern(
    r"(?<!\d)[012]?+\d:[0-5]\d(?!\d)|^\W{0,2}+(?:INFO|DEBUG|WARN|WARNING|ERROR|TRACE)\b"
)
OTHER_SPEAKER: Final = lazy_pattern(
    r"^[\W_]{0,6}+(?:user|human|system|customer)\b[^\n:]{0,20}+:", re.MULTILINE | re.IGNORECASE
)
SPEAKER: Final = lazy_pattern(r"\s*+[^\W\d][^\n:]{0,40}+:\s*+")
NEXT_SPEAKER: Final = lazy_pattern(r"[ \t*]*+[^\W\d][\w .()-]{0,40}+:[ \t*]++\S")
CHOICE: Final = lazy_pattern(
    r"[\s*#-]{0,8}+(?:option|version|variant|alternative|choice) \w{1,3}+[):.]", re.IGNORECASE
)
OUTPUT: Final = lazy_pattern(
    r"\s*+(?i:output|answer|response|completion|assistant)\s*+:\s*+[`\"']?+"
)
EXAMPLE_INPUT: Final = lazy_pattern(
    r"(?i:(?:examples?|shots?|demo)\b[^\n]{0,40}+\n\s*+(?:input|question|prompt|user|query)\s*+:"
    r"|(?:^|\n)[\W_]{0,4}+(?:input|prompt|query)[*_ ]{0,3}+:[^\n]{1,200}+\n\s{0,4}+\Z)"
)
COMMENT_LINE: Final = lazy_pattern(r"\s*+(?:#|//|--|/\*|<!--)")

ANNOUNCES: Final = lazy_pattern(
    r"\b(?:(?:i[’']ll|i will|i[’']m|i am|let me|let[’']?s|we[’']ll|we will|going to|need to|want to"
    r"|have to|must)\b(?=[^.!?;\n]{0,80}?\b(?:call|us|run|invok|execut|mak|issu|send|perform|try|do"
    r"|start|begin|appl|employ|utili[sz]|query|quer|look|search|check|fetch|get|find|calculat|comput"
    r"|retriev|determin|request|submit|creat|set|book|updat|add|convert|solv)(?:e|y|n?ning|ing)?\b)"
    r"|(?:calling|running|executing|invoking|using|performing|making|issuing)\b)",
    re.IGNORECASE,
)
"""Words that say of the call behind them that it is made: somebody, and what is done."""
COMMANDS: Final = lazy_pattern(
    r"(?:^|[.!:;]\s)\W*+(?:(?:and|then|now|first|next|finally|please),? )?+"
    r"(?:call|invoke|execute|run|use|make)\b",
    re.IGNORECASE,
)
NAMES_IT: Final = lazy_pattern(
    r"\b(?:calls?|action|answer|output|response|result|command|function|tool|step \d++)\b"
    r"[^.!?;\n]{0,40}+(?<=[:=→>s])\Z",
    re.IGNORECASE,
)
FIRST_PERSON: Final = lazy_pattern(
    r"\b(?:i|me|my|we|us|let[’']?s|ich|wir|je|nous|yo)\b", re.IGNORECASE
)
ABOUT_CALLS: Final = lazy_pattern(r"\b(?:call|function|tool|calculation)", re.IGNORECASE)
MAX_ANNOUNCEMENT: Final = 60
STOPS: Final = lazy_pattern(r"[.!?;\n。！？；]")
ECHOES: Final = (
    "tool_response", "tool_result", "tool_results", "tool_output", "function_result",
    "function_results", "function_response", "observation", "result", "results",
)  # fmt: skip
"""Tags around the result of a call, which a model repeats or makes up."""
ECHO_LABEL: Final = lazy_pattern(
    r"(?:^|\n)[*#\[ ]{0,4}+(?:observation"
    r"|(?:tool|function|api)[ _](?:result|output|response|answer)s?)\b[^\n]{0,20}+\Z",
    re.IGNORECASE,
)
LABEL: Final = lazy_pattern(r"(?:[^\n.!?:]|:(?!\s*+\Z)){0,80}+:\s*+\Z")
ASSIGNMENT: Final = lazy_pattern(
    r"(?:(?:const|let|var|await|return|yield|(?:print|str|json\.dumps)(?:\(|\Z))\s*+"
    r"|[^\W\d][\w.]*+(?:\[[^\]\n]*+\])?+\s*+=\s*+)++\Z"
)
ITEM: Final = lazy_pattern(r"\s*+(?:[-*+•→]|\(?\d{1,3}+[.):]|[a-z][.)])?+\s*+")
ITEM_MARK: Final = lazy_pattern(r"\s*+(?:[-*+•]|\(?\d{1,3}+[.):]|[a-z][.)])\s|\s*+\Z")
QUOTED_LINE: Final = lazy_pattern(r"\s*+(?:>|>>>|\||//|#|\$|%|!|\+\+\+|---|@@|\d{4}-\d\d-\d\d)")
NOT_CALLED: Final = lazy_pattern(
    r"\b(?:def|class|assert|import|from|function|fn|func|new|async def)\s"
)
QUOTES: Final = "\"'“”„‘«»‹›"
AROUND: Final = "`*_([{ "
AFTER_AROUND: Final = "`*_)]} \"'"
CODE_INDENT: Final = 4
AFTER_CALL: Final = lazy_pattern(
    r"\s*+(?:->|=>|→|==?|!=|—|–|:\s*+\w|-\s++\w|vs\b|\(\d"
    r"|(?:returns?|would|could|can|is|was|were|are|will|gives?|takes?|means?|should|might|may|has"
    r"|had|gave|made|ran|came|yield(?:s|ed)|produce[sd]?|show(?:s|ed)|finished|completed|succeeded"
    r"|ended|worked|works?|fail(?:s|ed)?|raises?|took|did|does|looks?|seems?|or|when|if|instead)\b)",
    re.IGNORECASE,
)
PROGRAM: Final = lazy_pattern(
    r"^\s*+(?:def|class|import|from|for|while|if|elif|else|try|except|with|assert|function|return|"
    r"raise|async|public|private|const|let|var|\$|>>>|\.\.\.)\b|^\s*+(?:>>>|\$ )",
    re.MULTILINE,
)
