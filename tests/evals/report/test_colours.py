"""Colours of the page, computed from its style: readable in light and in dark."""

import re
from importlib import resources

import pytest

CSS = resources.files("surecall.evals.report").joinpath("assets", "report.css").read_text("utf-8")
PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
COLOURS = {name: (light, dark) for name, light, dark in PAIR.findall(CSS)}
SCHEMES = {"light": 0, "dark": 1}

TEXT = [
    *((ink, ground) for ink in ("text", "muted", "link") for ground in ("page", "panel")),
    ("text", "code"),
    ("text", "plain-ground"),
    *((kind, f"{kind}-ground") for kind in ("pass", "fail", "note", "sim", "plain")),
    *((kind, "page") for kind in ("pass", "fail", "sim")),
    ("fail", "code"),
    ("page", "text"),
    *((f"r{step}-text", f"r{step}") for step in range(7)),
]
MARKS = [*((f"c{n}", "page") for n in range(8)), ("focus", "page"), ("focus", "panel")]


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink: str, ground: str, scheme: str) -> float:
    """Return the contrast of two named colours."""
    place = SCHEMES[scheme]
    bright, dim = sorted(
        (luminance(COLOURS[ink][place]), luminance(COLOURS[ground][place])), reverse=True
    )
    return (bright + 0.05) / (dim + 0.05)


def test_the_formula_is_right() -> None:
    """Black on white has 21."""
    assert (luminance("#ffffff") + 0.05) / (luminance("#000000") + 0.05) == pytest.approx(21)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("ink", "ground"), TEXT)
def test_text_can_be_read(ink: str, ground: str, scheme: str) -> None:
    """Text has a contrast of at least 4.5."""
    assert contrast(ink, ground, scheme) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("ink", "ground"), MARKS)
def test_marks_can_be_seen(ink: str, ground: str, scheme: str) -> None:
    """Marks of charts and the ring of the focus have a contrast of at least 3."""
    assert contrast(ink, ground, scheme) >= 3.0


def test_every_colour_is_a_pair() -> None:
    """No colour stands outside of the pairs, but shades of one of them."""
    blocks = " ".join(re.findall(r"\{([^{}]*)\}", PAIR.sub("", CSS)))
    assert "var(--page)" in blocks
    assert re.findall(r"#[0-9a-fA-F]{3,8}", blocks) == []
    assert re.findall(r"\b(?:rgb|hsl)a?\([^)]*\)", blocks) == ["rgb(0 0 0 / .5)"]


def test_the_ends_of_the_heat_map_differ_in_more_than_hue() -> None:
    """Never and always are orange and blue, and both far from the middle."""
    for scheme, place in SCHEMES.items():
        for end in ("r0", "r6"):
            assert contrast(end, "r3", scheme) >= 2.5, (scheme, end)
        red, _, blue = (int(COLOURS["r0"][place][at : at + 2], 16) for at in (1, 3, 5))
        assert red > blue
        red, _, blue = (int(COLOURS["r6"][place][at : at + 2], 16) for at in (1, 3, 5))
        assert blue > red
