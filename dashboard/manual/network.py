"""`network.md`: what a network error or an HTTP status proves, from `executors/network.py`."""

from dashboard.manual.markdown import code, codes, paragraphs, table
from executors import network
from executors.network import FAULTS, STATUSES, Fault, Proof
from ledger.vocabulary import Cause, Meaning

HEAD = """# What an error proves

Every outcome that is no plain success has one cause and one meaning. The meaning says what is
proved of the effect, and nothing more. An error that has no row is unknown.

The table is data in `executors/network.py`. It decides nothing about repeating: that is the
[recovery matrix](matrix.md).
"""


def page() -> str:
    """The whole page."""
    said = paragraphs(Meaning)
    return "\n".join([
        HEAD, "## The four meanings", "",
        table(("Meaning", "Says"), [(code(each), said[each]) for each in Meaning]),
        "## An exchange without an answer", "",
        "What it proves turns on one fact: whether a byte of a request was handed over anywhere in "
        "the attempt.", "", _faults(),
        "## An answer", "",
        "Answers that the tool declares as its success are not in this table.", "", _statuses(),
        "A later attempt under the same key that is answered "
        f"{codes(sorted(network.MAY_BE_OWN_ECHO))} may be meeting the effect of an earlier one: "
        "then it is `unknown`. A tool may list 5xx as refusals (`refused_statuses`), but never "
        f"{codes(sorted(network.CANNOT_REFUSE))}: whoever sends these cannot know what was done "
        "behind it.", "",
        "A `Retry-After` in seconds is taken as it is; as a date it is taken against the answer's "
        "own `Date`. One that is negative or cannot be read is ignored.", "",
        "## Causes", "", codes(Cause) + ".", "",
    ])  # fmt: skip


def _faults() -> str:
    said = paragraphs(Fault)
    rows = [
        (code(fault), _proof(FAULTS[fault].before), _proof(FAULTS[fault].after), said[fault])
        for fault in Fault
    ]
    return table(("Fault", "Before the first byte", "After it", "Note"), rows)


def _statuses() -> str:
    rows = [(str(status), _proof(proof)) for status, proof in STATUSES.items()]
    rows += [(f"other {family}xx", _proof(proof)) for family, proof in network.FAMILIES.items()]
    rows.append(("anything else that is no declared success", _proof(network.UNEXPECTED)))
    return table(("Status", "Cause and meaning"), rows)


def _proof(proof: Proof) -> str:
    return f"{code(proof.cause)}, {proof.means.value.replace('_', ' ')}"
