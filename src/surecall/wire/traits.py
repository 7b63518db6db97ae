"""What one wire format has and another has not, as data: whoever asks needs no format's name."""

from collections.abc import Callable

from msgspec import Struct


class Traits(Struct, frozen=True, kw_only=True):
    """How a format differs from others.

    find_protocol("gemini").traits.model_in_path  # True
    """

    path: str = ""
    """The path of its endpoint; empty where that names the model."""
    call_marks: tuple[bytes, ...] = ()
    """What the body of a request with calls or results has in it."""
    choice_keys: tuple[str, ...] = ("tool_choice", "function_call")
    """Members of a request that choose tools, the one that is written first."""
    count_key: str = "n"
    """The member that says how many replies are asked for."""
    choices_key: str = ""
    """The member of a reply that holds several answers; empty where there is one."""
    declaring_keys: frozenset[str] = frozenset()
    """Members of a tool that declare functions, where one tool may declare several."""
    function_types: frozenset[str] = frozenset({"function"})
    """Types of tools that are functions of the client, where a tool has a type."""
    has_similar_tools: bool = False
    """Whether calls of other tools look like calls of functions, but for their names."""
    has_call_ids: bool = True
    """Whether every call comes with an id."""
    fit_call_id: Callable[[str], str] | None = None
    """Returns an id as the format takes it, if it does not take every one."""
    has_dialects: bool = False
    """Whether many servers speak it, each of which takes other members and turns."""
    has_logprobs: bool = False
    takes_comments: bool = True
    """Whether clients read streams with comments among the events."""
    drops_reasoning: bool = False
    """Whether clients leave the model's reasoning out of what they send back."""

    @property
    def model_in_path(self) -> bool:
        """Whether the path of a request names the model, and says whether to stream."""
        return not self.path
