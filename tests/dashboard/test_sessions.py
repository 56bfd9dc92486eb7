"""The pages of sessions: the list, the transcript, what would be sent, cuts, binding, acts."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard import renderings
from ledger import ids, sessions
from ledger.errors import FenceLost
from ledger.models import Agent, Session, SessionChange, Turn
from ledger.transcripts.profiles import profiles
from recovery import rebinds
from tests import builders, cast
from tests.dashboard.conversations import SECRET, Story, a_story, compacted, drifted

pytestmark = pytest.mark.django_db


@pytest.fixture
def story(acme: cast.Acme) -> Story:
    return a_story(acme)


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    return signed_in(acme.olga)


def signed_in(person: object) -> Client:
    client = Client()
    client.force_login(person)  # type: ignore[arg-type]
    return client


def at(session: Session, word: str = "") -> str:
    return f"/sessions/{ids.shown('session', session.id)}{word}"


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.status_code)
    return answer.content.decode()


# The list


def test_the_list_says_what_waits_in_each_session(olga: Client, story: Story) -> None:
    drifted(story)
    page = text_of(olga, "/sessions")
    assert "Close the month" in page
    assert "turn 2 open" in page
    assert "2 unresolved in session" in page
    assert "drifted" in page


def test_the_list_says_when_a_session_was_opened_and_when_it_moved_last(
    olga: Client, story: Story
) -> None:
    page = text_of(olga, "/sessions")
    for head in ("Opened", "Last activity"):
        assert f'<th scope="col" role="columnheader" class="number">{head}</th>' in page
    assert page.count("</time> ago</td>") == 2


@pytest.mark.parametrize("show", ["open", "unresolved"])
def test_a_filter_keeps_the_sessions_it_names(
    olga: Client, story: Story, acme: cast.Acme, show: str
) -> None:
    other = builders.a_session(acme, label="Nothing yet")
    page = text_of(olga, f"/sessions?show={show}")
    assert ids.shown("session", story.session.id) in page
    assert ids.shown("session", other.id) not in page


@pytest.mark.parametrize("show", ["drift", "stopped", "imported"])
def test_a_filter_that_matches_nothing_says_so(olga: Client, story: Story, show: str) -> None:
    assert "Show all sessions" in text_of(olga, f"/sessions?show={show}")


def test_a_workspace_without_sessions_shows_the_line_that_opens_one(olga: Client) -> None:
    assert "No session has been opened yet" in text_of(olga, "/sessions")


@pytest.mark.parametrize("size", [3, 12])
def test_the_list_costs_the_same_however_long(
    olga: Client, acme: cast.Acme, size: int, django_assert_max_num_queries: object
) -> None:
    for n in range(size):
        builders.a_call(acme, session_id=builders.a_session(acme, label=f"s{n}").id)
    with django_assert_max_num_queries(16):  # type: ignore[operator]
        olga.get("/sessions")


def test_mallory_finds_no_session_of_acme(story: Story, globex: cast.Globex) -> None:
    mallory = signed_in(globex.mallory_herself)
    assert "Close the month" not in text_of(mallory, "/sessions")
    for word in ("", "/rendering", "/cuts", "/binding", "/stop", "/resume", "/interruption"):
        assert mallory.get(at(story.session, word)).status_code == 404


# The transcript


def test_a_call_stands_in_its_turn_with_its_labels_and_what_was_read(
    olga: Client, story: Story
) -> None:
    page = text_of(olga, at(story.session))
    for each in (story.settled, story.ambiguous, story.parked):
        assert f'id="{ids.shown("call", each.id)}"' in page
    assert "result, read" in page
    assert "notice, read" in page
    assert "not shown yet" in page
    assert "1 result, 1 notice, offered" in page
    assert "What the model saw in this turn" in page
    assert "as interrupted" in page


def test_no_text_of_anybody_becomes_markup_and_no_secret_is_shown(
    olga: Client, story: Story
) -> None:
    for word in ("", "/rendering", "/rendering?profile=gemini", "/cuts"):
        page = text_of(olga, at(story.session, word))
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert SECRET not in page


def test_the_first_unresolved_call_is_one_link_away(olga: Client, story: Story) -> None:
    answer = olga.get(at(story.session, "?unresolved=1"))
    assert answer["Location"].endswith(f"?turn=1#{ids.shown('call', story.ambiguous.id)}")


def test_a_compaction_is_a_bar_that_names_what_it_carried(olga: Client, story: Story) -> None:
    compacted(story)
    page = text_of(olga, at(story.session))
    assert "Compaction 1" in page
    assert "kept 2 unresolved calls" in page
    assert "told in a summary" in page
    assert "The order is paid." in page


def test_a_long_session_is_paged_by_turn(olga: Client, story: Story) -> None:
    sessions.close_turn(turn=story.second, closed_as="interrupted")
    for _ in range(10):
        turn = builders.a_turn(story.session)
        sessions.close_turn(turn=turn, closed_as="answered")
    newest = text_of(olga, at(story.session))
    assert 'id="turn-12"' in newest
    assert 'id="turn-1"' not in newest
    assert "Earlier turns" in newest
    assert 'id="turn-1"' in text_of(olga, at(story.session, "?turn=3"))


def test_the_transcript_costs_the_same_however_many_calls(
    olga: Client, story: Story, acme: cast.Acme, django_assert_max_num_queries: object
) -> None:
    for word in ("one", "two"):
        for n in range(4):
            builders.a_call(
                acme, "running", session_id=story.session.id, turn_id=story.second.id,
                model_step=2, position=n, tool_call_id=f"{word}{n}", arguments={word: n},
            )  # fmt: skip
        with django_assert_max_num_queries(51):  # type: ignore[operator]
            olga.get(at(story.session))


def test_the_head_is_drawn_anew_only_when_something_moved(olga: Client, story: Story) -> None:
    address = f"/parts{at(story.session)}?version={story.session.version}"
    first = olga.get(address)
    assert olga.get(address, headers={"HX-PTag": first["HX-PTag"]}).status_code == 304
    builders.poll(story.parked)
    again = olga.get(address, headers={"HX-PTag": first["HX-PTag"]})
    assert again.status_code == 200
    assert "<form" not in again.content.decode()


def test_the_head_says_whether_every_provider_would_take_the_session(
    olga: Client, story: Story
) -> None:
    assert f'hx-get="/parts{at(story.session)}/pairing"' in text_of(olga, at(story.session))
    text = text_of(olga, f"/parts{at(story.session)}/pairing")
    found = renderings.pairing(story.session)
    assert found is not None
    assert found.profiles == len(profiles())
    if found.refusing:
        assert f"{found.taking} of {found.profiles} providers would take it" in text
    else:
        assert f"well-formed for all {found.profiles} providers" in text
    assert "/rendering#pairing" in text


def test_a_long_session_is_not_checked_by_its_head(
    olga: Client, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renderings, "HEAD_CALLS_MAX", 0)
    part = text_of(olga, f"/parts{at(story.session)}/pairing")
    assert "checked for one provider at a time" in part


def test_an_empty_session_says_so(olga: Client, acme: cast.Acme) -> None:
    assert "No calls in this session" in text_of(olga, at(builders.a_session(acme)))


# What would be sent


@pytest.mark.parametrize("profile", ["anthropic", "openai-chat", "gemini", "mistral"])
def test_what_would_be_sent_shows_the_manifest_of_a_provider(
    olga: Client, story: Story, profile: str
) -> None:
    page = text_of(olga, at(story.session, f"/rendering?profile={profile}"))
    assert f"What would be sent to {profile}" in page
    assert ids.shown("call", story.settled.id) in page


def test_a_provider_that_nobody_knows_is_refused_with_the_names(olga: Client, story: Story) -> None:
    assert "There is no profile" in text_of(olga, at(story.session, "/rendering?profile=acme"))


def test_the_cuts_name_what_they_pass_and_give_no_token_out(olga: Client, story: Story) -> None:
    page = text_of(olga, at(story.session, "/cuts"))
    assert "turn 1, message" in page
    assert "What would be carried over (2)" in page
    assert re.findall(r"WyI[\w-]{40,}:[\w-]{20,}", page) == []


# Binding


def bound_anew(story: Story, **more: str) -> dict[str, str]:
    return {
        "once": "k1", "epoch": str(story.session.epoch), "deed": "preview",
        "working_directory": "/srv/other", "host": "box-1", "model": "m-1",
        "grounds": "The disk moved.", **more,
    }  # fmt: skip


def test_the_binding_page_shows_drift_and_history(olga: Client, story: Story) -> None:
    drifted(story)
    page = text_of(olga, at(story.session, "/binding"))
    assert "/srv/elsewhere" in page
    assert "refused" in page


def test_a_preview_says_who_would_be_fenced_and_changes_nothing(olga: Client, story: Story) -> None:
    answer = olga.post(at(story.session, "/binding"), bound_anew(story))
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "What would happen" in page
    assert "The disk moved." in page
    assert "Epoch 1 → 2" in page
    assert Session.objects.get(id=story.session.id).epoch == 1


@pytest.mark.parametrize("epoch", ["", "one", "²", "9" * 5000])
def test_a_form_without_the_epoch_that_was_looked_at_binds_nothing(
    olga: Client, story: Story, epoch: str
) -> None:
    form = bound_anew(story, deed="rebind", epoch=epoch)
    answer = olga.post(at(story.session, "/binding"), form)
    assert answer.status_code == 422
    assert "The form has lost the epoch that was looked at" in answer.content.decode()
    assert Session.objects.get(id=story.session.id).epoch == 1


def test_binding_anew_is_done_once_however_often_it_is_pressed(olga: Client, story: Story) -> None:
    for _ in range(2):
        answer = olga.post(at(story.session, "/binding"), bound_anew(story, deed="rebind"))
        assert answer.status_code == 302
    assert Session.objects.get(id=story.session.id).epoch == 2
    assert SessionChange.objects.filter(session=story.session, kind="rebound").count() == 1
    page = text_of(olga, at(story.session, "/binding"))
    assert "Bound anew, epoch 2" in page
    assert "/srv/other" in page


def test_what_a_preview_names_is_what_a_rebind_does(olga: Client, story: Story) -> None:
    waiting = builders.a_call(
        cast_of(story), session_id=story.session.id, turn_id=story.second.id, model_step=3
    )
    working = builders.a_call(
        cast_of(story), "running", session_id=story.session.id, turn_id=story.second.id,
        model_step=4, arguments={"n": 2},
    )  # fmt: skip
    seen = rebinds.foresee(story.session, rebinds.Binding(working_directory="/srv/other"))
    assert [each.id for each in seen.fenced] == [working.id]
    olga.post(at(story.session, "/binding"), bound_anew(story, deed="rebind"))
    change = SessionChange.objects.get(session=story.session, kind="rebound")
    assert change.facts["calls"]["fenced"] == [ids.shown("call", working.id)]
    not_run = {ids.shown("call", each.id) for each in seen.not_run}
    assert not_run <= set(change.facts["calls"]["not_run"])
    assert (ids.shown("call", waiting.id) in change.facts["calls"]["not_run"]) == (
        waiting.id in {each.id for each in seen.not_run}
    )


def cast_of(story: Story) -> cast.Acme:

    workspace = story.session.workspace
    return cast.Acme(
        workspace,
        ada=story.session.agent,
        ben=Agent.objects.get(workspace=workspace, name="ben"),
        olga=User.objects.get(username="olga"),
        vera=User.objects.get(username="vera"),
    )


def test_two_operators_at_once_the_second_keeps_the_typed_text(olga: Client, story: Story) -> None:
    olga.post(at(story.session, "/binding"), bound_anew(story, deed="rebind"))
    late = bound_anew(story, deed="rebind", once="k2", working_directory="/srv/third")
    answer = olga.post(at(story.session, "/binding"), late)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "epoch 2 holds now" in page
    assert "/srv/third" in page


def test_a_viewer_sees_why_the_buttons_are_off_and_is_refused(
    acme: cast.Acme, story: Story
) -> None:
    vera = signed_in(acme.vera)
    page = text_of(vera, at(story.session, "/binding"))
    assert 'aria-disabled="true"' in page
    assert "Ask olga" in page
    assert vera.post(at(story.session, "/binding"), bound_anew(story)).status_code == 403
    assert vera.post(at(story.session, "/stop"), {"once": "k", "grounds": "x"}).status_code == 403


# Acts


def test_stopping_names_what_it_would_do_and_then_does_it(olga: Client, story: Story) -> None:
    page = text_of(olga, at(story.session, "/stop"))
    assert "left to end" in page
    answer = olga.post(at(story.session, "/stop"), {"once": "k", "grounds": "Wrong books."})
    assert answer.status_code == 302
    assert Session.objects.get(id=story.session.id).stopped_at is not None
    assert "stopped" in text_of(olga, at(story.session))


def test_an_act_without_grounds_changes_nothing(olga: Client, story: Story) -> None:
    answer = olga.post(at(story.session, "/stop"), {"once": "k", "grounds": "  "})
    assert answer.status_code == 422
    assert "needs grounds" in answer.content.decode()
    assert Session.objects.get(id=story.session.id).stopped_at is None


def test_a_stopped_session_goes_on_by_a_second_act(olga: Client, story: Story) -> None:
    olga.post(at(story.session, "/stop"), {"once": "k", "grounds": "Wrong books."})
    olga.post(at(story.session, "/resume"), {"once": "k2", "grounds": "Right ones now."})
    assert Session.objects.get(id=story.session.id).stopped_at is None


def test_interrupting_the_open_turn_is_the_persons_own_act(olga: Client, story: Story) -> None:
    page = text_of(olga, at(story.session, "/interruption"))
    assert "left to go on" in page
    answer = olga.post(at(story.session, "/interruption"), {"once": "k", "grounds": "Enough."})
    assert answer.status_code == 302
    turn = Turn.objects.get(id=story.second.id)
    assert turn.interrupted_at is not None
    event = turn.events.get(kind="turn.interrupted")
    assert (str(event.by), event.facts["who"]) == ("operator", "olga")
    assert "by <bdi>olga</bdi>: <bdi>Enough.</bdi>" in text_of(olga, at(story.session))


@pytest.mark.parametrize("word", ["", "/rendering", "/cuts", "/binding", "/stop", "/interruption"])
def test_no_page_of_a_session_has_inline_style_or_script(
    olga: Client, story: Story, word: str
) -> None:
    page = text_of(olga, at(story.session, word))
    assert " style=" not in page
    assert "hx-on" not in page
    assert "<style" not in page


def test_a_result_is_no_error_because_its_model_read_a_notice_before(
    olga: Client, story: Story
) -> None:
    with pytest.raises(FenceLost):
        builders.settle(story.ambiguous, {"sent": 3})
    builders.fire()
    page = text_of(olga, at(story.session))
    assert builders.fresh(story.ambiguous).state == "succeeded"
    assert page.count("Result, ") == 2
    assert "an error of the tool" not in page
