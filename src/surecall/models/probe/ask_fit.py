"""The question whether asking about the fit of a function keeps a model from needless calls."""

from typing import Any, Final, NamedTuple

from surecall.base.records import ToolSpec

from .asker import Asker, question, user
from .findings import Finding, no, unclear, yes
from .fit import find_threshold, measure_separation

_MIN_FALSE_CALLS: Final = 0.2
"""A model that makes fewer needless calls is better left alone."""
_MIN_SEPARATION: Final = 0.85
"""Below this the answers of a model say too little to refuse a call for them."""


class _FitCase(NamedTuple):
    """A function, a request that it fits, and one that it does not."""

    tool: ToolSpec
    fitting: str
    other: str


def _case(name: str, description: str, arguments: str, fitting: str, other: str) -> _FitCase:
    properties: dict[str, Any] = {word: {"type": "string"} for word in arguments.split()}
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    tool = ToolSpec(name=name, description=description, parameters=parameters, effect="read")
    return _FitCase(tool, fitting, other)


_CASES: Final = (
    _case(
        "get_weather",
        "Get the current weather of a city.",
        "city",
        "Do I need an umbrella in Oslo right now?",
        "Who painted the ceiling of the Sistine Chapel?",
    ),
    _case(
        "convert_currency",
        "Convert an amount of money from one currency to another.",
        "amount source target",
        "How many euros do I get for 250 Swiss francs?",
        "What is the boiling point of ethanol?",
    ),
    _case(
        "calculate_triangle_area",
        "Calculate the area of a triangle from its base and height.",
        "base height",
        "A triangle is 8 cm wide at its base and 5 cm high. How large is it?",
        "How many moons does Jupiter have?",
    ),
    _case(
        "search_flights",
        "Search for flights between two airports on a date.",
        "origin destination date",
        "Find me a plane from Lisbon to Madrid on 3 May.",
        "Translate the word bread into Finnish.",
    ),
    _case(
        "create_reminder",
        "Create a reminder with a text and a time.",
        "text time",
        "Remind me at noon to water the plants.",
        "Which team won the football world cup in 1998?",
    ),
    _case(
        "get_stock_price",
        "Get the latest price of a stock by its ticker symbol.",
        "ticker",
        "What is a share of AAPL worth at the moment?",
        "Give me a recipe for pancakes without eggs.",
    ),
    _case(
        "find_restaurants",
        "Find restaurants of a cuisine near a place.",
        "cuisine place",
        "Where can I eat Thai food near the main station in Bern?",
        "What is the derivative of x squared?",
    ),
    _case(
        "get_population",
        "Get the population of a country in a year.",
        "country year",
        "How many people lived in Kenya in 2010?",
        "Play some quiet music in the kitchen.",
    ),
    _case(
        "track_parcel",
        "Track a parcel by its tracking number.",
        "number",
        "Where is my parcel with the number RX4471?",
        "How do I remove a red wine stain?",
    ),
    _case(
        "book_table",
        "Book a table at a restaurant.",
        "restaurant guests time",
        "A table for four at Casa Luna tomorrow at eight, please.",
        "What is the capital of Mongolia?",
    ),
)
_REQUESTS: Final = 3 * len(_CASES)


@question(
    "Does asking whether a function fits keep the model from needless calls?",
    "fit_threshold",
    "false_call_rate",
    "fit_separation",
    max_requests=_REQUESTS,
)
async def ask_fit(asker: Asker) -> Finding:
    """Offer each function for a request it does not fit, and ask about its fit in both cases."""
    false_calls = 0
    fitting: list[float] = []
    other: list[float] = []
    for case in _CASES:
        answer = await asker.ask(user(case.other), tools=(case.tool,))
        false_calls += bool(answer.calls(case.tool))
        for request, scores in ((case.fitting, fitting), (case.other, other)):
            asked = await asker.ask_fit(request, case.tool)
            if asked.score is not None:
                scores.append(asked.score)
            elif asked.says_yes is not None:
                scores.append(1.0 if asked.says_yes else -1.0)
    rate = false_calls / len(_CASES)
    if min(len(fitting), len(other)) < len(_CASES) // 2:
        return unclear("too few of its answers were yes or no")
    separation = round(measure_separation(fitting, other), 3)
    threshold = round(find_threshold(fitting, other), 3)
    evidence = (
        f"{false_calls} of {len(_CASES)} functions were called for requests they do not fit; "
        f"a fitting function scores above another one in {separation:.0%} of all pairs"
    )
    known: dict[str, Any] = {"false_call_rate": rate, "fit_separation": separation}
    if rate >= _MIN_FALSE_CALLS and separation >= _MIN_SEPARATION:
        return yes(f"{evidence}; the threshold is {threshold}", **known, fit_threshold=threshold)
    return no(evidence, **known, fit_threshold=None)
