"""The programs as data: what each promise needs to be on its command line."""

from pathlib import Path

import pytest

from standalone.programs import SOFT_SHUTDOWN_S, Program, environment, programs
from standalone.state import State

PORT = 8000


def named(name: str) -> Program:
    return next(program for program in programs(PORT) if program.name == name)


def test_they_end_in_the_order_web_workers_watchdog_notifier_sandbox() -> None:
    ordered = sorted(programs(PORT), key=lambda program: program.stage)

    assert [one.name for one in ordered] == [
        "web", "effects", "reads", "watchdog", "notifier", "sandbox",
    ]  # fmt: skip
    assert named("effects").stage == named("reads").stage


@pytest.mark.parametrize("name", ["effects", "reads"])
def test_a_worker_stops_softly_and_is_given_the_time_for_it(name: str) -> None:
    assert named(name).environ["REMAP_SIGTERM"] == "SIGQUIT"
    assert named(name).grace_s > SOFT_SHUTDOWN_S


@pytest.mark.parametrize("name", ["effects", "reads"])
def test_a_worker_runs_with_a_broker_account_limited_to_its_keys(name: str) -> None:
    flags = {"--without-gossip", "--without-mingle", "--without-heartbeat"}
    assert flags <= set(named(name).command)


@pytest.mark.parametrize("name", ["effects", "reads", "watchdog", "notifier"])
def test_what_forks_has_no_pool_of_connections(name: str) -> None:
    assert named(name).environ["CLEARHOUSE_DATABASE_POOL"] == "0"


def test_effects_run_one_attempt_a_child_and_polls_are_never_behind_them() -> None:
    assert "prefork" in named("effects").command
    assert "effects" in named("effects").command
    assert "reads,control" in named("reads").command


def test_the_web_listens_on_loopback_and_does_not_wait_for_streams() -> None:
    command = " ".join(named("web").command)

    assert f"--host 127.0.0.1 --port {PORT}" in command
    assert "--timeout-graceful-shutdown 2" in command


def test_secrets_travel_as_files(folder: Path) -> None:
    state = State(folder)
    state.prepare()

    told = environment(
        state,
        database_url="d",
        redis_url="r",
        public_url="http://127.0.0.1:8000",
        ports={"sandbox_smtp": 1, "sandbox_http": 2},
    )

    assert state.secret("secret-key") not in told.values()
    assert state.secret("key-pepper") not in told.values()
    assert Path(told["CLEARHOUSE_SECRET_KEY_FILE"]).read_text() == state.secret("secret-key")
