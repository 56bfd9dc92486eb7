"""Transactions that may be repeated, because they begin by reading and touch nothing outside."""

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection, transaction

P = ParamSpec("P")
T = TypeVar("T")

REPEATABLE = ("40001", "40P01", "08", "57P01", "57P02", "57P03")
"""Serialisation, deadlock, a lost connection, a server that stops (reliability, section 5)."""


def may_be_repeated(error: Exception) -> bool:
    """Whether reading again and repeating is safe and may help.

    A lost connection is no rollback (reliability, P1): the repeated function must find what
    an unanswered commit has left.
    """
    if isinstance(error, InterfaceError):
        return True
    sqlstate = getattr(error.__cause__, "sqlstate", None) or ""
    return isinstance(error, OperationalError) and (not sqlstate or sqlstate.startswith(REPEATABLE))


def repeatable(verb: Callable[P, T]) -> Callable[P, T]:
    """Run `verb` in a transaction of its own and repeat it where that is safe.

    Only for functions without effects outside the database that read before they write.
    """

    @wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        for wait_s in (0.05, 0.2, 0.5):
            try:
                with transaction.atomic():
                    return verb(*args, **kwargs)
            except (OperationalError, InterfaceError) as error:
                if connection.in_atomic_block or not may_be_repeated(error):
                    raise
                connection.close()
                time.sleep(wait_s)
        with transaction.atomic():
            return verb(*args, **kwargs)

    return run
