"""Words of the vocabulary as a reader sees them."""

from django import template

register = template.Library()


@register.filter
def spaced(word: object) -> str:
    """A word without its underscores: `taken back`."""
    return str(word).replace("_", " ")
