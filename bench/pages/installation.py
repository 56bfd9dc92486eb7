"""An installation of a million settled calls: a server of its own, filled once, read many times."""

import json
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections

from bench.pages import copies, once, stories
from bench.pages.copies import Batch
from config.celery import app as celery_app
from config.environment import database_settings
from ledger.models import Agent, Workspace
from standalone.postgres import Postgres
from standalone.valkey import Valkey

FILLED = "filled.json"
MONTH, DAYS, HOUR = timedelta(days=30), timedelta(days=3), timedelta(hours=1)
FINDING_OUT = 10
"""Of how many open incidents one is still the machine's."""
DECIDED = 200
"""Of how many settled calls one was decided by a person."""
OPEN_SESSIONS = 200
"""How many there are of each story whose call is open without an incident."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Who reads it: a person who may see every page, an agent, and its key."""

    person: User
    agent: Agent
    api_key: str
    calls: int
    incidents: int
    fill_s: float


@contextmanager
def filled(folder: Path | None, calls: int, incidents: int) -> Iterator[Installation]:
    """Start the server of `folder`, and fill it where it is new; without one, of a throw-away.

    A folder that was filled keeps its numbers, whatever is asked for.
    """
    with ExitStack() as until_the_end:
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="clh-pages-"))
            until_the_end.callback(shutil.rmtree, folder, ignore_errors=True)
        server = until_the_end.enter_context(Postgres(folder, durable=False))
        broker = Valkey(folder, password=secrets.token_urlsafe(16), durable=False)
        broker.start()
        until_the_end.callback(broker.stop)
        _turn_to(server.url(), broker.url)
        until_the_end.callback(connections.close_all)
        kept = folder / FILLED
        if not kept.exists():
            kept.write_text(json.dumps(_fill(folder, server.url(), calls, incidents)))
        yield _found(json.loads(kept.read_text()))


def _turn_to(database: str, broker: str) -> None:
    """Let this process read the throw-away installation instead of its own."""
    values = database_settings(database) | {"CONN_MAX_AGE": None}
    for known in (settings.DATABASES["default"], connections["default"].settings_dict):
        known.update(values)
        known["OPTIONS"].pop("pool", None)
    settings.ENVIRONMENT.database_url = database
    settings.ENVIRONMENT.redis_url = celery_app.conf.broker_url = broker


def _fill(folder: Path, url: str, calls: int, incidents: int) -> dict[str, float | str]:
    began = time.monotonic()
    password = folder / "password"
    password.write_text(secrets.token_urlsafe(16))
    said = StringIO()
    call_command("provision", migrate=True, operator_password_file=password, json=True, stdout=said)
    workspace, agent = Workspace.objects.get(), Agent.objects.get()
    at = stories.Stories.begin(workspace, agent, User.objects.get())
    copies.make(_batches(at.live(), calls, incidents), url)
    once.make(at)
    key = json.loads(said.getvalue())["api_key"]
    return {"api_key": key, "calls": calls, "incidents": incidents,
            "fill_s": round(time.monotonic() - began, 1)}  # fmt: skip


def _batches(lived: dict[str, UUID], calls: int, incidents: int) -> list[Batch]:
    finding_out, decided = incidents // FINDING_OUT, calls // DECIDED
    worked = (calls - decided) // stories.SETTLED_CALLS
    wanted = {
        "ordinary_work": (worked, MONTH),
        "decided_by_a_person": (decided, MONTH),
        "finding_out": (finding_out, HOUR),
        "unknown_effect": (incidents - finding_out, DAYS),
    }
    rest = (OPEN_SESSIONS, HOUR)
    return [
        Batch(sessions=[lived[name]], copies=max(1, number), over=over)
        for name in lived
        for number, over in [wanted.get(name, rest)]
    ]


def _found(kept: dict[str, float | str]) -> Installation:
    return Installation(
        person=User.objects.get(),
        agent=Agent.objects.earliest("id"),
        api_key=str(kept["api_key"]),
        calls=int(kept["calls"]),
        incidents=int(kept["incidents"]),
        fill_s=float(kept["fill_s"]),
    )
