"""What a session is bound to, what differed from it, and who changed it when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.bindings import PLACE
from ledger.models import Drift, Session, SessionChange
from recovery import rebinds
from recovery.rebinds import Binding, Foreseen

FIELDS = (*PLACE, "model")
TITLES = {"working_directory": "Working directory", "host": "Host", "model": "Model"}
CHANGES_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the binding: what holds, and what was typed in its place."""

    name: str
    title: str
    bound: str
    typed: str
    drift: Drift | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A line of the session's history: who did what, when, why."""

    row: SessionChange

    @property
    def changed(self) -> Sequence[tuple[str, str, str]]:
        """The fields of a re-bind: title, before, after."""
        found: Mapping[str, Sequence[str]] = self.row.facts.get("changed", {})
        return [(TITLES.get(name, name), old, new) for name, (old, new) in found.items()]

    @property
    def calls(self) -> Sequence[tuple[str, Sequence[str]]]:
        """What became of which calls: the word, and the ids."""
        found: Mapping[str, Sequence[str]] = self.row.facts.get("calls", {})
        return [(word, ids_) for word, ids_ in found.items() if ids_]


@dataclass(frozen=True, slots=True)
class BindingPage:
    """Everything that the page of a binding shows, with the text that was typed so far."""

    fields: Sequence[Field]
    drifts: Sequence[Drift]
    changes: Sequence[Change]
    grounds: str = ""
    foreseen: Foreseen | None = None


def of(session: Session, typed: Mapping[str, Any], *, preview: bool = False) -> BindingPage:
    """The page as it stands; with `preview` what binding anew to the typed fields would do."""
    drifts = list(Drift.objects.filter(session=session).order_by("-last_at")[:50])
    present = {each.field: each for each in drifts if each.epoch == session.epoch}
    fields = [
        Field(
            name,
            TITLES[name],
            str(getattr(session, name)),
            str(typed.get(name, getattr(session, name))),
            present.get(name),
        )
        for name in FIELDS
    ]
    rows = session.changes.order_by("-id")[:CHANGES_SHOWN]
    return BindingPage(
        fields=fields,
        drifts=drifts,
        changes=[Change(each) for each in rows],
        grounds=str(typed.get("grounds", "")),
        foreseen=rebinds.foresee(session, binding_of(typed)) if preview else None,
    )


def binding_of(typed: Mapping[str, Any]) -> Binding:
    """The binding that was typed; a field that the form did not send stays as it is."""
    return Binding(**{name: str(typed[name]).strip() for name in FIELDS if name in typed})
