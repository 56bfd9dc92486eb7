"""Reads what came in a provider's format into neutral entries, and says where it cannot."""

from typing import Any

from ledger.api.schemas import SayIn, TurnIn
from ledger.errors import Invalid
from ledger.sessions import Prompt
from ledger.transcripts import profiles
from ledger.transcripts.neutral import Entry, Unreadable


def entries_of(format: str, value: Any, pointer: str) -> list[Entry]:
    """The entries of a list of messages, or of an object that holds them. Raises Invalid."""
    try:
        return profiles.shape(format).read(value)
    except profiles.UnknownProfile as unknown:
        detail = f"There is no format of this name; take one of {', '.join(unknown.names)}."
        raise Invalid(detail=detail, errors=[{"pointer": "/format", "detail": detail}]) from None
    except Unreadable as error:
        at = f"{pointer}{error.pointer}"
        detail = f"This is no message of {format}: {at or '/'}: {error.detail}"
        found = {"pointer": at[:512], "detail": error.detail[:300]}
        raise Invalid(detail=detail.rstrip(".") + ".", errors=[found]) from None


def said_in(body: SayIn | TurnIn) -> list[Entry]:
    """What people said in a body with one `message`, or several `messages`. Raises Invalid."""
    if (body.message is None) == (body.messages is None):
        raise Invalid(detail="Give either message, or messages.")
    if body.message is not None:
        return entries_of(body.format, [body.message], "/message")
    return entries_of(body.format, body.messages, "/messages")


def prompt_in(body: TurnIn) -> Prompt | None:
    """The prompt that a turn is opened with, if its body has one. Raises Invalid."""
    if body.message is None and body.messages is None:
        return None
    return Prompt(body.format, said_in(body))


def replied_in(reply: Any) -> Any:
    """One message as a list of one; a format of items gives its list as it is."""
    return [reply] if isinstance(reply, dict) else reply
