"""Badges: every word has one, and none can be taken for another."""

import re
from pathlib import Path

import pytest

from dashboard.labels import EFFECTS, STATES, Label
from ledger.verdicts import WHOSE_TURN
from ledger.vocabulary import SETTLED, CallState, Effect

ROOT = Path(__file__).parents[2]
SPRITE = (ROOT / "templates/dashboard/_shapes.html").read_text()
STYLES = (ROOT / "static/clearhouse.css").read_text()
EVERY = [*STATES.values(), *EFFECTS.values()]


def test_every_state_and_every_effect_has_a_badge() -> None:
    assert set(STATES) == set(CallState)
    assert set(EFFECTS) == set(Effect)


@pytest.mark.parametrize("label", EVERY, ids=lambda label: label.shape)
def test_the_shape_of_a_badge_is_in_the_sprite(label: Label) -> None:
    assert SPRITE.count(f'id="{label.shape}"') == 1


def test_no_two_words_share_a_drawing() -> None:
    drawings = re.findall(r"<symbol [^>]*>(.*?)</symbol>", SPRITE)
    marks = ("mark-cancel", "mark-disputed", "mark-shown")
    assert len(drawings) == len(EVERY) + len(marks)
    assert len(set(drawings)) == len(drawings)


@pytest.mark.parametrize("label", EVERY, ids=lambda label: label.shape)
def test_the_family_of_a_badge_is_in_the_stylesheet(label: Label) -> None:
    assert f"&.{label.family} {{" in STYLES


def test_only_an_effect_that_may_have_happened_is_coloured() -> None:
    assert [word for word, label in EFFECTS.items() if label.family != "plain"] == ["possible"]


@pytest.mark.parametrize("state", CallState)
def test_the_page_and_the_verdict_name_the_same_turn(state: CallState) -> None:
    assert STATES[state].turn.split()[-1] == WHOSE_TURN.get(state, "nobody")


def test_only_a_settled_call_is_nobodys_turn() -> None:
    assert {state for state, label in STATES.items() if label.turn == "nobody"} == SETTLED


def test_texts_are_words_without_underscores() -> None:
    assert not [label.text for label in EVERY if "_" in label.text]
    assert EFFECTS["possible"].text == "may have happened"
