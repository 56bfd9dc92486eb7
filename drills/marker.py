"""What makes a database a drill's own: a token in its settings, and the same in the drill's folder.

The fault points ask for it before they do anything, so a mistaken address breaks nothing.
"""

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from ledger import faults
from standalone import pids
from standalone.children import RunningProgram
from standalone.errors import Refusal
from standalone.postgres import Postgres
from standalone.state import write_private


def mark(postgres: Postgres, database: str, folder: Path, widths: Mapping[str, float]) -> None:
    """Give a new database a token, and the drill's folder the same and the widths of the points."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = secrets.token_hex(16)
    write_private(folder / faults.TOKEN, token)
    write_private(folder / faults.WIDTHS, json.dumps(dict(widths)))
    with psycopg.connect(postgres.url(), autocommit=True) as line:
        line.execute(
            sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                sql.Identifier(database),
                sql.Identifier(*faults.SETTING.split(".")),
                sql.Literal(token),
            )
        )


def assert_own(
    postgres: Postgres,
    database: str,
    environ: Mapping[str, str],
    children: Iterable[RunningProgram],
) -> None:
    """Raise Refusal unless the server on this port and all programs were started by this process.

    Raises FaultsRefused where the database of `environ` does not carry the folder's token.
    """
    faults.permitted(environ)
    with psycopg.connect(postgres.url(database), connect_timeout=5) as line:
        row = line.execute("SELECT pg_backend_pid()").fetchone()
        # Asked while the session lives: a number alone may be anybody's afterwards.
        answers = row is not None and row[0] in pids.children(postgres.pid)
    ours = pids.children(os.getpid())
    strangers = [child.name for child in children if child.pid not in ours]
    if not answers or strangers:
        raise Refusal(
            f"The PostgreSQL on port {postgres.port} or the programs of this drill "
            f"({', '.join(strangers) or 'none'}) are not its own. Nothing was broken on purpose. "
            "End the other installation on these ports and run the drill again."
        )
