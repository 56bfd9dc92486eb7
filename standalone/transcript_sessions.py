"""What `manage.py transcript` asks the ledger: the one part of it that needs Django.

Whoever may run this on the machine may read every session.
"""

import os

import django

from standalone.attach import attach
from standalone.errors import Refusal

attach(os.environ)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from ledger import ids, known_calls  # noqa: E402 models are there once Django is
from ledger.errors import NotFound  # noqa: E402
from ledger.models import Session  # noqa: E402
from ledger.transcripts.known import Known  # noqa: E402


def known_of(session_id: str) -> Known:
    """The calls of a session. Raises Refusal where there is no such session."""
    return known_calls.known_of(_session(session_id))


def _session(session_id: str) -> Session:
    try:
        found = Session.objects.filter(id=ids.read("session", session_id)).first()
    except NotFound:
        found = None
    if found is None:
        raise Refusal(f"There is no session {session_id}. Nothing was written.")
    return found
