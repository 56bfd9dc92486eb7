"""The token of a prepared compaction: signed, good for 120 seconds on the database's clock.

It says for which session, at which version and epoch the cuts were read, and nothing of their
content: what it allows is computed again when it comes back.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.core import signing

from ledger import clock
from ledger.errors import CutExpired, Invalid
from ledger.models import Session

LIVES_S = 120
"""How long a token is good, in seconds (semantics, 16.1)."""

_SALT = "clearhouse.compaction"
CHARACTERS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Looked:
    """What its bearer looked at: a session at a version, until an instant."""

    session_id: UUID
    version: int
    epoch: int
    until: datetime

    def refuse_if_over(self) -> None:
        """Raise CutExpired once the database's clock has passed it."""
        if clock.now() > self.until:
            raise CutExpired(until=self.until.isoformat())


def issue(session: Session) -> tuple[str, Looked]:
    """A token for this session as it stands, and what it says."""
    until = clock.now() + timedelta(seconds=LIVES_S)
    looked = Looked(session.id, session.version, session.epoch, until)
    claim = [session.id.hex, session.version, session.epoch, until.isoformat()]
    return signing.Signer(salt=_SALT).sign_object(claim), looked


def read(token: str, session_id: UUID) -> Looked:
    """What a token says. Raises Invalid for one that is not ours, or of another session."""
    try:
        if len(token) > CHARACTERS_MAX:
            raise signing.BadSignature
        named, version, epoch, until = signing.Signer(salt=_SALT).unsign_object(token)
    except signing.BadSignature as error:
        raise Invalid(detail="The token is none that the cuts of a session gave out.") from error
    if UUID(named) != session_id:
        raise Invalid(detail="The token belongs to another session.")
    return Looked(UUID(named), version, epoch, datetime.fromisoformat(until))
