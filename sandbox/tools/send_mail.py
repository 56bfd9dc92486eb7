"""`sandbox.send_mail`: send a real message by SMTP. Sent twice, it is two messages.

Order: connect and greet; cross; sender, recipient, message. What each break proves:

| Break | Proves |
|---|---|
| connection refused, no greeting | not begun: the boundary was not crossed |
| a reply of 4xx or 5xx | refused: the server did not take the message (RFC 5321, 4.2.5) |
| reply 421 after the message, reset, silence | nothing: the message may have been taken |
"""

import smtplib
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from typing import Any
from urllib.parse import quote

from executors.contract import Context, ProbeAnswer
from executors.python import NotBegun, Refused, Unproven, tool
from executors.python.results import result_of
from ledger.vocabulary import Cause, ProbeFinding
from sandbox import addresses
from sandbox.mailbox import MARKER_HEADER
from sandbox.marks import digest
from sandbox.outside import Outside, expected, linger_not
from sandbox.pauses import PAUSE_SCHEMA, pause

SENDER = "agent@sandbox.invalid"
CONNECT_S = 3.0
CLOSING = 421  # the server gives up the connection, which says nothing of the message
CAUSES = {530: Cause.AUTH, 535: Cause.AUTH, 550: Cause.NOT_FOUND, 551: Cause.NOT_FOUND}
CAUSES_OF_FAMILY = {4: Cause.RATE_LIMITED, 5: Cause.VALIDATION}
LINE_SCHEMA = {"type": "string", "maxLength": 500, "pattern": "^[^\\r\\n\\u0000]*$"}
PAUSE_ENDS = ("before_cross", "after_cross", "after_effect")


@tool(
    "sandbox.send_mail",
    recovery_class="side_effect",
    effect_kinds=("message",),
    boundary="marked",
    description="Sends a message to an address of the sandbox's own mail server.",
    schema={
        "type": "object",
        "properties": {
            "to": {"type": "string", "pattern": "^[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,190}$"},
            "subject": LINE_SCHEMA,
            "body": {"type": "string", "maxLength": 100_000},
            **{f"pause_{end}_s": PAUSE_SCHEMA for end in PAUSE_ENDS},
        },
        "required": ["to", "subject", "body"],
        "additionalProperties": False,
    },
    policy={
        "probe": {"authoritative": True},
        "in_flight_grace_s": 5,
    },
)
def send_mail(
    context: Context,
    *,
    to: str,
    subject: str,
    body: str,
    pause_before_cross_s: float = 0,
    pause_after_cross_s: float = 0,
    pause_after_effect_s: float = 0,
) -> dict[str, Any]:
    """Return `{"message_id", "reply"}` once the server has taken the message."""
    message = _message(context, to, subject, body)
    with _greeted(context) as line:
        pause(context, pause_before_cross_s, phase="before_cross", begun=False)
        context.cross()
        pause(context, pause_after_cross_s, phase="after_cross", begun=False)
        reply = _sent(line, to, message)
        pause(context, pause_after_effect_s, phase="after_effect", begun=True)
    return {"message_id": message["Message-ID"], "reply": reply}


@send_mail.probe
def mail_arrived(context: Context, **arguments: Any) -> ProbeAnswer:
    """Ask the mailbox for this call's marker. It keeps a message before it says so."""
    marker = context.assignment.marker
    with Outside(context) as outside:
        found = expected(outside.send("GET", f"/mailbox?marker={quote(marker, safe='')}"), 200)
    if not found:
        return ProbeAnswer(
            finding=ProbeFinding.DID_NOT_HAPPEN,
            message="The mailbox holds no message with this call's marker.",
        )
    return ProbeAnswer(
        finding=ProbeFinding.HAPPENED,
        message=f"The mailbox holds {len(found)} message(s) with this call's marker.",
        result=result_of({"message_id": found[0]["message_id"], "messages": len(found)}),
        evidence={"messages": found, "effects": len(found)},
    )


def message_id(marker: str) -> str:
    """Return the Message-ID of a call: the same for each of its attempts."""
    plain = marker.isascii() and marker.replace("-", "").isalnum() and len(marker) <= 128
    return f"<{marker if plain else digest(marker)}@clearhouse.invalid>"


def _message(context: Context, to: str, subject: str, body: str) -> EmailMessage:
    # Long tokens are not folded: a marker cut in two could not be found again.
    message = EmailMessage(policy=SMTP_POLICY.clone(max_line_length=998))
    message["From"] = SENDER
    message["To"] = to
    message["Subject"] = subject
    message["Message-ID"] = message_id(context.assignment.marker)
    message[MARKER_HEADER] = context.assignment.marker
    message.set_content(body)
    return message


@contextmanager
def _greeted(context: Context) -> Iterator[smtplib.SMTP]:
    line = smtplib.SMTP(timeout=CONNECT_S)
    try:
        line.connect(addresses.HOST, addresses.known().smtp)
        line.ehlo_or_helo_if_needed()
    except OSError as error:  # smtplib's own errors are OSErrors too
        line.close()
        raise NotBegun(
            f"The mail server could not be greeted: {error}. Nothing was sent. Start it with "
            "`manage.py sandbox`.",
            cause=Cause.CONNECT_FAILED,
        ) from error
    try:
        assert line.sock is not None  # noqa: S101 - connected above; for the type checker
        linger_not(line.sock)
        line.sock.settimeout(max(0.1, context.remaining_s()))
        yield line
    finally:
        line.close()


def _sent(line: smtplib.SMTP, to: str, message: EmailMessage) -> str:
    try:
        _taken(line.mail(SENDER))
        _taken(line.rcpt(to))
        return _taken(line.data(bytes(message)), after_message=True)
    except smtplib.SMTPDataError as error:  # the answer to DATA itself: no message was sent
        return _taken((error.smtp_code, error.smtp_error))
    except smtplib.SMTPServerDisconnected as error:
        raise ConnectionResetError(f"The mail server broke off: {error}") from error


def _taken(reply: tuple[int, bytes | str], *, after_message: bool = False) -> str:
    code, said = reply
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    if code < 400:
        return f"{code} {text}"
    if code == CLOSING and after_message:
        raise Unproven(Cause.CONNECTION_LOST, f"The mail server closed: {text}. {UNKNOWN}")
    cause = CAUSES.get(code) or CAUSES_OF_FAMILY.get(code // 100, Cause.VALIDATION)
    raise Refused(cause, f"The mail server answered {code}: {text}. The message was not taken.")


UNKNOWN = "Whether it took the message is unknown."
