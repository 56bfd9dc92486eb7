"""How old the open questions are, and how many of them are past their review deadline."""

from datetime import datetime, timedelta
from uuid import UUID

from dashboard import leads, reading
from dashboard.charts.chart import Cell, Drawn, bars
from dashboard.overview import EXACT_UP_TO
from dashboard.templatetags.times import span
from ledger.vocabulary import CallState, IncidentKind

# Served by `incident_open`, the oldest first and never more than a thousand: beside ten thousand
# open incidents the rest changes no bar that a person would act on. The review deadline is armed
# again each time it passes, so an escalation says that it passed; the policy of the call says how
# long it is.
SQL = f"""
SELECT c.recovery_class, 3 - width_bucket(i.opened_at, %(bounds)s::timestamptz[]) AS age,
       count(*)::int, count(*) FILTER (WHERE i.escalation_level > 0 OR i.review_at < %(now)s)::int,
       min((p.document->>'review_s')::float8), max((p.document->>'review_s')::float8)
  FROM (SELECT call_id, opened_at, escalation_level, review_at FROM recovery_incident
         WHERE workspace_id = %(workspace)s AND closed_at IS NULL AND kind = 'recovery'
           AND state = 'exhausted' ORDER BY opened_at LIMIT {EXACT_UP_TO + 1}) i
  JOIN ledger_toolcall c ON c.id = i.call_id AND c.state = 'ambiguous' AND c.settled_at IS NULL
  JOIN ledger_policy p ON p.id = c.policy_id
 GROUP BY 1, 2 ORDER BY 1, 2
"""  # noqa: S608 a constant of ours
AGES = ("under 15 min", "15 min to 1 h", "1 to 4 h", "over 4 h")
BOUNDS_MIN = (15, 60, 240)


def ageing(workspace_id: UUID, now: datetime) -> Drawn:
    """The ambiguous calls by age and recovery class, with the review deadline of each class."""
    bounds = _bounds(now)
    asked = {"workspace": workspace_id, "now": now, "bounds": bounds[::-1]}
    found = reading.rows(SQL, asked)
    if not found:
        return Drawn("Nothing is ambiguous now.")
    counts = {(name, age): number for name, age, number, *_ in found}
    of_age = [sum(n for (_, at), n in counts.items() if at == age) for age in range(4)]
    late = [sum(row[3] for row in found if row[1] == age) for age in range(4)]
    classes = sorted({row[0] for row in found})
    total, past = sum(of_age), sum(late)
    lists = _lists(bounds) if total <= EXACT_UP_TO else [{}] * 4
    whole = f"{total} ambiguous" if total <= EXACT_UP_TO else f"The oldest {total - 1} ambiguous"
    figures = [(word, float(n), f"{n}, {over} past" if over else str(n))
               for word, n, over in zip(AGES, of_age, late, strict=True)]  # fmt: skip
    return Drawn(
        f"{whole}, {past} past the review deadline.",
        ("Class", *AGES, "Review deadline"),
        [
            [
                Cell(name),
                *(_counted(name, counts.get((name, age), 0), lists[age]) for age in range(4)),
                Cell(_deadline([row for row in found if row[0] == name])),
            ]
            for name in classes
        ],
        bars(
            figures,
            parts=[float(n) for n in late],
            family="person",
            addresses=[_address(each) if n else "" for each, n in zip(lists, of_age, strict=True)],
        ),
        "Solid: past the review deadline, which reminds and asks wider, and never decides."
        if past
        else "",
    )


def _bounds(now: datetime) -> list[datetime]:
    """The instants between the ages, the latest first.

    In whole minutes: a chart in which nothing changed is not sent again.
    """
    minute = now.replace(second=0, microsecond=0)
    return [minute - timedelta(minutes=each) for each in BOUNDS_MIN]


def _lists(bounds: list[datetime]) -> list[dict[str, str]]:
    """What the inbox is asked for the incidents of each age."""
    ends = [leads.moment(each) for each in bounds]
    asked = {"kind": IncidentKind.RECOVERY, "state": CallState.AMBIGUOUS}
    return [
        asked | {name: end for name, end in (("from", first), ("until", last)) if end}
        for first, last in zip([*ends, ""], ["", *ends], strict=True)
    ]


def _address(asked: dict[str, str], **more: str) -> str:
    return leads.to("inbox", **asked, **more) if asked else ""


def _counted(recovery_class: str, number: int, asked: dict[str, str]) -> Cell:
    if not number:
        return Cell("0")
    return Cell(str(number), _address(asked, **{"class": recovery_class}))


def _deadline(rows: list[reading.Row]) -> str:
    shortest, longest = min(row[4] for row in rows), max(row[5] for row in rows)
    short, long = span(timedelta(seconds=shortest)), span(timedelta(seconds=longest))
    return short if short == long else f"{short} to {long}"
