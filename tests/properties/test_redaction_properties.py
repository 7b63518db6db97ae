"""Known secrets are found in every form, and a quick look finds what a slow one would."""

import base64
import html
import json
import re
import string
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.redaction import (
    MASK,
    Secret,
    StreamMask,
    drop_begun,
    excerpt,
    mask_known,
    redact,
    redact_start,
)
from surecall.base.redaction import free_text as shapes

PIECES = (
    *("sk-", "pk_", "gsk-", "xai_", "hf-", "ghp_", "glpat-", "key_", "AIza", "AKIA", "bearer "),
    *("BEARER ", "BeArEr ", "Bearer\u00a0", "task_", " ", "x" * 14, "A1" * 18, "\u212a", "ſ"),
    *("-", "_", "eyJ", ".", "api_key=", "?key=", "X-Api-Key: ", "dapi", "0a" * 16, "github_pat_"),
)
KEYS = st.text('abcXYZ019-_/+".', min_size=8, max_size=40).filter(lambda key: len(set(key)) > 4)
AROUND = st.text("qw \n{}", max_size=30)


@settings(max_examples=150)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=8).map("".join))
def test_nothing_is_kept_that_looks_like_a_key(text: str) -> None:
    """What comes out is what the shapes alone would leave."""
    assert redact(text) == shapes._KEY_SHAPES.sub(shapes._mask_shape, text)


def _json(key: str) -> str:
    return json.dumps(key)[1:-1]


FORMS = {
    "plain": lambda key: key,
    "upper case": lambda key: key.upper(),
    "JSON": _json,
    "JSON in JSON": lambda key: _json(_json(key)),
    "escaped for JSON": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "escaped for JSON twice": lambda key: "".join(f"\\\\u{ord(char):04X}" for char in key),
    "URL": lambda key: quote(key, safe=""),
    "URL, every character": lambda key: "".join(f"%{ord(char):02x}" for char in key),
    "HTML": lambda key: "".join(f"&#{ord(char)};" for char in key),
    "HTML, by names": html.escape,
    "HTML, hexadecimal": lambda key: "".join(f"&#x{ord(char):X};" for char in key),
    "hexadecimal": lambda key: key.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60)
@given(key=KEYS, before=AROUND, after=AROUND)
def test_a_known_secret_is_found_in_every_form(
    form: str, key: str, before: str, after: str
) -> None:
    """However it is written, nothing but the mask is left of it."""
    secret = Secret(key)
    shown = mask_known(f"{before}{FORMS[form](key)}{after}")
    assert secret.reveal() == key
    assert shown.startswith(before)
    assert MASK in shown
    assert len(shown) <= len(before) + len(MASK) + len(after)


@settings(max_examples=60)
@given(key=KEYS, before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_a_known_secret_is_found_in_base64_wherever_it_begins(
    key: str, before: bytes, after: bytes
) -> None:
    """Also behind a user name, as in basic authentication."""
    secret = Secret(key)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(before + key.encode() + after).decode()
        shown = mask_known(encoded)
        assert MASK in shown
        assert len(shown) - len(MASK) <= len(encoded) - len(key) * 8 // 6 + 2
    assert secret


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60)
@given(key=KEYS, before=AROUND, after=AROUND, cuts=st.lists(st.integers(0, 400), max_size=8))
def test_a_secret_is_found_in_a_stream_wherever_it_is_split(
    form: str, key: str, before: str, after: str, cuts: list[int]
) -> None:
    """What is shown piece by piece is what the whole would have been, also of an escaped key."""
    secret = Secret(key)
    text = f"{before}{FORMS[form](key)}{after}"
    cuts = [min(cut, len(text)) for cut in cuts]
    places = [0, *sorted(cuts), len(text)]
    mask = StreamMask()
    shown = "".join(mask.feed(text[a:b]) for a, b in pairwise(places))
    assert shown + mask.close() == mask_known(text)
    assert secret


@settings(max_examples=100)
@given(key=KEYS, fill=st.integers(0, 300), limit=st.integers(1, 300), count=st.integers(1, 5))
def test_a_limit_never_leaves_half_a_secret(key: str, fill: int, limit: int, count: int) -> None:
    """A text is redacted before it is cut."""
    secret = Secret(key)
    text = "~" * fill + key * count + "~" * 300
    assert redact_start(text, limit).replace("~", "") in (MASK * count)
    assert secret


@settings(max_examples=60)
@given(
    key=KEYS,
    parts=st.lists(st.sampled_from(("own", "sk-Ab1" * 9, "~" * 700, "word ", "x")), min_size=1),
    times=st.integers(1, 400),
    limit=st.integers(1, 3_000),
)
def test_the_start_of_a_long_text_is_that_of_the_whole(
    key: str, parts: list[str], times: int, limit: int
) -> None:
    """How much of a text is looked at makes no difference to what is shown of it."""
    secret = Secret(key)
    text = "".join(key if part == "own" else part for part in parts) * times
    assert redact_start(text, limit) == redact(text)[:limit]
    assert secret


RANDOM_KEYS = st.text(string.ascii_letters + string.digits, min_size=16, max_size=64).filter(
    lambda key: len(set(key.lower())) > 10
)
FILL = st.text("~ \n{}\"':,", max_size=60)


def longest_run(key: str, shown: str) -> int:
    """Return how many characters in a row of a key are in a text."""
    shown, key = shown.lower(), key.lower()
    sizes = (
        size
        for size in range(len(key), 0, -1)
        if any(key[at : at + size] in shown for at in range(len(key) - size + 1))
    )
    return next(sizes, 0)


@settings(max_examples=300)
@given(
    key=RANDOM_KEYS,
    before=FILL,
    after=FILL,
    cuts=st.tuples(st.integers(0, 200), st.integers(0, 200)),
    limit=st.integers(1, 200),
    at=st.none() | st.integers(0, 200),
)
def test_an_excerpt_shows_nothing_of_a_key_wherever_text_was_cut(
    key: str, before: str, after: str, cuts: tuple[int, int], limit: int, at: int | None
) -> None:
    """The piece that came may begin and end inside the key, and the excerpt as well."""
    secret = Secret(key)
    text = f"{before}{key}{after}{key}"
    first, last = sorted(min(cut, len(text)) for cut in cuts)
    piece = text[first:last]
    shown = excerpt(piece, limit, at=None if at is None else min(at, len(piece)))
    assert longest_run(key, shown.replace(MASK, "").replace("characters", "")) < 4
    assert secret


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60)
@given(key=RANDOM_KEYS, before=FILL, cut=st.integers(0, 20), limit=st.integers(1, 900))
def test_an_excerpt_of_an_escaped_key_shows_nothing_of_it(
    form: str, key: str, before: str, cut: int, limit: int
) -> None:
    """Also where the text ends inside an escape."""
    secret = Secret(key)
    written = FORMS[form](key)
    shown = excerpt(before + written[: len(written) - cut], limit)
    plain = re.sub(r"\\+u00(..)|%(..)|&#x(..);", _unescaped, shown.replace(MASK, ""))
    plain = re.sub(r"&#(\d+);", lambda match: chr(int(match[1])), plain)
    assert longest_run(key, plain.replace("characters", "")) < 4
    assert longest_run(key.encode().hex(), shown.replace(MASK, "")) < 8
    assert secret


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1] or match[2] or match[3], 16))


@given(text=st.text(max_size=300), limit=st.integers(1, 300), at=st.none() | st.integers(0, 300))
def test_an_excerpt_of_plain_text_is_that_text(text: str, limit: int, at: int | None) -> None:
    """With a key that is somewhere else, all that is missing is what was cut."""
    secret = Secret("q9Zw4Xk7Tn2Lb5Vh8")
    if redact(text) == text:
        if at is None:
            left_out = len(text) - limit
            note = f"… (+{left_out} characters)" if left_out > 0 else ""
            assert excerpt(text, limit) == text[:limit] + note
        else:
            at = min(at, len(text))
            shown = excerpt(text, limit, at=at).removeprefix("…").removesuffix("…")
            around = text[max(0, at - limit // 2) : at + limit // 2]
            assert shown == around.removeprefix("…").removesuffix("…")
    assert secret


@given(key=RANDOM_KEYS, before=st.text("~ \n", max_size=20), size=st.integers(0, 64))
def test_what_begins_at_the_end_of_a_cut_text_is_dropped(key: str, before: str, size: int) -> None:
    """From four characters on; less may be anything."""
    secret = Secret(key)
    begun = key[: min(size, len(key) - 1)]
    assert drop_begun(before + begun) == before + (begun if len(begun) < 4 else "")
    assert secret


def test_words_of_a_key_are_words() -> None:
    """A key may be made of words, which others use as well; all of it, or much, is still a key."""
    secret = Secret("my-own-api-key-7xQ2")
    for text in ("invalid x-api-key", "my own", "there is no api-key", "the api-key of a user"):
        assert excerpt(text) == text
    for text in ("see my-own-api-key", "see my-own-api-key-7x", "key-7xQ2 is wrong"):
        assert MASK in excerpt(text)
    assert secret


def test_a_long_row_of_letters_in_a_key_is_no_word() -> None:
    """A part of it counts as a part of the key, also where other marks surround it."""
    secret = Secret("HCexmjqAmsnBVcgEmwaf+c/me3wX=lda5")
    assert excerpt("mjqAmsnBVc") == MASK
    assert secret


def test_a_secret_is_known_while_it_lives() -> None:
    """Equal secrets are counted apart, and the last one that goes is forgotten."""
    first, second = Secret("not-a-shape-of-any-key"), Secret("not-a-shape-of-any-key")
    del first
    assert redact("it is not-a-shape-of-any-key") == f"it is {MASK}"
    del second
    assert redact("it is not-a-shape-of-any-key") == "it is not-a-shape-of-any-key"


@pytest.mark.parametrize("value", ["short", "ollama", "Not-Needed", ""])
def test_placeholders_and_short_values_are_not_secrets(value: str) -> None:
    """They are ordinary words, which would be taken out of ordinary text."""
    secret = Secret(value)
    assert redact(f"use {value} here") == f"use {value} here"
    assert not secret or secret.reveal() == value


@pytest.mark.parametrize(
    "key",
    [
        "sk-ant-api03-" + "Ab1_" * 20,
        "sk-or-v1-" + "0a" * 32,
        "sk-proj-" + "Ab1-" * 30,
        "gsk_" + "Ab1" * 17,
        "xai-" + "Ab1" * 26,
        "AIza" + "Ab1" * 12,
        "hf_" + "Ab1" * 11,
        "ghp_" + "Ab1" * 12,
        "github_pat_" + "Ab1_" * 20,
        "glpat-" + "Ab1-" * 5,
        "AKIA" + "AB12" * 4,
        "ASIA" + "AB12" * 4,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + "Ab1_" * 10,
        "r8_" + "Ab1" * 12,
        "pplx-" + "Ab1" * 16,
        "nvapi-" + "Ab1-" * 16,
        "tgp_v1_" + "Ab1" * 14,
        "fw_" + "Ab1" * 8,
        "csk-" + "ab1" * 16,
        "dapi" + "0a" * 16,
    ],
)
def test_keys_of_today_are_recognized_by_their_shape(key: str) -> None:
    """A key that nobody named does not get into a message either."""
    assert redact(f"Incorrect key: {key}.") == f"Incorrect key: {MASK}."
    assert redact(f"https://host/?key={key}&alt=sse") == f"https://host/?key={MASK}&alt=sse"


@pytest.mark.parametrize(
    "text",
    [
        "The tool key_value_store_lookup is not known.",
        "pk_customer_order_id is not a column.",
        "Use bearer authentication.",
        "api_key: must be text.",
        "The header anthropic-version is missing.",
    ],
)
def test_ordinary_words_are_not_taken_for_keys(text: str) -> None:
    """Messages stay readable."""
    assert redact(text) == text
