"""Operators at their browsers, without scripts: a client that signs in, forms filled in."""

import re
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.utils.html import strip_tags

from ledger import ids
from ledger.models import ToolCall
from tests.recovery.deciding import incident_of, version_of

OF_NOBODY = re.compile(r'name="once" value="([^"]+)"')


def operator(person: User) -> Client:
    """A client of its own, freshly logged in."""
    client = Client()
    client.force_login(person)
    return client


def address(call: ToolCall, word: str = "") -> str:
    """The address of the incident of a call, or of a noun below it."""
    return f"/incidents/{ids.shown('incident', incident_of(call).id)}{word and '/'}{word}"


def key_of(answer: Any) -> str:
    """The key that a form was drawn with."""
    found = OF_NOBODY.findall(answer.content.decode())
    assert found, "no form was drawn"
    return str(found[-1])


def text(answer: Any) -> str:
    """The page as it is read: no markup, one space between words."""
    main = answer.content.decode().partition("<main")[2]
    return " ".join(strip_tags(main).replace("&#x27;", "'").replace("&quot;", '"').split())


def typed(call: ToolCall, answer: str = "happened", **more: Any) -> dict[str, Any]:
    """The form as a person fills it in who looked at the present version."""
    return {
        "answer": answer, "grounds": "The provider's list has it.", "version": version_of(call),
        "once": "drawn-with-the-page", "step": "preview",
    } | more  # fmt: skip


def send(client: Client, call: ToolCall, form: dict[str, Any], word: str = "resolution") -> Any:
    """Send the form without scripts."""
    answer: HttpResponse = client.post(address(call, word), form)
    return answer
