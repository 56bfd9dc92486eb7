"""Trying a policy on history, keeping the trial, and saving a policy after it.

Saving tries the candidate once more in its own transaction, so what is typed to confirm names
the calls as they stand now. Locks: the tool's row, by the registry; a trial only appends.
"""

import json
import time
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import transaction

from ledger import policies, registry
from ledger.conditions import Seen
from ledger.errors import NotFound, refuse_unconfirmed
from ledger.models import Policy, Tool
from ledger.permissions import Person
from ledger.policies import CallPolicy, policy_for
from ledger.registry import Author
from ledger.strictjson import is_identifier
from recovery import histories, trials
from recovery.models import Trial
from recovery.refusals import PolicyUnconfirmed
from recovery.trials import Column


def tool_of(workspace_id: UUID, name: str) -> Tool:
    """A tool of this workspace by its name. Raises NotFound."""
    rows = Tool.objects.filter(workspace=workspace_id, version__gt=0)
    found = rows.filter(name=name).first() if is_identifier(name) else None
    if found is None:
        raise NotFound(noun="tool")
    return found


def attempt(
    *,
    person: Person,
    tool_name: str,
    document: Mapping[str, Any],
    calls: int = histories.CALLS_MAX,
    days: int = histories.DAYS_MAX,
) -> Trial:
    """Try a document on the last calls of a tool and keep what came out.

    Raises NotFound, and UnsafePolicy for a document that could not be saved.
    """
    tool = tool_of(person.workspace_id, tool_name)
    candidate = policy_for(dict(document), gives_handles=tool.gives_handles)
    began = time.monotonic()
    found = [trials.compare(each, candidate) for each in histories.of(tool, calls=calls, days=days)]
    counted = Counter(each.column for each in found)
    stored = candidate.to_json()
    made = Trial.objects.create(
        workspace_id=person.workspace_id,
        tool=tool,
        based_on=tool.policy_version,
        document=stored,
        document_sha256=digest_of(stored),
        calls=len(found),
        counts={str(column): counted[column] for column in Column},
        rows=[
            [str(each.column), each.call_id.hex, each.sentence, each.measured_s]
            for each in found
            if each.column is not Column.SAME
        ],
        took_ms=round((time.monotonic() - began) * 1000),
        person_id=person.id,
        person_name=person.name,
    )
    made.refresh_from_db(fields=["at"])
    return made


def digest_of(document: Mapping[str, Any]) -> str:
    """The SHA-256 of a policy as it is stored, whatever the order of its knobs."""
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def confirmation(trial: Trial) -> str:
    """What is typed before such a policy is saved: tool and count of the repeated effects.

    Empty where nothing is typed: none was repeated, and the policy is no less careful than before.
    """
    repeated = trial.counts[Column.REPEATED]
    return f"{trial.tool.name} {repeated}" if repeated or loosened(trial) else ""


def loosened(trial: Trial) -> list[str]:
    """The knobs by which the policy is less careful than the version that it was based on."""
    before = Policy.objects.get(tool=trial.tool_id, number=trial.based_on)
    return policies.loosened(before.call_policy, CallPolicy.from_json(trial.document))


@transaction.atomic
def save(
    *,
    person: Person,
    tool_name: str,
    document: Mapping[str, Any],
    grounds: str,
    seen: Seen,
    confirm: str = "",
) -> tuple[Policy, Trial]:
    """Write a new version of a policy after a trial of it; the trial is kept with it.

    `seen` is the version that the author looked at. Raises PolicyUnconfirmed where it would have
    repeated effects or loosens, unless `confirm` names the tool and the number of those effects;
    PreconditionRequired without `seen`, VersionConflict if another version holds by now,
    UnsafePolicy, NotFound, Invalid without grounds.
    """
    tool = tool_of(person.workspace_id, tool_name)
    registry.look_again(tool, seen)
    trial = attempt(person=person, tool_name=tool_name, document=document)
    refuse_unconfirmed(
        confirmation(trial),
        confirm,
        PolicyUnconfirmed,
        count=trial.counts[Column.REPEATED],
        loosens=", ".join(loosened(trial)) or "nothing",
    )
    saved, _ = registry.put_policy(
        workspace_id=person.workspace_id,
        tool_name=tool_name,
        document=document,
        by=Author(name=person.name, grounds=grounds, person_id=person.id),
        seen=seen,
    )
    return saved, trial


def of_versions(versions: list[Policy]) -> dict[int, Trial]:
    """The last trial of each of these versions of one tool, by version, where there is one."""
    if not versions:
        return {}
    digests = {each.number: digest_of(each.document) for each in versions}
    rows = Trial.objects.filter(tool=versions[0].tool_id, document_sha256__in=digests.values())
    found = {(row.document_sha256, row.based_on + 1): row for row in rows.order_by("at")}
    return {
        number: found[digest, number]
        for number, digest in digests.items()
        if (digest, number) in found
    }
