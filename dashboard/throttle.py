"""How often a sign-in may be tried: counted in PostgreSQL, so that a restart forgets nothing (S14).

Three counters for each try, in one order: the pair of name and address, the address, the name. A
try is counted before the password is looked at, so that parallel guesses count too; one that is
refused here is not, so that nobody can prolong another's wait. The limit on a name passes over an
address from which this person has signed in: otherwise a stranger could lock somebody out.

The address is the connection's, as the server gives it: a forwarded one is taken there, from known
proxies only, and never from a header here.
"""

from datetime import timedelta
from math import ceil

from django.db import connection, transaction
from django.db.models import F

from dashboard.models import TryCounter
from ledger import secrets
from ledger.models.fields import ClockTimestamp
from ledger.networks import network_of

LIMITS = {"pair": (5, 300), "address": (50, 900), "name": (30, 900)}
"""Tries within a window of so many seconds, by kind."""

KEPT = timedelta(days=30)
FORGOTTEN_AT_ONCE = 100


class TooManyTries(Exception):
    """The password was not looked at: wait first."""

    def __init__(self, wait_s: int) -> None:
        self.wait_s = wait_s
        super().__init__(
            f"There were too many tries to sign in. This one was not looked at. Wait {wait_s} "
            "seconds, then try again, or ask an admin of your workspace for a new password."
        )


def take(name: str, address: str) -> None:
    """Count one try. Raises TooManyTries, with the seconds to wait, where a limit is reached."""
    with transaction.atomic():
        counted = {kind: _count(kind, key) for kind, key in _keys(name, address).items()}
        known = counted["pair"][2]
        waits = [
            wait_s
            for kind, (tries, wait_s, _) in counted.items()
            if tries > LIMITS[kind][0] and not (kind == "name" and known)
        ]
        if waits:
            raise TooManyTries(max(waits))
    _forget_the_old()


def succeeded(name: str, address: str) -> None:
    """Take the try back: the password was right, and the pair is known from now on."""
    keys = _keys(name, address)
    with transaction.atomic():
        pair = TryCounter.objects.filter(kind="pair", key=keys.pop("pair"))
        pair.update(tries=0, known=True, since=ClockTimestamp())
        for kind, key in keys.items():
            TryCounter.objects.filter(kind=kind, key=key, tries__gt=0).update(tries=F("tries") - 1)


def _keys(name: str, address: str) -> dict[str, str]:
    name, place = name.strip().casefold(), network_of(address)
    texts = {"pair": f"{place} {name}", "address": place, "name": name}
    return {kind: secrets.keyed_hash(f"try {kind} {text}").hex() for kind, text in texts.items()}


def _count(kind: str, key: str) -> tuple[int, int, bool]:
    """Tries within the present window, seconds until it ends, and whether the pair is known."""
    window_s = LIMITS[kind][1]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO dashboard_trycounter AS c (kind, key, tries, known)
            VALUES (%(kind)s, %(key)s, 1, false)
            ON CONFLICT (kind, key) DO UPDATE SET
                tries = CASE WHEN c.since > clock_timestamp() - %(window)s::interval
                        THEN c.tries + 1 ELSE 1 END,
                since = CASE WHEN c.since > clock_timestamp() - %(window)s::interval
                        THEN c.since ELSE clock_timestamp() END
            RETURNING tries, known,
                extract(epoch FROM since + %(window)s::interval - clock_timestamp())
            """,
            {"kind": kind, "key": key, "window": f"{window_s} seconds"},
        )
        tries, known, left_s = cursor.fetchone()
    return tries, max(1, ceil(left_s)), known


def _forget_the_old() -> None:
    """Delete some counters that nobody touched for a month."""
    old = TryCounter.objects.filter(since__lt=ClockTimestamp() - KEPT).order_by("since")
    TryCounter.objects.filter(pk__in=old.values("pk")[:FORGOTTEN_AT_ONCE]).delete()
