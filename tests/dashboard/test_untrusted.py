"""Names chosen by others: what hides or turns text becomes a mark, everything else stays."""

import pytest
from django.utils.safestring import SafeString, mark_safe

from dashboard.templatetags.untrusted import scripts, visible


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("bill\u202egnp.exe", "bill⟨U+202E⟩gnp.exe"),
        ("ada\u200b", "ada⟨U+200B⟩"),
        ("a\x1b[31md", "a␛[31md"),
        ("a\nb\tc\x00", "a␊b␉c␀"),
        ("del\x7f", "del␡"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("wide\xa0space", "wide⟨U+00A0⟩space"),
        ("hangul\u3164filler", "hangul⟨U+3164⟩filler"),
        ("variation\ufe0f", "variation⟨U+FE0F⟩"),
        ("line\u2028end", "line⟨U+2028⟩end"),
    ],
)
def test_what_hides_or_turns_text_becomes_a_mark(name: str, drawn: str) -> None:
    assert visible(name) == drawn


@pytest.mark.parametrize(
    "name", ["ada", "Zoë Ångström", "エイダ", "אדה", "sandbox.send_mail", "🙂"]
)
def test_what_can_be_seen_stays_as_it_is(name: str) -> None:
    assert visible(name) == name


def test_a_name_that_was_called_safe_is_escaped_all_the_same() -> None:
    assert not isinstance(visible(mark_safe("<b>")), SafeString)


@pytest.mark.parametrize(
    ("name", "mix"),
    [
        ("\u0430da", "Latin and Cyrillic"),
        ("payp\u03b1l", "Latin and Greek"),
        ("ada", ""),
        ("\u0430\u0434\u0430", ""),
        ("ada-7_x", ""),
    ],
)
def test_a_name_that_mixes_scripts_says_which(name: str, mix: str) -> None:
    assert scripts(name) == mix
