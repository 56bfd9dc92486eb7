"""`settings.md`: every environment variable, from the typed environment in `config/environment.py`.

The class is reached through Django's settings, because nothing here may look upwards. A new
variable without a meaning below stops the page from being made.
"""

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from django.conf import settings

from dashboard.manual.markdown import code, table

HEAD = """# Settings

Every program of one installation reads the same variables. `manage.py up` sets what it needs by
itself; a [production installation](../how-to/run-in-production.md) sets them in its unit or compose
file. A value that cannot be used stops the program at its start, with a sentence that names it.
Policies of tools are no settings: see [policies](policies.md).
"""

MEANINGS = {
    "env": "`production` refuses missing secrets and serves pages over HTTPS only.",
    "debug": "Django's debug pages. Never in production.",
    "database_url": "The PostgreSQL database, the record. Set, `up` starts none of its own.",
    "redis_url": "The broker, the doorbell. Set, `up` starts none of its own.",
    "data": "The state folder: secrets, logs, the embedded servers' files, the sandbox's world.",
    "secret_key": "Signs logins and encrypts handles at rest. Lost, stored handles cannot be read.",
    "secret_key_file": "A file that holds it instead.",
    "key_pepper": "Keys the hashes of API keys. Changed, every API key ends.",
    "key_pepper_file": "A file that holds it instead.",
    "allowed_hosts": "The host names that the web answers to, with commas.",
    "public_url": "Where people open the console; links in notifications and copied lines use it.",
    "trace_url": "Where calls link to a trace: an address with `{trace_id}` in it. Empty: no link.",
    "mail_host": "The SMTP server of notifications by mail. Empty: no mail is sent.",
    "mail_port": "Its port; usually 587 with `starttls`, 465 with `tls`.",
    "mail_user": "The name to log in with there. Empty: no login.",
    "mail_password": "The password to log in with there.",
    "mail_password_file": "A file that holds it instead.",
    "mail_tls": "`starttls`, or `tls` from the first byte. `none` sends in the clear.",
    "mail_from": "The sender of notifications by mail.",
    "tool_modules": "Python modules whose declared tools this installation knows, with commas.",
    "grace_s": "Seconds between the end of a lease and the proof that its self-fence has fired.",
    "sweep_s": "Seconds between two sweeps of the watchdog.",
    "faults": "The folder of a drill, set by `drill` for its own programs. Refused in production.",
    "login_idle_s": "Seconds without use after which a person's login ends.",
    "login_s": "Seconds after which a login ends however much it is used.",
    "quota_calls": "Calls a second by one key; as of each quota, ten times as many at once.",
    "quota_polls": "Looks a second at a call that an agent waits for, by one key.",
    "quota_acts": "Cancellations, interruptions and ends of turns a second by one key, or a "
    "person's changes.",
    "quota_requests": "All other requests a second by one key or person.",
    "quota_workspace": "What all keys of a workspace may do a second together; acts do not count.",
    "quota_address": "Requests a second from one address, for each of the four kinds.",
    "quota_refused_keys": "Wrong keys a second from one address; what was right before passes.",
    "database_pool": "Whether to keep a pool of connections. Only the web may: workers fork.",
}

ELSEWHERE = (
    ("CLEARHOUSE_BOOTSTRAP", "`0` leaves `.venv` alone: for containers, where packages are there."),
    ("CLEARHOUSE_SECRET_<NAME>", 'A secret that an HTTP tool names as `{"$secret": "name"}`.'),
    ("CLEARHOUSE_SANDBOX_SMTP_PORT", "Port of the sandbox's mail; 0 or unset takes a free one."),
    ("CLEARHOUSE_SANDBOX_HTTP_PORT", "Port of the sandbox's web; 0 or unset takes a free one."),
    ("CLEARHOUSE_PORT", "The port on 127.0.0.1 that compose.yaml publishes; 8000."),
    ("CLEARHOUSE_TEST_DATABASE_URL", "A PostgreSQL for the tests instead of a throw-away one."),
    ("CLEARHOUSE_REQUIRE_BROWSER", "`1` turns browser tests that would be skipped into failures."),
    ("CLEARHOUSE_REQUIRE_JUDGES", "`1` turns skipped judgements of transcripts into failures."),
    ("CHROMIUM_BIN", "The browser for the browser tests."),
    ("DATABASE_PASSWORD_FILE", "In a container: the file with the password for DATABASE_URL."),
    ("REDIS_PASSWORD_FILE", "In a container: the file with the password for REDIS_URL."),
    ("REMAP_SIGTERM", "`SIGQUIT` for Celery workers, so that SIGTERM begins the soft shutdown."),
)


def page() -> str:
    """The whole page. Raises KeyError for a variable that has no meaning here."""
    return "\n".join([
        HEAD, "## Read by every program", "",
        table(("Variable", "Default", "Type", "Meaning"), _rows()),
        "In production a secret that is neither set nor in a file stops the program.", "",
        "## Read in one place only", "",
        table(("Variable", "Meaning"), [(code(name), said) for name, said in ELSEWHERE]),
    ])  # fmt: skip


def names() -> set[str]:
    """Every variable that this page explains."""
    return {_variable(name, field) for name, field in _fields()} | {name for name, _ in ELSEWHERE}


def _fields() -> list[tuple[str, Any]]:
    return list(type(settings.ENVIRONMENT).model_fields.items())


def _rows() -> list[tuple[str, ...]]:
    return [
        (code(_variable(name, field)), _default(field), _type(field.annotation), MEANINGS[name])
        for name, field in _fields()
    ]


def _variable(name: str, field: Any) -> str:
    prefix = type(settings.ENVIRONMENT).model_config["env_prefix"]
    return str(field.validation_alias or f"{prefix}{name}".upper())


def _default(field: Any) -> str:
    value = field.default
    if value in ("", None):
        return ""
    return code(str(value).lower() if isinstance(value, bool) else value)


def _type(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return " or ".join(code(each) for each in get_args(annotation))
    if Path in (annotation, *get_args(annotation)):
        return "path"
    return {bool: "true or false", str: "text", int: "number", float: "seconds"}[annotation]
