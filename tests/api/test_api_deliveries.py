"""Transcripts and deliveries over HTTP: rendered, offered, confirmed, and nobody else's."""

import pytest

from ledger.models import Turn
from tests import builders, cast
from tests.api.callers import Caller, the_problem


@pytest.fixture
def turn(acme: cast.Acme) -> Turn:
    return builders.a_turn(builders.a_session(acme))


@pytest.fixture
def session(acme: cast.Acme, turn: Turn) -> str:
    """The address of a session with one settled call in its open turn."""
    builders.a_call(acme, "succeeded", tool_call_id="toolu_1", session_id=turn.session_id,
                    turn_id=turn.id)  # fmt: skip
    return f"/sessions/ses_{turn.session_id.hex}"


def test_a_session_is_given_out_with_its_manifest(ada: Caller, session: str) -> None:
    answer = ada.get(f"{session}/transcript?format=openai-chat")
    told = answer.json()
    assert [entry["role"] for entry in told["body"]] == ["assistant", "tool"]
    assert [line["kind"] for line in told["manifest"]] == ["real"]
    same = {"If-None-Match": answer.headers["ETag"]}
    assert ada.get(f"{session}/transcript?format=openai-chat", headers=same).status_code == 304
    other = ada.get(f"{session}/transcript?format=anthropic", headers=same)
    assert other.status_code == 200


@pytest.mark.parametrize(
    "query", ["", "?format=telex", "?format=mistral&profile=gemini", "?format=mistral&cap=1",
              "?format=mistral&copy=blue"],
)  # fmt: skip
def test_what_cannot_be_rendered_is_said(ada: Caller, session: str, query: str) -> None:
    the_problem(ada.get(f"{session}/transcript{query}"), 422, "validation")


def test_an_offer_is_made_read_and_confirmed(ada: Caller, turn: Turn, session: str) -> None:
    wanted = {"turn": f"turn_{turn.id.hex}", "mode": "append_output", "format": "openai-chat"}
    made = ada.post(f"{session}/deliveries", wanted)
    again = ada.post(f"{session}/deliveries", wanted)
    offer = made.json()
    assert (made.status_code, again.status_code) == (201, 200)
    assert again.json() == offer
    assert [entry["role"] for entry in offer["messages"]] == ["tool"]
    assert offer["undelivered"] == [item["call"] for item in offer["items"]]

    confirmed = ada.post(f"/deliveries/{offer['id']}/acknowledgement")
    twice = ada.post(f"/deliveries/{offer['id']}/acknowledgement")
    assert confirmed.json() == twice.json()
    assert ada.get(f"/deliveries/{offer['id']}").json()["acknowledged_at"] is not None
    assert ada.post(f"{session}/deliveries", wanted).json()["items"] == []

    [saw] = ada.get(f"{session}/turns/{wanted['turn']}/deliveries").json()["items"]
    assert (saw["kind"], saw["delivery"]) == ("real", offer["id"])
    verdict = ada.get(f"/calls/{saw['call']}/verdict").json()
    assert verdict["model_saw"]["deliveries"] == [offer["id"]]


def test_a_neighbour_sees_none_of_it(
    ada: Caller, mallory: Caller, turn: Turn, session: str
) -> None:
    wanted = {"turn": f"turn_{turn.id.hex}"}
    offer = ada.post(f"{session}/deliveries", wanted).json()["id"]
    for answer in (
        mallory.get(f"{session}/transcript?format=mistral"),
        mallory.post(f"{session}/deliveries", wanted),
        mallory.get(f"/deliveries/{offer}"),
        mallory.post(f"/deliveries/{offer}/acknowledgement"),
        mallory.get(f"{session}/turns/{wanted['turn']}/deliveries"),
    ):
        the_problem(answer, 404, "not_found")
