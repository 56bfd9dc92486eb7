"""Notification channels: the list and a page of each for everybody, deeds for admins."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard import channels as presenters
from dashboard import deeds
from dashboard.forms import ChannelForm, Grounds, NewChannel
from dashboard.people import Visit, page
from dashboard.settings import TABS
from ledger import ids
from ledger.errors import LedgerError
from notifications import channels
from notifications.models import Channel


@page
def index(request: Visit) -> HttpResponse:
    """The channels of the workspace; a POST makes one, and shows its secret once."""
    if request.method != "POST":
        return _index(request, NewChannel())
    form = NewChannel(request.POST)
    if not form.is_valid():
        return _index(request, form, status=422)
    secret: list[str] = []

    def deed() -> dict[str, Any]:
        made = channels.make(**form.asked(), by=request.person)
        secret.append(made.secret)
        return {"channel": ids.shown("channel", made.channel_id)}

    try:
        done = deeds.pressed(request, deed)
    except LedgerError as refusal:
        form.add_error(None, str(refusal))
        return _index(request, form, status=refusal.http)
    if secret == [""]:
        said = "The channel is made and on. Send a test through it."
        return deeds.told(request, said, reverse("settings-channel", args=[done["channel"]]))
    return _once(request, form.cleaned_data["name"], secret, done["channel"])


def _index(request: Visit, form: NewChannel, *, status: int = 200) -> HttpResponse:
    workspace_id = request.person.workspace_id
    shown = {
        "channels": presenters.rows_of(workspace_id),
        "changes": presenters.changes_of(workspace_id),
        "form": form,
        "tabs": TABS,
    }
    return render(request, "dashboard/settings/channels.html", shown, status=status)


def _once(request: HttpRequest, name: str, secret: list[str], channel_id: str) -> HttpResponse:
    """The page that shows a secret; a second press finds none, because none is kept."""
    shown = {"name": name, "secret": secret[0] if secret else "", "tabs": TABS,
             "back": reverse("settings-channel", args=[channel_id])}  # fmt: skip
    return render(request, "dashboard/settings/channel_secret.html", shown, status=201)


@page
def detail(request: Visit, channel_id: str) -> HttpResponse:
    """One channel with what it was told; a POST changes it."""
    channel = _channel(request, channel_id)
    if request.method != "POST":
        return _detail(request, channel)
    form = ChannelForm(request.POST)

    def deed() -> dict[str, Any]:
        return {"name": channels.change(
            channel_id=channel.id, **form.asked(), by=request.person)}  # fmt: skip

    return _done(request, channel, form, deed, "Saved. What happens from now on is told this way.")


def _channel(request: Visit, channel_id: str) -> Channel:
    return channels.one_of(request.person.workspace_id, presenters.id_of(channel_id))


def _detail(
    request: Visit, channel: Channel, form: Any = None, *, status: int = 200
) -> HttpResponse:
    own = form if isinstance(form, ChannelForm) else ChannelForm(initial=presenters.typed(channel))
    shown = {
        "channel": channel,
        "kind": presenters.KINDS[channel.kind],
        "standing": presenters.standing_of(channel),
        "sent": presenters.messages_of(channel),
        "changes": presenters.changes_of(request.person.workspace_id, channel),
        "form": own,
        "refused": form if form is not None and form is not own else None,
        "typed": request.POST.get("grounds", "") if form is not own else "",
        "tabs": TABS,
    }
    return render(request, "dashboard/settings/channel.html", shown, status=status)


def _done(
    request: Visit, channel: Channel, form: Any, deed: Callable[[], dict[str, Any]], said: str
) -> HttpResponse:
    to = reverse("settings-channel", args=[str(channel)])
    return deeds.refused(
        request, form, deed, lambda status: _detail(request, channel, form, status=status)
    ) or deeds.told(request, said, to)


@page
@require_POST
def switch(request: Visit, channel_id: str) -> HttpResponse:
    """Switch a channel on or off."""
    channel, form = _channel(request, channel_id), Grounds(request.POST)
    on = request.POST.get("on") == "1"

    def deed() -> dict[str, Any]:
        return {"name": channels.switch(
            channel_id=channel.id, on=on, by=request.person, **form.cleaned_data)}  # fmt: skip

    said = "It is on again." if on else "It is off. What waited is not told later."
    return _done(request, channel, form, deed, said)


@page
@require_POST
def secret(request: Visit, channel_id: str) -> HttpResponse:
    """A new secret, shown once; the old one signs too for a day."""
    channel, form = _channel(request, channel_id), Grounds(request.POST)
    made: list[str] = []
    if not form.is_valid():
        return _detail(request, channel, form, status=422)

    def deed() -> dict[str, Any]:
        made.append(channels.renew_secret(
            channel_id=channel.id, by=request.person, **form.cleaned_data))  # fmt: skip
        return {"channel": str(channel)}

    try:
        deeds.pressed(request, deed)
    except LedgerError as refusal:
        form.add_error(None, str(refusal))
        return _detail(request, channel, form, status=refusal.http)
    return _once(request, channel.name, made, str(channel))


@page
@require_POST
def test(request: Visit, channel_id: str) -> HttpResponse:
    """Send a test message."""
    channel = _channel(request, channel_id)
    deeds.pressed(
        request, lambda: {"m": str(channels.test(channel_id=channel.id, by=request.person))}
    )
    said = "A test message is on its way. The log below shows how it ends: look again in a moment."
    return deeds.told(request, said, reverse("settings-channel", args=[str(channel)]))


@page
@require_POST
def resending(request: Visit, message_id: str) -> HttpResponse:
    """Send a message again, with its id."""
    wanted = ids.read("notification", message_id)

    def deed() -> dict[str, Any]:
        message = channels.resend(message_id=wanted, by=request.person)
        return {"channel": str(message.channel)}

    done = deeds.pressed(request, deed)
    said = "It is sent again, with the same id. The log below shows how it ends."
    return deeds.told(request, said, reverse("settings-channel", args=[done["channel"]]))
