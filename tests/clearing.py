"""Between tests: committed rows are cleared, and what a process remembers is forgotten."""

from django.db import connection

from ledger import dispatch, keys, pressure, registered

KEPT = ("django_migrations", "django_content_type", "auth_permission",
        "ledger_publishedtransition", "ledger_pair")  # fmt: skip


def clear() -> None:
    """Delete what a committing test made, and leave what the migrations published."""
    made = [name for name in connection.introspection.table_names() if name not in KEPT]
    with connection.cursor() as cursor:
        # The triggers that refuse DELETE are row triggers: TRUNCATE is not their business.
        cursor.execute(f"TRUNCATE {', '.join(made)}")


def forget() -> None:
    """Forget what this process has read and would not read again at once."""
    pressure.forget()
    registered.forget()
    keys.forget()
    dispatch._silent_until = 0.0
