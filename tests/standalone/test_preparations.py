"""What is done to a real database before the programs start."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest

from standalone import preparations
from standalone.errors import Refusal
from standalone.postgres import Postgres, temporary_postgres
from standalone.programs import environment
from standalone.state import State


@pytest.fixture
def state(folder: Path) -> State:
    state = State(folder / "state")
    state.prepare()
    return state


@pytest.fixture
def server() -> Iterator[Postgres]:
    with temporary_postgres() as server:
        yield server


def told(state: State, server: Postgres) -> Mapping[str, str]:
    ports = {"sandbox_smtp": 1, "sandbox_http": 2}
    redis_url, public_url = "redis://127.0.0.1:1/0", "http://127.0.0.1:2"
    told = environment(
        state, database_url=server.url(), redis_url=redis_url, public_url=public_url, ports=ports
    )
    return {**os.environ, **told}


def keys_in(server: Postgres) -> int:
    with psycopg.connect(server.url()) as link:
        row = link.execute("select count(*) from ledger_apikey").fetchone()
    assert row is not None
    return int(row[0])


def test_a_key_is_made_at_the_first_start_and_kept_for_the_later_ones(
    state: State, server: Postgres
) -> None:
    environ = told(state, server)

    first = preparations.prepare(state, environ)
    state.remember("provisioned", {**first, "code": "of an earlier release"})
    later = preparations.prepare(state, environ)

    assert first["api_key"]
    assert (later["api_key"], later["operator"]) == (first["api_key"], first["operator"])
    assert later["operator"]["password"] == state.secret("operator-password")
    assert keys_in(server) == 1


def test_a_key_kept_for_another_database_is_not_shown(state: State, server: Postgres) -> None:
    environ = told(state, server)
    state.remember("provisioned", {"database": "elsewhere", "api_key": "clh_of_another"})

    first = preparations.prepare(state, environ)

    assert first["api_key"] != "clh_of_another"
    assert keys_in(server) == 1


def test_nothing_is_prepared_again_while_code_and_database_are_the_same(
    state: State, server: Postgres
) -> None:
    environ = told(state, server)
    first = preparations.prepare(state, environ)
    with psycopg.connect(server.url()) as link:
        link.execute("drop table ledger_apikey cascade")

    assert preparations.prepare(state, environ) == first


def test_two_databases_of_one_server_are_told_apart(server: Postgres) -> None:
    assert preparations.identity(server.url("postgres")) != preparations.identity(
        server.url("template1")
    )


def test_a_database_keeps_its_identity_over_a_restart(server: Postgres) -> None:
    before = preparations.identity(server.url())

    server.restart()

    assert preparations.identity(server.url()) == before


def test_a_step_that_fails_says_what_its_log_ends_with(state: State) -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('no such table')")

    with pytest.raises(Refusal, match=r"failed \(1\), so nothing was started.*\n.*no such table"):
        preparations.run(command, os.environ, state.logs / "step.log")
