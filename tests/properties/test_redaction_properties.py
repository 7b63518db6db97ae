"""The quick look for signs of a key finds every text that the shapes would change."""

from hypothesis import given, settings
from hypothesis import strategies as st

from surecall import redaction
from surecall.redaction import redact

PIECES = (
    *("sk-", "pk_", "gsk-", "xai_", "hf-", "ghp_", "glpat-", "key_", "AIza", "AKIA", "bearer "),
    *(
        "BEARER ",
        "BeArEr ",
        "Bearer\u00a0",
        "task_",
        " ",
        "x" * 14,
        "A1" * 18,
        "\u212a",
        "ſ",
        "-",
        "_",
    ),
)


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=8).map("".join))
def test_nothing_is_kept_that_looks_like_a_key(text: str) -> None:
    """What comes out is what the shapes alone would leave."""
    assert redact(text) == redaction._KEY_SHAPES.sub(redaction.MASK, text)
