"""From what a tool raises to an outcome (semantics, section 5).

Data first: the tool's own errors carry their meaning, the families of OSError carry a cause,
and everything else is `internal`. What it means then follows from one question only: was the
boundary crossed? An error that proves nothing is never reported as proof.
"""

import socket
from typing import Any

from executors.contract import Outcome
from executors.python.errors import NotBegun, Refused, ToolFailed, Unproven
from executors.python.results import result_of
from ledger.vocabulary import Cause, Meaning

MESSAGE_CHARACTERS_MAX = 2048

CAUSES: tuple[tuple[type[BaseException], Cause], ...] = (
    (ConnectionRefusedError, Cause.CONNECT_FAILED),
    (socket.gaierror, Cause.CONNECT_FAILED),
    (ConnectionError, Cause.CONNECTION_LOST),
    (TimeoutError, Cause.HANG),
    (MemoryError, Cause.RESOURCE_KILLED),
)


def outcome_of(error: BaseException, *, crossed: bool) -> Outcome:
    """Return what `error`, raised by a tool, says of the attempt."""
    match error:
        case NotBegun():
            return _ended(error, error.cause, Meaning.NOT_BEGUN)
        case Refused():
            return _ended(error, error.cause, Meaning.REFUSED, retry_after_s=error.retry_after_s)
        case ToolFailed():
            result = None if error.result is None else result_of(error.result)
            return _ended(error, Cause.TOOL_ERROR, Meaning.KNOWN, result=result)
        case Unproven():
            return _ended(error, error.cause, Meaning.UNKNOWN)
    meaning = Meaning.UNKNOWN if crossed else Meaning.NOT_BEGUN
    return _ended(error, _cause(error, crossed=crossed), meaning)


def recorded(error: BaseException) -> dict[str, Any]:
    """Return what is kept of an exception: module, type, bases, message and its cause's text."""
    kind = type(error)
    return {
        "module": kind.__module__,
        "type": kind.__qualname__,
        "bases": [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__[1:-1]],
        "message": message_of(error),
        "cause": message_of(error.__cause__) if error.__cause__ else None,
    }


def message_of(error: BaseException) -> str:
    """Return the text of an exception, capped, even where its `__str__` raises."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return (text or type(error).__qualname__)[:MESSAGE_CHARACTERS_MAX]


def _cause(error: BaseException, *, crossed: bool) -> Cause:
    cause = next((cause for kind, cause in CAUSES if isinstance(error, kind)), Cause.INTERNAL)
    # A refused connection after the boundary proves nothing about what went before it.
    return Cause.CONNECTION_LOST if crossed and cause is Cause.CONNECT_FAILED else cause


def _ended(error: BaseException, cause: Cause, meaning: Meaning, **more: Any) -> Outcome:
    kept = recorded(error)
    return Outcome.ended(
        cause,
        meaning,
        kept["message"],
        error_type=f"{kept['module']}.{kept['type']}",
        evidence={"exception": kept},
        **more,
    )
