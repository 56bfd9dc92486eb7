"""Fault points: nothing outside a drill, and inside one each order is carried out once, there."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.db import connection
from pydantic import ValidationError

from config.environment import Environment
from ledger import faults
from ledger.faults import Armed, FaultsRefused, Order

PASS = "import sys; from pathlib import Path; from ledger.faults import Armed; "
PASS += "Armed(Path(sys.argv[1]))(sys.argv[2]); print('went on')"


def database_url() -> str:
    known = connection.get_connection_params()
    where = {"host": known.get("host", ""), "port": known.get("port", "")}
    query = "&".join(f"{name}={value}" for name, value in where.items() if value)
    secret = f":{known['password']}" if known.get("password") else ""
    return f"postgresql://{known.get('user', '')}{secret}@/{known['dbname']}?{query}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / faults.TOKEN).write_text("the-token")
    return tmp_path


@pytest.fixture
def environ(folder: Path, db: None) -> dict[str, str]:
    return {faults.VARIABLE: str(folder), "DATABASE_URL": database_url()}


@pytest.fixture
def marked(environ: dict[str, str]) -> Iterator[dict[str, str]]:
    """The same, on a database that carries the drill's token."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        name = cursor.fetchone()[0]
    with psycopg.connect(environ["DATABASE_URL"], autocommit=True) as line:
        line.execute(f'ALTER DATABASE "{name}" SET {faults.SETTING} = "the-token"')
        try:
            yield environ
        finally:
            line.execute(f'ALTER DATABASE "{name}" RESET {faults.SETTING}')


def passing(folder: Path, point: str) -> "subprocess.CompletedProcess[str]":
    """A process of its own that passes a point."""
    return subprocess.run(
        [sys.executable, "-c", PASS, str(folder), point], capture_output=True, text=True, timeout=30
    )


def test_outside_a_drill_a_point_is_the_empty_function() -> None:
    assert faults.VARIABLE not in os.environ
    assert faults.point is faults.off
    assert faults.chosen({}) is faults.off


def test_a_production_installation_does_not_start_with_faults(folder: Path) -> None:
    with pytest.raises(ValidationError, match="CLEARHOUSE_FAULTS is set in production"):
        Environment(env="production", faults=folder, secret_key="s", key_pepper="p")


def test_a_production_environment_is_refused_before_the_database_is_asked(folder: Path) -> None:
    with pytest.raises(FaultsRefused, match="production"):
        faults.permitted({faults.VARIABLE: str(folder), "CLEARHOUSE_ENV": "production"})


def test_a_folder_that_is_no_drills_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FaultsRefused, match="does not name the folder of a drill"):
        faults.permitted({faults.VARIABLE: str(tmp_path)})


def test_a_database_without_the_drills_token_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(FaultsRefused, match="not this drill's own"):
        faults.permitted(environ)


def test_a_token_that_the_client_sets_for_itself_proves_nothing(environ: dict[str, str]) -> None:
    faked = environ["DATABASE_URL"] + f"&options=-c%20{faults.SETTING}%3Dthe-token"
    with pytest.raises(FaultsRefused, match="not this drill's own"):
        faults.permitted(environ | {"DATABASE_URL": faked})


def test_a_drills_own_database_arms_the_points(marked: dict[str, str]) -> None:
    assert isinstance(faults.chosen(marked), Armed)


def test_an_order_is_taken_by_one_of_many_that_pass_at_once(folder: Path) -> None:
    faults.place(folder, Order(number=7, at="before_start", deed="wait", seconds=0.0))
    point = Armed(folder)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: point("before_start", uuid4()), range(64)))
    assert [note["number"] for note in faults.stood(folder)] == [7]


def test_an_order_for_a_tool_and_a_call_waits_for_them(folder: Path) -> None:
    call, point = uuid4(), Armed(folder)
    faults.place(folder, Order(number=1, at="after_effect", deed="wait", tools=("sandbox.pay",),
                               call=call.hex))  # fmt: skip
    point("after_effect", uuid4(), "sandbox.pay")
    point("after_effect", call, "sandbox.lookup")
    point("before_effect", call, "sandbox.pay")
    assert faults.stood(folder) == []
    point("after_effect", call, "sandbox.pay")
    (note,) = faults.stood(folder)
    assert (note["call"], note["at"], note["pid"]) == (call.hex, "after_effect", os.getpid())


def test_an_order_to_kill_kills_who_stands_there_and_nobody_after(folder: Path) -> None:
    faults.place(folder, Order(number=1, at="after_crossing", deed="kill"))
    first, second = passing(folder, "after_crossing"), passing(folder, "after_crossing")
    assert (first.returncode, first.stdout) == (-signal.SIGKILL, "")
    assert (second.returncode, second.stdout) == (0, "went on\n")


def test_orders_that_nobody_took_are_withdrawn(folder: Path) -> None:
    faults.place(folder, Order(number=1, at="before_start", deed="kill"))
    assert faults.withdraw(folder) == 1
    assert passing(folder, "before_start").stdout == "went on\n"


def test_a_window_is_widened_by_the_drills_widths(folder: Path) -> None:
    (folder / faults.WIDTHS).write_text(json.dumps({"before_effect": 0.0}))
    Armed(folder)("before_effect")
    assert faults.stood(folder) == []


def test_every_point_named_stands_somewhere_in_the_product() -> None:
    root = Path(faults.__file__).parents[1]
    files = [file for name in ("ledger", "executors", "recovery") for file in
             (root / name).rglob("*.py") if file.name != "faults.py"]  # fmt: skip
    texts = "".join(file.read_text() for file in files)
    assert {name for name in faults.POINTS if f'"{name}"' not in texts} == set()
