"""A request that was made before: it is answered as the first time, and says so in a header."""

from django.http import HttpResponse

REPLAYED = {"Idempotent-Replayed": "true"}


def status_of(response: HttpResponse, *, new: bool) -> int:
    """201 for what this request made; for what an earlier one made 200, with the header on it."""
    if new:
        return 201
    for name, value in REPLAYED.items():
        response[name] = value
    return 200
