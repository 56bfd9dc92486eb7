"""Bulk runs: a list of incidents frozen with their versions, then decided row by row (R136).

Freezing writes which rows may run and why the others may not; nothing is selected anew afterwards.
The watchdog carries a started run on in small transactions, so that it can be stopped between
rows; a row whose file moved is reported, never forced, and what failed is tried again as a run of
its own. Each row is a resolution of its own, with the same rules as one made by hand, and with a
longer delay in which the run can be taken back.

Locks: run, then those of one resolution at a time.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet

from ledger.conditions import Seen
from ledger.errors import (
    AlreadySettled,
    Invalid,
    LedgerError,
    LoginStale,
    NotFound,
    PermissionMissing,
    VersionConflict,
    refuse_unconfirmed,
)
from ledger.filters import an_id
from ledger.models import Membership, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.permissions import Person, Right
from ledger.transactions import repeatable
from ledger.vocabulary import RecoveryClass, ResolutionAnswer, ResolutionStage
from recovery import casefiles, match_files, resolutions, rulings, stages, statements
from recovery.match_files import MatchFile
from recovery.models import BulkRow, BulkRun, Incident, Resolution
from recovery.refusals import (
    AlreadyDecided,
    DenialLocked,
    EvidenceRequired,
    FilterEmpty,
    NotEligible,
    NotPending,
)
from recovery.resolutions import Decision
from recovery.rulings import Facts, Ruling, Wish

ROWS_MAX = 500
FROZEN_S = 15 * 60
BULK_DELAY_S = 30.0
BITE = 50
"""Rows of one run in one sweep."""
ROWS_PER_TOOL = 10
PACE_S = 1.0
"""In so long at most so many rows of one tool are decided, in all runs of a workspace."""
LEVEL_MAX = 3
"""In bulk a side effect is never run again and never decided on a statement only."""
MANY = {2: 50, 3: 20}
"""Above so many rows a level counts as the next (console, section 7)."""
FILTERS = ("tool", "cause", "reason", "failure_point", "session", "state")
STATED = (ResolutionAnswer.HAPPENED, ResolutionAnswer.DID_NOT_HAPPEN)
ONE_AT_A_TIME = (ResolutionAnswer.ATTACH_HANDLE, ResolutionAnswer.STANDS)

log = logging.getLogger(__name__)

ELIGIBILITY: dict[type[LedgerError], str] = {
    AlreadySettled: "already_settled",
    AlreadyDecided: "already_decided",
    EvidenceRequired: "needs_evidence",
    DenialLocked: "locked",
}
"""What a refusal means for a row; every other one: not allowed."""
DONE, CHANGED, FAILED, SKIPPED = "done", "changed", "failed", "skipped"
"""What becomes of a row: skipped is what nobody began because the run was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which incidents are meant: named, or by a filter that is not empty, of words as given."""

    incidents: Sequence[UUID] = ()
    filters: Mapping[str, str] = field(default_factory=dict)


@repeatable
def freeze(
    *, selection: Selection, wish: Wish, evidence: Mapping[UUID, Sequence[UUID]], by: Person,
    export: MatchFile | None = None,
) -> BulkRun:  # fmt: skip
    """Freeze the rows of a run with their versions and eligibility; nothing is decided yet.

    `evidence` names pieces for each incident; where it names none, those on its file count that
    say what is to be stated. With a provider's `export` each call that a row of it names gets
    that row as a document of its own, and the others drop out. Raises FilterEmpty, Invalid for
    too many and for what is no id of a session, PermissionMissing, LoginStale.
    """
    _need(by)
    if wish.answer in ONE_AT_A_TIME:
        raise NotEligible(why=f"'{wish.answer}' is answered for one call at a time.")
    meant = _meant(selection, by)
    run = BulkRun.objects.create(
        workspace_id=by.workspace_id,
        answer=wish.answer,
        then=wish.then,
        grounds=wish.grounds,
        level=0,
        by_id=by.id,
        by_name=by.name,
        expires_at=ClockTimestamp() + timedelta(seconds=FROZEN_S),
    )
    dropped, pieces = _matched(export, meant, wish, by) if export else ({}, evidence)
    judged = [
        dropped.get(each.id) or _judge(each, wish, pieces.get(each.id, ()), by) for each in meant
    ]
    BulkRow.objects.bulk_create(
        _row(run, place, incident, found)
        for place, (incident, found) in enumerate(zip(meant, judged, strict=True))
    )
    BulkRun.objects.filter(id=run.id).update(level=_level_of(judged))
    run.refresh_from_db()
    return run


def _need(by: Person) -> None:
    if not by.may(Right.DECIDE):
        raise PermissionMissing(needed="the right to decide")


def _matched(
    export: MatchFile, meant: Sequence[Incident], wish: Wish, by: Person
) -> tuple[dict[UUID, "Judged"], dict[UUID, Sequence[UUID]]]:
    """The incidents that the export leaves out, and for each other its row as evidence."""
    if wish.answer not in STATED:
        raise NotEligible(why="An export says that effects happened, or that they did not.")
    calls = {each.id: each.call for each in meant if each.call is not None}
    found = match_files.match(export, list({call.id: call for call in calls.values()}.values()))
    dropped: dict[UUID, Judged] = {}
    pieces: dict[UUID, Sequence[UUID]] = {}
    # In the order of their calls, as everybody locks them.
    for incident_id, call in sorted(calls.items(), key=lambda each: each[1].id):
        said = found[call.id]
        if said.line is None:
            dropped[incident_id] = Judged(eligibility=said.eligibility, detail=said.why)
        elif call.is_settled:
            continue
        else:
            pieces[incident_id] = [_row_as_evidence(export, said.line, call, wish, by)]
    return dropped, pieces


def _row_as_evidence(
    export: MatchFile, line: match_files.Line, call: ToolCall, wish: Wish, by: Person
) -> UUID:
    message, body = match_files.document(export, line)
    kept = statements.state_evidence(
        call_id=call.id,
        found=statements.Found(
            kind="document", finding=wish.answer, message=message, body=body,
            media_type="application/json",
        ),
        by=by,
    )  # fmt: skip
    return kept.id


def _meant(selection: Selection, by: Person) -> list[Incident]:
    of_calls = Incident.objects.filter(workspace=by.workspace_id, call__isnull=False)
    rows = of_calls.select_related("call", "pending")
    if selection.incidents:
        rows = rows.filter(id__in=list(selection.incidents))
    elif any(selection.filters.values()):
        rows = _filtered(rows.filter(closed_at__isnull=True), selection.filters)
    else:
        raise FilterEmpty()
    found = list(rows.order_by("id")[: ROWS_MAX + 1])
    if len(found) > ROWS_MAX:
        raise Invalid(detail=f"A run has at most {ROWS_MAX} rows; narrow the filter.")
    if len(found) < len(set(selection.incidents)):
        raise NotFound(noun="incident")
    return found


def _filtered(rows: "QuerySet[Incident]", filters: Mapping[str, str]) -> "QuerySet[Incident]":
    of_call = {"tool": "call__tool", "session": "call__session", "state": "call__state"}
    for name, value in filters.items():
        if value:
            meant = an_id("session", value) if name == "session" else value
            rows = rows.filter(**{of_call.get(name, name): meant})
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was found of one row: may it run, why not, on which evidence, at which level."""

    eligibility: str
    detail: str = ""
    version: int = 1
    evidence: tuple[UUID, ...] = ()
    level: int = 0
    told: str = ""


def _judge(incident: Incident, wish: Wish, named: Sequence[UUID], by: Person) -> Judged:
    assert incident.call is not None  # noqa: S101 `_meant` takes those of calls only
    facts = casefiles.of(incident.call, incident)
    pieces = tuple(named) or tuple(
        each.id
        for each in facts.evidence
        if each.finding == wish.answer and each.kind != rulings.STATEMENT
    )
    seen = Seen(version=facts.decision_version)
    decision = Decision(wish=replace(wish, evidence=pieces), seen=seen)
    try:
        ruling = resolutions.ruled(facts, incident.call, incident, decision, by)
    except LoginStale:
        raise
    except LedgerError as refusal:
        return Judged(
            eligibility=ELIGIBILITY.get(type(refusal), "not_allowed"),
            detail=str(refusal),
            version=facts.decision_version,
            evidence=pieces,
        )
    return _allowed(facts, ruling, pieces)


def _allowed(facts: Facts, ruling: Ruling, pieces: tuple[UUID, ...]) -> Judged:
    told = ruling.told.text if ruling.told else ruling.model
    seen = {"version": facts.decision_version, "evidence": pieces, "level": ruling.level,
            "told": told}  # fmt: skip
    if ruling.second_person:
        why = "The policy of this tool asks for a second person; decide it by itself."
        return Judged(eligibility="needs_second_person", detail=why, **seen)  # type: ignore[arg-type]
    if facts.has_effect and ruling.level > LEVEL_MAX:
        why = "In bulk a side effect is not run again, nor decided on a statement only."
        return Judged(eligibility="not_allowed", detail=why, **seen)  # type: ignore[arg-type]
    return Judged(eligibility="will_run", **seen)  # type: ignore[arg-type]


def _level_of(judged: Sequence[Judged]) -> int:
    running = [each for each in judged if each.eligibility == "will_run"]
    level = max((each.level for each in running), default=0)
    while level in MANY and len(running) > MANY[level]:
        level += 1
    return level


def _row(run: BulkRun, place: int, incident: Incident, found: Judged) -> BulkRow:
    return BulkRow(
        run=run,
        workspace_id=run.workspace_id,
        incident=incident,
        call=incident.call,
        place=place,
        decision_version=found.version,
        evidence_ids=list(found.evidence),
        eligibility=found.eligibility,
        detail=found.detail,
        told=found.told,
        size_bytes=len(incident.call.arguments.encode()) if incident.call else 0,
    )


def confirm_of(run: BulkRun) -> str:
    """What must be typed to start a run of level 4: the answer and how many rows will run."""
    if run.level < 4:
        return ""
    return f"{run.answer} {run.rows.filter(eligibility='will_run').count()}"


# Running


def get(*, run_id: UUID, by: Person) -> BulkRun:
    """One run of the person's workspace. Raises NotFound."""
    found = BulkRun.objects.filter(workspace=by.workspace_id, id=run_id).first()
    if found is None:
        raise NotFound(noun="bulk run")
    return found


def _locked(run_id: UUID, by: Person) -> BulkRun:
    get(run_id=run_id, by=by)
    _need(by)
    return BulkRun.objects.select_for_update().get(id=run_id)


@repeatable
def start(*, run_id: UUID, confirm: str, by: Person) -> BulkRun:
    """Let the frozen rows run.

    Raises NotPending for a run that began or is too old, LoginStale, ConfirmationRequired.
    """
    run = _locked(run_id, by)
    if run.started_at is not None:
        raise NotPending(stage="started", instead="Read its rows.")
    if not BulkRun.objects.filter(id=run.id, expires_at__gt=ClockTimestamp()).exists():
        raise NotPending(stage="too old", instead="Freeze the list anew: it may have moved.")
    of_effects = Q(eligibility="will_run", call__recovery_class=RecoveryClass.SIDE_EFFECT)
    resolutions.need_fresh_login(by, has_effect=run.rows.filter(of_effects).exists())
    refuse_unconfirmed(confirm_of(run), confirm)
    BulkRun.objects.filter(id=run.id).update(
        started_at=ClockTimestamp(), by_id=by.id, by_name=by.name, login_age_s=by.login_age_s
    )
    run.refresh_from_db()
    return run


@repeatable
def stop(*, run_id: UUID, by: Person) -> BulkRun:
    """Stop a run between rows: the row under way ends, the others are skipped."""
    run = _locked(run_id, by)
    if run.finished_at is None:
        _waiting(run.id).update(outcome=SKIPPED)
        BulkRun.objects.filter(id=run.id).update(
            stopped_at=ClockTimestamp(), finished_at=ClockTimestamp()
        )
        run.refresh_from_db()
    return run


def again(*, run_id: UUID, by: Person) -> BulkRun:
    """Freeze the rows that failed as a run of their own: same answer, grounds and evidence.

    Raises Invalid where none failed, PermissionMissing, LoginStale.
    """
    run = get(run_id=run_id, by=by)
    _need(by)
    failed = {row.incident_id: row for row in run.rows.filter(outcome=FAILED)}
    if not failed:
        raise Invalid(detail="No row of this run has failed, so there is nothing to try again.")
    return freeze(
        selection=Selection(incidents=tuple(failed)),
        wish=_wish(run),
        evidence={id_: row.evidence_ids for id_, row in failed.items()},
        by=by,
    )


def _wish(run: BulkRun, evidence: Sequence[UUID] = ()) -> Wish:
    answer = ResolutionAnswer(run.answer)
    return Wish(answer=answer, then=run.then, grounds=run.grounds, evidence=tuple(evidence))


def run_due(limit: int = BITE) -> int:
    """Decide the next rows of every run under way; return how many were decided."""
    under_way = BulkRun.objects.filter(started_at__isnull=False, finished_at__isnull=True)
    return sum(_carry_on(run, limit) for run in under_way.order_by("started_at"))


def _carry_on(run: BulkRun, limit: int) -> int:
    done = 0
    while done < limit and _next_row(run.id):
        done += 1
    if not _waiting(run.id).exists():
        BulkRun.objects.filter(id=run.id, finished_at__isnull=True).update(
            finished_at=ClockTimestamp()
        )
    return done


def _waiting(run_id: UUID) -> "QuerySet[BulkRow]":
    return BulkRow.objects.filter(run=run_id, eligibility="will_run", outcome="")


def _in_pace(run: BulkRun) -> "QuerySet[BulkRow]":
    """The rows that wait, but those of tools of which enough were decided just now."""
    latest = ClockTimestamp() - timedelta(seconds=PACE_S)
    moving = BulkRun.objects.filter(
        Q(finished_at=None) | Q(finished_at__gt=latest),
        workspace=run.workspace_id,
        started_at__isnull=False,
    )
    of_tools = BulkRow.objects.filter(run__in=moving, done_at__gt=latest).values("call__tool")
    full = of_tools.annotate(rows=Count("id")).filter(rows__gte=ROWS_PER_TOOL)
    return _waiting(run.id).exclude(call__tool__in=full.values("call__tool"))


def _next_row(run_id: UUID) -> bool:
    """Decide one row in a transaction of its own; False if none may be, or the run was stopped."""
    try:
        with transaction.atomic():
            # Stopping waits for this row, and the next one sees it.
            run = (
                BulkRun.objects.select_for_update(skip_locked=True)
                .filter(id=run_id, finished_at__isnull=True)
                .first()
            )
            row = _in_pace(run).order_by("place").first() if run else None
            if run is None or row is None:
                return False
            outcome, detail = _decided(run, row)
            BulkRow.objects.filter(id=row.id).update(
                outcome=outcome, detail=detail, done_at=ClockTimestamp()
            )
            return True
    except Exception:
        if connection.connection is None or connection.connection.closed:
            raise
        log.exception("watchdog.bulk_failed run=%s", run_id)
        return False


def _decided(run: BulkRun, row: BulkRow) -> tuple[str, str]:
    decision = Decision(
        wish=_wish(run, row.evidence_ids),
        seen=Seen(version=row.decision_version),
        longer_delay_s=BULK_DELAY_S,
        bulk_row=row,
    )
    try:
        with transaction.atomic():
            resolutions.record(incident_id=row.incident_id, decision=decision, by=_person(run))
    except (VersionConflict, AlreadyDecided, AlreadySettled) as refusal:
        return CHANGED, str(refusal)
    except LedgerError as refusal:
        return FAILED, str(refusal)
    return DONE, ""


def _person(run: BulkRun) -> Person:
    """Whoever started the run, with the roles held now: what was withdrawn meanwhile is gone."""
    roles = Membership.objects.filter(
        person=run.by_id, workspace=run.workspace_id, person__is_active=True
    )
    held = frozenset(roles.values_list("role", flat=True))
    return Person(run.by_id, run.by_name, run.workspace_id, held, run.login_age_s)


def take_back(*, run_id: UUID, grounds: str, by: Person) -> dict[str, int]:
    """Take back what of a run is not carried out yet; counts of both kinds."""
    run = stop(run_id=run_id, by=by)
    counts = {"taken_back": 0, "too_late": 0}
    for resolution in Resolution.objects.filter(bulk_row__run=run).order_by("id"):
        if stages.of(resolution) not in (ResolutionStage.PENDING, ResolutionStage.REQUESTED):
            continue
        try:
            resolutions.take_back(resolution_id=resolution.id, grounds=grounds, by=by)
            counts["taken_back"] += 1
        except LedgerError:
            counts["too_late"] += 1
    return counts
