"""Which version a change was decided on: it is refused where another holds by now."""

from dataclasses import dataclass

from ledger.errors import PreconditionRequired, VersionConflict, VersionConflictMatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The version that somebody looked at; `matched` where it came in If-Match."""

    version: int | None = None
    matched: bool = False

    def needed(self, noun: str, member: str) -> int:
        """The version. Raises PreconditionRequired without one."""
        if self.version is None:
            raise PreconditionRequired(noun=noun, member=member)
        return self.version

    @property
    def conflict(self) -> type[VersionConflict]:
        """The refusal of a stale version: 412 where it came in If-Match, else 409."""
        return VersionConflictMatch if self.matched else VersionConflict
