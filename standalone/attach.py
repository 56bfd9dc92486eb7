"""Lets a command reach the Clearhouse that runs beside it.

`up` keeps the environment of its programs among the secrets; a command started in another
terminal takes from there what its own environment does not say. Only while that `up` lives:
addresses of a stopped one would be a lie.
"""

from collections.abc import MutableMapping

from standalone.places import state_folder
from standalone.state import State

KEPT = "environment"


def attach(environ: MutableMapping[str, str]) -> None:
    """Add to `environ` the addresses and secret files of a running `up`; never replaces any."""
    if environ.get("DATABASE_URL"):
        return
    state = State(state_folder())
    if state.owner() is None:
        return
    for name, value in state.recall(KEPT).items():
        environ.setdefault(name, value)
