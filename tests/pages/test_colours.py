"""Colours of all pages, computed from their one sheet: readable, and told apart by everybody."""

import re
from itertools import combinations

import pytest

from surecall.base.pages import SHEET, read_asset

CSS = read_asset(SHEET)
PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
COLOURS = {name: (light, dark) for name, light, dark in PAIR.findall(CSS)}
SCHEMES = {"light": 0, "dark": 1}
MEANINGS = ("ok", "changed", "caution", "stop")

TEXT = [
    *((ink, ground) for ink in ("k1", "k2", "k3") for ground in ("g0", "g1", "g2")),
    *((ink, ground) for ink in MEANINGS for ground in ("g0", "g1")),
    *((ink, f"{ink}-tint") for ink in MEANINGS),
    *((ink, f"{tint}-tint") for ink in ("k1", "k3") for tint in ("caution", "stop")),
    *((f"h{step}-ink", f"h{step}") for step in range(5)),
    ("g0", "k1"),
    ("g0", "k2"),
]
MARKS = [*((f"{name}-fill", "g0") for name in MEANINGS), ("g4", "g0"), ("focus", "g0")]
FILLS = (*(f"{name}-fill" for name in MEANINGS), "clean")

# What people without one kind of cone see, by Machado, Oliveira and Fernandes (2009), in full.
SIGHT = {
    "usual": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
WHITE = (0.95047, 1.0, 1.08883)


def linear(colour: str) -> list[float]:
    """Return the three lights of a colour."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG defines it."""
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(ink: str, ground: str, scheme: str) -> float:
    """Return the contrast of two named colours."""
    place = SCHEMES[scheme]
    bright, dim = sorted(
        (luminance(COLOURS[ink][place]), luminance(COLOURS[ground][place])), reverse=True
    )
    return (bright + 0.05) / (dim + 0.05)


def lab(colour: str, sight: str) -> tuple[float, float, float]:
    """Return a colour as CIE L*a*b*, as somebody with this sight sees it."""
    lights = linear(colour)
    red, green, blue = (
        min(1.0, max(0.0, sum(part * light for part, light in zip(row, lights, strict=True))))
        for row in SIGHT[sight]
    )
    xyz = (
        0.4124564 * red + 0.3575761 * green + 0.1804375 * blue,
        0.2126729 * red + 0.7151522 * green + 0.0721750 * blue,
        0.0193339 * red + 0.1191920 * green + 0.9503041 * blue,
    )
    x, y, z = (
        ratio ** (1 / 3) if (ratio := value / white) > 0.008856 else 7.787 * ratio + 16 / 116
        for value, white in zip(xyz, WHITE, strict=True)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_the_formulas_are_right() -> None:
    """Black on white has a contrast of 21, and white a lightness of 100."""
    assert (luminance("#ffffff") + 0.05) / (luminance("#000000") + 0.05) == pytest.approx(21)
    assert lab("#ffffff", "usual") == pytest.approx((100, 0, 0), abs=0.01)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("ink", "ground"), TEXT)
def test_text_can_be_read(ink: str, ground: str, scheme: str) -> None:
    """Text has a contrast of at least 4.5."""
    assert contrast(ink, ground, scheme) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("ink", "ground"), MARKS)
def test_marks_can_be_seen(ink: str, ground: str, scheme: str) -> None:
    """Marks of charts, edges of controls and the ring of the focus have at least 3."""
    assert contrast(ink, ground, scheme) >= 3.0


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_outcomes_are_told_apart_by_everybody(scheme: str, sight: str) -> None:
    """Any two fills differ clearly, also for people who lack a kind of cone."""
    for one, other in combinations(FILLS, 2):
        a, b = (lab(COLOURS[name][SCHEMES[scheme]], sight) for name in (one, other))
        distance = sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) ** 0.5
        assert distance >= 20, (one, other, distance)


def test_every_colour_is_a_pair() -> None:
    """No colour is outside of the pairs, but the shade behind a dialog."""
    blocks = " ".join(re.findall(r"\{([^{}]*)\}", PAIR.sub("", CSS)))
    assert "var(--g0)" in blocks
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", blocks) == []
    assert re.findall(r"\b(?:rgb|hsl)a?\([^)]*\)", blocks) == ["rgb(0 0 0 / .5)"]


def test_the_sheet_loads_nothing() -> None:
    """No address, no import, no font."""
    assert re.findall(r"url\(|@import|@font-face|https?:", CSS) == []


def test_every_variable_that_is_used_is_there() -> None:
    """A typo would be seen by nobody."""
    assert set(re.findall(r"var\(--([\w-]+)", CSS)) <= set(re.findall(r"--([\w-]+):", CSS))
