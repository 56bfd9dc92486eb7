"""Mail against the sandbox's SMTP server: kept on disk there, threaded, tried again."""

from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

import pytest
from django.conf import settings

from ledger.permissions import Person
from notifications.models import Channel, Message
from standalone.ports import free_port
from tests import builders, cast
from tests.notifications.telling import a_channel, a_pass, due_again, messages_of, send_all
from tests.notifications.test_sources import give_up
from tests.recovery import deciding
from tests.sandbox.world import World, a_world

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with a_world(tmp_path_factory.mktemp("sandbox")) as found:
        yield found


@pytest.fixture(autouse=True)
def _mails_go_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"mail_host": "127.0.0.1", "mail_port": world.ports.smtp}.items():
        monkeypatch.setattr(settings.ENVIRONMENT, name, value)


def mails_to(world: World, address: str) -> list[EmailMessage]:
    """What the mailbox holds for an address, oldest first."""
    found = [message_from_bytes(file.read_bytes(), policy=policy.default)
             for file in sorted(Path(world.data).rglob("*.eml"))]  # fmt: skip
    return [each for each in found if address in str(each["To"])]


def mailing(anna: Person, address: str) -> Channel:
    return a_channel(anna, address, "mail")


def fresh(message: Message) -> Message:
    return Message.objects.get(id=message.id)


def test_an_alarm_and_its_all_clear_are_one_thread(
    acme: cast.Acme, anna: Person, world: World
) -> None:
    mailing(anna, "thread@example.com, second@example.com")
    call = deciding.ambiguous(acme)
    a_pass(send=True)
    give_up(acme, call)
    a_pass(send=True)
    alarm, clear = mails_to(world, "thread@example.com")
    assert alarm["Subject"] == clear["Subject"]
    assert alarm["References"] == clear["References"] == clear["In-Reply-To"]
    assert alarm["Message-ID"] != clear["Message-ID"]
    assert alarm["To"] == "thread@example.com, second@example.com"
    assert alarm["Auto-Submitted"] == "auto-generated"
    assert alarm.get_content_type() == "text/plain"
    assert f"/incidents/inc_{deciding.incident_of(call).id.hex}" in alarm.get_content()
    assert "All clear" in clear.get_content()


def test_a_connection_that_breaks_is_tried_again_with_the_same_id(
    acme: cast.Acme, anna: Person, world: World
) -> None:
    channel = mailing(anna, "drop@example.com")
    builders.a_call(acme, in_state="ambiguous")
    a_pass(send=True)
    (message,) = messages_of(channel)
    assert message.state == "waiting"
    due_again(message)
    send_all()
    first, second = mails_to(world, "drop@example.com")
    assert first["Message-ID"] == second["Message-ID"] == f"<{message}@127.0.0.1>"


@pytest.mark.parametrize("local", ["refuse-550", "refuse-after-451"])
def test_what_the_server_refuses_stands_in_the_log_with_its_code(
    acme: cast.Acme, anna: Person, local: str
) -> None:
    channel = mailing(anna, f"{local}@example.com")
    builders.a_call(acme, in_state="ambiguous")
    a_pass(send=True)
    (message,) = messages_of(channel)
    delivery = message.deliveries.get()
    assert delivery.status == int(local[-3:])
    assert "sandbox refuses" in delivery.answer
    assert message.state == "waiting"


def test_a_hostile_name_adds_no_header(acme: cast.Acme, anna: Person, world: World) -> None:
    channel = mailing(anna, "hostile@example.com")
    builders.a_call(acme, in_state="ambiguous")
    a_pass()
    (message,) = messages_of(channel)
    assert "\\r" not in message.body
    send_all()
    (mail,) = mails_to(world, "hostile@example.com")
    assert mail["Bcc"] is None


def test_without_a_server_the_log_says_what_to_set(
    acme: cast.Acme, anna: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.ENVIRONMENT, "mail_host", "")
    channel = mailing(anna, "nowhere@example.com")
    builders.a_call(acme, in_state="ambiguous")
    a_pass(send=True)
    assert "CLEARHOUSE_MAIL_HOST" in messages_of(channel)[0].deliveries.get().error


def test_a_server_that_is_away_is_a_failed_try(
    acme: cast.Acme, anna: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.ENVIRONMENT, "mail_port", free_port())
    channel = mailing(anna, "away@example.com")
    builders.a_call(acme, in_state="ambiguous")
    a_pass(send=True)
    (message,) = messages_of(channel)
    assert fresh(message).state == "waiting"
    assert "refused" in message.deliveries.get().error
