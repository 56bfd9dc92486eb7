"""What admins do with channels. Each deed checks, changes, and keeps a row for the audit.

A secret is returned once and lies encrypted; the target does too. Nothing is sent from here: a
test and a message that is asked for again are rows that the notifier finds.
"""

from dataclasses import dataclass, field
from datetime import time, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import available_timezones

from django.db import IntegrityError, transaction

from ledger import secrets
from ledger.errors import Invalid, NotFound, PermissionMissing
from ledger.models import Workspace
from ledger.models.fields import ClockTimestamp
from ledger.permissions import Person, Right, roles_with
from ledger.vocabulary import RecoveryClass
from notifications import rendering, signing, targets
from notifications.models import Channel, ChannelChange, Line, Message
from notifications.refusals import ChannelNameTaken
from notifications.vocabulary import CHOSEN, ChannelKind, Dropped, MessageState

OLD_SECRET_SIGNS = timedelta(hours=24)
"""How long the old secret signs beside the new one, so that a receiver changes without a gap."""
CHANNELS_MAX = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a channel is asked to tell, and when. Times in seconds; quiet hours both or none."""

    name: str
    events: tuple[str, ...]
    tools: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    least_age_s: float = 0.0
    quiet_from: time | None = None
    quiet_to: time | None = None
    zone: str = "UTC"
    may_be_local: bool = False

    def columns(self) -> dict[str, Any]:
        return {
            "name": self.name, "events": list(self.events), "tools": list(self.tools),
            "classes": list(self.classes), "least_age_s": self.least_age_s,
            "quiet_from": self.quiet_from, "quiet_to": self.quiet_to, "zone": self.zone,
            "may_be_local": self.may_be_local,
        }  # fmt: skip

    def refuse_unless_sound(self) -> None:
        """Raises Invalid with the sentence of what does not fit."""
        if not self.events or set(self.events) - set(CHOSEN):
            raise Invalid(detail="A channel tells at least one event of those listed.")
        if set(self.classes) - set(RecoveryClass):
            raise Invalid(detail="A recovery class is one of those listed.")
        if (self.quiet_from is None) != (self.quiet_to is None):
            raise Invalid(detail="Quiet hours have a beginning and an end, or neither.")
        if self.quiet_from is not None and self.quiet_from == self.quiet_to:
            raise Invalid(detail="Quiet hours of a whole day tell nothing: switch it off.")
        if self.zone not in available_timezones():
            raise Invalid(detail=f"This installation knows no zone {self.zone[:64]!r}.")
        if not 0 <= self.least_age_s <= 7 * 86400:
            raise Invalid(detail="The least age lies between 0 and 7 days.")


@dataclass(frozen=True, slots=True)
class Made:
    """A new channel; `secret` is "" where its kind has none."""

    channel_id: UUID
    secret: str = field(repr=False)


def one_of(workspace_id: UUID, channel_id: UUID) -> Channel:
    """A channel of this workspace. Raises NotFound."""
    found = Channel.objects.filter(workspace=workspace_id, id=channel_id).first()
    if found is None:
        raise NotFound(noun="channel")
    return found


@transaction.atomic
def make(*, kind: ChannelKind, target: str, wanted: Wanted, grounds: str, by: Person) -> Made:
    """Make a channel, on. Raises UnfitTarget, ChannelNameTaken, Invalid, PermissionMissing."""
    _begin(by)
    wanted.refuse_unless_sound()
    if Channel.objects.filter(workspace=by.workspace_id).count() >= CHANNELS_MAX:
        raise Invalid(detail=f"A workspace has at most {CHANNELS_MAX} channels.")
    kept, shown = targets.read(kind, target, may_be_local=wanted.may_be_local)
    secret = signing.new_secret() if kind is ChannelKind.WEBHOOK else ""
    channel = _saved(
        Channel(
            workspace_id=by.workspace_id,
            kind=kind,
            target=secrets.encrypt(kept),
            shown=shown,
            secret=secrets.encrypt(secret) if secret else None,
            **wanted.columns(),
        )
    )
    _note(channel, "made", grounds, by, after=_said(channel))
    return Made(channel.id, secret)


@transaction.atomic
def change(*, channel_id: UUID, target: str, wanted: Wanted, grounds: str, by: Person) -> str:
    """Change what a channel tells; an empty `target` stays as it is. Its name is returned."""
    channel = _locked(channel_id, by)
    wanted.refuse_unless_sound()
    text = target or secrets.decrypt(channel.target)
    kept, channel.shown = targets.read(channel.kind, text, may_be_local=wanted.may_be_local)
    channel.target = secrets.encrypt(kept)
    for name, value in wanted.columns().items():
        setattr(channel, name, value)
    _saved(channel)
    _note(channel, "changed", grounds, by, after=_said(channel))
    return channel.name


@transaction.atomic
def renew_secret(*, channel_id: UUID, grounds: str, by: Person) -> str:
    """A new secret, returned once; for a day the old one signs too. Raises Invalid without one."""
    channel = _locked(channel_id, by)
    if channel.secret is None:
        raise Invalid(detail="Only a webhook is signed. Nothing was changed.")
    secret = signing.new_secret()
    Channel.objects.filter(id=channel.id).update(
        old_secret=channel.secret,
        old_secret_until=ClockTimestamp() + OLD_SECRET_SIGNS,
        secret=secrets.encrypt(secret),
    )
    _note(channel, "secret_renewed", grounds, by)
    return secret


@transaction.atomic
def switch(*, channel_id: UUID, on: bool, grounds: str, by: Person) -> str:
    """Switch a channel on or off; what waited when it went off is not told later."""
    channel = _locked(channel_id, by)
    if channel.is_on == on:
        raise Invalid(detail=f"It is {'on' if on else 'off'} already. Nothing was changed.")
    if on:
        Channel.objects.filter(id=channel.id).update(is_on=True, disabled_at=None, disabled_why="")
    else:
        silence(channel.id)
    _note(channel, "switched_on" if on else "switched_off", grounds, by)
    return channel.name


def silence(channel_id: UUID) -> None:
    """Switch a channel off, in the caller's transaction: what waits is dropped, or dead."""
    Channel.objects.filter(id=channel_id).update(is_on=False)
    Line.objects.filter(channel=channel_id, message=None, dropped="").update(dropped=Dropped.OFF)
    Message.objects.filter(channel=channel_id, state=MessageState.WAITING, is_asked=False).update(
        state=MessageState.DEAD, next_try_at=None, ended_at=ClockTimestamp()
    )


@transaction.atomic
def test(*, channel_id: UUID, by: Person) -> UUID:
    """Ask for a test message, which is sent although the channel may be off; its id."""
    channel = _locked(channel_id, by)
    message = rendering.a_test(channel)
    message.next_try_at, message.is_asked = ClockTimestamp(), True
    message.save(force_insert=True)
    _note(channel, "tested", "A test message.", by)
    return message.id


@transaction.atomic
def resend(*, message_id: UUID, by: Person) -> Message:
    """Ask for a message again: the same id and bytes, with all of its tries anew.

    Raises NotFound, and Invalid for one that still waits for its next try.
    """
    _begin(by)
    message = (
        Message.objects.select_for_update(of=("self",))
        .select_related("channel")
        .filter(workspace=by.workspace_id, id=message_id)
        .first()
    )
    if message is None:
        raise NotFound(noun="message")
    if message.state is MessageState.WAITING:
        raise Invalid(detail="This message is still being tried. Nothing was changed.")
    Message.objects.filter(id=message.id).update(
        state=MessageState.WAITING, tries=0, is_asked=True, next_try_at=ClockTimestamp(),
        ended_at=None,
    )  # fmt: skip
    _note(message.channel, "resent", "Sent again.", by, after=str(message))
    return message


def _begin(by: Person) -> None:
    if not by.may(Right.ADMINISTER):
        raise PermissionMissing(needed=f"the role {' or '.join(roles_with(Right.ADMINISTER))}")
    Workspace.objects.select_for_update().get(pk=by.workspace_id)


def _locked(channel_id: UUID, by: Person) -> Channel:
    _begin(by)
    return one_of(by.workspace_id, channel_id)


def _saved(channel: Channel) -> Channel:
    try:
        with transaction.atomic():
            channel.save()
    except IntegrityError as taken:
        if "channel_name" not in str(taken):
            raise
        raise ChannelNameTaken(name=channel.name) from None
    return channel


def _said(channel: Channel) -> str:
    """What the audit keeps of a channel: where to, and what of."""
    every = set(channel.events) == set(CHOSEN)
    parts = [f"{channel.kind} to {channel.shown}"]
    parts += ["every event"] if every else [f"events {', '.join(channel.events)}"]
    parts += [f"tools {', '.join(channel.tools)}"] if channel.tools else []
    parts += [f"classes {', '.join(channel.classes)}"] if channel.classes else []
    parts += [f"least age {channel.least_age_s:g} s"] if channel.least_age_s else []
    parts += ["local addresses allowed"] if channel.may_be_local else []
    return "; ".join(parts)[:1000]


def _note(channel: Channel, what: str, grounds: str, by: Person, *, after: str = "") -> None:
    ChannelChange.objects.create(
        workspace_id=by.workspace_id, channel=channel, what=what, about=channel.name,
        after=after, grounds=grounds, by_id=by.id, by_name=by.name,
    )  # fmt: skip
