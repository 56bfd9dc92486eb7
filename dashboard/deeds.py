"""A person's deed from a form: done once however often the button is pressed, then told.

The verbs decide; this file only carries the form's key to them and their answer back. Every form
that changes something holds `{% once %}`, drawn with the page.
"""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from ledger.errors import LedgerError, NotFound
from ledger.permissions import Person
from recovery.api import intents
from recovery.refusals import IdempotencyKeyMissing

KEY = "once"


def pressed(
    request: HttpRequest, deed: Callable[[], dict[str, Any]], *, about: object = None
) -> dict[str, Any]:
    """Do the deed of this form, or give the answer of the first press.

    A form with more than one deed says what each is `about`: the same is done once, whatever else
    stands in the form by then.
    Raises IdempotencyKeyMissing for a form without its key, KeyReused where the same page was
    sent with other contents, and whatever the deed refuses.
    """
    key = request.POST.get(KEY, "")
    if not key:
        raise IdempotencyKeyMissing()
    person: Person = request.person  # type: ignore[attr-defined]
    digest = _digest(request)
    if about is not None:
        digest = sha256(repr(about).encode()).hexdigest()
        key = f"{key[:190]}:{digest}"
    answer, _ = intents.kept(person, request.path, key[:255], digest, deed)
    return dict(json.loads(answer.answer))


def refused(
    request: HttpRequest,
    form: Form,
    deed: Callable[[], dict[str, Any]],
    again: Callable[[int], HttpResponse],
) -> HttpResponse | None:
    """Do the deed of a filled-in form; None once it is done.

    `again` draws the form's page with a status, for what its fields or the deed refuse. Raises
    NotFound for what is not there, which is no fault of the form.
    """
    if not form.is_valid():
        return again(422)
    try:
        pressed(request, deed)
    except NotFound:
        raise
    except LedgerError as refusal:
        form.add_error(None, str(refusal))
        return again(refusal.http)
    return None


def _digest(request: HttpRequest) -> str:
    typed = sorted((name, values) for name, values in request.POST.lists()
                   if name not in (KEY, "csrfmiddlewaretoken"))  # fmt: skip
    return sha256(json.dumps(typed).encode()).hexdigest()


def told(request: HttpRequest, sentence: str, to: str) -> HttpResponse:
    """Go on to another page, which says this sentence once, where the focus then is."""
    messages.success(request, sentence)
    return HttpResponseRedirect(to)
