"""Readiness: what is kept, what is broken with its remedy, and what could not be asked."""

import re
from typing import Any

import pytest

from dashboard import readiness, reading
from dashboard.readiness import Kept
from ledger import clock, workers
from ledger.verification import INVARIANTS
from ledger.vocabulary import FenceKind
from recovery import watchdog
from tests import builders, cast
from tests.dashboard.watching import signed_in, text_of
from tests.ledger.verification.planting import plant

pytestmark = pytest.mark.django_db


def read(at: Any) -> readiness.Readiness:
    return readiness.read(at.workspace.id, clock.now(), invariants=True)


def proofs_of(at: Any) -> list[readiness.Proof]:
    found = read(at).proofs
    assert found is not None
    return found


def promises(acme: cast.Acme) -> dict[str, readiness.Promise]:
    found = read(acme)
    return {each.name: each for group in found.groups for each in group.promises}


def test_a_whole_installation_keeps_what_can_be_asked(acme: cast.Acme) -> None:
    builders.a_worker()
    builders.a_call(acme, in_state="running")
    watchdog.sweep()
    found = promises(acme)
    for name in ("The schema is of this version", "Deadlines are swept",
                 "Somebody serves the queue effects", "Every open call has a deadline",
                 "A lost attempt is provably dead"):  # fmt: skip
        assert found[name].kept is Kept.YES, found[name]


@pytest.mark.parametrize(("queue", "kept"), [("reads", Kept.UNKNOWN), ("effects", Kept.NO)])
def test_only_who_may_cross_a_boundary_needs_the_kernels_fence(
    acme: cast.Acme, queue: str, kept: Kept
) -> None:
    workers.register(name="threads", queues=[queue], slots=4, fence_kind=FenceKind.NONE)
    assert promises(acme)["A lost attempt is provably dead"].kept is kept


def test_without_a_worker_the_page_says_what_waits_and_what_to_do(acme: cast.Acme) -> None:
    found = promises(acme)["Somebody serves the queue effects"]
    assert found.kept is Kept.NO
    assert found.remedy == "Start a worker for it."
    page = text_of(signed_in(acme.vera).get("/readiness"))
    assert re.search(r'broken. Begin with the first: <a href="#([^"]+)">.*id="\1"', page, re.DOTALL)


def test_the_invariants_are_asked_by_a_press_and_not_before(acme: cast.Acme) -> None:
    viewer = signed_in(acme.vera)
    assert "Ask the invariants" in text_of(viewer.get("/readiness"))
    asked = text_of(viewer.get("/readiness?invariants=1"))
    assert "Over what is open or moved in the last hour" in asked
    assert "Ask the invariants" not in asked


def test_every_invariant_is_asked(acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="ambiguous")
    proofs = proofs_of(acme)
    assert [each.number for each in proofs] == [each.number for each in INVARIANTS]
    assert {each.broken for each in proofs} == {0}


@pytest.mark.corrupts
def test_a_broken_invariant_is_named_with_its_first_call_to_its_own_workspace_only(
    acme: cast.Acme, globex: cast.Globex
) -> None:
    call = builders.a_call(acme)
    plant("UPDATE ledger_toolcall SET seq = seq + 7 WHERE id = %s", call.id)
    broken = [each for each in proofs_of(acme) if each.broken]
    assert any(call.id.hex in each.first for each in broken)
    elsewhere = [each for each in proofs_of(globex) if each.broken]
    assert [each.number for each in elsewhere] == [each.number for each in broken]
    assert {each.first for each in elsewhere} == {"a call of another workspace"}


def test_what_does_not_answer_in_time_is_not_known_and_never_kept(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(sql: str, parameters: dict[str, Any]) -> Any:
        with reading.bounded(20) as cursor:
            cursor.execute("SELECT pg_sleep(5)")

    monkeypatch.setattr(reading, "rows", rows)
    found = promises(acme)
    assert found["PostgreSQL answers"].kept is Kept.UNKNOWN
    assert found["Every wait has a date"].kept is Kept.UNKNOWN
