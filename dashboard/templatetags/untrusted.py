"""Names that agents, tools and people chose: characters that hide or turn text become marks, and
secrets are masked by what they look like, whichever page shows them.

The filters return plain text, which the template escapes; nothing here is ever marked safe.
Source: security, section 7; Unicode Technical Report 36.
"""

import unicodedata

from django import template

from ledger import masking
from ledger.masks import Hidden
from ledger.policies import is_address

register = template.Library()
register.filter(is_address)

HIDING_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that draw nothing: joiners, fillers, the blank of braille.
HIDING = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
CONTROL_PICTURES = 0x2400
DELETE = 0x7F
SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "HEBREW", "ARABIC", "CHEROKEE")


@register.filter
def visible(text: object) -> str:
    """The text, secrets masked, with a mark for each character that would hide or turn others.

    Control characters become their pictures (`␛`), every other one its number (`⟨U+202E⟩`).
    """
    return _marked(masking.masked_text(str(text)))


@register.filter
def visible_lines(text: object) -> str:
    """As `visible`, with line ends and tabs kept: for texts that are drawn in several lines."""
    return _marked_lines(masking.masked_text(str(text)))


@register.filter
def without(text: object, hidden: Hidden | None) -> str:
    """The text with what is secret of its call masked: `{{ text|without:hidden|visible }}`."""
    return str(text) if hidden is None else hidden.text(str(text))


@register.filter
def revealed(text: object) -> str:
    """As `visible_lines`, secrets and all: only for what a person was granted to see."""
    return _marked_lines(str(text))


def _marked_lines(text: str) -> str:
    return _marked(text, but="\n\t")


def _marked(text: str, *, but: str = "") -> str:
    if text.isascii() and text.isprintable():
        return text  # most texts are such, and hide nothing
    return "".join(_mark(each) if each not in but and _hides(each) else each for each in text)


def _hides(character: str) -> bool:
    category = unicodedata.category(character)
    if category == "Zs":
        return character != " "
    return category in HIDING_CATEGORIES or character in HIDING or _selects(ord(character))


def _selects(point: int) -> bool:
    """Variation selectors: they change a glyph and draw none."""
    return 0xFE00 <= point <= 0xFE0F or 0xE0100 <= point <= 0xE01EF


def _mark(character: str) -> str:
    point = ord(character)
    if point < 0x20:
        return chr(CONTROL_PICTURES + point)
    return "␡" if point == DELETE else f"⟨U+{point:04X}⟩"


@register.filter
def scripts(text: object) -> str:
    """The scripts that a name mixes, such as `Latin and Cyrillic`; empty where it keeps to one."""
    names = [unicodedata.name(each, "") for each in str(text) if each.isalpha()]
    found = [script for script in SCRIPTS if any(name.startswith(script) for name in names)]
    return " and ".join(each.title() for each in found) if len(found) > 1 else ""
