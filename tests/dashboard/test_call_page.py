"""The page of one call: the same for every state, masked, bounded, and of this workspace only."""

import hashlib
import re
from typing import Any

import pytest
from django.db import connection
from django.template.defaultfilters import filesizeformat
from django.test import Client

from ledger import attempts, ids, offers, sessions
from ledger.models import Event, Interrupt, ToolCall
from ledger.vocabulary import Cause, DeliveryMode, Meaning
from tests import builders, cast
from tests.ledger.saying import place_of

pytestmark = pytest.mark.django_db

STATES = (
    "scheduled", "running", "parked", "backing_off", "paused", "interrupted", "ambiguous",
    "succeeded", "failed", "rejected", "cancelled", "expired",
)  # fmt: skip


def client_of(person: object) -> Client:
    client = Client()
    client.force_login(person)  # type: ignore[arg-type]
    return client


def address(call: ToolCall, rest: str = "") -> str:
    return f"/calls/{ids.shown('call', call.id)}{rest}"


def page_of(call: ToolCall, person: object) -> str:
    answer = client_of(person).get(address(call))
    assert answer.status_code == 200
    return answer.content.decode()


def in_state(acme: cast.Acme, state: str, **more: Any) -> ToolCall:
    recovery_class = "long_running" if state == "parked" else "side_effect"
    return builders.a_call(acme, state, recovery_class, **more)


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_a_page_with_three_labels_and_three_questions(
    acme: cast.Acme, state: str
) -> None:
    page = page_of(in_state(acme, state), acme.vera)
    labels = re.findall(r"<dt>(State|Effect|Shown to the model)</dt>", page)
    assert labels == ["State", "Effect", "Shown to the model"]
    assert page.count('class="question"') == 3
    assert 'role="img"' in page
    assert "all as they were written" in page


def test_what_was_asked_for_stands_before_the_events(acme: cast.Acme) -> None:
    page = page_of(in_state(acme, "succeeded"), acme.vera)
    places = [page.index(f'id="{name}-title"')
              for name in ("deadlines", "shown", "arguments", "outcome-1", "events")]  # fmt: skip
    assert places == sorted(places)


def test_causes_reasons_and_classes_are_words(acme: cast.Acme) -> None:
    page = page_of(in_state(acme, "ambiguous"), acme.vera)
    assert "Cause: <strong>worker lost</strong>. Reason: no proof." in page
    assert "side effect ·" in page


def test_an_event_names_the_person_agent_or_worker_who_made_it(acme: cast.Acme) -> None:
    call = in_state(acme, "scheduled")
    fields = {"once": "k", "grounds": "Called off."}
    client_of(acme.olga).post(address(call, "/cancellation"), fields)
    page = page_of(call, acme.vera)
    assert "<bdi>agent ada</bdi>" in page
    assert "<bdi>operator olga</bdi>" in page
    ran = page_of(in_state(acme, "succeeded"), acme.vera)
    assert "<bdi>worker worker-1</bdi>" in ran


def test_a_held_call_leads_to_its_question_and_to_the_call_that_it_waits_for(
    acme: cast.Acme,
) -> None:
    call = in_state(acme, "paused")
    hold = Interrupt.objects.get(call=call)
    page = page_of(call, acme.vera)
    assert f'<a href="/interrupts/{hold.id}">Open its question</a>' in page
    assert hold.waits_for is not None
    assert f'<a href="{address(hold.waits_for)}">call {hold.waits_for.id.hex[-8:]}</a>' in page


def test_the_page_of_a_neighbours_call_is_not_there(acme: cast.Acme, globex: cast.Globex) -> None:
    call = in_state(acme, "running")
    stored(call, b"ours")
    for rest in ("", "/attempts/1", "/attempts/1/partial", "/arguments", "/result"):
        assert client_of(globex.mallory_herself).get(address(call, rest)).status_code == 404
    for part in ("", "/events"):
        answer = client_of(globex.mallory_herself).get(f"/parts{address(call, part)}")
        assert answer.status_code == 404


def test_an_open_call_is_asked_for_again_and_a_settled_one_is_not(acme: cast.Acme) -> None:
    assert "every 2s, refresh" in page_of(in_state(acme, "running"), acme.vera)
    assert "every 10s, refresh" in page_of(in_state(acme, "ambiguous"), acme.vera)
    settled = page_of(in_state(acme, "succeeded"), acme.vera)
    assert 'id="call-live">' in settled


@pytest.mark.parametrize("part", ["", "/events"])
def test_an_unchanged_part_is_not_sent_again(acme: cast.Acme, part: str) -> None:
    call, client = in_state(acme, "running"), client_of(acme.vera)
    asked = f"/parts{address(call, part)}"
    tag = client.get(asked)["HX-PTag"]
    assert f'hx-ptag="{tag}"' in page_of(call, acme.vera)
    again = {"HX-PTag": tag}
    assert client.get(asked, headers=again).status_code == 304
    builders.cross(call)
    assert client.get(asked, headers=again).status_code == 200


def test_a_notice_that_a_model_is_shown_and_reads_comes_to_an_open_page(acme: cast.Acme) -> None:
    session = builders.a_session(acme)
    first = builders.a_turn(session)
    call = in_state(acme, "ambiguous", session_id=session.id, turn_id=first.id)
    client, asked, tags = client_of(acme.vera), f"/parts{address(call)}", set[str]()

    def drawn() -> str:
        answer = client.get(asked)
        tags.add(answer["HX-PTag"])
        return answer.content.decode()

    assert "Nothing is recorded as shown." in drawn()
    sessions.close_turn(turn=first, closed_as="interrupted")
    made = offers.offer(place_of(builders.a_turn(session)), mode=DeliveryMode.APPEND_BOTH)
    assert made.offer is not None
    assert "not read yet" in drawn()
    offers.acknowledge(workspace_id=acme.workspace.id, agent_id=acme.ada.id, offer_id=made.offer.id)
    assert "not read yet" not in drawn()
    assert len(tags) == 3


def test_secrets_in_arguments_results_and_errors_are_masked_everywhere(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", arguments={"api_key": "hunter2", "to": "ada"})
    builders.cross(call)
    builders.settle(call, {"token": "hunter2", "text": "password=hunter2"})
    failed = builders.a_call(acme, "running", arguments={"n": 1})
    builders.report(failed, Cause.VALIDATION, Meaning.REFUSED, message="password=hunter2 refused")
    client = client_of(acme.vera)
    seen = [client.get(address(call, rest)).content.decode()
            for rest in ("", "/attempts/1", "/arguments", "/result")]  # fmt: skip
    seen += [client.get(address(failed, rest)).content.decode() for rest in ("", "/attempts/1")]
    assert [text for text in seen if "hunter2" in text] == []
    assert "masked (api_key)" in seen[0]
    assert "masked (password)" in seen[4]


def test_a_field_that_the_tools_schema_marks_as_secret_is_masked(acme: cast.Acme) -> None:
    schema = {"type": "object", "properties": {"note": {"type": "string", "x-secret": True}}}
    tool = builders.a_tool(acme, input_schema=schema)
    call = builders.a_call(acme, tool=tool, arguments={"note": "plain words"})
    assert "plain words" not in page_of(call, acme.vera)


def test_a_download_is_a_file_and_nothing_that_opens(acme: cast.Acme) -> None:
    answer = client_of(acme.vera).get(address(in_state(acme, "succeeded"), "/result"))
    assert answer["Content-Disposition"].startswith("attachment; filename=")
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_handle_is_named_and_its_value_is_not_shown(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", "long_running")
    builders.cross(call)
    builders.park(call, "render-7741", kind="render")
    page = page_of(call, acme.vera)
    assert "in use" in page
    assert "render-7741" not in page


def test_the_page_costs_the_same_queries_however_long_its_story(
    acme: cast.Acme, django_assert_max_num_queries: Any
) -> None:
    short, long = in_state(acme, "running"), in_state(acme, "interrupted")
    for n in range(3):
        attempts.heartbeat(call_id=short.id, fence=1, cursor={"n": n}, partial=b"line\n")
    client = client_of(acme.olga)
    for call in (short, long):
        with django_assert_max_num_queries(46):
            client.get(address(call))


@pytest.mark.corrupts
def test_a_changed_event_is_named_as_one_that_differs(acme: cast.Acme) -> None:
    call = in_state(acme, "succeeded")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        Event.objects.filter(call=call, seq=2).update(facts='{"forged":1}')
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")
    page = page_of(call, acme.vera)
    assert "1 of" in page
    assert "<strong>differs</strong>" in page


def test_a_person_cancels_with_grounds_which_stand_in_the_event(acme: cast.Acme) -> None:
    call, client = in_state(acme, "scheduled"), client_of(acme.olga)
    fields = {"once": "one-press", "grounds": "The customer called it off."}
    answer = client.post(address(call, "/cancellation"), fields)
    assert answer.status_code == 302
    assert client.post(address(call, "/cancellation"), fields).status_code == 302
    assert builders.fresh(call).state == "cancelled"
    last = Event.objects.filter(call=call).latest("seq")
    assert (last.kind, last.actor) == ("cancelled", "operator")
    assert last.facts_json["grounds"] == "The customer called it off."


def test_cancelling_what_runs_asks_it_to_stop(acme: cast.Acme) -> None:
    call = in_state(acme, "running")
    answer = client_of(acme.olga).post(
        address(call, "/cancellation"), {"once": "k", "grounds": "Called off."}, follow=True
    )
    assert "cancel requested" in answer.content.decode()
    assert builders.fresh(call).state == "running"


@pytest.mark.parametrize(
    ("state", "says"),
    [("scheduled", "Nothing runs"), ("running", "An attempt may be under way"),
     ("parked", "No attempt runs"), ("succeeded", "")],
)  # fmt: skip
def test_a_person_reads_what_cancelling_would_do_where_there_is_anything_to_cancel(
    acme: cast.Acme, state: str, says: str
) -> None:
    page = page_of(in_state(acme, state), acme.olga)
    assert says in page
    assert ("Cancel this call" in page) == bool(says)


def test_a_call_in_doubt_has_no_attempt_under_way_once_it_has_ended(acme: cast.Acme) -> None:
    call = in_state(acme, "ambiguous")
    assert "No attempt runs" in page_of(call, acme.olga)


def test_a_refused_cancellation_keeps_what_was_typed(acme: cast.Acme) -> None:
    call = in_state(acme, "scheduled")
    empty = client_of(acme.olga).post(address(call, "/cancellation"), {"once": "a", "grounds": " "})
    assert empty.status_code == 422
    viewer = client_of(acme.vera).post(
        address(call, "/cancellation"), {"once": "b", "grounds": "Kept words."}
    )
    assert viewer.status_code == 403
    assert "Kept words." in viewer.content.decode()
    assert builders.fresh(call).state == "scheduled"


def test_a_viewer_reads_why_the_button_is_off_and_whom_to_ask(acme: cast.Acme) -> None:
    page = page_of(in_state(acme, "scheduled"), acme.vera)
    assert 'aria-disabled="true"' in page
    assert "Ask olga" in page


def stored(call: ToolCall, *pieces: bytes) -> bytes:
    """Partial output of the call's attempt, piece by piece; all of it."""
    for piece in pieces:
        attempts.heartbeat(call_id=call.id, fence=1, partial=piece)
    return b"".join(pieces)


def test_all_the_partial_output_of_an_attempt_can_be_had_with_its_size_and_digest(
    acme: cast.Acme,
) -> None:
    call, client = in_state(acme, "running"), client_of(acme.vera)
    whole = stored(call, *(b"%03d " % n + b"x" * 3_000 + b"\n" for n in range(70)))
    for page in (address(call), address(call, "/attempts/1")):
        text = client.get(page).content.decode()
        assert f'href="{address(call, "/attempts/1/partial")}"' in text
        assert f'title="sha256 {hashlib.sha256(whole).hexdigest()}"' in text
        assert f"the rest of {filesizeformat(len(whole))} is in the download" in text
    assert client.get(address(call, "/attempts/1/partial")).content == whole


def test_partial_output_is_shown_to_two_kilobytes_on_the_call_and_to_32_on_the_attempt(
    acme: cast.Acme,
) -> None:
    call, client = in_state(acme, "running"), client_of(acme.vera)
    stored(call, b"x" * 40_000)
    shown = [client.get(address(call, rest)).content.count(b"x" * 64) * 64
             for rest in ("", "/attempts/1")]  # fmt: skip
    assert shown[0] <= 2 * 1024 + 64
    assert 31 * 1024 < shown[1] <= 32 * 1024


def test_partial_output_is_masked_where_the_page_cuts_it_and_in_its_file(acme: cast.Acme) -> None:
    tool = builders.a_tool(acme, masked=["/arguments/card"])
    call = builders.a_call(acme, "running", tool=tool, arguments={"card": "4929 1234 5678"})
    stored(call, b"." * 2_040 + b"4929 1234 5678" + b"." * 9_000 + b"\xff")
    client = client_of(acme.vera)
    for rest in ("", "/attempts/1", "/attempts/1/partial"):
        assert "4929" not in client.get(address(call, rest)).content.decode(errors="replace")


def test_arguments_and_result_are_looked_at_raw_and_masked(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", arguments={"password": "hunter2", "to": "ada"})
    builders.cross(call)
    builders.settle(call, {"token": "hunter2", "sent": "<b>4711</b>"})
    client = client_of(acme.vera)
    for rest, said in (("/arguments", "ada"), ("/result", "&lt;b&gt;4711&lt;/b&gt;")):
        answer = client.get(address(call, f"{rest}?view=raw"))
        page = answer.content.decode()
        assert "Content-Disposition" not in answer
        assert '<pre class="raw">' in page
        assert said in page
        assert "hunter2" not in page
        assert f'href="{address(call)}"' in page


def test_there_is_no_file_of_partial_output_where_none_was_stored(acme: cast.Acme) -> None:
    call, client = in_state(acme, "running"), client_of(acme.vera)
    for number in (1, 2):
        assert client.get(address(call, f"/attempts/{number}/partial")).status_code == 404


def test_an_attempt_stands_beside_another(acme: cast.Acme) -> None:
    call = in_state(acme, "backing_off")
    builders.past(call, "backoff")
    builders.fire()
    builders.claimed(call)
    client = client_of(acme.vera)
    page = client.get(address(call, "/attempts/2?compare=1")).content.decode()
    assert "Attempt 1" in page
    assert "fence lost" not in page, "what neither has is left out"
    assert "connect failed" in page
    assert client.get(address(call, "/attempts/2?compare=nonsense")).status_code == 200
    missing = client.get(address(call, "/attempts/3"))
    assert missing.status_code == 404
    assert "Attempt 3 is not claimed yet" in missing.content.decode()


@pytest.mark.corrupts
def test_names_from_outside_are_text_on_every_page_of_a_call(acme: cast.Acme) -> None:
    call = in_state(acme, "running", tool_call_id="<b>id</b>\u202e")
    name = "<img src=x onerror=alert(1)>\u200b"
    ToolCall.objects.filter(id=call.id).update(tool=name)
    type(acme.ada).objects.filter(id=acme.ada.id).update(name=name)
    for path in (address(call), address(call, "/attempts/1"), "/calls", "/go?q=%3Cimg"):
        page = client_of(acme.vera).get(path).content.decode()
        assert "<img" not in page
        assert "<b>" not in page
        assert "\u202e" not in page
        assert "\u200b" not in page
