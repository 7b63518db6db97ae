"""Every conversion of a value that does not fit its schema: one table for calls and answers.

A certain conversion leaves one meaning. A likely one rests on a judgement: what it gives is
taken with its doubt, and a tool with effects does not run on it.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

Grade: TypeAlias = Literal["certain", "likely"]
"""How sure a conversion is."""
Entrance: TypeAlias = Literal["both", "arguments", "answer"]
"""Where a conversion applies: to the arguments of a call, to a value in an answer, or to both."""

CHEAP: Final = 1
"""The cost of another spelling."""
SHAPE: Final = 3
"""The cost of another shape around the same value."""
LOOSE: Final = 4
"""The cost of a value that is found in words."""
LINES: Final = 6
"""The cost of an object or list that is found in words."""


class Conversion(NamedTuple):
    """One way in which a value stands for another."""

    rule: str
    """Its name in receipts."""
    cost: int = CHEAP
    doubt: str = ""
    """Why it is only likely, in a sentence that a model can read; empty when it is certain."""
    lossless: bool = True
    entrance: Entrance = "both"
    why: str = ""
    """What a receipt says where there is no doubt."""

    @property
    def grade(self) -> Grade:
        """How sure it is."""
        return "likely" if self.doubt else "certain"


# Of whole arguments

UNWRAP_ARGUMENTS: Final = Conversion("unwrap_arguments", entrance="arguments")
UNWRAP_LIST: Final = Conversion("unwrap_list", entrance="arguments")
NULL_TO_OBJECT: Final = Conversion("null_to_empty_object", entrance="arguments")
BLANK_TO_OBJECT: Final = Conversion("blank_to_empty_object", entrance="arguments")
NAME_ARGUMENT: Final = Conversion("name_single_value", entrance="arguments")

# Of scalars

PARSE_NUMBER: Final = Conversion("parse_number_text")
PARSE_BOOLEAN: Final = Conversion("parse_boolean_text")
PARSE_NULL: Final = Conversion("parse_null_text")
DROP_ZERO_FRACTION: Final = Conversion("drop_zero_fraction")
MATCH_OPTION: Final = Conversion("match_enum")
SPELL_DATE: Final = Conversion("spell_date")
SPELL_TIME: Final = Conversion("spell_time")
SPELL_DATE_TIME: Final = Conversion("spell_date_time")
NAMED_MONTH: Final = Conversion(
    "spell_date", CHEAP, "A date is read from a text that has the name of its month."
)
WRITE_AS_TEXT: Final = Conversion("write_as_text")
WRITE_JSON: Final = Conversion(
    "write_as_text", LINES, "An object or array is taken as text because text is asked for."
)
WRITE_LIST: Final = WRITE_JSON._replace(entrance="answer")
WRITE_NULL: Final = Conversion(
    "write_as_text", CHEAP, "A bare word that can mean nothing is taken as text.", entrance="answer"
)
ONE_ZERO: Final = Conversion("parse_boolean_text", SHAPE, "A 1 or 0 is taken as true or false.")
NOTHING: Final = Conversion(
    "parse_null_text", CHEAP, "A word that says that there is nothing is taken as null."
)
FORMATTED_NUMBER: Final = Conversion(
    "find_number", LOOSE, "A number is read from text with separators, a sign or a unit."
)
PERCENT: Final = Conversion(
    "find_number", LOOSE, "A number of percent could also mean a share of one, or the reverse."
)
PERCENT_IN_TEXT: Final = PERCENT._replace(entrance="answer")
NUMBER_IN_TEXT: Final = Conversion(
    "find_number", LOOSE, "A number is taken from the words around it.", entrance="answer"
)
BOOLEAN_IN_TEXT: Final = Conversion(
    "find_boolean", LOOSE, "A yes or no is taken from the words around it.", entrance="answer"
)
MATCH_LABEL: Final = Conversion(
    "match_enum", LOOSE, "A value is taken as the option whose signs, title or description it has."
)
OPTION_IN_TEXT: Final = Conversion(
    "find_option", LOOSE, "One of the options is taken from the words around it.", entrance="answer"
)
TEXT_IN_TEXT: Final = Conversion(
    "find_text", LOOSE, "The one word that fits is taken from those around it.", entrance="answer"
)
UNMARK: Final = Conversion(
    "find_text", CHEAP, "The one word that fits is taken from the signs around it."
)

# Of arrays

DECODE: Final = Conversion("decode_json_text")
WRAP: Final = Conversion("wrap_in_array", SHAPE)
WRAP_LIKELY: Final = Conversion("wrap_in_array", SHAPE, "A single value is taken as a list of one.")
EMPTY_LIST: Final = Conversion(
    "list_from_text", LINES, "A text that says that there is nothing is taken as an empty list."
)
LIST_IN_TEXT: Final = Conversion("list_from_text", LINES, "A text is taken as a list of its parts.")
TAKE_ONLY: Final = Conversion(
    "unwrap_value", SHAPE, "The value is taken from the object or list around it."
)
TAKE_ONE: Final = TAKE_ONLY._replace(cost=SHAPE + 1, lossless=False, entrance="answer")

# Of objects

RENAME_KEY: Final = Conversion("rename_key")
RENAME_BY_MEANING: Final = Conversion(
    "rename_key", CHEAP, "A key is taken as the property that its words mean."
)
DROP_NULL: Final = Conversion("drop_null", why="null means that it is left out")
DROP_ABSENT: Final = Conversion(
    "drop_null", CHEAP, "A null for a property that may be left out is taken as leaving it out."
)
DROP_EXTRA: Final = Conversion(
    "drop_extra_key", CHEAP, "A property that the schema does not have is left out.", lossless=False
)
FILL_CONSTANT: Final = Conversion(
    "fill_constant", SHAPE, "A required property that can have one value only is filled in."
)
FILL_NULL: Final = Conversion(
    "fill_null", CHEAP, "A required property that may be null is left out, and taken as null."
)
NAME_SINGLE: Final = NAME_ARGUMENT._replace(
    cost=SHAPE,
    doubt="A single value is taken as the one property that the object needs.",
    entrance="answer",
)
NAME_LABELED: Final = NAME_SINGLE._replace(cost=SHAPE + LINES)
OBJECT_IN_LINES: Final = Conversion(
    "object_from_lines", LINES, "Lines of keys and values are taken as an object."
)

CONVERSIONS: Final[tuple[Conversion, ...]] = tuple(
    value for value in list(globals().values()) if isinstance(value, Conversion)
)
"""All of them."""

SPELLINGS: Final = {"date": SPELL_DATE, "time": SPELL_TIME, "date-time": SPELL_DATE_TIME}
"""How values of a format are spelled."""

STOOD_OUT: Final = "Several values are named; the one that stands out is taken."
JUDGED: Final = "The value does not fit its schema; it is fitted in the likeliest way."
