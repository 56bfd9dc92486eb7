"""A message that was accepted is found at once, by its marker and by its Message-ID."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from sandbox.mailbox import MARKER_HEADER, Mailbox, shown


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    return Mailbox(tmp_path)


def a_message(marker: str = "mark-1", subject: str = "Hello") -> bytes:
    message = EmailMessage()
    message["From"] = "agent@sandbox.invalid"
    message["To"] = "olga@sandbox.invalid"
    message["Subject"] = subject
    message["Message-ID"] = f"<{marker}@clearhouse.invalid>"
    message[MARKER_HEADER] = marker
    message.set_content("text")
    return bytes(message)


def test_an_accepted_message_is_found_by_marker_and_by_message_id(mailbox: Mailbox) -> None:
    name = mailbox.accept(a_message())
    mailbox.accept(a_message("mark-2"))
    assert [entry.file for entry in mailbox.find(marker="mark-1")] == [name]
    assert [entry.file for entry in mailbox.find(message_id="<mark-1@clearhouse.invalid>")] == [
        name
    ]


def test_a_marker_nobody_sent_finds_nothing(mailbox: Mailbox) -> None:
    mailbox.accept(a_message())
    assert mailbox.find(marker="mark") == []


def test_two_messages_with_one_marker_are_two_oldest_first(mailbox: Mailbox) -> None:
    names = [mailbox.accept(a_message()) for _ in range(12)]
    assert [entry.file for entry in mailbox.find(marker="mark-1")] == names


def test_a_new_mailbox_on_the_same_folder_finds_the_same(mailbox: Mailbox, tmp_path: Path) -> None:
    mailbox.accept(a_message())
    assert shown(Mailbox(tmp_path).find()) == shown(mailbox.find())


def test_a_message_without_headers_is_kept_too(mailbox: Mailbox) -> None:
    body = b"\xff\x00 no headers at all"
    mailbox.accept(body)
    (entry,) = mailbox.find()
    assert (entry.marker, entry.size_bytes) == ("", len(body))


def test_a_subject_is_shown_as_it_was_written(mailbox: Mailbox) -> None:
    mailbox.accept(a_message(subject="Grüße, 你好"))
    assert mailbox.find()[0].subject == "Grüße, 你好"


def test_a_half_written_message_is_not_in_the_mailbox(mailbox: Mailbox, tmp_path: Path) -> None:
    name = mailbox.accept(a_message())
    (tmp_path / f".{name}.77.part").write_bytes(a_message()[:20])
    assert [entry.file for entry in mailbox.find()] == [name]
