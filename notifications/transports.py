"""One try of a message: what is sent by each kind, and what came back.

Webhooks go by the same client as HTTP tools: the address is checked and pinned, one connection,
no proxy, redirects are not followed. A receiver has ten seconds.
"""

import json
import smtplib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from executors.http.client import Request, exchange
from executors.http.targets import UnfitUrl, read_url
from executors.http.wire import Network, Traffic, Unanswered
from ledger import clock, secrets
from ledger.numbers import whole
from notifications import rendering, signing, targets
from notifications.models import ANSWER_BYTES_MAX, Channel, Message
from notifications.vocabulary import ChannelKind

TRY_S = 10.0
"""How long a receiver may take for its answer."""
GONE = 410
"""The status by which a receiver asks for nothing more (Standard Webhooks)."""
AGENT = "Clearhouse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a try ended. `retry_after_s` is what the receiver asked for, 0.0 for nothing."""

    was_taken: bool
    status: int | None = None
    answer: str = ""
    error: str = ""
    is_gone: bool = False
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Outside:
    """How the outside is reached; a test brings its own network."""

    network: Network = field(default_factory=Network)


def send(message: Message, channel: Channel, outside: Outside) -> Outcome:
    """Try once. Nothing is raised for what a receiver or the way to it does."""
    return BY_KIND[channel.kind](message, channel, outside)


def _webhook(message: Message, channel: Channel, outside: Outside) -> Outcome:
    body = message.body.encode()
    signed = signing.headers(_secrets(channel), str(message), int(time.time()), body)
    return _post(channel, body, signed, outside)


def _slack(message: Message, channel: Channel, outside: Outside) -> Outcome:
    return _post(channel, message.body.encode(), (), outside)


def _secrets(channel: Channel) -> list[str]:
    """The secrets that sign now, the newest first."""
    kept = [channel.secret]
    if channel.old_secret_until is not None and channel.old_secret_until > clock.now():
        kept.append(channel.old_secret)
    return [secrets.decrypt(each) for each in kept if each is not None]


def _post(
    channel: Channel, body: bytes, signed: tuple[tuple[str, str], ...], outside: Outside
) -> Outcome:
    try:
        target = read_url(secrets.decrypt(channel.target))
        answer = exchange(
            Request(
                method="POST",
                target=target,
                headers=(("Content-Type", "application/json"), ("User-Agent", AGENT), *signed),
                body=body,
            ),
            rules=targets.rules_for(target, may_be_local=channel.may_be_local),
            network=outside.network,
            traffic=Traffic.within(TRY_S),
        )
    except UnfitUrl as unfit:
        return Outcome(was_taken=False, error=str(unfit)[:500])
    except Unanswered as silent:
        return Outcome(was_taken=False, error=str(silent)[:500])
    return _judged(answer.status, answer.headers, answer.body)


def _judged(status: int, headers: Mapping[str, str], body: bytes) -> Outcome:
    taken = 200 <= status < 300
    return Outcome(
        was_taken=taken,
        status=status,
        answer=_kept(body),
        error="" if taken else REFUSALS.get(status // 100, "The receiver refused it."),
        is_gone=status == GONE,
        retry_after_s=_seconds(headers.get("retry-after", ""), clock.now()),
    )


REFUSALS = {
    3: "The receiver redirects. A notification goes where the channel says, or nowhere.",
    4: "The receiver refused it.",
    5: "The receiver could not take it.",
}


def _kept(body: bytes) -> str:
    """At most 1 KiB, as text that PostgreSQL takes."""
    return body[:ANSWER_BYTES_MAX].decode(errors="replace").replace("\x00", "\ufffd")


def _seconds(value: str, now: datetime) -> float:
    """Retry-After in seconds (RFC 9110, 10.2.3): a number, or a date."""
    seconds = whole(value)
    if seconds is not None:
        return float(seconds)
    try:
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _mail(message: Message, channel: Channel, outside: Outside) -> Outcome:
    environment: Any = settings.ENVIRONMENT
    if not environment.mail_host:
        return Outcome(was_taken=False, error=NO_MAIL)
    drawn = json.loads(message.body)
    headers = {"Message-ID": rendering.message_id(message), "Auto-Submitted": "auto-generated"}
    if drawn["root"]:
        headers |= {"References": drawn["root"], "In-Reply-To": drawn["root"]}
    mail = EmailMessage(
        drawn["subject"], drawn["text"], environment.mail_from,
        secrets.decrypt(channel.target).split(", "), headers=headers,
    )  # fmt: skip
    mail.connection = get_connection(
        "django.core.mail.backends.smtp.EmailBackend",
        host=environment.mail_host, port=environment.mail_port, username=environment.mail_user,
        password=environment.mail_password, use_tls=environment.mail_tls == "starttls",
        use_ssl=environment.mail_tls == "tls", timeout=TRY_S,
    )  # fmt: skip
    try:
        mail.send()
    except smtplib.SMTPRecipientsRefused as refused:
        code, said = next(iter(refused.recipients.values()))
        return _refused(code, said)
    except smtplib.SMTPResponseException as refused:
        return _refused(refused.smtp_code, refused.smtp_error)
    except (OSError, smtplib.SMTPException) as broken:
        return Outcome(was_taken=False, error=f"The mail server: {broken}"[:500])
    return Outcome(was_taken=True, status=250)


NO_MAIL = (
    "This installation has no mail server. Set CLEARHOUSE_MAIL_HOST, see the how-to on "
    "notifications, and send it again."
)


def _refused(code: int, said: bytes | str) -> Outcome:
    raw = said if isinstance(said, bytes) else said.encode()
    return Outcome(
        was_taken=False, status=code, answer=_kept(raw), error="The mail server refused it."
    )


BY_KIND: dict[ChannelKind, Callable[[Message, Channel, Outside], Outcome]] = {
    ChannelKind.WEBHOOK: _webhook,
    ChannelKind.SLACK: _slack,
    ChannelKind.MAIL: _mail,
}
