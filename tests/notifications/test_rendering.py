"""What a message says by each kind: thin, escaped, with a link to a page and nothing to press."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.urls import resolve

from ledger import clock, ids
from ledger.permissions import Person
from notifications import rendering
from notifications.models import Channel, Message, Occurrence
from notifications.vocabulary import Event
from tests.notifications.telling import a_channel

pytestmark = pytest.mark.django_db
TARGETS = {"webhook": "https://hooks.example.com/x", "slack": "https://hooks.slack.com/s/T/B/X",
           "mail": "night@example.com, day@example.com"}  # fmt: skip
INCIDENT = ids.new()


def an_occurrence(number: int = 1, event: Event = Event.INCIDENT_OPENED, **more: Any) -> Occurrence:
    now = clock.now()
    facts = {"incident": ids.shown("incident", INCIDENT), "state": "ambiguous",
             "effect": "possible"}  # fmt: skip
    same = {"thread": f"incident:{INCIDENT}", "subject": str(INCIDENT), "tool": "mail.send",
            "recovery_class": "side_effect", "facts": facts, "at": now,
            "since": now - timedelta(minutes=42)}  # fmt: skip
    return Occurrence(id=number, event=event, key=str(number), **same | more)


def drawn(by: Person, kind: str, *rows: Occurrence) -> tuple[Channel, Message, Any]:
    channel = a_channel(by, TARGETS[kind], kind, may_be_local=False)
    message = rendering.message_of(channel, rows or [an_occurrence()])
    return channel, message, json.loads(message.body)


def many(count: int) -> list[Occurrence]:
    return [an_occurrence(n, thread=f"incident:{ids.new()}") for n in range(1, count + 1)]


def test_a_webhook_is_thin_and_names_type_time_and_ids(anna: Person) -> None:
    _, _, body = drawn(anna, "webhook")
    assert body.keys() == {"type", "timestamp", "data"}
    assert body["type"] == "incident.opened"
    assert body["timestamp"].endswith("Z")
    data = body["data"]
    assert (data["state"], data["effect"], data["tool"]) == ("ambiguous", "possible", "mail.send")
    assert data["link"] == f"http://127.0.0.1:8000/incidents/inc_{INCIDENT.hex}"


def test_a_digest_counts_all_and_carries_fifty(anna: Person) -> None:
    _, message, body = drawn(anna, "webhook", *many(60))
    assert (body["type"], body["data"]["count"], len(body["data"]["items"])) == ("digest", 60, 50)
    assert message.title == "60 notifications about 60 things"


def test_slack_is_escaped_in_text_and_blocks(anna: Person) -> None:
    _, _, body = drawn(anna, "slack", an_occurrence(tool="<!channel> & <https://evil.example|x>"))
    for text in (body["text"], body["blocks"][0]["text"]["text"]):
        assert "<!channel>" not in text
        assert "&lt;!channel&gt; &amp; &lt;https://evil.example|x&gt;" in text
    assert body["blocks"][0]["text"]["text"].count("<") == 1  # the link of ours


def test_a_long_digest_stays_below_slacks_limit_of_a_block(anna: Person) -> None:
    _, _, body = drawn(anna, "slack", *many(60))
    assert len(body["blocks"]) > 1
    assert all(len(each["text"]["text"]) <= 3000 for each in body["blocks"])


def test_mails_of_one_incident_have_one_subject_and_one_root(anna: Person) -> None:
    channel, _, first = drawn(anna, "mail")
    later = rendering.message_of(channel, [an_occurrence(2, Event.INCIDENT_RESOLVED)])
    second = json.loads(later.body)
    assert (first["subject"], first["root"]) == (second["subject"], second["root"])
    assert first["subject"] == f"[Clearhouse] inc_{INCIDENT.hex} mail.send, side_effect"
    assert "42 min" in first["text"]
    assert "All clear" in second["text"]


@pytest.mark.parametrize("kind", sorted(TARGETS))
def test_what_cannot_be_seen_or_turns_text_is_replaced(anna: Person, kind: str) -> None:
    hostile = "a\r\nBcc: x@evil.example\u202egpj\x00\x1b[31m"
    _, message, body = drawn(anna, kind, an_occurrence(tool=hostile))
    for character in ("\r", "\u202e", "\x00", "\x1b"):
        assert character not in json.dumps(body, ensure_ascii=False) + message.title
    assert "\n" not in body.get("subject", "")


@pytest.mark.parametrize("word", sorted(rendering.PAGES))
def test_every_link_leads_to_a_page_of_the_console(word: str) -> None:
    subject = str(INCIDENT) if word in rendering.SHOWN_AS else "int_1"
    link = rendering._link(f"{word}:{subject}", subject)
    assert resolve(link.removeprefix("http://127.0.0.1:8000")).url_name


def test_every_event_has_its_sentence() -> None:
    assert rendering.WHAT.keys() == set(Event)


def test_a_message_has_one_mail_id_whatever_the_try(anna: Person) -> None:
    _, message, _ = drawn(anna, "mail")
    assert rendering.message_id(message) == f"<ntf_{message.id.hex}@127.0.0.1>"
