"""Completes the API's own description (OpenAPI 3.1): refusals, keys beside logins, the idempotency key.

What ninja cannot know is said here once for all operations; shapes and examples stay with the
schemas in `ledger/api/schemas.py`.
"""

from typing import Any

from config import problems
from ledger.api.schemas import BatchIn, SubmitIn
from ledger.ids import shown

SCHEMAS = "#/components/schemas/{model}"
TAKES_KEY = ("submit", "open_session", "open_turn")
A_CALL = shown("call", SubmitIn.EXAMPLE_CALL)

PROBLEM = {
    "type": "object",
    "description": "A refusal (RFC 9457): `detail` says what happened, what it means, what to do.",
    "required": ["type", "title", "status", "detail", "instance", "code", "request_id"],
    "properties": {
        "type": {"type": "string", "description": "The page that explains the code."},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "code": {"type": "string", "description": "Stable and machine readable."},
        "request_id": {"type": "string"},
        "current": {"type": "object", "description": "Where the call stands, if that refused it."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}
"""
