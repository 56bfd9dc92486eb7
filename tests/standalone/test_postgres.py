"""The embedded PostgreSQL, really started, crashed and restarted."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from standalone import pids, postgres_binaries, postgres_cluster
from standalone.errors import Refusal
from standalone.places import ROOT
from standalone.postgres import Postgres, temporary_postgres
from standalone.waiting import until

LIMIT_S = 20
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop to another user")


def ask(url: str, question: str) -> tuple[object, ...]:
    with psycopg.connect(url) as link:
        row = link.execute(question).fetchone()  # type: ignore[call-overload]
    assert row is not None
    return tuple(row)


def keep_a_row(server: Postgres) -> None:
    with psycopg.connect(server.url()) as link:
        link.execute("create table kept as select 1 as one")


def test_a_test_server_answers_on_a_private_socket_alone() -> None:
    with temporary_postgres() as server:
        settings = ask(
            server.url(), "select current_setting('listen_addresses'), current_setting('fsync')"
        )

        assert settings == ("", "off")
        assert stat.S_IMODE(server.socket_folder.stat().st_mode) == 0o700


def test_a_durable_server_syncs_and_checks_its_pages() -> None:
    with temporary_postgres(durable=True) as server:
        question = "select current_setting('fsync'), current_setting('data_checksums')"

        assert ask(server.url(), question) == ("on", "on")


def test_sort_order_does_not_depend_on_the_machine() -> None:
    question = "select datlocprovider, datlocale, pg_encoding_to_char(encoding) from pg_database"
    with temporary_postgres() as server:
        assert ask(server.url(), question) == ("b", "C.UTF-8", "UTF8")


def test_a_temporary_server_leaves_no_folder() -> None:
    with temporary_postgres() as server:
        folder = server.folder

    assert not folder.exists()


def test_tcp_takes_the_password_and_nothing_else(folder: Path) -> None:
    with Postgres(folder, tcp=True, password="p/ß@ :") as server:
        wrong = server.url(password="guess")

        assert ask(server.url(), "select current_user") == ("postgres",)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(wrong)


def test_tcp_without_a_password_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="needs a password"):
        Postgres(folder, tcp=True)


def test_the_owner_of_the_database_is_no_superuser(folder: Path) -> None:
    with Postgres(folder, tcp=True, password="boss") as server:
        server.provide("clearhouse", owner="clearhouse", password="first")
        server.provide("clearhouse", owner="clearhouse", password="second")
        url = server.url("clearhouse", role="clearhouse", password="second")

        question = "select current_user, rolsuper from pg_roles where rolname = current_user"
        assert ask(url, question) == ("clearhouse", False)


def test_the_pid_is_the_postmasters_own() -> None:
    with temporary_postgres() as server:
        first_line = (server.data_folder / "postmaster.pid").read_text().splitlines()[0]

        assert server.pid == int(first_line)
        assert str(server.data_folder) in pids.command_line(server.pid)


def test_a_server_that_was_launched_is_waited_for_and_not_started_twice(folder: Path) -> None:
    server = Postgres(folder, durable=False)
    server.launch()
    launched = server.pid
    try:
        server.start()

        assert server.pid == launched
        assert ask(server.url(), "select 1") == (1,)
    finally:
        server.stop()


def test_a_server_that_died_after_its_launch_is_started_again(folder: Path) -> None:
    server = Postgres(folder, durable=False)
    server.launch()
    launched = server.pid
    server.kill()
    try:
        server.start()

        assert server.pid != launched
        assert ask(server.url(), "select 1") == (1,)
    finally:
        server.stop()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_keeps_rows_and_address(mode: str) -> None:
    with temporary_postgres(durable=True) as server:
        keep_a_row(server)
        address = server.url()

        server.restart(mode)  # type: ignore[arg-type]

        assert server.url() == address
        assert ask(address, "select one from kept") == (1,)


def test_committed_rows_survive_the_kill_of_the_postmaster() -> None:
    with temporary_postgres(durable=True) as server:
        keep_a_row(server)
        before = server.pid

        server.kill()
        assert not pids.alive(before)
        server.start()

        assert ask(server.url(), "select one from kept") == (1,)


def test_a_taken_port_makes_a_first_start_choose_another(folder: Path) -> None:
    with (
        temporary_tcp(folder / "one") as first,
        temporary_tcp(folder / "two", first.port) as second,
    ):
        assert second.port != first.port


def temporary_tcp(folder: Path, port: int | None = None) -> Postgres:
    return Postgres(folder, tcp=True, password="boss", port=port, durable=False)


def test_a_wrong_password_on_an_old_folder_says_what_to_do(folder: Path) -> None:
    with temporary_tcp(folder):
        pass

    with pytest.raises(Refusal, match="refuses the superuser's password"):
        Postgres(folder, tcp=True, password="lost", durable=False).start()


def test_the_folder_of_another_major_version_is_refused_untouched(folder: Path) -> None:
    with Postgres(folder, durable=False) as server:
        version = server.data_folder / "PG_VERSION"
    version.write_text("14\n")
    before = sorted(path.name for path in server.data_folder.iterdir())

    with pytest.raises(Refusal, match=r"written by PostgreSQL 14.*pg_dumpall.*move it away"):
        Postgres(folder, durable=False).start()

    assert sorted(path.name for path in server.data_folder.iterdir()) == before


def test_a_cut_off_initdb_is_begun_anew(folder: Path) -> None:
    half = folder / "postgres.making"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")

    with Postgres(folder, durable=False) as server:
        assert ask(server.url(), "select 1") == (1,)
    assert not half.exists()


def test_a_server_left_behind_is_ended_before_the_next_start(folder: Path) -> None:
    first = Postgres(folder, durable=False)
    first.start()

    with Postgres(folder, durable=False) as second:
        assert not first.running
        assert ask(second.url(), "select 1") == (1,)


def test_a_pid_file_that_names_a_stranger_is_not_believed(folder: Path) -> None:
    with Postgres(folder, durable=False) as server:
        pass
    (server.data_folder / "postmaster.pid").write_text(f"{os.getpid()}\n")

    assert postgres_cluster.leftover(server.data_folder) is None


def test_a_server_ends_cleanly_with_a_killed_owner(folder: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from standalone.postgres import Postgres\n"
        "server = Postgres(Path(sys.argv[1]), durable=False); server.start()\n"
        "print(server.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(folder)]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())

    owner.send_signal(signal.SIGKILL)
    owner.wait(timeout=LIMIT_S)

    assert until(lambda: not pids.alive(pid), limit_s=LIMIT_S)
    assert "database system is shut down" in (folder / "postgres.log").read_text()


@AS_ROOT
def test_in_a_user_namespace_the_files_stay_roots_own(folder: Path) -> None:
    if postgres_binaries.trial(postgres_binaries.installed()[0], postgres_binaries.NAMESPACE):
        pytest.skip("this machine forbids user namespaces to root")
    with Postgres(folder, durable=False, way=postgres_binaries.NAMESPACE) as server:
        keep_a_row(server)

        assert server.data_folder.stat().st_uid == 0
        assert stat.S_IMODE(server.data_folder.stat().st_mode) == 0o700


@AS_ROOT
def test_dropped_to_nobody_the_server_runs_and_owns_its_data(folder: Path) -> None:
    with Postgres(folder, durable=False, way=postgres_binaries.DROPPED) as server:
        keep_a_row(server)

        assert server.data_folder.stat().st_uid == postgres_binaries.NOBODY
        assert os.stat(f"/proc/{server.pid}").st_uid == postgres_binaries.NOBODY


@AS_ROOT
def test_copied_binaries_find_their_libraries(folder: Path) -> None:
    folder.chmod(0o711)

    copied = postgres_binaries.copy_below(folder, postgres_binaries.installed()[0])

    assert postgres_binaries.trial(copied, postgres_binaries.DROPPED) == ""
    assert postgres_binaries.copy_below(folder, postgres_binaries.installed()[0]) == copied


@AS_ROOT
def test_binaries_behind_a_private_parent_are_copied_beside_the_data(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.chmod(0o711)
    private = folder / "private"
    private.mkdir(mode=0o700)
    hidden = postgres_binaries.copy_below(private, postgres_binaries.installed()[0])
    monkeypatch.setattr(postgres_binaries, "installed", lambda: [hidden])

    state = folder / "state"
    with Postgres(state, durable=False, way=postgres_binaries.DROPPED) as server:
        assert pids.command_line(server.pid)[0].startswith(f"{state}/binaries-")

    assert stat.S_IMODE(private.stat().st_mode) == 0o700


@AS_ROOT
def test_nobody_behind_a_private_parent_is_refused_and_no_right_is_changed(folder: Path) -> None:
    private = folder / "private"
    private.mkdir(mode=0o700)

    with pytest.raises(Refusal, match=r"cannot pass through a parent.*--data"):
        Postgres(private / "state", durable=False, way=postgres_binaries.DROPPED).start()

    assert stat.S_IMODE(private.stat().st_mode) == 0o700


def test_without_any_binaries_the_ways_out_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_binaries, "installed", lambda: [])

    with pytest.raises(Refusal, match="Set DATABASE_URL to a server of yours"):
        Postgres(folder, durable=False).start()


def test_a_long_folder_still_gets_a_short_socket(folder: Path) -> None:
    deep = folder / ("d" * 100)
    with Postgres(deep, durable=False) as server:
        socket_folder = server.socket_folder
        assert ask(server.url(), "select 1") == (1,)

    assert len(str(socket_folder)) < 80
    assert not socket_folder.exists()


@pytest.mark.parametrize(("version", "counts"), [("14.9", False), ("15.1", True)])
def test_system_binaries_below_the_floor_are_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch, version: str, counts: bool
) -> None:
    program = folder / "postgres"
    program.write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(postgres_binaries, "_embedded_folder", lambda: None)
    monkeypatch.setattr(postgres_binaries, "_system_folders", lambda: [folder])

    assert bool(postgres_binaries.installed()) is counts
