"""What the tests of the watching pages share: a signed-in client, pages of a second person."""

import time
from typing import Any

from django.test import Client

from ledger.api.auth import LOGGED_IN_AT


def signed_in(person: object) -> Client:
    """A client in which this person has signed in just now."""
    client = Client()
    client.force_login(person)  # type: ignore[arg-type]
    return client


def once(text: str) -> dict[str, str]:
    """The fields that every form of the console carries."""
    return {"once": text}


def text_of(answer: Any) -> str:
    return str(answer.content.decode())


def an_hour_ago(client: Client) -> None:
    """Let the client's login be of an hour ago: too old to decide about a side effect."""
    session = client.session
    session[LOGGED_IN_AT] = time.time() - 3600
    session.save()
