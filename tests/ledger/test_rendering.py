"""A session rendered for every provider: valid, told from its calls, and without a side effect."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger import conversations, offers, rendering, sessions
from ledger.errors import Invalid
from ledger.models import Compaction, Session, ToolCall, Turn
from ledger.rendering import STORED, Transcript, Wanted
from ledger.transcripts.profiles import profile, profiles
from ledger.transcripts.validation import check
from ledger.vocabulary import DeliveryMode
from tests import builders
from tests.builders import a_call, a_tool
from tests.cast import Acme
from tests.ledger.saying import a_call_of, by_user, cut_off, place_of, reply, say

PROFILES = sorted(profiles())
STATES = sorted(str(state) for state in builders.WALKS)


@pytest.fixture
def turn(acme: Acme) -> Turn:
    return builders.a_turn(builders.a_session(acme))


def rendered(session: Session, name: str = "openai-chat", **more: Any) -> Transcript:
    return rendering.transcript(session, Wanted(profile=name, **more))


def kinds(found: Transcript) -> list[tuple[str, str | None]]:
    return [(str(line["kind"]), line["template"]) for line in found.manifest]


def in_turn(turn: Turn, **more: Any) -> dict[str, Any]:
    return {"session_id": turn.session_id, "turn_id": turn.id, **more}


def a_long_story(acme: Acme, turn: Turn) -> None:
    """A prompt, a reply with calls of every kind, a refused and a cut-off one, then more talk."""
    mail = a_tool(acme, "mail").name
    say(turn, by_user("Two mails."))
    reply(turn, a_call_of(mail, "a", {"path": "a"}), a_call_of("nobody", "b"), cut_off(mail, "c"))
    for step, state in enumerate(STATES, start=1):
        if state != "paused":
            a_call(acme, state, tool_call_id=f"toolu:{state}", model_step=step,
                   arguments={"path": state}, policy={"hold_dependents": False},
                   **in_turn(turn))  # fmt: skip
    say(turn, by_user("And now?"))


@pytest.mark.parametrize("name", PROFILES)
def test_every_state_renders_valid_for_every_provider(acme: Acme, turn: Turn, name: str) -> None:
    a_long_story(acme, turn)
    found = rendered(turn.session, name)
    provider = profile(name)
    assert check(provider.shape.read(found.body), provider) == []
    assert len(found.manifest) == len(STATES) - 1 + 3


def test_rendering_changes_no_row(acme: Acme, turn: Turn) -> None:
    a_long_story(acme, turn)
    before = everything()
    rendered(turn.session)
    assert everything() == before


def everything() -> dict[str, str]:
    """A digest of every table."""
    with connection.cursor() as cursor:
        found = {}
        for name in connection.introspection.table_names():
            cursor.execute(
                f"SELECT md5(coalesce(string_agg(r::text, '' ORDER BY r::text), '')) FROM {name} r"
            )
            found[name] = str(cursor.fetchone()[0])
        return found


def test_the_number_of_queries_does_not_grow_with_the_session(acme: Acme, turn: Turn) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            rendered(turn.session)
        return len(seen)

    a_long_story(acme, turn)
    first = queries()
    sessions.close_turn(turn=turn, closed_as="interrupted")
    a_second = builders.a_turn(turn.session)
    for step, state in enumerate(["ambiguous", "failed", "succeeded", "cancelled"] * 2):
        a_call(acme, state, model_step=step, arguments={"path": f"{step}"},
               policy={"hold_dependents": False}, **in_turn(a_second))  # fmt: skip
    assert queries() <= first


def test_equal_rows_give_equal_bytes(acme: Acme, turn: Turn) -> None:
    a_long_story(acme, turn)
    first, second = rendered(turn.session), rendered(turn.session)
    assert json.dumps(first.body) == json.dumps(second.body)
    assert first.etag == second.etag


def test_the_stored_copy_leaves_the_last_steps_calls_open(acme: Acme, turn: Turn) -> None:
    a_call(acme, "running", **in_turn(turn))
    assert kinds(rendered(turn.session)) == [("notice", "under_way")]
    assert kinds(rendered(turn.session, copy=STORED)) == [("open", None)]


def test_up_to_a_turn_leaves_out_what_came_after(acme: Acme, turn: Turn) -> None:
    say(turn, by_user("First."))
    sessions.close_turn(turn=turn, closed_as="answered")
    say(builders.a_turn(turn.session), by_user("Second."))
    assert "Second." in json.dumps(rendered(turn.session).body)
    assert "Second." not in json.dumps(rendered(turn.session, up_to=1).body)


def test_a_result_over_the_cap_is_cut_with_a_visible_marker(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, "running", crossed=True, **in_turn(turn))
    builders.settle(call, {"text": "x" * 5000})
    found = rendered(turn.session, cap_bytes=1000)
    assert "[truncated: " in json.dumps(found.body)
    assert found.manifest[0]["capped"]


def test_a_call_is_told_by_its_models_id_and_ours(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, "succeeded", tool_call_id="toolu_7", **in_turn(turn))
    [line] = rendered(turn.session).manifest
    assert (line["call"], line["provider_id"], line["kind"]) == (str(call), "toolu_7", "real")


@pytest.mark.parametrize("wanted", [{"name": "telex"}, {"cap_bytes": 1}, {"copy": "blue"}])
def test_what_cannot_be_asked_for_is_said(turn: Turn, wanted: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        rendered(turn.session, **wanted)


# After a compaction


def compacted(turn: Turn, *unresolved: ToolCall) -> Compaction:
    session = Session.objects.get(id=turn.session_id)
    last = turn.messages.order_by("-position").first()
    return Compaction.objects.create(
        workspace_id=session.workspace_id, session=session, number=1, through_turn=turn.number,
        through_position=last.position if last else 0, summary="The mail was asked for.",
        summary_sha256="0" * 64, version_before=session.version, version=session.version + 1,
        carry_over=[{"call": str(call), "said": f"{call}: running."} for call in unresolved],
        unresolved=[call.id for call in unresolved],
    )  # fmt: skip


@pytest.mark.parametrize("name", PROFILES)
def test_a_summary_stands_for_what_it_covers_headed_by_the_carry_over(
    acme: Acme, turn: Turn, name: str
) -> None:
    say(turn, by_user("Two mails."))
    reply(turn, a_call_of(a_tool(acme, "mail").name, "a", {"path": "a"}))
    call = ToolCall.objects.get()
    compacted(turn, call)
    say(turn, by_user("And now?"))
    text = json.dumps(rendered(turn.session, name).body)
    assert text.index(f"{call}: running.") < text.index("asked for.") < text.index("And now?")
    assert "Two mails." not in text


def test_a_result_after_a_carry_over_is_told_as_a_correction(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, "running", crossed=True, **in_turn(turn))
    say(turn, by_user("Go on."))
    compacted(turn, call)
    builders.settle(call, {"n": 7})
    sessions.close_turn(turn=turn, closed_as="interrupted")
    second = builders.a_turn(turn.session)
    made = offers.offer(place_of(second), mode=DeliveryMode.APPEND_BOTH)
    assert [each.shown.template for each in made.items] == ["correction"]
    assert f"{call}: running." in made.items[0].shown.text
    assert made.items[0].shown.text in [
        entry["content"] for entry in rendered(turn.session).body
    ] or made.items[0].shown.text in json.dumps(rendered(turn.session).body, ensure_ascii=False)


def test_a_result_that_a_summary_covered_undelivered_is_told_as_a_pair(
    acme: Acme, turn: Turn
) -> None:
    call = a_call(acme, "succeeded", tool_call_id="a", **in_turn(turn))
    say(turn, by_user("Go on."))
    compacted(turn)
    sessions.close_turn(turn=turn, closed_as="interrupted")
    second = builders.a_turn(turn.session)
    offers.offer(place_of(second), mode=DeliveryMode.APPEND_BOTH)
    said = conversations.read(turn.session)
    assert said.covers_call(call)
    roles = [entry["role"] for entry in rendered(turn.session).body]
    assert roles[-2:] == ["assistant", "tool"]


# What an offer gives to append


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("mode", list(DeliveryMode))
def test_an_offer_holds_pairs_or_outputs_alone(
    acme: Acme, turn: Turn, name: str, mode: DeliveryMode
) -> None:
    a_call(acme, "succeeded", tool_call_id="callabcd1", **in_turn(turn))
    made = offers.offer(place_of(turn), mode=mode)
    text = json.dumps(rendering.messages_of(made.items, mode, profile(name)))
    assert ("report.txt" in text) is (mode is DeliveryMode.APPEND_BOTH)
    assert "ok" in text
