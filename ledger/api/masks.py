"""What a person's login is given through the API: the same as others, with secrets masked.

An agent's key reads its own arguments and results as they are, since it must use them. Every body
that is rendered for a login passes `given_to`, so that no route can forget it; bodies about calls
pass `calls_given_to` or `about_call` before, which know what is secret of each call.
"""

import base64
from collections.abc import Sequence
from typing import Any

from ledger import ids, masking, masks
from ledger.masks import Hidden
from ledger.models import Session, ToolCall
from ledger.permissions import Person

NOTHING_MORE = Hidden()


def given_to(reader: Any, body: Any) -> Any:
    """A JSON value as this reader may see it: masked by names of keys and by looks."""
    return masking.masked(body) if isinstance(reader, Person) else body


def calls_given_to(reader: Any, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls, as the API shows them, as this reader may see them; three queries for all."""
    if not isinstance(reader, Person):
        return bodies
    named = [ids.read("call", each["id"]) for each in bodies]
    rows = ToolCall.objects.filter(workspace=reader.workspace_id, id__in=named)
    hidden = masks.of_calls(rows)
    return [
        call_masked(each, hidden.get(id_, NOTHING_MORE))
        for id_, each in zip(named, bodies, strict=True)
    ]


def about_call(reader: Any, call: ToolCall, body: Any) -> Any:
    """A body about one call, such as its events, as this reader may see it."""
    if not isinstance(reader, Person):
        return body
    return masking.masked(body, known=masks.of(call).texts)


def about_session(reader: Any, session: Session, body: Any) -> Any:
    """A body about a session's calls, such as a transcript, as this reader may see it."""
    return masks.in_session(session, body) if isinstance(reader, Person) else body


def call_masked(body: dict[str, Any], hidden: Hidden) -> dict[str, Any]:
    """A call as the API shows it, masked by what is secret of it."""
    arguments = masking.masked(body.get("arguments"), pointers=hidden.arguments)
    result = body.get("result") and _body(body["result"], hidden.result, hidden)
    return dict(masking.masked(body | {"arguments": arguments, "result": result},
                               known=hidden.texts))  # fmt: skip


def evidence_given_to(reader: Any, call: ToolCall, body: dict[str, Any]) -> dict[str, Any]:
    """A piece of evidence about one call, with its body, as this reader may see it."""
    if not isinstance(reader, Person):
        return body
    hidden = masks.of(call)
    return dict(masking.masked(_body(body, hidden.found, hidden), known=hidden.texts))


def _body(shown: dict[str, Any], pointers: Sequence[str], hidden: Hidden) -> dict[str, Any]:
    """A body that is text and no JSON travels as base64, so its secrets are masked inside."""
    shown = shown | {"json": masking.masked(shown.get("json"), pointers=pointers)}
    text = masking.text_in(base64.b64decode(shown.get("base64") or ""))
    if not text or hidden.text(text) == text:
        return shown
    return shown | {"base64": base64.b64encode(hidden.text(text).encode()).decode()}
