"""Progress: new evidence begins the recovery window anew, and its count of steps (semantics, 7).

Evidence is progress where it says something: a probe's answer other than `unknown`, a late
result, whatever a person adds. Pulled at each step, so that it does not matter who brought it.
"""

from datetime import timedelta

from django.db.models import F, Max, Q
from django.db.models.functions import Greatest, Least

from ledger.models import Evidence, ToolCall
from ledger.vocabulary import ProbeFinding
from recovery import incidents
from recovery.models import Incident

BY_PEOPLE = ("statement", "document", "checked")
SAYS_SOMETHING = Q(
    finding__in=[each for each in ProbeFinding if each is not ProbeFinding.UNKNOWN]
) | Q(kind__in=BY_PEOPLE)


def look(call: ToolCall) -> bool:
    """Whether there is new evidence since the last look; then the window begins anew.

    It never ends later than schedule-to-close and one window.
    """
    incident = incidents.current(call)
    if incident is None:
        return False
    newest = Evidence.objects.filter(
        SAYS_SOMETHING, call=call, at__gt=incident.progress_at
    ).aggregate(at=Max("at"))["at"]
    if newest is None:
        return False
    Incident.objects.filter(id=incident.id).update(progress_at=newest, steps_without_progress=0)
    window = timedelta(seconds=call.policy.call_policy.recovery_window_s)
    ToolCall.objects.filter(id=call.id, recovery_window_at__isnull=False).update(
        recovery_window_at=Greatest(
            "recovery_window_at", Least(newest + window, F("schedule_to_close_at") + window)
        )
    )
    call.refresh_from_db(fields=["recovery_window_at"])
    return True
