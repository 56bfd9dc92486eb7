"""A person at work on incidents: looks at the world, states what was found, and decides.

Everything goes through the API under a login, as the console does it. What is found is looked
up anew before each decision, since an attempt may have acted between the last look and now.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from drills.person import Person
from drills.waits import until

LOCKED = "locked"
UNCONFIRMED = "confirmation_required"
ASK_AGAIN_S = 0.25


@dataclass(frozen=True, slots=True)
class Said:
    """What the API answered to a decision: the HTTP code and the body."""

    code: int
    body: Any

    @property
    def accepted(self) -> bool:
        return self.code in (200, 201, 202)

    @property
    def word(self) -> str:
        """The refusal's code; "" where there was none."""
        return "" if self.accepted else str((self.body or {}).get("code", ""))


class Operator:
    """One login that decides. `looked` tells how often the effect of a call is there."""

    def __init__(self, person: Person, looked: Callable[[str, str], int]) -> None:
        self._person, self._looked = person, looked

    def open_incidents(self) -> list[dict[str, Any]]:
        """Every open incident of the workspace, newest first."""
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            said = self._person.get(f"/api/v1/incidents?open=true&limit=100&cursor={cursor}")
            found += said["items"]
            cursor = said["next_cursor"] or ""
            if not cursor:
                return found

    def incident_of(self, call: str) -> dict[str, Any] | None:
        """The open incident of a call, or None."""
        found = self._person.get(f"/api/v1/incidents?open=true&call={call}")["items"]
        return dict(found[0]) if found else None

    def deny(self, call: str, tool: str, *, then: str = "repeat", key: str = "") -> Said:
        """Say that the effect did not happen, on a look at the world; repeat it or close it."""
        return self.decide(call, tool, answer="did_not_happen", then=then, key=key)

    def decide(self, call: str, tool: str, *, answer: str, then: str = "", key: str = "") -> Said:
        """State what the world shows, then give this answer on what is seen now."""
        incident = self.incident_of(call)
        if incident is None:
            return Said(404, {"code": "no_open_incident"})
        found = self._looked(tool, call)
        evidence = self._state(incident["id"], call, tool, found)
        if not evidence.accepted:
            return evidence
        seen = self._person.get(f"/api/v1/incidents/{incident['id']}")
        wanted = {
            "answer": answer,
            **({"then": then} if then else {}),
            "grounds": f"Looked at the sandbox: {found} effect(s) of this call.",
            "evidence": [evidence.body["id"]],
            "decision_version": seen["decision_version"],
        }
        return self._confirmed(f"/api/v1/incidents/{incident['id']}/resolutions", wanted, key)

    def _confirmed(self, path: str, wanted: dict[str, Any], key: str) -> Said:
        """Send a decision; the gravest are sent once more with the text that confirms them."""
        said = self._posted(path, wanted, uuid4().hex)
        if said.word != UNCONFIRMED:
            return said
        wanted = {**wanted, "confirm": said.body["current"]["confirm"]}
        return self._posted(path, wanted, key or uuid4().hex)

    def _state(self, incident: str, call: str, tool: str, found: int) -> Said:
        return self._posted(
            f"/api/v1/incidents/{incident}/evidence",
            {
                "kind": "checked",
                "finding": "happened" if found else "did_not_happen",
                "message": f"looked at: the sandbox's own records of {tool}; found {found}.",
                "reference": call,
            },
            uuid4().hex,
        )

    def _posted(self, path: str, body: dict[str, Any], key: str) -> Said:
        return Said(*self._person.ask("POST", path, body, **{"Idempotency-Key": key}))

    def deny_when_unlocked(self, call: str, tool: str, *, then: str, limit_s: float) -> Said:
        """Ask again while the denial is locked, each time on a fresh look."""
        return until(  # type: ignore[no-any-return]
            lambda: self._unless_locked(call, tool, then),
            f"the denial of {call} unlocks",
            limit_s,
            ASK_AGAIN_S,
        )

    def _unless_locked(self, call: str, tool: str, then: str) -> Said | None:
        said = self.deny(call, tool, then=then)
        return None if said.word == LOCKED else said
