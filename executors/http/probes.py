"""Asking the outside whether the effect of a call happened.

A probe only reads. It answers `did_not_happen` only where the tool's own condition for that
holds on a whole answer; everything else it cannot tell is `unknown`. Whether a negative may
be believed is decided elsewhere (semantics, section 6, rule 1).
"""

import json
from typing import Any

from executors.contract import JSON, ProbeAnswer, Result
from executors.http.client import Answer
from executors.http.conditions import MISSING, Condition, NotJson, look_up, read_json
from executors.http.config import Probe
from executors.http.outcomes import Sent
from ledger.vocabulary import ProbeFinding

PROBE_S = 10.0
"""Seconds for one probe (semantics, section 6, rule 1)."""

QUOTED = 2048
"""Bytes of the answer that are kept as evidence."""

SAYS = {
    ProbeFinding.HAPPENED: "says that the effect happened.",
    ProbeFinding.IN_PROGRESS: "says that the work is still going on.",
    ProbeFinding.DID_NOT_HAPPEN: "knows no such effect.",
    ProbeFinding.UNKNOWN: "meets none of the tool's conditions, or more than one.",
}


def unknown(message: str, **evidence: Any) -> ProbeAnswer:
    return ProbeAnswer(finding=ProbeFinding.UNKNOWN, message=message, evidence=evidence)


def found(sent: Sent, answer: Answer, probe: Probe, filling: dict[str, JSON]) -> ProbeAnswer:
    """Read an answer by the tool's conditions."""
    finding = _finding(answer, probe, filling)
    quoted = sent.revealed.cut_from(answer.body)[:QUOTED].decode("utf-8", "replace")
    return ProbeAnswer(
        finding=finding,
        message=f"{sent.name}: answered {answer.status} and {SAYS[finding]}",
        result=_result(sent, answer, probe) if finding is ProbeFinding.HAPPENED else None,
        evidence=sent.evidence(
            status=answer.status, answer=quoted, authoritative=probe.authoritative
        ),
    )


def _finding(answer: Answer, probe: Probe, filling: dict[str, JSON]) -> ProbeFinding:
    conditions: dict[ProbeFinding, Condition | None] = {
        ProbeFinding.HAPPENED: probe.happened,
        ProbeFinding.IN_PROGRESS: probe.in_progress,
        ProbeFinding.DID_NOT_HAPPEN: probe.did_not_happen,
    }
    met = [finding for finding, condition in conditions.items() if _met(condition, answer, filling)]
    if len(met) != 1:
        return ProbeFinding.UNKNOWN
    if met[0] is ProbeFinding.DID_NOT_HAPPEN and answer.cut:
        return ProbeFinding.UNKNOWN
    return met[0]


def _met(condition: Condition | None, answer: Answer, filling: dict[str, JSON]) -> bool:
    return condition is not None and condition.is_met(answer, filling)


def _result(sent: Sent, answer: Answer, probe: Probe) -> Result | None:
    if probe.result is None:
        return None
    try:
        value = look_up(read_json(answer), probe.result)
    except NotJson:
        return None
    if value is MISSING:
        return None
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return Result(body=sent.revealed.cut_from(body))
