"""The filters on what stands on a call, as fields of every list whose rows lead to one."""

from typing import Any

from dashboard.filters import Filter
from dashboard.labels import EFFECTS, STATES
from ledger.vocabulary import Cause, RecoveryClass, spoken
from recovery.call_filters import SHOWN
from recovery.label_queries import BASES


def plain(words: Any) -> tuple[tuple[str, str], ...]:
    """Words as choices, each said as it is."""
    return tuple((str(word), spoken(word)) for word in words)


OF_CALL = (
    Filter("state", "State", "choice",
           tuple((word, label.text) for word, label in STATES.items()), is_first=True),
    Filter("effect", "Effect", "choice",
           tuple((word, label.text) for word, label in EFFECTS.items()), is_first=True),
    Filter("class", "Class", "choice", plain(RecoveryClass), is_first=True),
    Filter("tool", "Tool", is_first=True),
    Filter("saw", "Shown to the model", "choice", plain(SHOWN)),
    Filter("read", "Read", "choice", (("yes", "read"), ("not_yet", "not read yet"))),
    Filter("basis", "Basis", "choice", plain(BASES)),
    Filter("cause", "Cause", "choice", plain(Cause)),
    Filter("agent", "Agent"),
    Filter("session", "Session"),
    Filter("policy", "Policy version", "number"),
)  # fmt: skip
"""State, effect, shown to the model, basis, class, cause, tool, agent, session, policy."""

_WHEN = "Date, or date and time, in your zone: 2027-03-02 09:41"
BETWEEN = (
    Filter("from", "From", "moment", hint=_WHEN),
    Filter("until", "Until", "moment", hint=_WHEN),
)
TAKEN = Filter("taken", "Taken by", hint="A name, or nobody, or somebody")
BULK = Filter("bulk", "Bulk run", "carried")
