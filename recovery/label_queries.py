"""What a call rests on and what its model was shown, as expressions of the database.

The same expressions draw the labels (`dashboard/standing.py`) and serve as filters, so that a
list filtered by a label holds exactly the calls that carry it. Each looks at one call by the
primary keys of its events, deliveries and fetches.
"""

from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    CharField,
    Exists,
    F,
    Func,
    OuterRef,
    Q,
    Subquery,
    UUIDField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce
from django.db.models.lookups import Exact

from ledger import machine
from ledger.models import Delivery, Event, Fetch, Notice
from ledger.vocabulary import SETTLED, Actor, CallState, Cause
from recovery.models import ResolutionEvidence

BROUGHT_NOTHING = frozenset(
    {Cause.WORKER_LOST, Cause.HANG, Cause.CONNECTION_LOST, Cause.GATEWAY_TIMEOUT,
     Cause.RESOURCE_KILLED, Cause.VANISHED, Cause.RESTORED}
)  # fmt: skip
"""Causes after which a failure rests on the policy and not on what the tool said."""
BACKED = ("checked", "document", "probe", "late_result")
SETTLES = Q(kind__in=[*machine.SETTLING, "corrected"], to_state__in=sorted(SETTLED))
"""The events of which the last says what a settled call rests on."""

NOTHING_YET = "nothing yet"

_STATED = Q(actor=Actor.OPERATOR, kind__in=("proved_done", "failed", "abandoned", "corrected"))
_RESULT = Q(kind__in=("succeeded", "adopted", "interrupt_answered"), to_state=CallState.SUCCEEDED)
_NAMED = Cast(
    Func(OuterRef("facts"), Value('"resolution":"([0-9a-f]{32})"'), function="substring"),
    UUIDField(),
)  # fmt: skip
_IS_BACKED = Exists(ResolutionEvidence.objects.filter(resolution=_NAMED, evidence__kind__in=BACKED))

BASIS = Case(
    When(_STATED & _IS_BACKED, then=Value("operator with evidence")),
    When(_STATED, then=Value("operator's word only")),
    When(_RESULT & Q(from_state=CallState.PARKED), then=Value("handle")),
    When(_RESULT, then=Value("tool result")),
    When(kind="proved_done", then=Value("probe")),
    When(Q(kind="failed") & ~Q(call__cause__in=BROUGHT_NOTHING), then=Value("tool result")),
    When(kind="imported", then=Value("tool result")),
    default=Value("policy"),
    output_field=CharField(),
)
"""What the last settling event of a call lets it rest on; the first that applies counts."""
BASES = (
    "tool result", "handle", "probe", "operator with evidence", "operator's word only", "policy",
)  # fmt: skip


def rests_on(path: str, basis: str) -> Q:
    """Whether a settled call, reached by this path, rests on this."""
    last = Event.objects.filter(SETTLES, call=OuterRef(f"{path}id")).order_by("-seq")
    found = Subquery(last.annotate(basis=BASIS).values("basis")[:1])
    return Q(Exact(found, Value(basis)), **{f"{path}settled_at__isnull": False})


# Shown to the model: a delivery says more than a fetch, which is read by whoever fetched it.


def _offered(path: str, column: Any) -> Subquery:
    rows = Delivery.objects.filter(call=OuterRef(f"{path}id")).order_by("-offered_at")
    return Subquery(rows.annotate(said=column).values("said")[:1])


def _fetched(path: str) -> Subquery:
    kept = Notice.objects.filter(call=OuterRef("call"), sha256=OuterRef("sha256"))
    word = Coalesce(
        Subquery(kept.values("kind")[:1]),
        Case(When(sha256="", then=Value("notice")), default=Value("real")),
        output_field=CharField(),
    )
    rows = Fetch.objects.filter(call=OuterRef(f"{path}id")).order_by("-first_at")
    return Subquery(rows.annotate(said=word).values("said")[:1])


def was_shown(path: str, word: str) -> Q:
    """Whether this is what the model was shown last of a call."""
    shown = Coalesce(
        _offered(path, F("kind")), _fetched(path), Value(NOTHING_YET), output_field=CharField()
    )
    return Q(Exact(shown, Value(word)))


def was_read(path: str, read: bool) -> Q:
    """Whether what the model was shown last is known to have been read; or that it is not yet."""
    acknowledged = Case(
        When(acknowledged_at__isnull=True, then=Value(False)), default=Value(True),
        output_field=BooleanField(),
    )  # fmt: skip
    fetched = Fetch.objects.filter(call=OuterRef(f"{path}id")).order_by()
    was = Case(When(Exists(fetched), then=Value(True)), output_field=BooleanField())
    return Q(Exact(Coalesce(_offered(path, acknowledged), was), Value(read)))
