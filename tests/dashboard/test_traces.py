"""A call's trace on the console: its id, a button that copies it, and a link where one is set."""

import pytest
from django.conf import settings

from tests import builders, cast
from tests.dashboard.test_call_page import address, client_of, page_of
from tests.recovery.deciding import incident_of

pytestmark = pytest.mark.django_db
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> str:
    """The link to the trace, where the installation names a tracing tool."""
    there = 'https://traces.example.org/?q={"id":"{trace_id}"}&x=<1>'
    monkeypatch.setattr(settings.ENVIRONMENT, "trace_url", there)
    return f'href="https://traces.example.org/?q={{&quot;id&quot;:&quot;{TRACE}&quot;}}&amp;x=&lt;1&gt;"'


def test_a_page_shows_the_trace_and_copies_it(acme: cast.Acme) -> None:
    page = page_of(builders.a_call(acme, traceparent=SENT), acme.vera)
    assert f'<span class="id">{TRACE}</span>' in page
    assert f'data-copy="{TRACE}"' in page
    assert SENT not in page


def test_a_page_links_the_trace_where_the_setting_says(acme: cast.Acme, linked: str) -> None:
    assert linked in page_of(builders.a_call(acme, traceparent=SENT), acme.vera)


def test_a_page_without_a_trace_says_nothing_of_one(acme: cast.Acme, linked: str) -> None:
    page = page_of(builders.a_call(acme), acme.vera)
    assert "traces.example.org" not in page
    assert "trace id" not in page


def test_an_incident_shows_the_trace_of_its_call(acme: cast.Acme, linked: str) -> None:
    call = builders.a_call(acme, "ambiguous", traceparent=SENT)
    at = f"/incidents/inc_{incident_of(call).id.hex}"
    assert linked in client_of(acme.vera).get(at, follow=True).content.decode()


def test_an_attempt_shows_what_it_sent_on(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "backing_off", traceparent=SENT)
    first = builders.claim_of(call)
    builders.past(call, "backoff")
    builders.fire()
    second = builders.claimed(call)
    page = client_of(acme.vera).get(address(call, "/attempts/2?compare=1")).content.decode()
    assert [str(each.traceparent) in page for each in (first, second)] == [True, True]
