"""Grounds that were typed once, offered again: for the next call that broke in the same way.

Source: console, section 4; WCAG 2.2, 3.3.7 (nothing is typed twice).
"""

from datetime import timedelta

from ledger import clock
from ledger.models import ToolCall
from ledger.permissions import Person
from recovery.models import Resolution

OFFERED_FOR = timedelta(hours=24)


def last_of(person: Person, call: ToolCall) -> Resolution | None:
    """The person's last decision within a day on another call of the same cause, or None."""
    return (
        Resolution.objects.filter(
            workspace=person.workspace_id,
            by=person.id,
            call__cause=call.cause,
            at__gte=clock.now() - OFFERED_FOR,
        )
        .exclude(call=call)
        .order_by("-at")
        .first()
    )
