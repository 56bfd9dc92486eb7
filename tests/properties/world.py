"""The model beside the ledger: what attempts did to an honest outside, in plain Python.

Tools act when they like, once they have crossed and until they are proven dead and nothing of
theirs is in flight any more; they report what is true, or that they do not know, or nothing. So
whatever the ledger states as known can be held against what has happened.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from ledger.claims import Claim
from ledger.vocabulary import AttemptKind, CallState, Effect

ONCE = ("side_effect", "long_running")
"""Classes whose effect must not happen twice; the others bear it, or have none."""


@dataclass
class Try:
    """One attempt as its own worker knows it."""

    claim: Claim
    crossed: bool = False
    acted: bool = False
    said: str = ""
    denied: bool = False

    @property
    def is_run(self) -> bool:
        return self.claim.kind is AttemptKind.RUN

    @property
    def may_act(self) -> bool:
        """Whether its tool may still begin: it crossed, has not acted, and did not say the end."""
        return self.crossed and not self.acted and self.said in ("", "parked", "unknown")


@dataclass
class Story:
    """One call: its attempts by fence, and how it was settled, once it is."""

    recovery_class: str
    newest: int = 0
    tries: dict[int, Try] = field(default_factory=dict)
    settled: tuple[str, ...] | None = None

    @property
    def effects(self) -> int:
        """How many of its attempts changed the outside."""
        return sum(each.acted for each in self.tries.values())

    @property
    def open_crossings(self) -> list[int]:
        """The fences of those that crossed and were disproved by nothing."""
        return [n for n, each in self.tries.items() if each.crossed and not each.denied]

    def last_run(self, before: int) -> Try | None:
        """The run whose work a poll or a probe of the fence `before` asks after."""
        runs = [each for n, each in sorted(self.tries.items()) if each.is_run and n < before]
        return runs[-1] if runs else None


@dataclass
class World:
    """All calls, by id."""

    stories: dict[UUID, Story] = field(default_factory=dict)

    def tries(self) -> Iterator[Try]:
        for story in self.stories.values():
            yield from story.tries.values()

    def story_of(self, claim: Claim) -> Story:
        return self.stories[claim.call_id]

    def won(self, claim: Claim) -> Try:
        story = self.story_of(claim)
        assert claim.fence > story.newest, "a fence was given twice"
        story.newest = claim.fence
        story.tries[claim.fence] = Try(claim)
        return story.tries[claim.fence]

    def is_stale(self, one: Try) -> bool:
        """Whether a later attempt exists, so that this one may do nothing any more."""
        return one.claim.fence < self.story_of(one.claim).newest

    # What must hold

    def agrees(self, call_id: UUID, state: CallState, effect: Effect) -> None:
        """Hold what the ledger says of one call against what happened."""
        story = self.stories[call_id]
        told = f"{story.recovery_class} call {call_id} is {state} with the effect {effect}"
        if effect in (Effect.NONE, Effect.NOT_BEGUN, Effect.DID_NOT_HAPPEN):
            assert story.effects == 0 or effect is Effect.NONE, f"{told}, yet it happened"
        if effect is Effect.HAPPENED:
            assert story.effects > 0, f"{told}, yet nothing happened"
        if story.recovery_class in ONCE:
            assert story.effects <= 1, f"{told}, and it happened {story.effects} times"

    def settles(self, call_id: UUID, how: tuple[str, ...] | None) -> None:
        """Settled is final: no call is ever seen settled in two ways, or open again (I11)."""
        story = self.stories[call_id]
        assert story.settled in (None, how), f"{call_id} was settled as {story.settled}, is {how}"
        story.settled = how

    def crosses(self, one: Try) -> None:
        """An attempt crossed: no earlier crossing of a side effect may be open then (I1)."""
        story = self.story_of(one.claim)
        one.crossed = True
        if story.recovery_class in ONCE:
            assert len(story.open_crossings) <= 1, f"crossed by fences {story.open_crossings}"
