"""What the tests of the watching pages share: a signed-in client, pages of a second person."""

from typing import Any

from django.test import Client


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
