"""The pages of notification channels: who may press, what is shown once, what never."""

import re
from typing import Any

import pytest
from django.test import Client

from ledger import secrets
from notifications.models import Channel, ChannelChange, Delivery, Message
from tests import builders, cast
from tests.dashboard.test_settings_pages import secret_on, signed_in
from tests.notifications import telling
from tests.notifications.telling import a_channel, a_pass, messages_of, send_all

pytestmark = pytest.mark.django_db

SLACK = "https://hooks.slack.com/services/T0/B0/canary-of-acme"
NEW = {
    "kind": "webhook", "name": "night shift", "target": "https://hooks.example.com/canary-of-acme",
    "events": ["incident.opened", "review.past"], "least_age_min": "0", "grounds": "Nights.",
    "once": "k1",
}  # fmt: skip


@pytest.fixture
def anna(acme: cast.Acme) -> Client:
    """The admin of Acme, signed in."""
    return signed_in(cast.a_person("anna", acme.workspace, "admin"))


@pytest.fixture
def channel(acme: cast.Acme) -> Channel:
    """A channel of Acme, made by another admin, with a message that nobody took."""
    made = a_channel(telling.an_admin(acme, "alma"))
    builders.a_call(acme, in_state="ambiguous")
    a_pass()
    send_all()
    return made


def page_of(client: Client, channel: Channel) -> str:
    return client.get(f"/settings/notifications/{channel}").content.decode()


def test_a_new_webhook_shows_its_secret_once(anna: Client) -> None:
    answer = anna.post("/settings/notifications", NEW)
    assert answer.status_code == 201
    made = Channel.objects.get()
    assert made.secret is not None
    assert secret_on(answer) == secrets.decrypt(made.secret)
    assert secret_on(answer).startswith("whsec_")
    again = anna.post("/settings/notifications", NEW)
    assert secret_on(again) == ""
    assert Channel.objects.count() == 1


@pytest.mark.parametrize(
    ("kind", "target"), [("slack", SLACK), ("mail", "night@example.com")], ids=["slack", "mail"]
)
def test_what_is_not_signed_has_no_secret_to_show(anna: Client, kind: str, target: str) -> None:
    answer = anna.post("/settings/notifications", NEW | {"kind": kind, "target": target})
    assert answer.status_code == 302
    assert answer["Location"] == f"/settings/notifications/{Channel.objects.get()}"
    assert Channel.objects.get().secret is None


def test_a_target_and_a_secret_are_on_no_page_and_not_in_the_audit(
    anna: Client, acme: cast.Acme
) -> None:
    anna.post("/settings/notifications", NEW | {"kind": "slack", "target": SLACK})
    made = Channel.objects.get()
    for path in ("/settings/notifications", f"/settings/notifications/{made}", "/audit"):
        html = anna.get(path).content.decode()
        assert "canary" not in html
    assert "hooks.slack.com/…" in page_of(anna, made)
    assert b"canary" not in bytes(made.target)
    assert "canary" not in str(ChannelChange.objects.values())
    assert "notifications: made" in anna.get("/audit").content.decode()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"target": "http://hooks.example.com/x"}, "write https"),
        ({"target": "https://127.0.0.1/x"}, "may not be reached: loopback"),
        ({"target": "https://169.254.169.254/", "may_be_local": "on"}, "cloud metadata"),
        ({"target": "https://metadata.google.internal/"}, "metadata name"),
        ({"target": "https://user:pw@hooks.example.com/"}, "user name or password"),
        ({"kind": "mail", "target": "night@example.com, nonsense"}, "is not a mail address"),
        ({"kind": "mail", "target": "a@b.example\r\nBcc: b@c.example"}, "is not a mail address"),
        ({"events": []}, "Choose at least one event"),
        ({"quiet_from": "22:00"}, "a beginning and an end"),
    ],
    ids=["http", "loopback", "metadata by number", "metadata by name", "userinfo", "no mail",
         "a header in a mail", "no event", "half of quiet hours"],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_sentence(
    anna: Client, typed: dict[str, Any], said: str
) -> None:
    answer = anna.post("/settings/notifications", NEW | typed)
    assert answer.status_code in (400, 409, 422)
    assert said in answer.content.decode()
    assert not Channel.objects.exists()


def test_two_channels_have_two_names(anna: Client) -> None:
    anna.post("/settings/notifications", NEW)
    answer = anna.post("/settings/notifications", NEW | {"once": "k2"})
    assert answer.status_code == 409
    assert "night shift" in answer.content.decode()


def test_a_viewer_reads_all_of_it_and_can_press_nothing(acme: cast.Acme, channel: Channel) -> None:
    vera = signed_in(acme.vera)
    pages = (page_of(vera, channel), vera.get("/settings/notifications").content.decode())
    html = "".join(each.partition("<main")[2].partition("</main>")[0] for each in pages)
    assert "night shift" in html
    buttons = re.findall(r'<button class="(?:act|quiet)" type="submit"[^>]*>', html)
    assert len(buttons) >= 5
    assert all('aria-disabled="true"' in each for each in buttons)
    assert "Ask alma" in html


@pytest.mark.parametrize("part", ["", "/switch", "/secret", "/test"])
def test_a_viewer_who_posts_all_the_same_is_refused(
    acme: cast.Acme, channel: Channel, part: str
) -> None:
    before = ChannelChange.objects.count()
    answer = signed_in(acme.vera).post(f"/settings/notifications/{channel}{part}", NEW)
    assert answer.status_code == 403
    assert ChannelChange.objects.count() == before


def test_a_neighbour_finds_no_channel_and_no_message(globex: cast.Globex, channel: Channel) -> None:
    mallory = signed_in(globex.mallory_herself)
    assert mallory.get(f"/settings/notifications/{channel}").status_code == 404
    for part in ("", "/switch", "/secret", "/test"):
        answer = mallory.post(f"/settings/notifications/{channel}{part}", NEW)
        assert answer.status_code == 404
    (message,) = messages_of(channel)
    assert mallory.post(f"/settings/messages/{message}/resending", NEW).status_code == 404


def test_a_change_keeps_the_target_where_none_is_typed(anna: Client, channel: Channel) -> None:
    typed = NEW | {"target": "", "name": "day shift", "may_be_local": "on"}
    assert anna.post(f"/settings/notifications/{channel}", typed).status_code == 302
    now = Channel.objects.get()
    assert (now.name, now.events) == ("day shift", ["incident.opened", "review.past"])
    assert secrets.decrypt(now.target) == secrets.decrypt(channel.target)


def test_a_renewed_secret_is_shown_once_and_the_old_one_signs_on(
    anna: Client, channel: Channel
) -> None:
    answer = anna.post(f"/settings/notifications/{channel}/secret", {"grounds": "x", "once": "k"})
    now = Channel.objects.get()
    assert now.secret is not None
    assert now.old_secret is not None
    assert secret_on(answer) == secrets.decrypt(now.secret)
    assert bytes(now.old_secret) == bytes(channel.secret or b"")


def test_a_test_is_sent_once_however_often_it_is_pressed(anna: Client, channel: Channel) -> None:
    for _ in range(2):
        anna.post(f"/settings/notifications/{channel}/test", {"once": "k"})
    assert Message.objects.filter(event="test").count() == 1


def test_the_log_shows_each_try_and_its_answer_as_text(anna: Client, channel: Channel) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    Delivery.objects.update(answer=hostile, status=503)
    html = page_of(anna, channel)
    assert "Try 1" in html
    assert "status 503" in html
    assert "<script>alert" not in html
    assert "\u202e" not in html


def test_a_message_that_was_given_up_can_be_sent_again(anna: Client, channel: Channel) -> None:
    off = {"grounds": "Maintenance.", "on": "0", "once": "k"}
    anna.post(f"/settings/notifications/{channel}/switch", off)
    (message,) = messages_of(channel)
    assert message.state == "dead"
    assert "Send it again" in page_of(anna, channel)
    anna.post(f"/settings/messages/{message}/resending", {"once": "k"})
    (message,) = messages_of(channel)
    assert message.state == "waiting"


def test_a_page_makes_the_same_queries_however_many_messages(
    anna: Client, channel: Channel, acme: cast.Acme, django_assert_max_num_queries: Any
) -> None:
    for _ in range(4):
        builders.a_call(acme, in_state="ambiguous")
        a_pass()
    send_all()
    with django_assert_max_num_queries(22):
        page_of(anna, channel)
