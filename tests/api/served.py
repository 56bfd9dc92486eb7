"""The web as it runs: the very command of `manage.py up`, over the tests' database."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx2
from django.conf import settings
from django.db import connection

from standalone.places import ROOT
from standalone.ports import LOOPBACK, free_port
from standalone.programs import web
from tests import waits

START_LIMIT_S = 30


class Served:
    """A running web: where it answers, and all that it has logged."""

    def __init__(self, port: int, log: Path) -> None:
        self.port = port
        self.address = f"http://{LOOPBACK}:{port}"
        self._log = log

    @property
    def data(self) -> Path:
        """Its state folder."""
        return self._log.parent

    @property
    def logged(self) -> str:
        return self._log.read_text(errors="replace")


def database_url() -> str:
    """The tests' database as an address for another program."""
    values = connection.settings_dict
    userinfo = f"{quote(values['USER'])}:{quote(values['PASSWORD'] or '')}".rstrip(":")
    where = f"?host={values['HOST']}" + (f"&port={values['PORT']}" if values["PORT"] else "")
    return f"postgresql://{userinfo}@/{quote(values['NAME'])}{where}"


@contextmanager
def served(folder: Path, **variables: str) -> Iterator[Served]:
    """Start the web with these variables too, and stop it; it answers when this returns."""
    port, log = free_port(), folder / "web.log"
    environ = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "REDIS_URL": settings.ENVIRONMENT.redis_url,
        "CLEARHOUSE_DATA": str(folder),
        "CLEARHOUSE_BOOTSTRAP": "0",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        **variables,
    }
    with log.open("wb") as out:
        program = subprocess.Popen(web(port).command, cwd=ROOT, env=environ, stdout=out, stderr=out)
    found = Served(port, log)
    try:
        waits.until(lambda: _answers(program, found), what="the web", limit_s=START_LIMIT_S)
        yield found
    finally:
        program.terminate()
        try:
            program.wait(timeout=8)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait(timeout=5)


def _answers(program: "subprocess.Popen[bytes]", found: Served) -> bool:
    assert program.poll() is None, found.logged
    try:
        return httpx2.get(f"{found.address}/healthz", timeout=2).status_code == 200
    except httpx2.TransportError:
        time.sleep(0.1)
        return False


def until_quiet() -> None:
    """Wait until the web has written what it writes behind its answers."""

    def is_quiet() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT NOT EXISTS (SELECT FROM pg_stat_activity "
                "WHERE datname = current_database() AND backend_type = 'client backend' "
                "AND state <> 'idle' AND pid <> pg_backend_pid())"
            )
            return bool(cursor.fetchone()[0])

    waits.until(is_quiet, what="the web's statements to end", limit_s=5)
