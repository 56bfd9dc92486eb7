"""All invariants in the order of their numbers, and those that nothing can be asked about yet."""

from ledger.verification.bounds import BOUNDS
from ledger.verification.chain import CHAIN
from ledger.verification.deciding import I36
from ledger.verification.delivering import I35
from ledger.verification.effects import EFFECTS
from ledger.verification.scope import SCOPE
from ledger.verification.settling import SETTLING
from ledger.verification.shapes import Invariant

INVARIANTS: tuple[Invariant, ...] = (*EFFECTS, *SETTLING, *CHAIN, *BOUNDS, *SCOPE, I35, I36)

NOT_YET: dict[str, str] = {
    "I18": "No query: a rendered session passes its profile's own rules before it is given out.",
    "I21": "In part: the chain is recomputed; there are no signed checkpoints yet.",
    "I22": "In part: the triggers are checked; no separate role exists whose rights are revoked.",
    "I29": "In part: the call's own deadline is checked; a turn that waits leaves no row.",
    "I35": "In part: what is offered and confirmed is checked; an offer that nobody confirms waits "
    "for the next turn, and no sweep dates another try.",
    "I37": "A canary is planted and looked for by the tests of secrets, not by a query.",
    "I38": "Nothing is erased yet; that no call vanishes is a trigger (I22).",
}
"""What is not proved, or in part only, and why. Shown with every report: no silent gap."""


def known() -> dict[str, Invariant]:
    """The invariants by number."""
    return {each.number: each for each in INVARIANTS}
