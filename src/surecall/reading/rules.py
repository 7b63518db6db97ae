"""Every rule that a receipt can name: declared here once, for lists, ablations and explanations.

Reading with rules switched off shows what a reply would have been worth without them.
"""

from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.base.records import ErrorDetail, Reading, Receipt, Reply, ToolCall
from surecall.calls import ToolNames
from surecall.text import decode

from .wording import MARKED, MISSHAPEN, refuse_bad_json, refuse_json, refuse_kind

RuleFamily = Literal[
    "structure", "ids", "calls", "json", "schema", "text", "answers", "cut", "exchange", "approval"
]
"""Where a rule is at home: the fields a call came in, its id, its name or place, the JSON of its
arguments, their schema, text formats, an answer that `read_value` reads, a value that was cut off,
an exchange with a client, or a decision of a person."""

ALL_RULES: Final = "*"
"""Means every rule that can be switched off, apart from those about structure and ids."""

READ_FROM_TEXT: Final = "read_call_from_text"
JUDGE_IN_TEXT: Final = "judge_call_in_text"
BLANK_TO_EMPTY_OBJECT: Final = "blank_to_empty_object"
FUNCTION_CALL_TO_CALLS: Final = "assistant_function_call_to_tool_calls"
CALLS_OBJECT_TO_ARRAY: Final = "assistant_tool_calls_object_to_array"
OBJECT_TO_ARGUMENTS: Final = "assistant_tool_calls_arguments_json_string_if_hash"
TAGS_TO_CALLS: Final = "assistant_content_tool_call_tags_to_tool_calls"
BLANK_TRANSFORM: Final = "assistant_tool_calls_arguments_blank_to_empty_object"
BYTE_ORDER_MARK: Final = "\ufeff"
_NAMES: Final = frozenset({"infer_tool_name", "resolve_tool_name", "strip_name"})
_LIMITS: Final = frozenset(
    {Code.ARGUMENTS_HOLD_SECRET, Code.ARGUMENTS_TOO_DEEP, Code.ARGUMENTS_TOO_LARGE}
)
"""Refusals that rest on no rule."""

TRANSFORM_RULES: Final = {
    FUNCTION_CALL_TO_CALLS: FUNCTION_CALL_TO_CALLS,
    CALLS_OBJECT_TO_ARRAY: CALLS_OBJECT_TO_ARRAY,
    OBJECT_TO_ARGUMENTS: OBJECT_TO_ARGUMENTS,
    TAGS_TO_CALLS: READ_FROM_TEXT,
    BLANK_TRANSFORM: BLANK_TO_EMPTY_OBJECT,
}
"""Transforms of replies and calls that reading does, with the rule of their receipts."""


class Rule(NamedTuple):
    """One rule: its name in receipts, and what it does."""

    name: str
    family: RuleFamily
    sentence: str
    lossless: bool = True
    """False when a receipt of it may say that something was lost."""
    switchable: bool = True
    """Whether `disabled_rules` can name it."""


_LOSSY: Final = "-"
_FIXED: Final = "!"


def _declare(family: RuleFamily, lines: str) -> list[Rule]:
    """Read one rule a line: its name, `-` if it may lose something, `!` if it is always on."""
    rules: list[Rule] = []
    for line in lines.strip().splitlines():
        name, _, sentence = line.strip().partition(" ")
        marks = name[len(name.rstrip(_LOSSY + _FIXED)) :]
        rules.append(
            Rule(
                name.rstrip(_LOSSY + _FIXED),
                family,
                sentence.strip(),
                lossless=_LOSSY not in marks,
                switchable=_FIXED not in marks,
            )
        )
    return rules


_DECLARED: Final = (
    _declare(
        "structure",
        """
        assistant_function_call_to_tool_calls Reads a call in the older field `function_call`.
        assistant_tool_calls_arguments_json_string_if_hash Takes arguments that came as an object.
        assistant_tool_calls_object_to_array Reads one call that came without its list.
        drop_legacy_call-! Leaves out a `function_call` next to `tool_calls`.
        rescue_from_error_body! Reads calls that a server sent inside its error.
        unwrap_answer-! Takes the answer from the object that was asked for.
        """,
    )
    + _declare(
        "ids",
        """
        assign_call_id Gives a call without an id one.
        clean_call_id Turns an id that is not plain text into text.
        rename_repeated_id Gives the second call of the same id another.
        """,
    )
    + _declare(
        "calls",
        """
        infer_tool_name- Reads a name that is a number as the one tool that the arguments fit.
        judge_call_in_text- Takes text outside any markup as the call that it probably is.
        read_call_from_text Reads a call that the model wrote as text.
        read_call_in_string Reads a call that is a string in a list.
        resolve_tool_name Reads another spelling of a name as the one tool it can mean.
        strip_name Takes blanks from around the name of a tool.
        wrap_bare_call Reads a call without the `function` around its name and arguments.
        """,
    )
    + _declare(
        "json",
        """
        add_missing_closing_quote- Ends a string that has no closing quote.
        add_missing_colon- Puts a colon between a key and its value.
        add_missing_comma- Puts a comma between two values.
        add_missing_opening_quote- Begins a string that has no opening quote.
        add_outer_brackets Puts the brackets around a value that has none.
        blank_to_empty_object Reads blank arguments as an empty object.
        close_missing_brackets- Adds brackets that are missing at the very end.
        collapse_doubled_braces- Reads `{{` and `}}` as one brace.
        decode_nested_text Reads JSON that came as text inside JSON.
        drop_comment- Leaves out a comment.
        drop_ellipsis- Leaves out an ellipsis in the place of values.
        drop_extra_colon- Leaves out a second colon.
        drop_extra_comma- Leaves out a second comma.
        drop_parentheses Takes parentheses from around a value.
        drop_stray_closer- Leaves out a bracket that closes nothing.
        drop_stray_quote- Leaves out a quote that is written twice, or behind a number.
        drop_stray_text- Leaves out text that belongs to no value.
        drop_string_prefix- Takes the `u`, `b` or `r` from before a string.
        drop_trailing_comma- Leaves out a comma after the last value.
        escape_control_characters- Escapes line breaks and tabs inside a string.
        escape_inner_quotes- Escapes quotes that belong to the text of a string.
        extra_values- Takes one of several values.
        fill_missing_value- Gives a key that has no value null.
        fix_escapes- Writes escapes that JSON does not know as it wants them.
        fix_mismatched_closer- Adds or replaces a bracket that is missing before another one.
        join_strings- Joins strings that are next to one another.
        quote_bare_text- Puts quotes around text that has none.
        quote_key Puts quotes around a key that has none.
        replace_colon- Writes another sign between a key and its value as a colon.
        replace_comma- Writes another sign between two values as a comma.
        replace_literal Writes `True`, `None` and the like as JSON does.
        replace_non_finite- Writes `NaN` or `Infinity` as null or text, where that was asked for.
        replace_quotes Writes other quotes as double quotes.
        rewrite_number- Writes `1_000`, `.5` or `+1` as JSON does.
        set_to_array Reads braces without any key as an array.
        strip_code_fence Takes a code fence from around the value.
        strip_invisible- Takes a byte order mark or odd blanks from around the value.
        strip_prose- Takes words from around the value.
        take_last_of_key- Takes the last value of a key that is given more than once.
        tuple_to_array Reads `(1, 2)` as an array.
        unwrap_call_value- Reads `ObjectId("x")` and the like as what is in the parentheses.
        values_to_array Puts several values in a row into an array.
        """,
    )
    + _declare(
        "schema",
        """
        decode_json_text Reads text as the array or object that the schema asks for.
        drop_null Leaves out a null for a field that is optional.
        drop_zero_fraction Writes `5.0` as the integer that the schema asks for.
        match_enum Writes a value as the one option that it can mean.
        name_positional_values Gives values in a list the names of the parameters.
        name_single_value Gives a lone value the name of the only parameter.
        null_to_empty_object Reads null in place of the arguments as an empty object.
        parse_boolean_text Reads text as the boolean that the schema asks for.
        parse_null_text Reads text as the null that the schema asks for.
        parse_number_text Reads text as the number that the schema asks for.
        rename_key Gives a key the spelling of the schema.
        unwrap_arguments Takes a wrapper from around the arguments.
        unwrap_list Takes the list from around a single object of arguments.
        wrap_in_array Puts a single value into the list that the schema asks for.
        write_as_text Writes a value as the text that the schema asks for.
        """,
    )
    + _declare(
        "text",
        """
        add_closer Ends a call whose closing marker is missing.
        add_namespace Reads a tag without the prefix it should have.
        attribute_arguments Reads arguments that the tag of a call has as attributes.
        bare_label Reads the name of a parameter without its quotes.
        close_list Closes a list of calls.
        close_object- Closes an object of arguments.
        close_string- Ends a string without its delimiter where the value must end.
        collapsed_tag Reads a tag that lost a part of its name.
        colon_after_label Leaves out a colon after a name.
        compute_value Takes a sum where a number is wanted as its result.
        damaged_closing_tag Reads a closing tag with a character wrong.
        delimit_string- Puts the delimiters of the format around a string.
        doubled_word Takes a word that was written twice once.
        drop_answer_tag! Takes a tag from around the whole answer.
        drop_echo Takes calls that were written twice once.
        drop_empty_markup-! Leaves out markup for calls that holds none.
        drop_end_token! Leaves out tokens of a template, such as those that end a turn.
        drop_extra_brackets- Leaves out brackets around the call.
        drop_leftover- Leaves out what stands beside the arguments of a call, or behind its end.
        drop_invented_result-! Leaves out what a model made up behind its calls.
        equals_label Reads a name that is given with an equals sign.
        fill_code_argument Moves code that follows the arguments into the argument it is for.
        json_body Reads arguments that are JSON in a format that has its own way.
        json_word Reads `true`, `false` and `null` as JSON does.
        keep_damaged- Keeps arguments that cannot be read, so that the call is refused.
        key_without_value- Leaves out a key that has no value.
        label_attribute Reads a name that is given as an attribute.
        leading_zeros- Reads a number with zeros before it.
        look_alike_markers Reads markers that are written with other characters.
        mcp_form Reads a call in the form of the MCP.
        missing_arguments- Reads a call that has no arguments.
        missing_bracket Reads a call although one of its brackets is missing.
        missing_brackets Reads calls without the brackets around them.
        missing_closer- Reads a call that ends without its marker.
        missing_closing_tag- Reads a value that ends without its tag.
        missing_markers Reads a call without the markers around it.
        missing_opener Reads a call that begins without its marker.
        missing_token Reads a call without one of its special tokens.
        name_as_text Reads the name of a tool that is the text of its tag.
        name_positional_arguments Gives values without names those of the parameters.
        nest_flat_arguments Reads arguments that are next to the name as arguments.
        nested_quotes- Takes quotes inside a string that were not escaped as text.
        only_parameter- Gives a lone value the name of the only parameter.
        property_tag Reads parameters that have tags of their own names.
        quote_bare_words- Takes words without quotes as text.
        quoted_label Takes quotes from around a name.
        raw_newline Keeps a line break inside a string.
        repeated_opener Reads an opening marker as the closing one.
        return_members- Takes members that stand outside the arguments as arguments.
        restore_header Reads a call without the header before it.
        restore_token Reads a special token that lost a part.
        split_action Reads a name and arguments that are on one line.
        stray_bracket Leaves out a bracket that closes nothing.
        stray_closing_tag Leaves out a tag that closes nothing.
        string_by_schema Takes a value as text because the schema says so.
        strip_value_padding Takes line breaks from around a value.
        text_for_json- Takes a value that is not JSON as text.
        unescape_entities Reads `&lt;` and the like as the characters they mean.
        unescape_markdown Reads an underscore that was escaped as in Markdown.
        unescape_quotes Reads a call whose quotation marks were all escaped.
        unescape_tags Reads escaped tags as tags.
        unwrap_argument_list Takes the list from around the arguments.
        unwrap_json_string Reads a call inside text that is all one string of JSON.
        wrong_closing_tag Reads another closing tag as the one that is missing.
        yaml_body Reads arguments that are YAML.
        """,
    )
    + _declare(
        "answers",
        """
        add_braces! Puts braces around members that have none.
        drop_extra_key-! Leaves out a property that the schema does not have.
        drop_reasoning! Leaves out what the model thought aloud before its answer.
        drop_tag-! Leaves out a tag of a final text with what it holds.
        fill_constant! Fills in a required property that can have one value only.
        fill_null! Writes null for a required property that may be null and is left out.
        fill_patch_op! Writes the operation that an entry of a patch can only mean.
        find_boolean! Takes the yes or no that a sentence says.
        find_number! Takes the number that a text names, without its unit and separators.
        find_option! Takes the one option that a sentence names.
        find_text! Takes the one word of a text that fits the schema.
        gather_values! Puts several values of a text into the list that the schema asks for.
        list_from_text! Reads lines, bullets, a table or commas as a list.
        merge_objects! Joins a list of small objects into the one that the schema asks for.
        object_from_lines! Reads lines or a table of keys and values as an object.
        rename_tag! Gives a tag of a final text another name.
        spell_pointer! Writes a path of a patch as a JSON pointer.
        strip_tag! Leaves out a tag of a final text.
        unwrap_value-! Takes the value from the object or list around it.
        """,
    )
    + _declare(
        "cut",
        """
        close_cut_brackets-! Closes the brackets of a value that was cut off.
        close_cut_string-! Ends a string that was cut off.
        complete_cut_literal-! Completes a word that was cut off.
        drop_cut_comment-! Leaves out a comment that was cut off.
        drop_cut_member-! Leaves out a member that was cut off.
        keep_cut_value-! Keeps a last number or word that may have been cut off.
        """,
    )
    + _declare(
        "exchange",
        """
        add_call_type! Adds the type to a call that came without it.
        add_missing_result! Says of a call in the history that its result is not known.
        drop_choice-! Leaves out a choice that nobody asked for and that cannot be used.
        drop_parallel_calls-! Leaves out calls beyond the number that a client or a run takes.
        move_reasoning! Moves reasoning in tags from the text to where the format has its own place.
        move_result! Puts a result in the history behind its call.
        null_non_finite-! Writes null for figures that are not finite, such as a usage of NaN.
        restore_echo! Puts back what came with a call and the client left out.
        rewrite_history_arguments! Writes arguments in the history as an object, or what they said.
        set_finish_reason! Says how a reply ended: with calls if it has any, or else with a stop.
        tell_call_not_run-! Tells as text why a call that could not be made right was not executed.
        tell_lost_result! Tells as text a result in the history whose call is not there.
        """,
    )
    + _declare(
        "approval",
        """
        change_by_transform-! Puts what a transform of the application made in place of arguments.
        edit_by_person-! Puts what a person decided in place of the arguments of a call.
        """,
    )
)

RULES: Final = {rule.name: rule for rule in _DECLARED}
"""Every rule, by its name."""

IDENTITY_RULES: Final = frozenset(rule.name for rule in _DECLARED if rule.family == "ids")
"""Rules about ids: they never change what is called, and no result could be sent back without."""
STRUCTURE_RULES: Final = frozenset(rule.name for rule in _DECLARED if rule.family == "structure")
READING_RULES: Final = tuple(
    rule.name
    for rule in _DECLARED
    if rule.switchable and rule.family not in ("structure", "ids", "answers", "cut", "exchange")
)
"""Rules that change what is called or with what; each can be switched off on its own."""
FIXED_RULES: Final = frozenset(rule.name for rule in _DECLARED if not rule.switchable)
"""Rules that change no call that is run: those of a cut value, which is refused, of an answer, of a
reply that came inside an error, of a call in a field that another replaces, and of text that is
not shown; and what a person changed. They cannot be switched off."""
MOVING_RULES: Final = STRUCTURE_RULES | {READ_FROM_TEXT}
"""Rules that find a call, or move it, without touching its name or arguments."""
_NOT_OF_ALL: Final = IDENTITY_RULES | STRUCTURE_RULES


def without_rules(
    reading: Reading, reply: Reply, disabled: frozenset[str], names: ToolNames
) -> Reading:
    """Undo a reading as far as it rests on rules that are switched off.

    A call that needed such a rule has its arguments and its name as the model wrote them, and the
    errors that JSON and the schema have for these; one that was only found by a rule is text again.
    Rules about ids and structure stay on unless they are named. Without any rule, a call is what a
    plain client makes of it: sound JSON is taken, whatever else is known of the reply.
    """
    if not disabled or not reading.calls:
        return reading
    disabled |= {TRANSFORM_RULES[name] for name in disabled & TRANSFORM_RULES.keys()}
    if is_off(READ_FROM_TEXT, disabled) and any(map(was_text, reading.calls)):
        return replace(reading, calls=(), content=reply.content or "")
    return replace(reading, calls=tuple(_undo(call, disabled, names) for call in reading.calls))


def _undo(call: ToolCall, disabled: frozenset[str], names: ToolNames) -> ToolCall:
    kept: list[Receipt] = []
    name, is_plain = call.name, ALL_RULES in disabled and not was_text(call)
    for receipt in call.receipts:
        if not is_off(receipt.rule, disabled):
            kept.append(receipt)
        elif receipt.rule in _NAMES:
            name = str(receipt.before)
        elif receipt.rule in STRUCTURE_RULES:
            return replace(
                call, arguments=None, state="unreadable", errors=(refuse_json(MISSHAPEN),)
            )
        else:
            is_plain = is_plain or call.arguments is not None
    if len(kept) == len(call.receipts) and not is_plain:
        return call
    call = replace(call, name=name, receipts=tuple(kept))
    return _take_as_sent(call, names) if is_plain else call


def _take_as_sent(call: ToolCall, names: ToolNames) -> ToolCall:
    """Return a call with the arguments that its text is as JSON, and what the schema says."""
    value: Any = call.raw
    errors: tuple[ErrorDetail, ...] = ()
    if any(error.code in _LIMITS for error in call.errors):
        return call
    if isinstance(value, str) and value.startswith(BYTE_ORDER_MARK):
        errors = (refuse_json(MARKED),)  # which decoding would leave out
    elif value is None or isinstance(value, str):
        try:
            value = decode(value or "")
        except JSONTextError as error:
            errors = (refuse_bad_json(error),)
    if not errors and not isinstance(value, dict):
        errors = (refuse_kind(value),)
    if errors:
        return replace(call, arguments=None, state="unreadable", errors=errors)
    checker = names.checker_of(call.name) if call.name in names else None
    return replace(
        call,
        arguments=value,
        state="whole",
        errors=() if checker is None else checker.check(value),
        certainty="certain",
        doubt="",
    )


def was_text(call: ToolCall) -> bool:
    """Tell whether a call was written as text."""
    return any(receipt.rule == READ_FROM_TEXT for receipt in call.receipts)


def was_judged(call: ToolCall) -> bool:
    """Tell whether it took a judgement to say that a text is this call."""
    return any(receipt.rule == JUDGE_IN_TEXT for receipt in call.receipts)


def is_off(rule: str, disabled: frozenset[str]) -> bool:
    """Tell whether a rule is among those that are switched off."""
    return rule in disabled or (ALL_RULES in disabled and rule not in _NOT_OF_ALL)
