"""Whether a call is in dispute, and who may then decide about it (console, section 9)."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q

from ledger.permissions import Person, Right
from ledger.vocabulary import ResolutionStage
from recovery.models import Dispute, Resolution
from recovery.refusals import ThirdPersonRequired

FAILED = (
    ResolutionStage.DECLINED, ResolutionStage.TAKEN_BACK, ResolutionStage.LAPSED,
    ResolutionStage.OVERTAKEN,
)  # fmt: skip


def unanswered() -> Q:
    """The condition of a dispute that nobody has decided, or only by what came to nothing."""
    return Q(decision=None) | Q(decision__events__kind__in=FAILED)


def of_call(call_id: UUID) -> Dispute | None:
    """The dispute about a call that waits for a third person."""
    rows = Dispute.objects.filter(unanswered(), call=call_id).select_related("resolution")
    return rows.order_by("-at").first()


def of_incidents(incident_ids: Iterable[UUID]) -> set[UUID]:
    """Which of these incidents are in dispute."""
    rows = Dispute.objects.filter(unanswered(), incident__in=list(incident_ids))
    return set(rows.values_list("incident_id", flat=True))


def refuse_party(dispute: Dispute | None, by: Person) -> None:
    """Raise ThirdPersonRequired for either side of an open dispute who is no admin."""
    if dispute is None or by.may(Right.ADMINISTER):
        return
    if by.id in (dispute.by_id, dispute.resolution.by_id):
        raise ThirdPersonRequired(one=dispute.resolution.by_name, other=dispute.by_name)


def answer(call_id: UUID, decision: Resolution) -> None:
    """Note the decision that was recorded about a dispute, under the call's lock."""
    dispute = of_call(call_id)
    if dispute is not None:
        Dispute.objects.filter(id=dispute.id).update(decision=decision)
