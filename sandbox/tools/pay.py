"""`sandbox.pay`: make a payment that may succeed after its socket died (R162)."""

from typing import Any
from urllib.parse import quote

from executors.contract import Context, ProbeAnswer
from executors.python import tool
from executors.python.results import result_of
from ledger.vocabulary import ProbeFinding
from sandbox.outside import Outside, expected
from sandbox.pauses import PAUSE_SCHEMA, pause

FAULTS = ["none", "drop_after", "drop_before", "error_after", "declined"]


@tool(
    "sandbox.pay",
    recovery_class="side_effect",
    effect_kinds=("purchase",),
    boundary="marked",
    description="Makes a payment at the sandbox's own till. Asked twice, it pays twice.",
    schema={
        "type": "object",
        "properties": {
            "payee": {"type": "string", "minLength": 1, "maxLength": 200},
            "amount_cents": {"type": "integer", "minimum": 1, "maximum": 100_000_000},
            "currency": {"enum": ["EUR", "GBP", "USD"]},
            "fault": {"enum": FAULTS, "description": "For drills: how the connection breaks."},
            "pause_after_cross_s": PAUSE_SCHEMA,
            "pause_after_effect_s": PAUSE_SCHEMA,
        },
        "required": ["payee", "amount_cents", "currency"],
        "additionalProperties": False,
    },
    policy={
        "probe": {"authoritative": True},
        "in_flight_grace_s": 5,
    },
)
def pay(
    context: Context,
    *,
    payee: str,
    amount_cents: int,
    currency: str,
    fault: str = "none",
    pause_after_cross_s: float = 0,
    pause_after_effect_s: float = 0,
) -> dict[str, Any]:
    """Return the payment: `{"id", "marker", "payee", "amount_cents", "currency", "paid_at"}`."""
    wanted = {"payee": payee, "amount_cents": amount_cents, "currency": currency, "fault": fault}
    with Outside(context) as outside:
        context.cross()
        pause(context, pause_after_cross_s, phase="after_cross", begun=False)
        answer = outside.send("POST", "/payments", {"marker": context.assignment.marker, **wanted})
    payment: dict[str, Any] = expected(answer, 201)
    pause(context, pause_after_effect_s, phase="after_effect", begun=True)
    return payment


@pay.probe
def payment_arrived(context: Context, **arguments: Any) -> ProbeAnswer:
    """Ask the till for payments with this call's marker."""
    marker = quote(context.assignment.marker, safe="")
    with Outside(context) as outside:
        found = expected(outside.send("GET", f"/payments?marker={marker}"), 200)
    if not found:
        return ProbeAnswer(
            finding=ProbeFinding.DID_NOT_HAPPEN,
            message="The till holds no payment with this call's marker.",
        )
    return ProbeAnswer(
        finding=ProbeFinding.HAPPENED,
        message=f"The till holds {len(found)} payment(s) with this call's marker.",
        result=result_of(found[0]),
        evidence={"payments": found},
    )
