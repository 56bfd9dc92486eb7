"""Named points at which a rehearsed fault may fall. Outside a drill each of them is a no-op.

`faults.point(name, call_id, tool)` stands at the moments that matter: before and after the
boundary, the effect, the write. Which function it is is settled once, at import: the empty one,
unless CLEARHOUSE_FAULTS names a drill's folder, the environment is not production, and the
database carries the very token that stands in that folder. Anything else refuses the start.

A drill leaves orders in the folder, one file each; the first process that passes the point an
order names takes it by a rename, notes where it stood, and does the deed to itself. So an order
is carried out once, exactly there, and nobody has to aim at a moving target.

Never: decide anything about a call, or be imported by name (`faults.point` is looked up at use).
Source: R161; reliability, section 7.
"""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import psycopg

VARIABLE = "CLEARHOUSE_FAULTS"
SETTING = "clearhouse.drill"
"""The database's own setting that carries the token of its drill; no other database has it."""

TOKEN, WIDTHS, STOOD = "token", "widths.json", "stood.jsonl"
AWAY_LIMIT_S = 30.0

POINTS: Mapping[str, str] = {
    "before_record": "a submit is read, nothing is recorded",
    "before_answer": "a call is recorded, its agent has no answer yet",
    "before_start": "an attempt is claimed, its tool has not begun",
    "before_crossing": "the tool asked to cross, nothing is committed",
    "after_crossing": "the crossing is committed, the tool has not been told",
    "before_effect": "the tool knows that it crossed, the effect has not begun",
    "after_effect": "the tool's body has ended, its worker does not know",
    "before_result_write": "the worker has the outcome in hand, the ledger has not",
    "after_write": "the outcome is in the ledger, its worker has not gone on",
    "before_delivery": "a settled call was read for its agent, the answer is not sent",
    "before_compaction": "a compaction is read, nothing of it is written",
    "during_compaction": "a compaction is written with its carry-over, not committed",
    "after_compaction": "a compaction is committed, its agent has no answer yet",
    "before_handoff": "the acceptance of a hand-off is read, nothing of it is written",
    "during_handoff": "an accepted hand-off is written with its calls, not committed",
    "after_handoff": "an accepted hand-off is committed, its agent has no answer yet",
    "before_decision": "recovery has decided, nothing of it is written",
    "after_decision": "a decision is written, not committed",
}
"""Where a process stands when it passes the point of that name."""


class FaultsRefused(RuntimeError):
    """Rehearsed faults were asked for where they must never be."""


class Point(Protocol):
    """What stands at a named moment: the empty function, or a drill's."""

    def __call__(self, name: str, call_id: UUID | None = None, tool: str = "") -> None: ...


def off(name: str, call_id: UUID | None = None, tool: str = "") -> None:
    """Do nothing: what every point is outside a drill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One fault to be done by the first process that passes `at`, for this tool or call if named.

    `deed` is one of `DEEDS`; `seconds` is how long a `wait` lasts, and after how long the drill
    wakes one that stopped.
    """

    number: int
    at: str
    deed: str
    seconds: float = 0.0
    tools: tuple[str, ...] = ()
    call: str = ""

    def fits(self, call_id: UUID | None, tool: str) -> bool:
        """Whether the one that stands here is meant."""
        return (not self.tools or tool in self.tools) and (
            not self.call or (call_id is not None and call_id.hex == self.call)
        )


def place(folder: Path, order: Order) -> None:
    """Leave an order in a drill's folder, whole or not at all."""
    below = folder / "orders" / order.at
    below.mkdir(parents=True, exist_ok=True)
    making = below / f".{order.number}"
    making.write_text(json.dumps(asdict(order)))
    making.rename(below / f"{order.number}.json")


def withdraw(folder: Path) -> int:
    """Take back every order that nobody has taken; return how many there were."""
    left = list((folder / "orders").glob("*/*.json"))
    for file in left:
        file.unlink(missing_ok=True)
    return len(left)


def stood(folder: Path) -> list[dict[str, Any]]:
    """The notes of those who took an order: its number, point, call, pid and instant."""
    try:
        lines = (folder / STOOD).read_text().splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


def _kill(seconds: float) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(seconds: float) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


DEEDS: Mapping[str, Callable[[float], None]] = {"kill": _kill, "stop": _stop, "wait": time.sleep}


class Armed:
    """The points of a drill: widened by some milliseconds, and obeying its orders."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._widths: Mapping[str, float] = _read(folder / WIDTHS) or {}

    def __call__(self, name: str, call_id: UUID | None = None, tool: str = "") -> None:
        if width_s := self._widths.get(name):
            time.sleep(random.uniform(0, 2 * width_s))  # noqa: S311 spreads moments, guards nothing
        order = self._taken(name, call_id, tool)
        if order is not None:
            self._note(order, call_id)
            DEEDS[order.deed](order.seconds)

    def _taken(self, name: str, call_id: UUID | None, tool: str) -> Order | None:
        try:
            files = os.listdir(self._folder / "orders" / name)
        except FileNotFoundError:
            return None
        for file in sorted(file for file in files if file.endswith(".json")):
            waiting = self._folder / "orders" / name / file
            order = _order(waiting)
            if order is not None and order.fits(call_id, tool) and _won(waiting):
                return order
        return None

    def _note(self, order: Order, call_id: UUID | None) -> None:
        note = {
            "number": order.number, "at": order.at, "deed": order.deed, "seconds": order.seconds,
            "call": call_id.hex if call_id else "", "pid": _pid_outside(), "instant": time.time(),
        }  # fmt: skip
        # One short write with O_APPEND: lines of many processes never mix.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self._folder / STOOD, flags, 0o600)
        try:
            os.write(file, json.dumps(note).encode() + b"\n")
        finally:
            os.close(file)


def _pid_outside() -> int:
    """This process as the drill sees it: inside a PID namespace `getpid` tells another number."""
    return int(os.readlink("/proc/self"))


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text())
    except FileNotFoundError:
        return None


def _order(file: Path) -> Order | None:
    found = _read(file)
    return Order(**found | {"tools": tuple(found["tools"])}) if found else None


def _won(file: Path) -> bool:
    """Whether we took it: of several that pass at once, one renames."""
    try:
        file.rename(file.with_suffix(".taken"))
    except FileNotFoundError:
        return False
    return True


def permitted(environ: Mapping[str, str]) -> Path:
    """Return the drill's folder. Raises FaultsRefused anywhere but in a drill's own programs."""
    folder = Path(environ[VARIABLE])
    if environ.get("CLEARHOUSE_ENV") == "production":
        raise FaultsRefused(
            f"{VARIABLE} is set in a production environment. Nothing was started, because a drill "
            "kills and stops programs on purpose. Unset it."
        )
    try:
        token = (folder / TOKEN).read_text().strip()
    except OSError as error:
        raise FaultsRefused(
            f"{VARIABLE} does not name the folder of a drill: {error.strerror}. Nothing was "
            "started. Run `manage.py drill`, which sets it for its own programs only."
        ) from error
    if not token or _marker(environ.get("DATABASE_URL", "")) != token:
        raise FaultsRefused(
            f"{VARIABLE} is set, and the database is not this drill's own: its setting {SETTING} "
            "does not carry the drill's token. Nothing was started. Unset the variable."
        )
    return folder


QUESTION = """
SELECT setting FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase,
unnest(s.setconfig) AS setting WHERE d.datname = current_database() AND s.setrole = 0
"""


def _marker(database_url: str) -> str:
    """The token that the database carries, or ""; a server that is just restarting is awaited.

    Read from the catalogue: what a client sets for its own session proves nothing.
    """
    until = time.monotonic() + AWAY_LIMIT_S
    while True:
        try:
            with psycopg.connect(database_url, connect_timeout=3, autocommit=True) as link:
                settings = [str(row[0]).partition("=") for row in link.execute(QUESTION)]
            return next((value for name, _, value in settings if name == SETTING), "")
        except psycopg.OperationalError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.2)


def chosen(environ: Mapping[str, str]) -> Point:
    """What stands at every point of this process, for as long as it lives."""
    return Armed(permitted(environ)) if environ.get(VARIABLE) else off


point: Point = chosen(os.environ)
