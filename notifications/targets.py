"""Where a channel sends to: checked when it is saved, and again at every try (S4).

A webhook goes to one host, by https; an admin may say that it is a local one, and then http and
private addresses are open to it, and only to it. What is saved is not resolved: names change, so
their addresses are judged by the try that connects to them.
"""

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from executors.http.addresses import NotAllowed, OutboundRules, judge_name, why_refused
from executors.http.targets import Target, UnfitUrl, read_url
from notifications.refusals import UnfitTarget
from notifications.vocabulary import ChannelKind

MAILS_MAX = 20


def rules_for(target: Target, *, may_be_local: bool) -> OutboundRules:
    """The outbound rules of one channel: its own host and port, nothing else."""
    return OutboundRules(
        hosts=(target.host,),
        private_hosts=(target.host,) if may_be_local else (),
        schemes=("https", "http") if may_be_local else ("https",),
        ports=(target.port,),
    )


def read(kind: ChannelKind, text: str, *, may_be_local: bool) -> tuple[str, str]:
    """The target as it is kept, and what pages may show of it. Raises UnfitTarget."""
    if kind is ChannelKind.MAIL:
        addresses = _mails(text)
        return addresses, addresses if len(addresses) <= 400 else addresses[:399] + "…"
    target = _url(text.strip(), may_be_local=may_be_local)
    return text.strip(), f"{target.origin}/…"


def _url(text: str, *, may_be_local: bool) -> Target:
    try:
        target = read_url(text)
        judge_name(target, rules_for(target, may_be_local=may_be_local))
    except (UnfitUrl, NotAllowed) as unfit:
        if text.startswith("http:") and not may_be_local:
            raise UnfitTarget(why="http is for local addresses only: write https.") from unfit
        raise UnfitTarget(why=str(unfit)) from unfit
    reason = why_refused(target.host, private=may_be_local) if target.is_literal else ""
    if reason:
        raise UnfitTarget(why=f"{target.host} may not be reached: {reason}.")
    return target


def _mails(text: str) -> str:
    addresses = [each.strip() for each in text.replace("\n", ",").split(",") if each.strip()]
    if not 1 <= len(addresses) <= MAILS_MAX:
        raise UnfitTarget(why=f"A channel has one to {MAILS_MAX} mail addresses.")
    for each in addresses:
        try:
            validate_email(each)
        except ValidationError:
            raise UnfitTarget(why=f"{each[:100]!r} is not a mail address.") from None
    return ", ".join(dict.fromkeys(addresses))
