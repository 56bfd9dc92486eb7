"""The audit over the API: for a login and for a key that may export, masked for both, in pages."""

from collections.abc import Callable

from tests import builders, cast
from tests.api.callers import Caller, the_problem
from tests.recovery import deciding
from tests.recovery.deciding import decide


def decided(acme: cast.Acme, grounds: str) -> None:
    call = deciding.ambiguous(acme, delivery_delay_s=0)
    decide(acme, call, "happened", grounds=grounds)


def test_a_key_needs_the_scope_that_exports(
    acme: cast.Acme, agent: Callable[..., Caller], ada: Caller
) -> None:
    decided(acme, "The provider's list says so.")

    the_problem(ada.get("/audit"), 403, "permission_missing")
    lines = agent(acme.ben, "export:read").get("/audit?actor=olga").json()["items"]
    found = next(each for each in lines if each["deed"] == "decided: happened")
    assert found["grounds"] == "The provider's list says so."
    assert found["actor"] == "olga"
    assert found["target"].startswith("call_")
    assert found["at"].endswith("Z")


def test_what_people_quoted_is_masked_for_a_key_too(
    acme: cast.Acme, agent: Callable[..., Caller]
) -> None:
    tool = builders.a_tool(acme, "charge", "side_effect", masked=["/arguments/card"])
    call = builders.a_call(acme, "ambiguous", arguments={"card": "4929-0000-1111"}, tool=tool)
    builders.unlock_denial(call)
    quoted = "The list has 4929-0000-1111 and password=hunter2-hunter2."
    decide(acme, builders.fresh(call), "happened", grounds=quoted)

    text = agent(acme.ada, "export:read").get("/audit").text
    assert "The list has" in text
    assert "4929-0000-1111" not in text
    assert "hunter2" not in text


def test_a_page_names_the_next_one_and_a_cursor_belongs_to_its_filters(
    acme: cast.Acme, alma: Caller
) -> None:
    decided(acme, "One.")
    decided(acme, "Two.")
    every = alma.get("/audit").json()["items"]

    first = alma.get("/audit?limit=3")
    more = first.json()["next_cursor"]
    assert f"cursor={more.replace('=', '%3D')}" in first.headers["Link"]
    rest = alma.get(f"/audit?limit=200&cursor={more}").json()["items"]
    assert first.json()["items"] + rest == every
    the_problem(alma.get(f"/audit?actor=olga&cursor={more}"), 422, "validation")
    the_problem(alma.get("/audit?limit=201"), 422, "validation")
    the_problem(alma.get("/audit?from=yesterday"), 422, "validation")
    the_problem(alma.get("/audit?to=9999-12-31"), 422, "validation")
