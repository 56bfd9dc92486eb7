"""`Idempotency-Key` of people: a deed and its answer are one commit, a repetition repeats both."""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from ledger.api import masks
from ledger.api.auth import idempotency_key_of
from ledger.api.replays import REPLAYED
from ledger.errors import KeyReused
from ledger.permissions import Person
from ledger.transactions import repeatable
from recovery.models import PersonsIntent
from recovery.refusals import IdempotencyKeyMissing

Deed = Callable[[], dict[str, Any]]


def once(request: HttpRequest, deed: Deed, *, status: int = 201) -> HttpResponse:
    """Do the deed and keep its answer, or give the answer of the first time.

    Raises IdempotencyKeyMissing, KeyReused for another body, and what the deed refuses: a
    refusal writes nothing and keeps no answer.
    """
    key = idempotency_key_of(request.headers.get("Idempotency-Key"))
    if key is None:
        raise IdempotencyKeyMissing()
    return _once(request, key, deed, status)


def once_if_named(request: HttpRequest, deed: Deed, *, status: int = 201) -> HttpResponse:
    """The same for a deed that is done each time it is asked for, unless a key names it."""
    key = idempotency_key_of(request.headers.get("Idempotency-Key"))
    if key is None:
        return JsonResponse(deed(), status=status, headers={"Cache-Control": "no-store"})
    return _once(request, key, deed, status)


def _once(request: HttpRequest, key: str, deed: Deed, status: int) -> HttpResponse:
    person: Person = request.auth  # type: ignore[attr-defined]
    digest = sha256(request.body).hexdigest()
    answer, replayed = kept(person, request.path, key, digest, deed, status)
    headers = {"Cache-Control": "no-store"}
    if replayed:
        headers |= REPLAYED
    shown = masks.given_to(person, json.loads(answer.answer))
    return JsonResponse(shown, status=answer.status, headers=headers)


@repeatable
def kept(
    person: Person, address: str, key: str, digest: str, deed: Deed, status: int = 201
) -> tuple[PersonsIntent, bool]:
    """The recorded answer of a deed, and whether it had been done before. Raises KeyReused."""
    named = {"workspace_id": person.workspace_id, "person_id": person.id, "key": key,
             "address": address[:300]}  # fmt: skip
    with connection.cursor() as cursor:
        # The second of two presses waits here for the first one's commit, and finds its answer.
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
            [f"intent:{person.workspace_id}:{person.id}:{address}:{key}"],
        )
    known = PersonsIntent.objects.filter(**named).first()
    if known is not None:
        if known.body_sha256 != digest:
            raise KeyReused(earlier=f"body sha256 {known.body_sha256[:16]}…")
        return known, True
    answer = json.dumps(deed(), default=str)
    made = PersonsIntent.objects.create(**named, body_sha256=digest, status=status, answer=answer)
    return made, False
