"""The colours, recomputed from the stylesheet itself: contrast by WCAG 2.2, distance by CIEDE2000.

Expected figures: console, section 19. Colour vision: the matrices of Machado, Oliveira and
Fernandes (2009) at full severity, applied to linear light.
"""

import itertools
import math
import re
from pathlib import Path

import pytest

CSS = (Path(__file__).parents[2] / "static/clearhouse.css").read_text()
TOKEN = re.compile(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
SCHEMES = ("light", "dark")
COLOURS = {
    scheme: {name: pair[at] for name, *pair in TOKEN.findall(CSS)}
    for at, scheme in enumerate(SCHEMES)
}
FAMILIES = ("waiting", "machine", "person", "well", "failed", "closed")
FIGURES = {
    "light": {
        "waiting": (5.69, 6.45, 6.07), "machine": (11.84, 13.91, 13.09),
        "person": (9.31, 10.40, 9.78), "well": (4.84, 5.27, 4.96),
        "failed": (5.13, 6.04, 5.68), "closed": (16.21, 19.13, 18.00),
    },
    "dark": {
        "waiting": (6.22, 7.44, 8.01), "machine": (6.02, 6.53, 7.03),
        "person": (7.48, 8.61, 9.28), "well": (10.49, 12.56, 13.53),
        "failed": (5.88, 5.83, 6.28), "closed": (13.50, 16.34, 17.61),
    },
}  # fmt: skip
SIGHTS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
               (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
               (0.004733, 0.691367, 0.303900)),
}  # fmt: skip

Triple = tuple[float, float, float]


def linear(colour: str) -> Triple:
    """The colour as linear light, 0 to 1."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return r, g, b


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.2."""
    lights = sorted(
        0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear(one), linear(other))
    )
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def times(matrix: object, vector: Triple) -> Triple:
    a, b, c = (sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix)  # type: ignore[attr-defined]
    return a, b, c


def lab(light: Triple) -> Triple:
    """Linear light as CIELAB under D65."""
    to_xyz = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750),
              (0.0193339, 0.1191920, 0.9503041))  # fmt: skip
    clipped = tuple(min(1.0, max(0.0, c)) for c in light)
    xyz = times(to_xyz, clipped)  # type: ignore[arg-type]
    x, y, z = (
        v ** (1 / 3) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116
        for v in (xyz[0] / 0.95047, xyz[1], xyz[2] / 1.08883)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def delta_e(one: Triple, other: Triple) -> float:
    """CIEDE2000, after Sharma, Wu and Dalal (2005)."""
    mean = (math.hypot(*one[1:]) + math.hypot(*other[1:])) / 2
    g = (1 - math.sqrt(mean**7 / (mean**7 + 25**7))) / 2
    (l1, c1, h1), (l2, c2, h2) = (
        (lightness, math.hypot(a * (1 + g), b), math.degrees(math.atan2(b, a * (1 + g))) % 360)
        for lightness, a, b in (one, other)
    )
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2))
    middle = h1 + turn / 2 if c1 * c2 else h1 + h2
    lm, cm = (l1 + l2) / 2, (c1 + c2) / 2
    wave = ((-30, 1, 0.17, True), (0, 2, 0.24, False), (6, 3, 0.32, False), (-63, 4, 0.20, True))
    t = 1.0 + sum(
        (-w if minus else w) * math.cos(math.radians(n * middle + (shift if n != 1 else -30)))
        for shift, n, w, minus in wave
    )
    sl = 1 + 0.015 * (lm - 50) ** 2 / math.sqrt(20 + (lm - 50) ** 2)
    sc, sh = 1 + 0.045 * cm, 1 + 0.015 * cm * t
    bend = math.sin(math.radians(60 * math.exp(-((((middle % 360) - 275) / 25) ** 2))))
    rt = -2 * math.sqrt(cm**7 / (cm**7 + 25**7)) * bend
    dl, dc, dh = (l2 - l1) / sl, (c2 - c1) / sc, hue / sh
    return math.sqrt(dl**2 + dc**2 + dh**2 + rt * dc * dh)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_readable_on_its_tint_on_a_panel_and_on_the_page(
    scheme: str, family: str
) -> None:
    colours = COLOURS[scheme]
    text = colours[family]
    found = [contrast(text, colours[on]) for on in (f"{family}-tint", "panel", "page")]
    assert min(found) >= 4.5
    assert found == pytest.approx(FIGURES[scheme][family], abs=0.006)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("ground", ["panel", "page", "raised"])
@pytest.mark.parametrize(
    ("word", "least"), [("text", 4.5), ("quiet", 4.5), ("focus", 4.5), ("border", 3.0)]
)
def test_text_links_and_borders_stand_out_from_every_ground(
    scheme: str, ground: str, word: str, least: float
) -> None:
    assert contrast(COLOURS[scheme][word], COLOURS[scheme][ground]) >= least


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_word_on_a_button_is_readable(scheme: str) -> None:
    assert contrast(COLOURS[scheme]["on-focus"], COLOURS[scheme]["focus"]) >= 4.5


def test_the_distance_is_that_of_the_published_examples() -> None:
    first = (50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485)
    second = (60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387)
    assert delta_e(*first) == pytest.approx(2.0425, abs=1e-4)
    assert delta_e(*second) == pytest.approx(1.2644, abs=1e-4)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("sight", SIGHTS)
def test_no_two_families_look_alike_to_anybody(scheme: str, sight: str) -> None:
    seen = {
        family: lab(times(SIGHTS[sight], linear(COLOURS[scheme][family]))) for family in FAMILIES
    }
    nearest = min(delta_e(seen[a], seen[b]) for a, b in itertools.combinations(FAMILIES, 2))
    assert nearest >= 10


def test_nothing_is_coloured_outside_the_tokens() -> None:
    after = CSS.split("@layer base {", 1)[1]
    emblem = {"#16295d", "#ffffff", "#10faa6"}
    assert set(re.findall(r"#[0-9a-f]{3,8}\b", after)) <= emblem
