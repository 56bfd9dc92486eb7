"""Where submits belong: their sessions and turns, under locks, and what each is bound to.

Locks: sessions by id, then turns by id, shared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from ledger import bindings
from ledger.bindings import FIRST_EPOCH, Drift
from ledger.errors import Invalid, NotFound, TurnClosed, TurnOpen
from ledger.models import Session, Turn
from ledger.registered import Registered

if TYPE_CHECKING:
    from ledger.submits import Submit


@dataclass(frozen=True, slots=True)
class Places:
    """The sessions and turns that a batch of submits names, locked, and what drifted from them."""

    sessions: Mapping[UUID, Session]
    turns: Mapping[UUID, Turn]
    drifts: list[Drift] = field(default_factory=list)

    @classmethod
    def locked(cls, submits: Sequence["Submit"]) -> "Places":
        """Lock them; what is foreign or absent is not there."""
        session_ids = sorted({s.session_id for s in submits if s.session_id is not None})
        turn_ids = sorted({s.turn_id for s in submits if s.turn_id is not None})
        agent_ids = [s.agent_id for s in submits]
        # Two equal submits at once must see one another, and a stopped session takes no call: the
        # session's row lets its submits come one after the other, whichever process they came to.
        sessions = (
            Session.objects.raw(
                "SELECT * FROM ledger_session WHERE id = ANY(%s) AND agent_id = ANY(%s) "
                "ORDER BY id FOR NO KEY UPDATE",
                [session_ids, agent_ids],
            )
            if session_ids
            else ()
        )
        # Shared locks: the turn cannot be closed between this look and the commit.
        turns = (
            Turn.objects.raw(
                "SELECT * FROM ledger_turn WHERE id = ANY(%s) ORDER BY id FOR SHARE", [turn_ids]
            )
            if turn_ids
            else ()
        )
        return cls({each.id: each for each in sessions}, {each.id: each for each in turns})

    def epoch_of(self, submit: "Submit", tool: Registered) -> int:
        """The epoch that the submit's call belongs to.

        Raises NotFound, StaleEpoch, BindingDrift, TurnClosed, and TurnOpen for another model
        (semantics, sections 10 and 17).
        """
        if submit.session_id is None:
            if submit.turn_id is not None:
                raise Invalid(detail="A turn belongs to a session: give the session too.")
            return FIRST_EPOCH
        session = self._session_of(submit)
        bindings.check_epoch(session, submit.epoch)
        self._check_place(submit, session, tool)
        if submit.turn_id is not None:
            self._check_turn(submit, submit.turn_id, session)
        return session.epoch

    def _check_place(self, submit: "Submit", session: Session, tool: Registered) -> None:
        """Refuse what would touch the wrong place; a remote tool's drift is only noted."""
        differs = bindings.differing(
            session, working_directory=submit.working_directory, host=submit.host
        )
        found = [
            bindings.drift(session, name, given, at="submit", blocked=not tool.is_remote)
            for name, given in differs.items()
        ]
        self.drifts.extend(found)
        if found and not tool.is_remote:
            raise bindings.refusal_of(found[0])

    def _session_of(self, submit: "Submit") -> Session:
        session = self.sessions.get(submit.session_id) if submit.session_id else None
        owner = (submit.workspace_id, submit.agent_id)
        if session is None or (session.workspace_id, session.agent_id) != owner:
            raise NotFound(noun="session", about=submit.session_id)
        return session

    def _check_turn(self, submit: "Submit", turn_id: UUID, session: Session) -> None:
        turn = self.turns.get(turn_id)
        if turn is None or turn.session_id != session.id:
            raise NotFound(noun="turn")
        if not turn.takes_calls:
            raise TurnClosed()
        if submit.model and turn.model and submit.model != turn.model:
            raise TurnOpen(turn=turn.number, same="")

    def is_stopped(self, session_id: UUID | None) -> bool:
        """Whether a person stopped the session."""
        session = self.sessions.get(session_id) if session_id is not None else None
        return session is not None and session.stopped_at is not None
