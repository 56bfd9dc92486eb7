"""What a person may do to a whole session: stop it, let it go on, interrupt its open turn.

Each act has its sentence, what it would do by the verb's own rules, and what it will not undo.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ledger import interruptions, messages
from ledger.interruptions import Fate, Wish
from ledger.models import Session, ToolCall, Turn
from ledger.permissions import Person
from ledger.vocabulary import Actor
from recovery import stops

Listed = Sequence[tuple[str, Sequence[ToolCall]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One act on a session: its words, what it foresees, and the verb."""

    name: str
    title: str
    button: str
    means: str
    not_undone: str
    foresee: Callable[[Session], Listed]
    do: Callable[[Session, Person, str], str]
    why_not: Callable[[Session], str]


def _stop_foreseen(session: Session) -> Listed:
    found = stops.foresee(session)
    return [
        ("cancelled at once: nothing of them ran", found.cancelled),
        ("go up the ladder: an earlier attempt may have had its effect", found.to_the_ladder),
        ("asked to stop before their boundary", found.asked),
        ("left to end: past their boundary, or not ours to stop", found.left),
    ]


def _stop(session: Session, by: Person, grounds: str) -> str:
    stops.stop(workspace_id=session.workspace_id, session_id=session.id, by=_by(by, grounds))
    return "Stopped. No new attempt begins in this session; new calls are rejected at once."


def _resume(session: Session, by: Person, grounds: str) -> str:
    stops.resume(workspace_id=session.workspace_id, session_id=session.id, by=_by(by, grounds))
    return "The session takes calls again. What was cancelled stays cancelled."


def _by(person: Person, grounds: str) -> stops.Person:
    return stops.Person(str(person.id), person.name, grounds)


def open_turn(session: Session) -> Turn | None:
    """The session's open turn, if there is one."""
    return Turn.objects.filter(session=session, closed_at__isnull=True).first()


FATES: Mapping[Fate, str] = {
    Fate.CANCELLED: "cancelled at once: nothing of them ran",
    Fate.ASKED: "asked to stop, and cancelled after the grace of 10 seconds",
    Fate.ASKED_OUTSIDE: "asked to end outside; the outside decides",
    Fate.LEFT: "left to go on; their outcome goes to the next turn",
    Fate.KEPT: "settled already: their results are kept for the next turn",
}


def _interruption_foreseen(session: Session) -> Listed:
    turn = open_turn(session)
    found = interruptions.foresee(turn) if turn is not None else {}
    return [(words, found.get(fate, [])) for fate, words in FATES.items()]


def _interrupt(session: Session, by: Person, grounds: str) -> str:
    turn = open_turn(session)
    place = messages.Place(
        workspace_id=session.workspace_id,
        agent_id=session.agent_id,
        session_id=session.id,
        turn_id=turn.id if turn else session.id,
        epoch=session.epoch,
    )
    wish = Wish(by=by.name, grounds=grounds, actor=Actor.OPERATOR, actor_id=str(by.id))
    done = interruptions.interrupt(place, wish)
    if done.turn.closed_at is not None:
        return f"Turn {done.turn.number} was interrupted and is closed."
    return f"Turn {done.turn.number} was interrupted. It closes when its grace is over."


ACTS: dict[str, Act] = {
    act.name: act
    for act in (
        Act(
            name="stop",
            title="Stop the session",
            button="Stop this session",
            means="No new attempt begins, and new calls are recorded and rejected at once. What "
            "crossed its boundary is left to end.",
            not_undone="Letting the session go on later does not run again what is cancelled now.",
            foresee=_stop_foreseen,
            do=_stop,
            why_not=lambda session: "It is stopped already." if session.stopped_at else "",
        ),
        Act(
            name="resume",
            title="Let the session go on",
            button="Let this session go on",
            means="The session takes calls again, from its agent and under its binding as before.",
            not_undone="What the stop cancelled stays cancelled.",
            foresee=lambda _: [],
            do=_resume,
            why_not=lambda session: "" if session.stopped_at else "It is not stopped.",
        ),
        Act(
            name="interruption",
            title="Interrupt the open turn",
            button="Interrupt this turn",
            means="Results that are in are kept, nothing new begins, and what runs before its "
            "boundary is asked to stop. The turn closes by itself when the grace is over.",
            not_undone="A turn that was interrupted is not opened again; the agent opens the next.",
            foresee=_interruption_foreseen,
            do=_interrupt,
            why_not=lambda session: "" if open_turn(session) else "No turn is open.",
        ),
    )
}
"""By the last word of the address."""
