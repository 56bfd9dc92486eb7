"""The mail server does what a recipient's address tells it to."""

import smtplib
import time
from contextlib import suppress

import pytest

from sandbox.mailbox import MARKER_HEADER
from tests.sandbox.world import World


def send(world: World, to: str, marker: str) -> tuple[int, bytes]:
    with smtplib.SMTP("127.0.0.1", world.ports.smtp, timeout=10) as line:
        line.ehlo()
        line.mail("agent@sandbox.invalid")
        code, said = line.rcpt(to)
        if code >= 400:
            return code, said
        return line.data(f"{MARKER_HEADER}: {marker}\r\n\r\ntext")


def kept(world: World, marker: str) -> int:
    return len(world.ask("GET", f"/mailbox?marker={marker}")[1])


def test_ordinary_mail_is_kept_before_it_is_answered(world: World) -> None:
    code, said = send(world, "olga@sandbox.invalid", "plain")
    assert code == 250
    (entry,) = world.ask("GET", "/mailbox?marker=plain")[1]
    assert entry["file"] in said.decode()


@pytest.mark.parametrize(("local_part", "messages"), [("drop", 1), ("drop-early", 0)])
def test_a_dropped_connection_leaves_the_sender_without_an_answer(
    world: World, local_part: str, messages: int
) -> None:
    with pytest.raises((smtplib.SMTPServerDisconnected, ConnectionResetError)):
        send(world, f"{local_part}@sandbox.invalid", local_part)
    assert kept(world, local_part) == messages


@pytest.mark.parametrize("code", [450, 550])
def test_a_recipient_is_refused_with_the_named_code(world: World, code: int) -> None:
    assert send(world, f"refuse-{code}@sandbox.invalid", f"refused-{code}")[0] == code
    assert kept(world, f"refused-{code}") == 0


def test_a_message_is_refused_after_it_was_sent(world: World) -> None:
    assert send(world, "refuse-after-554@sandbox.invalid", "refused-after")[0] == 554
    assert kept(world, "refused-after") == 0


def test_a_slow_answer_comes_after_the_message_is_kept(world: World) -> None:
    began = time.monotonic()
    assert send(world, "slow-1@sandbox.invalid", "slow")[0] == 250
    assert time.monotonic() - began >= 1
    assert kept(world, "slow") == 1


def test_a_hundred_messages_of_one_dialogue_are_all_kept(world: World) -> None:
    with smtplib.SMTP("127.0.0.1", world.ports.smtp, timeout=10) as line, suppress(StopIteration):
        for n in range(100):
            line.sendmail(
                "a@sandbox.invalid", f"b{n}@sandbox.invalid", f"{MARKER_HEADER}: many\r\n"
            )
    assert kept(world, "many") == 100
