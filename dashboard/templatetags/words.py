"""Words of the vocabulary as a reader sees them: `stale_binding` is "stale binding"."""

from django import template

from ledger.vocabulary import spoken

register = template.Library()


@register.filter
def words(word: object) -> str:
    """A word of ours with blanks for its marks; never for what other people wrote."""
    return spoken(word).replace(".", " ")
