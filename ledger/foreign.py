"""Who asked for what is another's: an entry of the audit, written behind the answer (R110).

The answer is the 404 of what does not exist, after the same work: whether there is anything by
that id is looked up only here, by a thread of its own, so that not even time tells them apart.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any
from uuid import UUID

from ledger import pipelines
from ledger.errors import LedgerError, NotFound
from ledger.groups import Group
from ledger.tables import table

COLUMNS = (("noun", "text"), ("about", "uuid"), ("by_id", "text"), ("times", "integer"))
INSERT = (
    "INSERT INTO ledger_foreignask (workspace_id, noun, about, by_id, times) "
    "SELECT t.workspace_id, v.noun, v.about, v.by_id, v.times FROM {} JOIN LATERAL ("
    "SELECT s.workspace_id FROM ledger_session s WHERE v.noun = 'session' AND s.id = v.about "
    "UNION ALL SELECT c.workspace_id FROM ledger_toolcall c WHERE v.noun = 'call' "
    "AND c.id = v.about) t ON true ON CONFLICT (about, by_id) "
    "DO UPDATE SET times = ledger_foreignask.times + EXCLUDED.times, last_at = clock_timestamp()"
)


@dataclass(frozen=True, slots=True, order=True)
class Asked:
    """One look-up that found nothing that the asker may see."""

    noun: str
    about: UUID
    by_id: str


def write(asked: Sequence[Asked]) -> list[None]:
    """Keep those that ask for something that is there, or count them where they asked before."""
    # One row for each key, in one order: a statement may not touch a conflicting row twice.
    times = Counter(asked)
    text, parameters = table(COLUMNS, [(*astuple(each), times[each]) for each in sorted(times)])
    pipelines.rows(INSERT.format(text), parameters)
    return [None] * len(asked)


asks: Group[Asked, None] = Group(write, name="foreign", largest=256, linger_s=0.05)


def note(refusal: LedgerError, caller: Any) -> None:
    """Note a look-up that was answered 404, without holding up the answer.

    `caller` is the key's principal or the person of a login; without one nothing is noted.
    """
    about = refusal.facts.get("about")
    by = getattr(caller, "agent_id", None) or getattr(caller, "id", None)
    if isinstance(refusal, NotFound) and isinstance(about, UUID) and by is not None:
        asks.submit(
            Asked(refusal.facts["noun"], about, by.hex if isinstance(by, UUID) else str(by))
        )
