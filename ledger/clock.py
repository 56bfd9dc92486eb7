"""The one clock: the database's (I23). A test stops it by moving rows, never by moving this."""

from datetime import datetime

from django.db import connection


def now() -> datetime:
    """The instant on the database's clock; it goes on within a transaction (reliability, P5)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
        return moment
