"""Where submits belong: their sessions and turns, under locks, and what each is bound to.

Locks: sessions by id, then turns by id, shared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from ledger.errors import BindingDrift, Invalid, NotFound, StaleEpoch, TurnClosed
from ledger.models import Session, Turn

if TYPE_CHECKING:
    from ledger.submits import Submit

FIRST_EPOCH = 1
"""The epoch of a call outside any session, and of a session that was never bound anew."""


@dataclass(frozen=True, slots=True)
class Places:
    """The sessions and turns that a batch of submits names, locked."""

    sessions: Mapping[UUID, Session]
    turns: Mapping[UUID, Turn]

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

    def epoch_of(self, submit: "Submit") -> int:
        """The epoch that the submit's call belongs to.

        Raises NotFound, StaleEpoch, BindingDrift and TurnClosed (semantics, section 10).
        """
        if submit.session_id is None:
            if submit.turn_id is not None:
                raise Invalid(detail="A turn belongs to a session: give the session too.")
            return FIRST_EPOCH
        session = self._session_of(submit)
        _check_binding(submit, session)
        if submit.turn_id is not None:
            self._check_turn(submit.turn_id, session)
        return session.epoch

    def _session_of(self, submit: "Submit") -> Session:
        session = self.sessions.get(submit.session_id) if submit.session_id else None
        owner = (submit.workspace_id, submit.agent_id)
        if session is None or (session.workspace_id, session.agent_id) != owner:
            raise NotFound(noun="session")
        return session

    def _check_turn(self, turn_id: UUID, session: Session) -> None:
        turn = self.turns.get(turn_id)
        if turn is None or turn.session_id != session.id:
            raise NotFound(noun="turn")
        if not turn.takes_calls:
            raise TurnClosed()

    def is_stopped(self, session_id: UUID | None) -> bool:
        """Whether a person stopped the session."""
        session = self.sessions.get(session_id) if session_id is not None else None
        return session is not None and session.stopped_at is not None


def _check_binding(submit: "Submit", session: Session) -> None:
    if submit.epoch is not None and submit.epoch != session.epoch:
        raise StaleEpoch(epoch=session.epoch)
    for name in ("working_directory", "host"):
        given = getattr(submit, name)
        if given is not None and given != getattr(session, name):
            raise BindingDrift(field=name.replace("_", " "))
