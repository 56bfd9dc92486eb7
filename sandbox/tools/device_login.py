"""`sandbox.device_login`: a sign-in by device code (RFC 8628) that never blocks for ever.

The start stores the device code as a handle and parks. Each poll asks once; who is never
answered is closed by the ledger's own deadlines (R38). The token stays out of every result.
"""

from dataclasses import replace
from typing import Any

from executors.contract import Context, Handle, Outcome
from executors.python import NotBegun, Refused, tool
from ledger.vocabulary import Cause
from sandbox.outside import Outside, expected

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL_S = 5.0  # RFC 8628, section 3.5: where the server names none
SLOW_DOWN_S = 5.0
SHOWN = ("token_type", "expires_in", "scope")
ENDS = {
    "access_denied": (Cause.PERMISSION, "A person denied the sign-in."),
    "expired_token": (Cause.AUTH, "The device code expired before anybody completed it."),
    "invalid_grant": (Cause.AUTH, "The server does not accept this device code."),
}
SECONDS = {"type": "number", "minimum": 0, "maximum": 900}


@tool(
    "sandbox.device_login",
    recovery_class="provider_auth",
    effect_kinds=("credentials",),
    boundary="marked",
    description="Signs in at the sandbox's device server; a person completes it with a code.",
    schema={
        "type": "object",
        "properties": {
            "expires_in_s": {**SECONDS, "description": "For drills: the life of the code."},
            "interval_s": {**SECONDS, "description": "For drills: the polling interval."},
            "hang_s": {**SECONDS, "description": "For drills: the server's silence before it."},
        },
        "additionalProperties": False,
    },
)
def device_login(
    context: Context,
    *,
    expires_in_s: float | None = None,
    interval_s: float | None = None,
    hang_s: float | None = None,
) -> Outcome:
    """Begin a sign-in and park with its device code; the user code is shown as partial output."""
    asked = {"expires_in": expires_in_s, "interval": interval_s, "hang_s": hang_s}
    wanted = {name: value for name, value in asked.items() if value is not None}
    with Outside(context) as outside:
        context.cross()
        begun = expected(outside.send("POST", "/device/code", wanted), 200)
    handle = Handle(
        value=begun["device_code"],
        kind="cloud",
        poll_after_s=begun.get("interval", INTERVAL_S),
        expires_in_s=begun["expires_in"],
    )
    context.store_handle(handle)
    context.heartbeat(partial=_invitation(begun).encode())
    return Outcome.parked(handle)


@device_login.poll
def ask_for_token(context: Context, handle: Handle) -> Any:
    """Ask once. Pending or unreachable: asked again at the interval; `slow_down` adds 5 s to it."""
    handle = replace(handle, poll_after_s=_interval_s(context, handle))
    try:
        with Outside(context) as outside:
            fields = {"grant_type": GRANT, "device_code": handle.value}
            answer = outside.send("POST", "/token", fields)
    except (NotBegun, ConnectionError, TimeoutError):
        return Outcome.parked(handle)
    if answer.code == 200:
        return {name: answer.body[name] for name in SHOWN if name in answer.body}
    match answer.body.get("error"):
        case "authorization_pending":
            return Outcome.parked(handle)
        case "slow_down":
            return Outcome.parked(_slower(context, handle))
        case error if error in ENDS:
            raise Refused(*ENDS[error])
    return expected(answer, 200)


def _interval_s(context: Context, handle: Handle) -> float:
    cursor = context.assignment.cursor
    slowed = cursor.get("interval_s") if isinstance(cursor, dict) else None
    known = handle.poll_after_s if slowed is None else slowed
    return INTERVAL_S if known is None else known


def _slower(context: Context, handle: Handle) -> Handle:
    """The longer interval holds for all later polls, so it travels in the cursor."""
    interval_s = _interval_s(context, handle) + SLOW_DOWN_S
    context.heartbeat(cursor={"interval_s": interval_s})
    return replace(handle, poll_after_s=interval_s)


def _invitation(begun: dict[str, Any]) -> str:
    return (
        f"To complete the sign-in, POST user_code={begun['user_code']} to "
        f"{begun['verification_uri']} within {begun['expires_in']:g} seconds.\n"
    )
