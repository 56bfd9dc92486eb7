"""Telling in tests: channels of Acme, a receiver that listens, and one pass of everything."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ledger import ids
from ledger.models.fields import ClockTimestamp
from ledger.permissions import Person
from notifications import channels, notifier, sending
from notifications.channels import Wanted
from notifications.models import Channel, Line, Message
from notifications.transports import Outside
from notifications.vocabulary import CHOSEN, ChannelKind
from tests import cast

WHY = "The night shift wants it."


def an_admin(acme: cast.Acme, name: str = "anna") -> Person:
    return cast.as_decider(cast.a_person(name, acme.workspace, "admin"))


def wanted(name: str = "night shift", **more: Any) -> Wanted:
    return Wanted(**{"name": name, "events": tuple(map(str, CHOSEN)), "may_be_local": True, **more})


def a_channel(
    by: Person, target: str = "http://127.0.0.1:9/hook", kind: str = "webhook", **more: Any
) -> Channel:
    """A channel that tells everything."""
    made = channels.make(
        kind=ChannelKind(kind), target=target, wanted=wanted(**more), grounds=WHY, by=by
    )
    return Channel.objects.get(id=made.channel_id)


def messages_of(channel: Channel) -> list[Message]:
    return list(Message.objects.filter(channel=channel).order_by("made_at", "id"))


def told(channel: Channel) -> list[str]:
    """The events of the messages made so far, in order."""
    return [each.event for each in messages_of(channel)]


def a_pass(*, send: bool = False) -> None:
    """What the notifier does in one second; with `send` every message is tried once too."""
    notifier.prepare()
    if send:
        send_all()


def send_all(outside: Outside | None = None) -> int:
    """Try everything that is due, channel by channel, in this thread."""
    return sum(sending.send_due(each, outside or Outside()) for each in sending.channels_due())


def due_again(message: Message) -> None:
    """Let the next try of a message be due, by moving the row."""
    Message.objects.filter(id=message.id, state="waiting").update(next_try_at=ClockTimestamp())


def minutes_pass(channel: Channel, minutes: float) -> None:
    """Let minutes go by for what a channel was told and what waits for it."""
    past = timedelta(minutes=minutes)
    for message in messages_of(channel):
        Message.objects.filter(id=message.id).update(made_at=message.made_at - past)
    for line in Line.objects.filter(channel=channel):
        Line.objects.filter(id=line.id).update(due_at=line.due_at - past)


@dataclass
class Got:
    """One request as the receiver read it."""

    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A server on loopback: it keeps what it gets and answers what it is told to."""

    address: str = ""
    status: int = 204
    answer: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    got: list[Got] = field(default_factory=list)
    held: threading.Event | None = None
    """Where set, an answer waits for it."""


@contextmanager
def a_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(
                Got({name.lower(): value for name, value in self.headers.items()}, body)
            )
            if receiver.held is not None:
                receiver.held.wait(20)
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(receiver.answer)))
            self.end_headers()
            self.wfile.write(receiver.answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    receiver.address = f"http://127.0.0.1:{server.server_port}/hook/{ids.new().hex}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        if receiver.held is not None:
            receiver.held.set()
        server.shutdown()
        server.server_close()
        thread.join()
