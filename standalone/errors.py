"""The one way in which the embedded default says no: a sentence with a remedy."""


class Refusal(Exception):
    """Something stands in the way. `str()` is the sentence: what happened, what to do."""
