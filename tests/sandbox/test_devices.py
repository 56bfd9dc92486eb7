"""The device server keeps to RFC 8628."""

import pytest

from sandbox.servers.devices import GRANT, SignIn
from tests.sandbox.world import World


def a_sign_in(answer: str = "") -> SignIn:
    return SignIn(user_code="BCDF-GHJK", ends_at=100.0, interval_s=5.0, answer=answer)


def error_of(sign_in: SignIn, now: float) -> str:
    answer = sign_in.token_reply(now)
    return answer.body.get("error", "") if answer.code == 400 else "none"


def test_nobody_has_answered_yet() -> None:
    assert error_of(a_sign_in(), 0.0) == "authorization_pending"


def test_a_poll_before_its_interval_is_slowed_down_by_five_seconds() -> None:
    sign_in = a_sign_in()
    assert [error_of(sign_in, now) for now in (0.0, 1.0, 9.0)] == [
        "authorization_pending",
        "slow_down",
        "slow_down",  # 8 seconds later, but the interval is 10 by now
    ]
    assert sign_in.interval_s == 15.0


def test_a_poll_at_its_interval_is_not_slowed_down() -> None:
    sign_in = a_sign_in()
    assert [error_of(sign_in, now) for now in (0.0, 5.0, 10.0)] == ["authorization_pending"] * 3


def test_a_code_ends_even_if_it_was_approved_too_late() -> None:
    assert error_of(a_sign_in(answer="approved"), 100.0) == "expired_token"


def test_an_approved_sign_in_brings_a_token() -> None:
    answer = a_sign_in(answer="approved").token_reply(1.0)
    assert answer.code == 200
    assert len(answer.body["access_token"]) >= 32


@pytest.fixture
def begun(world: World) -> dict:
    return world.ask("POST", "/device/code", {"interval": 0})[1]


def token(world: World, begun: dict) -> tuple[int, dict]:
    fields = {"grant_type": GRANT, "device_code": begun["device_code"]}
    return world.ask("POST", "/token", fields)


def test_a_person_completes_the_flow_once(world: World, begun: dict) -> None:
    assert token(world, begun)[1] == {"error": "authorization_pending"}
    approved = world.ask("POST", "/device/approve", {"user_code": begun["user_code"].lower()})
    assert approved == (200, {"answer": "approved"})
    assert token(world, begun)[0] == 200
    assert token(world, begun)[1] == {"error": "invalid_grant"}


def test_a_person_denies_it(world: World, begun: dict) -> None:
    world.ask("POST", "/device/approve", {"user_code": begun["user_code"], "deny": True})
    assert token(world, begun) == (400, {"error": "access_denied"})


def test_a_form_is_understood_as_the_standard_asks(world: World) -> None:
    code, begun = world.ask("POST", "/device/code", {})
    assert (code, begun["interval"], begun["expires_in"]) == (200, 5, 900)
    wrong = world.ask("POST", "/token", {"grant_type": "password"})
    assert wrong == (400, {"error": "unsupported_grant_type"})


def test_an_unknown_user_code_approves_nothing(world: World) -> None:
    assert world.ask("POST", "/device/approve", {"user_code": "é"})[0] == 404
