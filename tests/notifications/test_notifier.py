"""The program: started as it is in production, killed in the middle of a try, started again."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from notifications.models import Channel, Message, Occurrence
from tests import builders, cast, waits
from tests.browser.conftest import ROOT, _database_url
from tests.notifications.telling import Receiver, a_channel, due_again, messages_of

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def a_notifier(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`manage.py notifier` on this test's database."""
    environ = os.environ | {
        "DATABASE_URL": _database_url(),
        "CLEARHOUSE_DATA": str(folder),
        "CLEARHOUSE_DATABASE_POOL": "0",
        "CLEARHOUSE_BOOTSTRAP": "0",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }
    with (folder / "log").open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "manage.py", "notifier"], cwd=ROOT, env=environ, stdout=log, stderr=log
        )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def test_a_notifier_killed_in_its_try_loses_nothing_and_keeps_the_id(
    acme: cast.Acme, receiver: Receiver, tmp_path: Path
) -> None:
    anna = cast.as_decider(cast.a_person("anna", acme.workspace, "admin"))
    channel = a_channel(anna, receiver.address)
    receiver.held = threading.Event()
    with a_notifier(tmp_path) as first:
        builders.a_call(acme, in_state="ambiguous")
        waits.until(lambda: receiver.got, what="the receiver to be asked", limit_s=30)
        first.send_signal(signal.SIGKILL)
        first.wait()
    (message,) = messages_of(channel)
    assert (message.state, message.tries) == ("waiting", 1)
    receiver.held.set()
    receiver.held = None
    due_again(message)
    with a_notifier(tmp_path) as second:
        waits.until(
            lambda: Message.objects.filter(state="sent").exists(), what="it to be sent", limit_s=30
        )
        second.send_signal(signal.SIGTERM)
        assert second.wait(15) == 0
    one, other = receiver.got
    assert one.body == other.body
    assert one.headers["webhook-id"] == other.headers["webhook-id"]
    assert Message.objects.count() == Occurrence.objects.count() == 1
    assert [each.ended_at is None for each in message.deliveries.order_by("number")] == [
        True, False,
    ]  # fmt: skip


def test_two_notifiers_tell_each_thing_once(
    acme: cast.Acme, receiver: Receiver, tmp_path: Path
) -> None:
    anna = cast.as_decider(cast.a_person("anna", acme.workspace, "admin"))
    channel = a_channel(anna, receiver.address)
    with a_notifier(tmp_path), a_notifier(tmp_path):
        for count in range(1, 5):
            builders.a_call(acme, in_state="ambiguous")
            waits.until(lambda n=count: len(receiver.got) >= n, what="it to be told", limit_s=30)
    assert len({each.headers["webhook-id"] for each in receiver.got}) == len(receiver.got) == 4
    assert Message.objects.filter(channel=channel).count() == 4
    assert Channel.objects.get().taken_at is not None
