"""Whether a reply can be delivered: read, checked, and put into the client's format.

Everything here is decided from bytes; nothing is sent.
"""

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.background import read_in_thread
from surecall.base.errors import Code, JSONTextError, ProviderError, ProviderReplyError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.limits import MAX_INLINE_CHARACTERS
from surecall.base.records import (
    Defect,
    Envelope,
    ErrorDetail,
    Reading,
    Receipt,
    Reply,
    ToolCall,
)
from surecall.base.redaction import excerpt
from surecall.calls import ToolNames
from surecall.reading import (
    READING_RULES,
    RULES,
    find_broken_attempt,
    may_be_rescued,
    parse_object_reply,
    read_reply,
    rescue_receipts,
    rescue_reply,
    without_rules,
)
from surecall.reading.rules import FUNCTION_CALL_TO_CALLS
from surecall.reading.taught import with_receipts
from surecall.text import decode, encode
from surecall.tools.feedback import explain_arguments_unread, explain_not_allowed
from surecall.wire import RawReply
from surecall.wire.chat_completions import ChatCompletions
from surecall.wire.chat_completions.replies import is_function
from surecall.wire.replies import make_finite
from surecall.wire.rewriting import FINISH_RULE, TYPE_RULE, is_from_text
from surecall.wire.substitutes import restore_names

from .checks import read_clean
from .history import HISTORY_RULES
from .ladder import takes_list
from .policy import ParseError, Policy, RefusedCalls, Route, Sent
from .prepare import Asked
from .request import ClientRequest, CompiledTools
from .signatures import give_own_ids
from .thoughts import MOVE_RULE, Split, ThoughtSplitter, begins_thought
from .verdict import (
    CHOICE_RULE,
    TELL_RULE,
    Choices,
    Salvage,
    Verdict,
    fit_call_ids,
    make_plan,
    note_stop,
    own_error,
    reply_with,
    salvage_calls,
    says_calls,
)
from .wording import demand_call, explain_doubt, explain_not_run

DROP_RULE: Final = "drop_parallel_calls"
SNIPPET: Final = 200
"""How many characters of a reply are shown to say why it cannot be used."""


def describe_error(asked: Asked, first: ErrorDetail, reply: Reply, reading: Reading) -> ParseError:
    """Return why calls could not be used, with what the model wrote."""
    shown = reading.calls[0].raw
    if is_from_text(reading) and reply.content != reading.content:
        shown = reply.content  # with the call in it, as whole replies have it
    text = shown if isinstance(shown, str) else str(shown)
    return ParseError(asked.mode, first.code, excerpt(text, SNIPPET))


def is_likely_text(reading: Reading, reply: Reply) -> bool:
    """Tell whether a reply is text that only may be a call: it may as well be an answer."""
    has_text = bool((reply.content or "").strip()) or is_from_text(reading)
    return (
        has_text
        and not (reply.calls or reply.malformed)
        and all(call.certainty == "likely" and call.arguments is not None for call in reading.calls)
    )


def without_others(raw: RawReply) -> tuple[RawReply, bool]:
    """Leave calls of tools that are not functions out of what is read; they stay as they are."""
    entries = raw.message.get("tool_calls")
    if not isinstance(entries, list):
        return raw, False
    own = [entry for entry in as_list(entries) if is_function(as_fields(entry))]
    if len(own) == len(as_list(entries)):
        return raw, False
    return replace(raw, message={**raw.message, "tool_calls": own}), True


def leave_others(reply: Reply, tools: CompiledTools) -> tuple[Reply, bool]:
    """Do the same where such calls look like calls of functions."""
    own = tuple(call for call in reply.calls if not tools.is_other(call.name, call.extra))
    if len(own) == len(reply.calls):
        return reply, False
    return replace(reply, calls=own), True


def without_notes(reading: Reading, names: tuple[str, ...]) -> Reading:
    """Return a reading without receipts of some rules and defects of some codes."""
    calls = tuple(
        replace(call, receipts=tuple(item for item in call.receipts if item.rule not in names))
        for call in reading.calls
    )
    defects = tuple(item for item in reading.defects if item.code not in names)
    return replace(reading, calls=calls, defects=defects)


def take_one(reading: Reading) -> tuple[Reading, tuple[Receipt, ...]]:
    """Keep the first call, where only one is taken; the model can make others later."""
    if len(reading.calls) < 2:
        return reading, ()
    why = "one call is taken in a reply"
    names = [call.name for call in reading.calls[1:]]
    receipt = Receipt(DROP_RULE, "/tool_calls", names, None, lossless=False, why=why)
    note = f"One call is taken in a reply; these were made as well: {', '.join(names)}."
    defects = (*reading.defects, Defect(Code.CALLS_IGNORED, note, "/tool_calls"))
    return replace(reading, calls=reading.calls[:1], defects=defects), (receipt,)


def decode_or_none(body: bytes) -> dict[str, Any] | None:
    """Return the object of a body, when it is one; reading it says what else it is."""
    try:
        value = decode(body, surrogates="replace")
    except JSONTextError:
        return None
    return as_fields(value) if isinstance(value, dict) else None


FINITE_RULE: Final = "null_non_finite"
EXCHANGE_RULES: Final = (
    CHOICE_RULE,
    DROP_RULE,
    FINISH_RULE,
    FINITE_RULE,
    MOVE_RULE,
    TELL_RULE,
    TYPE_RULE,
    *HISTORY_RULES,
)
"""The rules of receipts besides those of reading."""
SCHEMA_RULES: Final = frozenset(rule for rule in READING_RULES if RULES[rule].family == "schema")
REPAIR_RULES: Final = frozenset(READING_RULES) - SCHEMA_RULES
_NO_TOOLS: Final = ToolNames()
_CHAT: Final = ChatCompletions()
_CALL_DEFECTS: Final = frozenset({Code.CALL_ENTRY_DROPPED, Code.MALFORMED_FUNCTION_CALL})
_NO_IDS: Final = ("assign_call_id", Code.ID_NOT_USABLE)
_NO_LIST: Final = (FUNCTION_CALL_TO_CALLS, Code.LEGACY_FUNCTION_CALL)
_MARK: Final = b"\xef\xbb\xbf"


def _note_finite(verdict: Verdict) -> Verdict:
    why = "figures that are not finite became null, which every client can read"
    receipt = Receipt(FINITE_RULE, "", None, None, lossless=False, why=why)
    if verdict.body is None:
        return verdict
    return replace(verdict, changed=True, receipts=(*verdict.receipts, receipt))


class ReplyChecker:
    """Checks the replies to one request of a client."""

    def __init__(self, request: ClientRequest, route: Route, policy: Policy) -> None:
        self._request = request
        self._route = route
        self._policy = policy
        self._names = request.tools.names if request.offers_tools else _NO_TOOLS
        self.one_call = request.one_call or route.lacks("supports_parallel_tools")
        """Whether one call is taken in a reply."""
        self._used: frozenset[str] | None = None
        self._doubted: set[tuple[str, str]] = set()
        """Calls of which a part may be missing; one that comes again in the same words is whole."""
        disabled = frozenset[str]()
        if not policy.allows("repair"):
            disabled |= REPAIR_RULES
        if not policy.allows("coerce"):
            disabled |= SCHEMA_RULES
        self._disabled = disabled
        self._usual: tuple[str, ...] = ()
        """Rules and codes of what a call in the endpoint's format lacks, and need not have."""
        if not route.protocol.traits.has_call_ids:
            self._usual += _NO_IDS
        if request.is_legacy:
            self._usual += _NO_LIST
        self.moves_thoughts = bool(self._names) and policy.text_formats and policy.allows("repair")
        """Whether reasoning in tags that a text begins with is delivered as reasoning."""

    async def check(self, sent: Sent, asked: Asked) -> Verdict:
        """Check what the endpoint answered."""
        if not 200 <= sent.status < 300:
            return self._check_error(sent, asked)
        look = partial(self._look, sent, asked)
        is_long = self._request.is_long or len(sent.body) > MAX_INLINE_CHARACTERS
        try:
            return await read_in_thread(look, is_long=is_long)
        except ProviderError as error:
            return Verdict(error=error)

    def _look(self, sent: Sent, asked: Asked) -> Verdict:
        document = None
        if sent.body[:3] == _MARK:  # which not every client reads
            sent = replace(sent, body=sent.body[3:])
        if asked.is_own:
            clean = read_clean(
                self._request,
                sent.body,
                self._policy.limits,
                text_formats=self._policy.text_formats,
            )
            if clean is not None and (clean.calls < 2 or not self.one_call):
                return Verdict(
                    body=sent.body,
                    usage=clean.usage,
                    model=clean.model,
                    calls=clean.calls,
                    echoes=clean.echoes,
                )
            document = decode_or_none(sent.body)
            if document is None and (finite := make_finite(sent.body)) is not None:
                return _note_finite(self._look(replace(sent, body=finite), asked))
            key = self._request.protocol.traits.choices_key
            if document is not None and len(as_list(document.get(key))) > 1:
                return self._check_choices(document, sent, asked)
            if document is not None and self._is_waiting(document):
                return Verdict(body=sent.body, model=text_or_none(document.get("model")))
        try:
            raw = self._route.protocol.parse_body(sent.body, sent.headers)
        except ProviderError as error:
            if document is None or not self._request.protocol.says_why(document, error):
                raise
            return Verdict(
                error=error, error_body=sent.body, usage=self._request.protocol.read_usage(document)
            )
        return self._check_raw(raw, asked, sent.body, document)

    def _is_waiting(self, document: dict[str, Any]) -> bool:
        """Tell whether a reply only names one that goes on in the background."""
        protocol = self._request.protocol
        return protocol.is_waiting(document) and protocol.goes_on(self._request.body)

    # Several choices

    def _check_choices(self, document: dict[str, Any], sent: Sent, asked: Asked) -> Verdict:
        """Check every choice for itself.

        Choices that nobody asked for are left out when they cannot be used; others are missing.
        """
        key = self._request.protocol.traits.choices_key
        kept: list[Any] = []
        verdicts: list[Verdict] = []
        usable: dict[int, Verdict] = {}
        bad: dict[int, Verdict] = {}
        dropped: list[Receipt] = []
        for position, choice in enumerate(as_list(document[key])):
            body = encode({**document, key: [choice]})
            try:
                raw = self._route.protocol.parse_body(body, sent.headers)
                verdict = self._check_raw(raw, asked, body, as_fields(decode(body)))
            except ProviderError as error:
                verdict = Verdict(error=error)
            if verdict.body is None:
                if self._request.choices > 1:
                    bad[position] = verdict
                    continue
                if position == 0:
                    return verdict
                why = "nobody asked for it, and it cannot be used"
                place = f"/{key}/{position}"
                dropped.append(Receipt(CHOICE_RULE, place, None, None, lossless=False, why=why))
                continue
            verdicts.append(verdict)
            usable[position] = verdict
            kept += as_list(as_fields(decode(verdict.body, surrogates="replace")).get(key))
        if bad:
            choices = Choices(document, key, usable, bad)
            return replace(next(iter(bad.values())), choices=choices)
        changed = bool(dropped) or any(verdict.changed for verdict in verdicts)
        receipts = [item for verdict in verdicts for item in verdict.receipts]
        return replace(
            verdicts[0],
            body=encode({**document, key: kept}) if changed else sent.body,
            changed=changed,
            receipts=(*receipts, *dropped),
            calls=sum(verdict.calls for verdict in verdicts),
        )

    # One reply

    def _check_raw(
        self, raw: RawReply, asked: Asked, body: bytes, document: dict[str, Any] | None
    ) -> Verdict:
        """Check a reply.

        Args:
            raw: The reply.
            asked: What it answers.
            body: Its bytes.
            document: The same, decoded, when it is in the client's format.
        """
        raw, others = without_others(raw)
        reply = restore_names(self._route.protocol.parse_message(raw), asked.renamed)
        reply, has_more = leave_others(reply, self._request.tools)
        others = others or has_more
        text = "" if reply.is_refusal else reply.content or ""
        if self.moves_thoughts and asked.mode == "native" and begins_thought(text):
            return self._check_thought(reply, asked, document, has_others=others)
        reading = self.read(reply, asked)
        return self._check_reply(reply, reading, asked, body, document, has_others=others)

    def _check_thought(
        self, reply: Reply, asked: Asked, document: dict[str, Any] | None, *, has_others: bool
    ) -> Verdict:
        """Check a reply whose text begins with reasoning, which is moved to its own place."""
        splitter = ThoughtSplitter(self._names)
        said = splitter.feed(reply.content or "")
        reading = None
        if splitter.held_call and not reply.calls:  # which is one only where it stands
            reading = self.read(reply, asked)
        if reading is not None and reading.calls:
            own = (reading.reasoning or "").removeprefix(f"{reply.reasoning or ''}\n")
            split = Split(own, reading.content)
        else:
            rest = splitter.close()
            split = Split(said.thought + rest.thought, said.text + rest.text)
            reading = None
        reasons = [part for part in (reply.reasoning, split.thought) if part]
        reply = replace(reply, content=split.text or None, reasoning="\n".join(reasons) or None)
        body = b""
        if document is not None:
            document = self._request.protocol.move_thought(document, *split)
            body = encode(document)
        reading = reading or self.read(reply, asked)
        verdict = self._check_reply(reply, reading, asked, body, document, has_others=has_others)
        receipts = (splitter.receipt, *verdict.receipts)
        return replace(verdict, changed=verdict.body is not None, receipts=receipts)

    def _check_reply(
        self,
        reply: Reply,
        reading: Reading,
        asked: Asked,
        body: bytes,
        document: dict[str, Any] | None,
        *,
        has_others: bool,
    ) -> Verdict:
        """Check a reply that was read."""
        verdict = self.check_reading(reading, reply, asked, has_others=has_others)
        if verdict.is_wrong:
            verdict = replace(verdict, document=document)
        if verdict.answers and not verdict.is_text:
            return verdict
        if reading.calls and not verdict.is_left and not verdict.answers:
            return self._write(verdict, body, document)
        is_answer = not (verdict.is_wrong or reading.calls or has_others)
        if is_answer and says_calls(reply) and reading.content.strip():
            return self._write(verdict, body, document, Salvage())
        written, is_new = body, document is None
        if (
            document is not None
            and (joined := self._request.protocol.join_parts(document, reading)) is not None
        ):
            written, is_new = encode(joined), True
        elif document is None:
            is_plain = bool(reading.calls) or asked.mode == "native"
            said = reply if is_plain else reply_with(reply, reading)
            written = self._render(said)
        if verdict.is_wrong:
            return replace(verdict, fallback=None if verdict.notice else written)
        return replace(verdict, body=written, changed=is_new)

    def check_reading(
        self, reading: Reading, reply: Reply, asked: Asked, *, has_others: bool = False
    ) -> Verdict:
        """Decide whether what was read can be delivered, whole or streamed; nothing is written.

        Args:
            reading: The reply as it was read.
            reply: The reply.
            asked: What it answers.
            has_others: Whether it has calls of tools that are not functions, too.
        """
        reading = give_own_ids(reading, reply, is_translated=not asked.is_own)
        verdict = Verdict(
            usage=reply.usage,
            model=reply.model,
            reply=reply,
            reading=reading,
            defects=reading.defects,
            echoes=bool(reply.extra) or any(call.extra for call in reply.calls),
        )
        if not reading.calls:
            if has_others or not (self._names or self._request.has_calls):
                return verdict
            return self._check_silence(verdict, reading, reply, asked)
        answers, is_left = self._check_calls(reading)
        if answers:
            first = next(error for answer in answers for error in answer.errors)
            error = describe_error(asked, first, reply, reading)
            is_text = asked.mode == "native" and is_likely_text(reading, reply)
            return replace(verdict, answers=answers, parse_error=error, is_text=is_text)
        if is_left:
            return replace(verdict, is_left=True, calls=len(reply.calls))
        taken, dropped = take_one(reading) if self.one_call else (reading, ())
        noted = [*taken.receipts, *(item for call in taken.calls for item in call.receipts)]
        receipts = (*noted, *dropped)
        return replace(
            verdict,
            reading=taken,
            receipts=receipts,
            defects=taken.defects,
            calls=len(taken.calls),
        )

    def takes_list(self, single: Verdict, listed: Verdict) -> bool:
        """Tell whether a list of calls can be delivered in the place of the single one."""
        made, reading = single.reading, listed.reading
        if made is None or reading is None or listed.is_wrong or listed.is_left:
            return False
        return takes_list(reading.calls, made.calls[0].name, reading.finish_reason)

    def salvage(self, bad: Verdict) -> Verdict | None:
        """Return what is delivered of a reply whose calls nothing made right; nothing if none is.

        Args:
            bad: The reply.
        """
        reading = bad.reading
        if reading is None:
            return None
        salvage = self.plan_salvage(bad, has_text=bool(reading.content.strip()))
        if salvage is None:
            return None
        if bad.is_in_text:  # what else the model wrote cannot be told from its attempt
            bad = replace(bad, reading=replace(reading, content=""))
        kept = tuple(item for call in salvage.delivered for item in call.receipts)
        verdict = replace(
            bad,
            answers=(),
            notice="",
            defects=bad.defects + salvage.defects,
            receipts=bad.receipts + kept + salvage.receipts,
            calls=len(salvage.delivered),
        )
        return self._write(verdict, b"", bad.document, salvage)

    def plan_salvage(self, bad: Verdict, *, has_text: bool) -> Salvage | None:
        """Decide what is delivered of a reply whose calls nothing made right; nothing is written.

        Args:
            bad: The reply.
            has_text: Whether the client gets any text of it, or has already.
        """
        request = self._request
        return salvage_calls(
            bad,
            way=self.refused_calls,
            has_text=has_text and not bad.is_in_text,
            one_call=self.one_call,
            forbids_calls=request.choice.wanted == "none",
        )

    @property
    def refused_calls(self) -> RefusedCalls:
        """What becomes of wrong calls of this client."""
        wanted = self._policy.refused_calls
        return "deliver" if wanted == "auto" and self._request.has_results else wanted

    def _write(
        self,
        verdict: Verdict,
        body: bytes,
        document: dict[str, Any] | None,
        salvage: Salvage | None = None,
    ) -> Verdict:
        """Put calls that can be delivered into the client's document, or into a new one."""
        reading, reply, receipts = verdict.reading, verdict.reply, verdict.receipts
        assert reading is not None
        assert reply is not None
        if document is None:
            if salvage is not None and not salvage.calls and says_calls(reply):
                receipts += (note_stop(reply.finish_reason),)
            written = self._render(reply_with(reply, reading, salvage))
        else:
            plan = make_plan(reading, self._request.tools, salvage)
            patched = self._request.protocol.patch_reply(document, plan)
            if patched.document == document:
                return replace(verdict, body=body or encode(document))
            receipts += patched.receipts
            written = encode(patched.document)
        if salvage is None:
            self._verify(written, verdict.calls)
        return replace(verdict, body=written, changed=True, receipts=receipts)

    def _render(self, reply: Reply) -> bytes:
        """Write a reply in the form in which the client looks for calls."""
        request = self._request
        document = request.protocol.render_reply(reply, request.settings)
        return encode(request.protocol.put_older_call(document) if request.is_legacy else document)

    def _verify(self, body: bytes, calls: int) -> None:
        """Check what was put together as if it had just arrived: nothing else may leave."""
        if self._request.tools.others or self._request.restores_calls:
            return
        limits = self._policy.limits
        found = read_clean(self._request, body, limits, text_formats=False, takes_strays=True)
        if found is None or found.calls != calls:
            raise ProviderReplyError(
                Code.UPSTREAM_NOT_A_REPLY,
                "The reply has calls that have no valid form in the format of the client.",
                status=200,
            )

    def read(self, reply: Reply, asked: Asked) -> Reading:
        """Read a reply, whole or streamed, by the rules of the policy."""
        names = self._names
        given, receipts = reply, ()
        fit_id = self._request.protocol.traits.fit_call_id
        if fit_id is not None and not asked.is_own:
            given = fit_call_ids(given, fit_id)
        if asked.mode == "object":
            given, receipts = parse_object_reply(given, is_grammar=self._route.capabilities.grammar)
        reading = read_reply(
            given,
            tools=names or None,
            text_formats=bool(names) and not reply.is_refusal and self._reads_text(asked),
            used_ids=self.used_ids(),
            limits=self._policy.limits,
            taught=asked.mode != "native",
            accept="likely",
        )
        if receipts:
            reading = with_receipts(reading, receipts)
        if self._usual and reading.calls:
            reading = without_notes(reading, self._usual)
        reading = give_own_ids(reading, reply, is_translated=not asked.is_own)
        return without_rules(reading, reply, self._disabled, names) if self._disabled else reading

    def _reads_text(self, asked: Asked) -> bool:
        looks = self._policy.text_formats and not self._request.demands_form
        return looks or asked.mode != "native"

    def used_ids(self) -> frozenset[str]:
        """Return the ids of the calls of the conversation."""
        if self._used is None:
            request = self._request
            self._used = frozenset()
            if request.has_calls:
                self._used = request.conversation.find_call_ids()
        return self._used

    def _check_silence(
        self, verdict: Verdict, reading: Reading, reply: Reply, asked: Asked
    ) -> Verdict:
        """Look at a reply without calls: whether one was meant, or an answer was due."""
        broken = None
        if asked.mode != "native":
            broken = find_broken_attempt(reading.content, self._names)
        codes = _CALL_DEFECTS
        broken = broken or next((item for item in reply.defects if item.code in codes), None)
        if broken is None and says_calls(reply) and not reading.content.strip():
            note = "The reply says that it has calls, and has none."
            broken = Defect(Code.TOOL_NOT_EXECUTED, note)
        choice = self._request.choice
        if broken is None and choice.wanted == "call" and self._names:
            allowed = [name for name in self._names.names if choice.takes(name)]
            broken = Defect(Code.NO_TOOL_CALLS, demand_call(allowed))
        if broken is not None:
            defects = verdict.defects
            defects = defects if broken in defects else (*defects, broken)
            snippet = excerpt(reading.content, SNIPPET)
            error = ParseError(asked.mode, broken.code, snippet)
            lacks_call = broken.code == Code.NO_TOOL_CALLS
            return replace(
                verdict,
                notice=broken.message,
                is_in_text=asked.mode != "native" and not lacks_call,
                lacks_call=lacks_call,
                defects=defects,
                parse_error=error,
            )
        request = self._request
        if not reading.content.strip() and request.has_calls:
            is_due = request.conversation.ends_with_results()
            return replace(verdict, is_empty=is_due)
        return verdict

    def _check_calls(self, reading: Reading) -> tuple[tuple[Envelope, ...], bool]:
        """Return what the model is to read about its calls, and whether some are left alone."""
        calls, in_text = reading.calls, is_from_text(reading)
        if self._request.choice.wanted == "none":
            return tuple(explain_not_allowed(call.name, ()) for call in calls), False
        if not self._names:
            return (), any(call.arguments is None for call in calls)
        leaves = False
        found: list[Envelope | None] = []
        for call in calls:
            answer = self._explain(call)
            if answer is None and call.certainty == "likely":
                wanted = self._policy.treats_likely(call.name)
                leaves = leaves or wanted == "leave"
                same = (call.name, str(call.raw))
                if wanted == "reask" and (in_text or same not in self._doubted):
                    answer = explain_doubt(call.name, call.doubt)
                    self._doubted.add(same)
            found.append(answer)
        if not any(found):
            return (), leaves
        pairs = zip(calls, found, strict=True)
        return tuple(answer or explain_not_run(call.name) for call, answer in pairs), False

    def _explain(self, call: ToolCall) -> Envelope | None:
        takes = self._request.choice.takes
        if call.name not in self._names.names or not takes(call.name):
            allowed = [name for name in self._names.names if takes(name)]
            return explain_not_allowed(call.name, allowed)
        limit = self._policy.limits.max_arguments_bytes
        return explain_arguments_unread(call, call.name, limit)

    # Errors

    def _check_error(self, sent: Sent, asked: Asked) -> Verdict:
        error = self._route.protocol.parse_error(sent.status, sent.headers, sent.body)
        if self._names and self._policy.text_formats and self._policy.allows("repair"):
            raw = rescue_reply(sent.status, sent.body[: 256 * 1024].decode("utf-8", "replace"))
            if raw is not None:
                reply = restore_names(_CHAT.parse_message(raw), asked.renamed)
                reading = self.read(reply, replace(asked, mode="native"))
                verdict = self.check_reading(reading, reply, asked)
                is_usable = not verdict.is_wrong and not verdict.is_left
                if is_usable and may_be_rescued(reading, self._names):
                    receipts = rescue_receipts(raw) + verdict.receipts
                    return self._write(replace(verdict, receipts=receipts), sent.body, None)
        return Verdict(error=error, error_body=own_error(sent) if asked.is_own else None)
