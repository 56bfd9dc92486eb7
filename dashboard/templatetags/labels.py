"""Badges in templates: `{% state_badge call.state %}`, `{% effect_badge call.effect %}`."""

from django import template
from django.conf import settings

from dashboard.labels import EFFECTS, STATES, Label

register = template.Library()

ENVIRONMENTS = {"local": "Local installation", "production": "Production"}


@register.inclusion_tag("dashboard/_badge.html")
def state_badge(word: str) -> dict[str, Label]:
    """The badge of a state: word, shape, colour."""
    return {"label": STATES[word]}


@register.inclusion_tag("dashboard/_badge.html")
def effect_badge(word: str) -> dict[str, Label]:
    """The badge of an effect: word and square."""
    return {"label": EFFECTS[word]}


@register.simple_tag
def environment() -> dict[str, str]:
    """Which installation this is, as `name` for the stylesheet and `text` in words."""
    name = settings.ENVIRONMENT.env
    return {"name": name, "text": ENVIRONMENTS[name]}
