"""Lists of the console as calls of the API: what a shell asks for the same rows (console, 22).

Addresses are other people's text: what stands in them is encoded, then quoted for a shell, and the
host is the installation's own. A filter has the same name there, or its other one in `RENAMED`, so
that none is ever left out.
"""

import shlex
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.conf import settings

from dashboard import audit
from dashboard.filters import Asked
from dashboard.sessions import Listed
from ledger.api.pages import OLDEST, ORDERS
from recovery.incident_filters import HOLDS

HEAD = 'curl -sS -H "Authorization: Bearer $CLEARHOUSE_API_KEY" '
RENAMED = {"state": "call_state"}
"""What is called otherwise where incidents are listed: `state` is their own there."""


@dataclass(frozen=True, slots=True)
class Curl:
    """One call of the API: what it lists, by which filters, and whether a key may ask for it."""

    lists: str
    asked: dict[str, str] = field(default_factory=dict)
    takes_key: bool = True

    @property
    def address(self) -> str:
        """Its path and query, encoded, all ASCII."""
        query = urlencode(self.asked, safe=",:")
        return f"/api/v1/{self.lists}{'?' if query else ''}{query}"

    @property
    def text(self) -> str:
        """The line for a shell, whose one variable is the key; the address where none may ask."""
        address = settings.ENVIRONMENT.public_url + self.address
        return HEAD + shlex.quote(address) if self.takes_key else address


@dataclass(frozen=True, slots=True)
class Curls:
    """What asks for the rows of one page, and what is to be said beside it."""

    lines: tuple[Curl, ...]
    note: str


OWN = (
    "An agent's key lists what is that agent's own; your login lists the workspace. "
    "The answer begins at the first page, and its next_cursor goes on."
)
NEWEST = "The API lists the newest first."
NO_KEY = "No key may read this list: it takes a person's login."
EXPORTS = "A key needs the scope export:read."
NO_HOLDS = "No hold can be about these filters, so only incidents are asked for."

UNFILTERED = {
    "tools": Curls((Curl("tools"),), "An agent's key and your login list the same tools."),
    "deadlines": Curls((Curl("deadlines"),), EXPORTS),
    **{
        each: Curls((Curl(each, takes_key=False),), NO_KEY)
        for each in ("approvals", "bulk-resolutions", "drills")
    },
    "workers": Curls((Curl("workers", takes_key=False), Curl("sweeps", takes_key=False)), NO_KEY),
}
"""The lists that have no filters, by their page's name in the API."""


def of_calls(asked: Asked) -> Curls:
    """The list of calls. Raises Invalid for a moment that is none."""
    return Curls((Curl("calls", asked.meant | _order(asked)),), OWN)


def of_inbox(asked: Asked) -> Curls:
    """What needs an answer: incidents, and the holds where every filter can be about one."""
    given, more = asked.meant, {"needs_answer": "true"} | _order(asked)
    note = OWN if asked.sort in ORDERS else f"{NEWEST} {OWN}"
    incidents = Curl("incidents", more | {RENAMED.get(n, n): text for n, text in given.items()})
    if given.keys() <= HOLDS.keys():
        return Curls((incidents, Curl("holds", more | given)), note)
    return Curls((incidents,), f"{NO_HOLDS} {note}")


def _order(asked: Asked) -> dict[str, str]:
    return {"sort": OLDEST} if asked.sort == OLDEST else {}


def of_sessions(listed: Listed) -> Curls:
    """The list of sessions."""
    given = {"show": listed.show, "agent": listed.agent, "q": listed.q}
    return Curls((Curl("sessions", {name: text for name, text in given.items() if text}),), OWN)


def of_budgets(*, above: float) -> Curls:
    """The list of budgets of which this share is used."""
    asked = {"above": f"{above:g}"} if above else {}
    return Curls((Curl("budgets", asked, takes_key=False),), NO_KEY)


def of_audit(kept: audit.Filters) -> Curls:
    """The audit by the filters of its page."""
    return Curls((Curl("audit", kept.words()),), EXPORTS)
