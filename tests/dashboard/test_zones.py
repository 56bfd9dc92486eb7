"""The zone of who looks holds on every page: histories, the timeline, attempts, audit, drills."""

import re
from pathlib import Path

import pytest
from django.test import Client

from dashboard import drills
from dashboard.models import Profile
from ledger import ids
from recovery.models import Incident
from tests import builders, cast
from tests.recovery import deciding

pytestmark = pytest.mark.django_db

DATED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})? \+05:30")


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    """An operator who reads all times in the zone of Kolkata."""
    Profile.objects.create(person=acme.olga, zone="Asia/Kolkata")
    client = Client()
    client.force_login(acme.olga)
    return client


def read(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def cells(page: str, css: str) -> list[str]:
    """The texts of the times in the cells of a class."""
    return re.findall(rf'class="{css}"[^>]*><time [^>]*>([^<]*)</time>', page)


def section(page: str, title: str) -> str:
    """A section of a page, from the id of its title on."""
    return page.partition(f'id="{title}"')[2].partition("</section>")[0]


def times(part: str) -> list[str]:
    return re.findall(r"<time [^>]*>([^<]*)</time>", part)


def test_the_events_and_the_timeline_of_a_call(acme: cast.Acme, olga: Client) -> None:
    call = builders.a_call(acme, "ambiguous")
    page = read(olga, f"/calls/{ids.shown('call', call.id)}")
    events = cells(page, "at")
    assert len(events) > 3
    assert all(DATED.fullmatch(each) for each in events)
    timeline = section(page, "timeline-title")
    assert "UTC</title>" not in timeline
    assert "+05:30</title>" in timeline
    assert DATED.fullmatch(times(timeline)[0]), "the day stands above times of day"


def test_the_proofs_of_the_three_questions(acme: cast.Acme, olga: Client) -> None:
    call = builders.a_call(acme, "ambiguous")
    page = read(olga, f"/calls/{ids.shown('call', call.id)}")
    titles = re.findall(r'<dd class="proof"><a href="[^"]*" title="([^"]*)"', page)
    assert titles
    assert all(DATED.search(each) for each in titles)


def test_the_facts_of_an_attempt(acme: cast.Acme, olga: Client) -> None:
    call = builders.a_call(acme, "ambiguous")
    page = read(olga, f"/calls/{ids.shown('call', call.id)}/attempts/1")
    facts = dict(re.findall(r'<th scope="row">([^<]*)</th><td><bdi>([^<]*)</bdi>', page))
    assert DATED.fullmatch(facts["claimed"])


def test_the_file_on_an_incident(acme: cast.Acme, olga: Client) -> None:
    call = deciding.ambiguous(acme)
    deciding.decide(acme, call, "happened")
    incident = Incident.objects.get(call=call)
    page = read(olga, f"/incidents/{ids.shown('incident', incident.id)}")
    for title in ("on-file", "given", "steps"):
        found = times(section(page, title))
        assert found
        assert all(DATED.fullmatch(each) for each in found)


def test_the_audit(acme: cast.Acme, olga: Client) -> None:
    deciding.decide(acme, deciding.ambiguous(acme), "happened")
    found = cells(read(olga, "/audit"), "at")
    assert found
    assert all(DATED.fullmatch(each) for each in found)


def test_drills(
    acme: cast.Acme, olga: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drills, "_folder", lambda: tmp_path)
    (tmp_path / "20260101T200000Z-tests").mkdir()
    assert "2026-01-02 01:30:00 +05:30" in read(olga, "/drills")
