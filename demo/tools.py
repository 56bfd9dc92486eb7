"""The tools of the demo's office, beside the sandbox's own: HTTP tools against the sandbox's till.

Two of them point at a port where nothing listens, so that their calls back off.
"""

from collections.abc import Mapping
from typing import Any

from demo.house import House
from ledger import registry
from ledger.models import Tool
from ledger.registry import Author, Declaration
from sandbox import addresses

AUTHOR = Author(name="demo", grounds="So that the first look at the console is not an empty one.")
NEVER_ANSWERS = 9  # the discard port: nothing listens there
TEXT = {"type": "string", "maxLength": 200}
MONEY = {
    "amount_cents": {"type": "integer", "minimum": 1},
    "currency": {"enum": ["EUR", "GBP", "USD"]},
    "payee": TEXT,
    "fault": {"type": "string", "description": "For drills: how the connection breaks."},
}
PAYMENT = {name: f"{{{name}}}" for name in ("marker", *MONEY)}
CONTACT = {"contact": TEXT, "city": TEXT, "note": TEXT, "api_token": TEXT}


def register(house: House) -> None:
    """Register every tool of the office; what somebody made of its policy since then stays."""
    known = set(Tool.objects.filter(workspace=house.workspace).values_list("name", flat=True))
    for declaration, policy in _office(addresses.known().http):
        registry.put(
            workspace=house.workspace,
            declaration=declaration,
            policy={} if declaration.name in known else policy,
            by=AUTHOR,
        )


def _office(till: int) -> list[tuple[Declaration, Mapping[str, Any]]]:
    return [
        (
            Declaration(
                name="bank.transfer",
                provider="bank",
                executor="http",
                description="Transfers money to a supplier's account. Asked twice, it pays twice.",
                config=_post(till, "/payments", {"template": PAYMENT}),
                input_schema=_schema(MONEY, "payee", "amount_cents", "currency"),
                effect_kinds=["purchase"],
                annotations={"destructiveHint": True, "idempotentHint": False},
            ),
            {"recovery_class": "side_effect", "boundary": "transport", "second_person": "always",
             "hold_dependents": False,
             "in_flight_grace_s": 5, "review_s": 3600},
        ),
        (
            Declaration(
                name="shop.refund",
                provider="shop",
                executor="http",
                description="Pays an order back to the customer.",
                config=_post(till, "/payments", {"template": PAYMENT}),
                input_schema=_schema(MONEY, "payee", "amount_cents", "currency"),
                effect_kinds=["purchase"],
                annotations={"idempotentHint": True},
            ),
            {"recovery_class": "side_effect", "boundary": "transport", "in_flight_grace_s": 0,
             "delivery_delay_s": 0, "hold_dependents": False},
        ),
        (
            Declaration(
                name="warehouse.ship_order",
                provider="carrier",
                executor="http",
                description="Orders a parcel to be picked up.",
                config=_post(till, "/payments", {"template": PAYMENT}),
                input_schema=_schema(MONEY, "payee"),
                effect_kinds=["external_write"],
            ),
            {"recovery_class": "side_effect", "in_flight_grace_s": 0, "delivery_delay_s": 0,
             "timeouts": {"heartbeat_s": 1}},
        ),
        (
            Declaration(
                name="rates.latest",
                provider="exchange",
                executor="http",
                description="Reads today's exchange rates.",
                config=_post(till, "/payments", {"template": {"fault": "drop_before"}}),
                input_schema=_schema({"currency": TEXT}, "currency"),
            ),
            {"recovery_class": "read_only",
             "retry": {"attempts": 2, "initial_interval_s": 0.1},
             "timeouts": {"schedule_to_start_s": 3600, "schedule_to_close_s": 7200}},
        ),
        (
            Declaration(
                name="catalogue.price",
                provider="catalogue",
                executor="http",
                description="Reads the price of a book.",
                config=_get(NEVER_ANSWERS, "/prices/{isbn}"),
                input_schema=_schema({"isbn": TEXT}, "isbn"),
            ),
            {"recovery_class": "read_only",
             "retry": {"attempts": 5, "initial_interval_s": 0.1, "factor": 1}},
        ),
        (
            Declaration(
                name="crm.update_contact",
                provider="crm",
                executor="http",
                description="Writes a contact into the customer database.",
                config={**_get(NEVER_ANSWERS, "/contacts/{contact}"), "method": "PUT"},
                input_schema=_schema(CONTACT, "contact"),
                effect_kinds=["external_write"],
                annotations={"idempotentHint": True},
            ),
            {"recovery_class": "idempotent_write", "key_template": "contact:{contact}",
             "boundary": "transport",
             "retry": {"initial_interval_s": 60, "factor": 10, "interval_cap_s": 3600},
             "timeouts": {"schedule_to_close_s": 86400}},
        ),
    ]  # fmt: skip


def _schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _get(port: int, path: str) -> dict[str, Any]:
    return {
        "method": "GET",
        "url": f"http://{addresses.HOST}:{port}{path}",
        "allow": {
            "hosts": [addresses.HOST],
            "private_hosts": [addresses.HOST],
            "schemes": ["http"],
            "ports": [port],
        },
    }


def _post(port: int, path: str, body: Any) -> dict[str, Any]:
    return {**_get(port, path), "method": "POST", "body": body}
