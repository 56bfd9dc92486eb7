"""The whole start, with real servers and stand-in programs, and every way of breaking it."""

import signal
import socket

import pytest

from standalone import pids, status
from standalone.ports import LOOPBACK
from standalone.postgres import temporary_postgres
from standalone.valkey import temporary_valkey
from standalone.waiting import until
from tests.standalone.running import LIMIT_S, RunningUp


def test_a_first_start_says_where_it_is_and_is_ready(up: RunningUp) -> None:
    closing = up.start()

    report = status.look(up.state)
    assert closing["ready"]
    assert closing["address"] == f"http://127.0.0.1:{up.port}"
    assert report.ready
    assert [row.state for row in report.rows] == ["running"] * 4
    assert report.exit_code == status.READY


def test_links_lead_to_where_it_runs_unless_the_environment_names_another_place(
    up: RunningUp,
) -> None:
    up.start()
    assert up.state.recall("environment")["CLEARHOUSE_PUBLIC_URL"] == f"http://127.0.0.1:{up.port}"
    up.stop()

    up.elsewhere = {"CLEARHOUSE_PUBLIC_URL": "https://calls.example"}
    up.start()
    assert up.state.recall("environment")["CLEARHOUSE_PUBLIC_URL"] == "https://calls.example"


def test_progress_is_numbered_and_the_answer_alone_stands_on_standard_output(up: RunningUp) -> None:
    up.start()
    up.stop()

    said = up.said.read_text()
    assert up.child is not None
    assert up.child.stdout is not None
    assert "[1/5] PostgreSQL" in said
    assert "[5/5] Ready" in said
    assert up.child.stdout.read() == ""


def test_a_program_with_an_image_begins_as_a_fork_also_after_its_death(up: RunningUp) -> None:
    up.start()
    before = up.recorded("worker")
    assert pids.command_line(before.pid) == ["clearhouse worker"]

    pids.send(before.pid, signal.SIGKILL)

    assert until(lambda: up.revived(before), limit_s=LIMIT_S)
    assert pids.command_line(up.recorded("worker").pid) == ["clearhouse worker"]
    assert (up.state.logs / "worker.log").read_text().count("begun as a fork") == 2


def test_a_second_up_says_where_the_first_one_runs(up: RunningUp) -> None:
    up.start()
    assert up.child is not None

    second = up.begin()

    assert second.wait(timeout=LIMIT_S) == 1
    said = up.said.read_text()
    assert f"already runs on {up.state.root} at http://127.0.0.1:{up.port}" in said
    assert f"pid {up.child.pid}" in said
    assert status.look(up.state).ready


def test_a_taken_port_is_refused_before_anything_starts(up: RunningUp) -> None:
    with socket.create_server((LOOPBACK, up.port)):
        refused = up.begin()
        assert refused.wait(timeout=LIMIT_S) == 1

    assert f"Port {up.port} on 127.0.0.1 is taken" in up.said.read_text()
    assert up.state.recorded() == []


@pytest.mark.parametrize("name", ["web", "worker", "postgresql", "valkey"])
def test_whatever_is_killed_runs_again_at_the_same_address(up: RunningUp, name: str) -> None:
    up.start()
    before = up.recorded(name)

    pids.send(before.pid, signal.SIGKILL)

    assert until(lambda: up.revived(before), limit_s=LIMIT_S)
    assert until(up.ticks_grow, limit_s=LIMIT_S)
    assert until(lambda: status.look(up.state).ready, limit_s=LIMIT_S)
    assert f"{name} (pid {before.pid}) ended" in up.said.read_text()
    assert "by signal 9; starting it again" in up.said.read_text()


def test_a_stop_ends_programs_before_the_servers_they_need(up: RunningUp) -> None:
    up.start()
    assert until(up.ticks_grow, limit_s=LIMIT_S)
    recorded = up.state.recorded()

    assert up.stop() == 0

    assert not any(one.alive for one in recorded)
    assert "database system is shut down" in (up.state.logs / "postgresql.log").read_text()
    up.start()
    assert up.ticks("end") == 1


def test_ctrl_c_is_a_stop_like_any_other(up: RunningUp) -> None:
    up.start()
    recorded = up.state.recorded()

    assert up.stop(signal.SIGINT) == 0

    assert not any(one.alive for one in recorded)
    assert status.look(up.state).exit_code == status.NOTHING


def test_a_deaf_program_is_killed_after_its_grace(up: RunningUp) -> None:
    up.start("stubborn")
    deaf = up.recorded("stubborn")

    assert up.stop() == 0

    assert not deaf.alive


def test_a_stop_during_the_start_leaves_nothing_running(up: RunningUp) -> None:
    up.child = up.begin()
    assert until(lambda: bool(up.state.recorded()), limit_s=LIMIT_S)
    recorded = up.state.recorded()

    assert up.stop(signal.SIGINT) == 0

    assert not any(one.alive for one in recorded)


def test_a_killed_supervisor_takes_everything_along(up: RunningUp) -> None:
    up.start()
    recorded = up.state.recorded()

    up.kill()

    assert until(lambda: not any(one.alive for one in recorded), limit_s=LIMIT_S)
    assert "database system is shut down" in (up.state.logs / "postgresql.log").read_text()


def test_after_a_killed_supervisor_the_next_up_keeps_the_record(up: RunningUp) -> None:
    up.start()
    assert until(up.ticks_grow, limit_s=LIMIT_S)
    before = up.ticks()
    address = up.state.recall("environment")["DATABASE_URL"]

    up.kill()
    up.start()

    assert up.ticks() >= before
    assert up.state.recall("environment")["DATABASE_URL"].split("@")[0] == address.split("@")[0]


def test_after_everything_was_killed_at_once_the_next_up_recovers(up: RunningUp) -> None:
    up.start()
    assert until(up.ticks_grow, limit_s=LIMIT_S)
    before = up.ticks()
    recorded = up.state.recorded()

    up.kill()
    for one in recorded:
        pids.send(one.pid, signal.SIGKILL)
    up.start()

    assert up.ticks() >= before
    assert until(up.ticks_grow, limit_s=LIMIT_S)
    assert status.look(up.state).exit_code == status.READY


def test_a_program_left_behind_is_named_by_status_and_ended_by_the_next_up(up: RunningUp) -> None:
    up.start("stubborn")
    deaf = up.recorded("stubborn")
    assert until(lambda: "deaf" in (up.state.logs / "stubborn.log").read_text(), limit_s=LIMIT_S)
    up.kill()
    assert until(lambda: not up.recorded("web").alive, limit_s=LIMIT_S)
    assert deaf.alive

    report = status.look(up.state)
    up.start()

    assert report.exit_code == status.HALF
    assert f"stubborn (pid {deaf.pid}) runs without a supervisor" in " ".join(report.findings)
    assert not deaf.alive
    assert f"Ending stubborn (pid {deaf.pid})" in up.said.read_text()


def test_a_program_that_keeps_dying_is_started_ever_more_slowly(up: RunningUp) -> None:
    up.start("broken")

    said = "starting it again in 1 s"
    assert until(lambda: said in up.said.read_text(), limit_s=LIMIT_S)

    assert "broken" in up.said.read_text()
    assert "no such setting" in (up.state.logs / "broken.log").read_text()
    assert status.look(up.state).ready


def test_a_web_server_that_never_answers_ends_the_start_with_last_words(up: RunningUp) -> None:
    up.child = up.begin("no-web", "broken")

    assert up.child.wait(timeout=LIMIT_S) == 1

    said = up.said.read_text()
    assert "Clearhouse did not start. The web server did not answer" in said
    assert "no such setting" in said
    assert status.look(up.state).exit_code == status.NOTHING


def test_a_start_that_is_not_ready_says_what_is_missing_and_goes_on(up: RunningUp) -> None:
    closing = up.start("unready")

    assert closing["ready"] is False
    assert "/readyz answers 503: no worker is alive" in up.said.read_text()
    assert until(up.ticks_grow, limit_s=LIMIT_S)


def test_servers_named_in_the_environment_are_used_and_none_is_started(
    up: RunningUp,
) -> None:
    with temporary_postgres() as postgres, temporary_valkey() as valkey:
        up.elsewhere = {"DATABASE_URL": postgres.url(), "REDIS_URL": valkey.url}
        up.start()

        assert {one.kind for one in up.state.recorded()} == {"program"}
        assert until(up.ticks_grow, limit_s=LIMIT_S)
        assert up.stop() == 0
        assert postgres.running
        assert valkey.running
