"""The lists that only look, over the API: the rows of their pages, and for whom."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ledger import clock, ids, keys
from ledger.conditions import Seen
from ledger.models import Gate, ToolCall
from ledger.vocabulary import GateKind
from recovery import resolutions
from recovery.models import Resolution, Sweep
from tests import builders, cast
from tests.api.callers import Caller, the_problem
from tests.api.served import Served
from tests.cast import as_decider
from tests.ledger.test_compactions import a_call, a_history
from tests.ledger.test_handoffs import offered
from tests.recovery.deciding import ambiguous, decide, version_of


def items(who: Caller, path: str) -> list[dict[str, Any]]:
    answer = who.get(path)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def asked(acme: cast.Acme, by: Any) -> Resolution:
    call = ambiguous(acme, second_person="always")
    return decide(acme, call, "abandon", by=as_decider(by))


def declined(resolution: Resolution, by: Any) -> None:
    resolutions.approve(
        resolution_id=resolution.id, yes=False, grounds="I see it otherwise.",
        seen=Seen(version=version_of(resolution.call)), by=as_decider(by),
    )  # fmt: skip


@pytest.fixture
def amy(acme: cast.Acme) -> Any:
    return cast.a_person("amy", acme.workspace, "approver")


# For whom


def test_of_these_lists_a_key_reads_deadlines_alone_with_the_scope_that_exports(
    acme: cast.Acme, agent: Callable[..., Caller], ada: Caller
) -> None:
    builders.a_call(acme, agent=acme.ada)
    the_problem(ada.get("/deadlines"), 403, "permission_missing")
    assert len(items(agent(acme.ben, "export:read"), "/deadlines")) == 1
    for path in ("/approvals", "/drills", "/workers", "/sweeps"):
        the_problem(agent(acme.ada, *keys.SCOPES).get(path), 403, "permission_missing")


def test_a_viewer_reads_all_five_as_on_their_pages(
    acme: cast.Acme, person: Callable[..., Caller]
) -> None:
    vera = person("vera")
    for path in ("/approvals", "/deadlines", "/drills", "/workers", "/sweeps"):
        assert vera.get(path).json() == {"items": [], "next_cursor": None}, path


# Approvals


def test_a_request_is_listed_while_it_waits_and_then_with_its_answer(
    acme: cast.Acme, amy: Any, person: Callable[..., Caller]
) -> None:
    resolution, vera = asked(acme, acme.olga), person("vera")
    (waiting,) = items(vera, "/approvals")
    declined(resolution, amy)
    (ended,) = items(vera, "/approvals")

    assert waiting["id"] == ended["id"] == ids.shown("resolution", resolution.id)
    assert waiting["call"] == ids.shown("call", resolution.call_id)
    assert (waiting["stage"], waiting["answer"], waiting["by"]) == ("requested", "abandon", "olga")
    assert waiting["request_ends_at"].endswith("Z")
    assert (waiting["ended_by"], waiting["ended_at"]) == (None, None)
    assert (ended["stage"], ended["ended_by"]) == ("declined", "amy")
    assert ended["ended_at"].endswith("Z")
    assert ended["request_ends_at"] is None


def test_requests_of_others_stand_before_ones_own_and_the_ended_last(
    acme: cast.Acme, amy: Any, person: Callable[..., Caller]
) -> None:
    ended = asked(acme, amy)
    declined(ended, cast.a_person("arno", acme.workspace, "approver"))
    asked(acme, amy)
    asked(acme, acme.olga)

    by = {name: [each["by"] for each in items(person(name), "/approvals")]
          for name in ("amy", "olga")}  # fmt: skip
    assert by == {"amy": ["olga", "amy", "amy"], "olga": ["amy", "olga", "amy"]}


def test_grounds_and_arguments_are_not_listed(
    acme: cast.Acme, amy: Any, person: Callable[..., Caller]
) -> None:
    call = builders.a_call(
        acme, "ambiguous", arguments={"to": "canary"}, policy={"second_person": "always"}
    )
    builders.unlock_denial(call)
    decide(acme, builders.fresh(call), "abandon", grounds="canary")

    vera = person("vera")
    assert items(vera, "/approvals")
    assert "canary" not in vera.get("/approvals").text + vera.get("/deadlines").text


# Deadlines


def a_gate(acme: cast.Acme, name: str) -> Gate:
    """An open breaker's gate, whose trial is due in an hour."""
    trial_at = clock.now() + timedelta(hours=1)
    return Gate.objects.create(
        workspace=acme.workspace, kind=GateKind.PROVIDER, name=name, why="breaker_open",
        trial_at=trial_at,
    )  # fmt: skip


def test_what_waits_is_named_by_its_id_and_a_gate_by_its_name(
    acme: cast.Acme, alma: Caller
) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 0)
    offered(session)
    a_gate(acme, "shop")

    found = {each["deadline"]: (each["of"], each["id"], each["name"], each["state"])
             for each in items(alma, "/deadlines")}  # fmt: skip
    assert found["hand_off"] == ("session", ids.shown("session", session.id), "ben", None)
    assert found["trial"] == ("provider_gate", None, "shop", None)
    (of_the_call,) = [each for each in found.values() if each[0] == "call"]
    assert of_the_call == ("call", ids.shown("call", call.id), call.tool, "running")


def test_what_has_passed_unnoticed_is_late(acme: cast.Acme, alma: Caller) -> None:
    call = builders.a_call(acme)
    (before,) = items(alma, "/deadlines")
    hour_ago = clock.now() - timedelta(hours=1)
    ToolCall.objects.filter(id=call.id).update(schedule_to_start_at=hour_ago)
    (after,) = items(alma, "/deadlines")

    assert before["due_at"].endswith("Z")
    assert before["then"].startswith("no worker took it in time")
    assert (before["has_passed"], before["is_late"]) == (False, False)
    assert (after["has_passed"], after["is_late"]) == (True, True)


def test_pages_of_deadlines_go_on_where_the_last_one_ended(acme: cast.Acme, alma: Caller) -> None:
    for _ in range(5):
        builders.a_call(acme)
    every = items(alma, "/deadlines")

    first = alma.get("/deadlines?limit=2")
    more = first.json()["next_cursor"]
    assert f"cursor={more.replace('=', '%3D')}" in first.headers["Link"]
    rest = alma.get(f"/deadlines?limit=200&cursor={more}").json()
    assert first.json()["items"] + rest["items"] == every
    assert (len(every), rest["next_cursor"]) == (5, None)
    for query in ("limit=0", "limit=201", "cursor=x"):
        the_problem(alma.get(f"/deadlines?{query}"), 422, "validation")


def test_a_secret_in_a_name_is_masked_for_a_key_too(
    acme: cast.Acme, agent: Callable[..., Caller], alma: Caller
) -> None:
    a_gate(acme, "https://ben:hunter2-hunter2@shop.example")
    for who in (agent(acme.ada, "export:read"), alma):
        text = who.get("/deadlines").text
        assert "shop.example" in text
        assert "hunter2" not in text


# Workers


def test_a_worker_is_listed_with_its_lock_and_what_it_holds(acme: cast.Acme, alma: Caller) -> None:
    holder = builders.a_worker("worker-7", slots=4)
    builders.a_call(acme, "running")

    (worker,) = items(alma, "/workers")
    assert worker["id"] == ids.shown("worker", holder.id)
    assert (worker["name"], worker["state"], worker["has_lock"]) == ("worker-7", "alive", True)
    assert (worker["slots"], worker["attempts_held"], worker["fences_lost_24h"]) == (4, 1, 0)
    assert (worker["self_fence"], worker["stopped_at"]) == ("kernel", None)
    assert worker["started_at"].endswith("Z")


def test_a_watchdog_is_listed_with_its_last_sweep_and_whether_that_is_late(
    acme: cast.Acme, alma: Caller
) -> None:
    swept = {"watchdog-1": 5, "watchdog-2": 90, "watchdog-3": 25 * 3600}
    for name, seconds in swept.items():
        Sweep.objects.create(name=name, swept_at=clock.now() - timedelta(seconds=seconds))

    listed = [(each["watchdog"], each["is_late"]) for each in items(alma, "/sweeps")]
    assert listed == [("watchdog-1", False), ("watchdog-2", True)]
    assert items(alma, "/sweeps")[0]["swept_at"].endswith("Z")


# Drills


@pytest.fixture
def drills(web: Served) -> Iterator[Path]:
    """The web's folder of drills."""
    folder = web.data / "drills"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def kept(drills: Path, name: str, **report: Any) -> None:
    (drills / name).mkdir()
    if report:
        (drills / name / "report.json").write_text(json.dumps(report))


def test_drills_are_listed_newest_first_with_what_they_found(drills: Path, alma: Caller) -> None:
    rows = [{"passed": True}, {"passed": False}]
    kept(drills, "20260101T000000Z-tests", passed=False, seconds=9.5, rows=rows, findings=["one"])
    kept(drills, "20260102T000000Z-chaos")

    without, failed = items(alma, "/drills")
    assert failed == {
        "name": "20260101T000000Z-tests", "kind": "tests", "at": "2026-01-01T00:00:00Z",
        "passed": False, "tests": 2, "failed": 1, "findings": 1, "took_s": 9.5,
    }  # fmt: skip
    assert (without["kind"], without["passed"], without["took_s"]) == ("chaos", None, None)
