"""Completes the API's own description (OpenAPI 3.1): refusals, logins beside keys, keys of intents.

What ninja cannot know is said here once for all operations; shapes and examples stay with the
schemas in `ledger/api/schemas.py`.
"""

from collections.abc import Iterator
from typing import Any

from config import problems
from ledger.api.epochs import EPOCH
from ledger.api.schemas import BatchIn, SubmitIn
from ledger.errors import NotFound

AT = "#/components/schemas/{model}"
PART = "#/components/{kind}/{name}"
NAMED_BY_A_KEY = (
    "_submit",
    "_open_session",
    "_open_turn",
    "turns_say",
    "turns_reply",
    "budgets_grant",
    "_take_in",
    "handoffs_offer",
    "compactions_commit",
    "incidents_set_aside",
    "policies_attempt",
)
SPEAKS_FOR_A_SESSION = (
    "_submit",
    "_open_turn",
    "_end_turn",
    "turns_say",
    "turns_reply",
    "turns_interruption",
    "_cancellation",
    "_resumption",
    "deliveries_offer",
    "deliveries_acknowledgement",
)
RECORDS_CALLS = ("_submit", "turns_reply")

PROBLEM: dict[str, Any] = {
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
    "examples": [
        problems.document(
            status=404,
            code="not_found",
            detail=NotFound.sentence.format(noun="call"),
            instance="/api/v1/calls/call_0199a3c2e4f07cc1a5d7b1f0a2b3c4d5",
            request_id="0199a3c2e5017d6f8b3a5c7e9f1b2d4a",
        )
    ],
}
REFUSED: dict[str, Any] = {
    "description": "Refused, or failed by a fault of ours.",
    "content": {"application/problem+json": {"schema": {"$ref": AT.format(model="Problem")}}},
    "headers": {
        "Retry-After": {
            "description": "With 429 and 503: seconds after which to try again.",
            "schema": {"type": "integer", "minimum": 1},
        },
    },
}
QUOTAS: dict[str, Any] = {
    "RateLimit-Policy": {
        "description": "The quotas that this request spent from: `q` in each `w` seconds.",
        "schema": {"type": "string"},
        "example": '"calls";q=2000;w=10, "workspace";q=10000;w=10',
    },
    "RateLimit": {
        "description": "What is left of them, `r`, and the seconds until all of it is again, `t`.",
        "schema": {"type": "string"},
        "example": '"calls";r=1999;t=1, "workspace";r=9876;t=1',
    },
}
IDEMPOTENCY_KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    "description": "Names the intent: repeated, it gives the answer of the first time.",
}
CLEARHOUSE_EPOCH = {
    "in": "header",
    "name": EPOCH,
    "required": False,
    "schema": {"type": "integer", "minimum": 1},
    "description": "For which epoch of its session this speaks; without it, for the first one.",
}
TRACEPARENT = {
    "in": "header",
    "name": "traceparent",
    "required": False,
    "schema": {"type": "string"},
    "example": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "description": "The trace that the calls belong to (W3C Trace Context); a bad one is ignored.",
}
PARAMETERS = {
    "IdempotencyKey": IDEMPOTENCY_KEY,
    "RequiredIdempotencyKey": IDEMPOTENCY_KEY | {"required": True},
    "ClearhouseEpoch": CLEARHOUSE_EPOCH,
    "Traceparent": TRACEPARENT,
}
DECISIONS = {"incidents", "resolutions", "corrections", "bulk resolutions"}
"""Tags whose operations record something for a person, so that the key is required."""

OF_A_LOGIN = "A person's login. A change needs the cookie `csrftoken` in the header `X-CSRFToken`."


def completed(schema: dict[str, Any]) -> dict[str, Any]:
    """The description with what holds for every operation. Changes and returns `schema`."""
    components = schema["components"]
    components["schemas"] |= {
        "Problem": PROBLEM,
        "SubmitIn": SubmitIn.model_json_schema(ref_template=AT),
        "BatchIn": _without_definitions(BatchIn.model_json_schema(ref_template=AT)),
    }
    components["parameters"] = PARAMETERS
    components["headers"] = QUOTAS
    quotas = _named("headers", *QUOTAS)
    components["responses"] = {"Refused": REFUSED | {"headers": REFUSED["headers"] | quotas}}
    components["securitySchemes"].pop("KeyOrLogin", None)
    components["securitySchemes"]["Login"] |= {"description": OF_A_LOGIN}
    for operations in schema["paths"].values():
        for operation in operations.values():
            _complete(operation)
    return schema


def _without_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "$defs"}


def _complete(operation: dict[str, Any]) -> None:
    for response in operation["responses"].values():
        response["headers"] = response.get("headers", {}) | _named("headers", *QUOTAS)
    operation["responses"]["default"] = _named("responses", "Refused")["Refused"]
    if operation.get("security") == [{"KeyOrLogin": []}]:
        operation["security"] = [{"Key": []}, {"Login": []}]
    operation["parameters"] = [
        *operation["parameters"],
        *_named("parameters", *_read(operation)).values(),
    ]


def _read(operation: dict[str, Any]) -> Iterator[str]:
    """Names of the headers that an operation reads beside its own parameters."""
    name = operation["operationId"]
    recorded = {"201", "202"} & {str(status) for status in operation["responses"]}
    if name.endswith(NAMED_BY_A_KEY):
        yield "IdempotencyKey"
    if name.endswith(SPEAKS_FOR_A_SESSION):
        yield "ClearhouseEpoch"
    if name.endswith(RECORDS_CALLS):
        yield "Traceparent"
    if recorded and DECISIONS & set(operation.get("tags", ())):
        yield "RequiredIdempotencyKey"


def _named(kind: str, *names: str) -> dict[str, dict[str, str]]:
    """What stands for a part that many operations share: said once, it is read once."""
    return {name: {"$ref": PART.format(kind=kind, name=name)} for name in names}
