"""Transcripts without a ledger: examined and repaired, bounded, and never kept."""

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps

from ledger import ids
from ledger.models import Session, Tool, Turn
from tests import builders, cast
from tests.api.callers import Caller, the_problem
from tests.api.served import Served

MIB = 2**20
BOTH = ("/transcripts/validation", "/transcripts/repair")
BY_COMMAND_LINE = "manage.py transcript repair FILE"


def user(text: str = "When is the shop open?") -> dict[str, Any]:
    return {"role": "user", "content": text}


def asks(*call_ids: str) -> dict[str, Any]:
    calls = [
        {"id": each, "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
        for each in call_ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answers(call_id: str, text: str = "nine to five") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


SOUND = [user(), asks("call_1"), answers("call_1"), user("Thanks.")]
ORPHAN = [user(), answers("call_1"), user("Go on.")]
UNANSWERED = [user(), asks("call_1"), user("Go on.")]


def sent(transcript: Any, **more: Any) -> dict[str, Any]:
    return {"format": "openai-chat", "transcript": transcript} | more


def codes(found: dict[str, Any]) -> list[str]:
    return [each["code"] for each in found["predicted"]]


def test_a_sound_transcript_is_sound_for_its_provider_and_comes_back_unchanged(
    ada: Caller,
) -> None:
    found = ada.post("/transcripts/validation", sent(SOUND, profile="openai-chat")).json()
    mended = ada.post("/transcripts/repair", sent(SOUND)).json()

    assert found["sound"]
    assert mended["transcript"] == SOUND
    assert not mended["report"]["changed"]


def test_every_provider_says_in_its_own_words_what_it_would_refuse(ada: Caller) -> None:
    found = ada.post("/transcripts/validation", sent(ORPHAN)).json()
    refusals = {name: each["predicted"] for name, each in found["profiles"].items()}

    assert not found["sound"]
    assert (found["counts"]["results"], found["counts"]["orphans"]) == (1, 1)
    assert all(refusals[name] for name in ("anthropic", "openai-chat", "mistral", "deepseek"))
    texts = {name: each[0]["text"] for name, each in refusals.items() if each}
    assert "preceeding message" in texts["openai-chat"]
    assert "preceding message" in texts["deepseek"]
    assert "`tool_use_id`" in texts["anthropic"]


def test_one_provider_is_asked_where_one_is_named(ada: Caller) -> None:
    found = ada.post("/transcripts/validation", sent(UNANSWERED, profile="anthropic")).json()

    assert found["profiles"].keys() == {"anthropic"}
    assert codes(found["profiles"]["anthropic"]) == ["unanswered_call"]


def test_a_repair_gives_the_copy_for_another_provider_and_says_what_it_did(ada: Caller) -> None:
    mended = ada.post("/transcripts/repair", sent(UNANSWERED, profile="anthropic")).json()
    again = ada.post(
        "/transcripts/validation",
        {"format": "anthropic", "profile": "anthropic", "transcript": mended["transcript"]},
    ).json()

    assert again["sound"]
    assert [each["kind"] for each in mended["report"]["changes"]].count("synthesized") == 1
    assert mended["report"]["after"]["unanswered"] == 0


def test_the_choices_of_a_repair_are_taken(ada: Caller) -> None:
    dropped = ada.post("/transcripts/repair", sent(UNANSWERED, unanswered="drop")).json()
    not_offered = ada.post("/transcripts/repair", sent(SOUND, offered_tools=["send"])).json()
    capped = ada.post(
        "/transcripts/repair", sent([user(), asks("c"), answers("c", "x" * 9000)], cap=2048)
    ).json()

    assert [each["role"] for each in dropped["transcript"]] == ["user", "user"]
    assert "call_dropped" in [each["kind"] for each in not_offered["report"]["changes"]]
    assert "bytes left out, sha256:" in capped["transcript"][2]["content"]


@pytest.fixture
def session(acme: cast.Acme, lookup: Tool) -> Session:
    """A session whose one call, `call_1`, has its result."""
    turn: Turn = builders.a_turn(builders.a_session(acme))
    builders.a_call(
        acme, "succeeded", tool=lookup, arguments={}, tool_call_id="call_1",
        session_id=turn.session_id, turn_id=turn.id,
    )  # fmt: skip
    return turn.session


def shown(session: Session) -> str:
    return ids.shown("session", session.id)


def calls_the_recorded_tool(call_id: str) -> dict[str, Any]:
    asked = asks(call_id)
    asked["tool_calls"][0]["function"]["name"] = "sandbox_lookup"
    return asked


def test_a_session_brings_the_result_that_the_transcript_lost(
    ada: Caller, session: Session
) -> None:
    lost = [user(), calls_the_recorded_tool("call_1"), user("Go on.")]

    mended = ada.post("/transcripts/repair", sent(lost, session=shown(session))).json()

    kinds = [each["kind"] for each in mended["report"]["changes"]]
    assert "replayed" in kinds
    assert "synthesized" not in kinds


def test_a_session_of_a_neighbour_reads_like_an_absent_one(
    ada: Caller, mallory: Caller, session: Session, person: Callable[..., Caller]
) -> None:
    of_acme = sent(UNANSWERED, session=shown(session))
    absent = sent(UNANSWERED, session=ids.shown("session", ids.new()))

    for who in (mallory, person("mallory")):
        for body in (of_acme, absent):
            the_problem(who.post("/transcripts/repair", body), 404, "not_found")
    the_problem(ada.post("/transcripts/repair", absent), 404, "not_found")
    assert person("vera").post("/transcripts/repair", of_acme).status_code == 200


def test_an_unreadable_transcript_is_refused_with_its_place(ada: Caller) -> None:
    for path in BOTH:
        for transcript, pointer in (
            ([user(), {"role": "nobody"}], "/transcript/1/role"),
            ({"messages": [7]}, "/transcript/messages/0"),
            ({"nothing": []}, "/transcript/messages"),
        ):
            problem = the_problem(ada.post(path, sent(transcript)), 422, "transcript_unreadable")
            assert [each["pointer"] for each in problem["errors"]] == [pointer]


def test_an_unknown_format_or_profile_is_refused_with_those_there_are(ada: Caller) -> None:
    for path in BOTH:
        for member in ("format", "profile"):
            problem = the_problem(ada.post(path, sent(SOUND) | {member: "x"}), 422, "validation")
            assert "openai-chat" in problem["detail"]
            assert problem["errors"][0]["pointer"] == f"/{member}"


def test_what_stays_refused_is_not_given_out(ada: Caller) -> None:
    """What the provider executed itself is not ours to mend (T8), so its fault remains (T23)."""
    alone = {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    transcript = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": [alone]},
        {"role": "user", "content": "Go on."},
    ]
    body = {"format": "anthropic", "profile": "anthropic", "transcript": transcript}

    problem = the_problem(ada.post("/transcripts/repair", body), 422, "transcript_unrepairable")

    assert problem["errors"][0]["detail"].startswith("server_tool_split: ")


def test_a_transcript_may_be_larger_than_any_other_body_up_to_ten_mebibytes(ada: Caller) -> None:
    large = sent([user("x" * 3 * MIB)])
    too_large = sent([user("x" * 11 * MIB)])

    for path in BOTH:
        assert ada.post(path, large).status_code == 200
        problem = the_problem(ada.post(path, too_large), 413, "payload_too_large")
        assert BY_COMMAND_LINE in problem["detail"]
    assert ada.post("/calls", large).status_code == 413


def test_too_many_entries_or_levels_are_refused_with_the_way_by_command_line(ada: Caller) -> None:
    deep: Any = "x"
    for _ in range(70):
        deep = [deep]
    for transcript in ([user()] * 20_001, [user() | {"content": deep}]):
        for path in BOTH:
            problem = the_problem(ada.post(path, sent(transcript)), 413, "payload_too_large")
            assert BY_COMMAND_LINE in problem["detail"]
    assert ada.post(BOTH[1], sent([user()] * 20_000)).status_code == 200


def rows() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models()}


def test_nothing_is_stored_and_nothing_of_it_is_logged(
    web: Served, ada: Caller, session: Session
) -> None:
    secret = "the-combination-is-4711"
    bodies = [
        sent([user(secret), *ORPHAN]),
        sent([user(secret), *UNANSWERED], session=shown(session)),
        sent([user(secret), {"role": secret}]),
    ]
    ada.get("/calls")
    before = rows()

    for path in BOTH:
        for body in bodies:
            ada.post(path, body)

    assert rows() == before
    assert secret not in web.logged
