"""Tools and policies: keys read them, an admin's login changes them, with author and grounds."""

from collections.abc import Callable
from typing import Any

import pytest

from ledger.models import Policy, Tool, ToolVersion
from recovery.models import Trial
from tests import builders, cast
from tests.api.callers import Caller, the_problem
from tests.recovery import deciding

TOOL = {
    "executor": "http",
    "config": {"url": "https://api.example/pay"},
    "input_schema": {"type": "object", "properties": {"amount": {"type": "integer"}}},
    "effect_kinds": ["purchase"],
    "annotations": {"readOnlyHint": True},
    "grounds": "The shop needs it.",
}
POLICY: dict[str, Any] = {
    "policy": {"recovery_class": "side_effect"}, "grounds": "Slower on purpose.", "version": 1,
}  # fmt: skip
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("/tools/pay", {**TOOL, "effect_kinds": []}),
    ("/tools/pay/switch", {"on": False, "grounds": "It misbehaves."}),
    ("/policies/pay", POLICY),
]


@pytest.fixture
def pay(acme: cast.Acme) -> Tool:
    return builders.a_tool(acme, "pay", "side_effect")


def versions() -> tuple[int, int, int]:
    return (
        ToolVersion.objects.count(),
        Policy.objects.count(),
        Tool.objects.filter(switched_off_at__isnull=False).count(),
    )


def test_a_key_reads_tools_and_policies(ada: Caller, pay: Tool) -> None:
    tool = ada.get("/tools/pay").json()
    policy = ada.get("/policies/pay").json()

    assert [each["name"] for each in ada.get("/tools").json()["items"]] == ["pay"]
    assert (tool["recovery_class"], tool["declared"], tool["policy_version"]) == (
        "side_effect", True, 1,
    )  # fmt: skip
    assert (policy["author"], policy["grounds"]) == ("olga", "The tests need it.")
    assert ada.get("/policies").json()["items"] == [
        {name: value for name, value in policy.items() if name != "earlier"}
    ]


@pytest.mark.parametrize(("path", "body"), CHANGES)
def test_no_key_changes_a_tool_or_a_policy(
    path: str, body: dict[str, Any], acme: cast.Acme, agent: Callable[..., Caller], pay: Tool
) -> None:
    before = versions()
    every_scope = agent(acme.ada, "calls:submit", "calls:read", "turns:write", "worker", "admin")

    the_problem(every_scope.put(path, body), 403, "permission_missing")
    assert versions() == before


@pytest.mark.parametrize(("path", "body"), CHANGES)
def test_a_key_beside_a_login_changes_nothing_either(
    path: str, body: dict[str, Any], ada: Caller, alma: Caller, pay: Tool
) -> None:
    before = versions()
    both = {"Authorization": ada.http.headers["Authorization"]}

    the_problem(alma.put(path, body, headers=both), 403, "permission_missing")
    assert versions() == before


@pytest.mark.parametrize(("path", "body"), CHANGES)
def test_a_login_without_its_token_changes_nothing(
    path: str, body: dict[str, Any], alma: Caller, pay: Tool
) -> None:
    before = versions()
    tokens = [alma.http.headers.pop("X-CSRFToken"), "", "a" * 64]

    problem = the_problem(alma.put(path, body), 403, "permission_missing")
    forged = [alma.put(path, body, headers={"X-CSRFToken": each}) for each in tokens[1:]]

    assert "X-CSRFToken" in problem["detail"]
    assert [answer.status_code for answer in forged] == [403, 403]
    assert versions() == before
    assert alma.put(path, body, headers={"X-CSRFToken": tokens[0]}).status_code == 200


@pytest.mark.parametrize(("path", "body"), CHANGES)
def test_a_request_from_another_site_changes_nothing(
    path: str, body: dict[str, Any], alma: Caller, pay: Tool
) -> None:
    before = versions()

    answer = alma.put(path, body, headers={"Origin": "https://evil.example"})

    the_problem(answer, 403, "permission_missing")
    assert versions() == before


@pytest.mark.parametrize("name", ["olga", "vera"])
@pytest.mark.parametrize(("path", "body"), CHANGES)
def test_only_admins_change(
    path: str, body: dict[str, Any], name: str, person: Callable[..., Caller], pay: Tool
) -> None:
    before = versions()

    problem = the_problem(person(name).put(path, body), 403, "permission_missing")

    assert "admin" in problem["detail"]
    assert versions() == before


def test_an_admin_registers_a_tool_with_author_and_grounds(alma: Caller, acme: cast.Acme) -> None:
    answer = alma.put("/tools/shop.pay", TOOL)

    tool, version = answer.json(), ToolVersion.objects.get()
    assert answer.status_code == 200, answer.text
    assert (tool["version"], tool["policy_version"]) == (1, 1)
    assert (version.author_name, version.grounds) == ("alma", "The shop needs it.")


def test_hints_received_with_a_tool_give_it_no_rights(alma: Caller) -> None:
    tool = alma.put("/tools/shop.pay", TOOL).json()

    assert tool["annotations_received"] == {"readOnlyHint": True}
    assert (tool["recovery_class"], tool["declared"]) == ("side_effect", False)


def test_the_same_declaration_twice_is_one_version(alma: Caller) -> None:
    first, second = (alma.put("/tools/shop.pay", TOOL).json() for _ in range(2))
    third = alma.put("/tools/shop.pay", TOOL | {"description": "Pays."}).json()

    assert (first["version"], second["version"], third["version"]) == (1, 1, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"executor": "shell"},
        {"effect_kinds": ["magic"]},
        {"effect_kinds": "payment"},
        {"input_schema": {"type": "nonsense"}},
        {"input_schema": {"pattern": "("}},
        {"grounds": ""},
        {"grounds": "   "},
        {"policy": {"recovery_class": "harmless"}},
        {"policy": {"timeouts": {"start_to_close_s": None}}},
    ],
)
def test_a_declaration_that_cannot_hold_is_refused(change: dict[str, Any], alma: Caller) -> None:
    answer = alma.put("/tools/shop.pay", TOOL | change)

    code = "unsafe_policy" if "policy" in change else "validation"
    the_problem(answer, 422, code)
    assert not Tool.objects.exists()


@pytest.mark.parametrize("name", ["a b", "ä", "a%00b", "a" * 129, "a%0Ab"])
def test_a_name_that_is_no_identifier_is_refused(name: str, alma: Caller, ada: Caller) -> None:
    the_problem(alma.put(f"/tools/{name}", TOOL), 422, "validation")
    for path in ("/tools", "/policies"):
        the_problem(ada.get(f"{path}/{name}"), 404, "not_found")
    assert not Tool.objects.exists()


def test_a_new_policy_is_a_new_version_with_author_and_grounds(alma: Caller, pay: Tool) -> None:
    change = {"recovery_class": "side_effect", "timeouts": {"schedule_to_close_s": 900}}

    answer = alma.put("/policies/pay", POLICY | {"policy": change, "version": 1})

    saved = alma.get("/policies/pay").json()
    assert answer.status_code == 200, answer.text
    assert (saved["version"], saved["author"], saved["grounds"]) == (
        2,
        "alma",
        "Slower on purpose.",
    )
    assert saved["policy"]["timeouts"]["schedule_to_close_s"] == 900
    assert [each["version"] for each in saved["earlier"]] == [1]


def test_open_calls_keep_the_policy_they_were_recorded_under(
    alma: Caller, acme: cast.Acme, pay: Tool
) -> None:
    call = builders.a_call(acme, tool=pay)

    change = {"policy": {"recovery_class": "read_only"}, "confirm": "pay 0"}
    assert alma.put("/policies/pay", POLICY | change).status_code == 200

    assert builders.fresh(call).policy.number == 1
    assert builders.fresh(call).recovery_class == "side_effect"


def test_a_policy_that_loosens_is_saved_once_it_is_confirmed(alma: Caller, pay: Tool) -> None:
    change = POLICY | {"policy": {"recovery_class": "side_effect", "delivery_delay_s": 1}}
    tried = alma.post("/policies/pay/trials", {"policy": change["policy"]}).json()

    problem = the_problem(alma.put("/policies/pay", change), 422, "confirmation_required")

    assert (tried["loosens"], tried["confirm"]) == (["delivery_delay_s"], "pay 0")
    assert problem["current"] == {"confirm": "pay 0"}
    assert Policy.objects.count() == 1
    assert alma.put("/policies/pay", change | problem["current"]).json()["version"] == 2


def test_declaring_a_tool_anew_does_not_loosen_its_policy(alma: Caller, pay: Tool) -> None:
    before = versions()
    answer = alma.put("/tools/pay", TOOL | {"policy": {"recovery_class": "read_only"}})

    problem = the_problem(answer, 409, "policy_loosened")

    assert "recovery_class in the policy of pay" in problem["detail"]
    assert versions() == before


def test_a_stale_version_is_a_conflict_and_changes_nothing(alma: Caller, pay: Tool) -> None:
    change = {"recovery_class": "side_effect", "review_s": 3600}
    assert alma.put("/policies/pay", POLICY | {"policy": change, "version": 1}).status_code == 200

    stale = alma.put("/policies/pay", POLICY | {"version": 1})

    problem = the_problem(stale, 409, "version_conflict")
    assert problem["current"] == {"version": 2, "etag": '"2"'}
    assert Policy.objects.count() == 2


def test_a_stale_tag_is_a_failed_precondition(alma: Caller, pay: Tool) -> None:
    change = {"recovery_class": "side_effect", "review_s": 3600}
    tag = alma.get("/policies/pay").headers["ETag"]
    body = {"policy": change, "grounds": "Slower on purpose."}

    fresh = alma.put("/policies/pay", body, headers={"If-Match": tag})
    stale = alma.put("/policies/pay", body | {"policy": {}}, headers={"If-Match": tag})

    assert (fresh.status_code, fresh.json()["version"]) == (200, 2)
    the_problem(stale, 412, "version_conflict")
    assert Policy.objects.count() == 2


def test_a_change_that_names_no_version_is_refused(alma: Caller, pay: Tool) -> None:
    unseen = {name: value for name, value in POLICY.items() if name != "version"}

    problem = the_problem(alma.put("/policies/pay", unseen), 428, "precondition_required")

    assert "If-Match" in problem["detail"]
    assert Policy.objects.count() == 1


UNSAFE: list[tuple[dict[str, Any], str]] = [
    ({"retry": {"attempts": 2}, "timeouts": {"schedule_to_close_s": 100}}, "cannot happen"),
    ({"retry": {"attempts": 0}}, "between"),
    ({"retry": {"attempts": 10**6}}, "between"),
    ({"retry": {"not_retried": []}}, "auth"),
    ({"retry": {"attempts": 5}, "timeouts": {"schedule_to_close_s": 900}}, "probe"),
    ({"timeouts": {"start_to_close_s": 10**15}}, "finite"),
    ({"timeouts": {"heartbeat_s": True}}, "heartbeat_s"),
    ({"unlimited": True}, "no knob"),
    ({"timeouts": 7}, "object"),
    ({"recovery_class": [1]}, "recovery class"),
    ({"recovery_class": "idempotent_write", "key_template": ""}, "key_template"),
    ({"tool_error_means": "fine"}, "tool_error_means"),
]


def test_an_unsafe_policy_is_refused_with_a_sentence(alma: Caller, pay: Tool) -> None:
    answers = [(alma.put("/policies/pay", POLICY | {"policy": p}), says) for p, says in UNSAFE]

    assert [answer.status_code for answer, _ in answers] == [422] * len(UNSAFE)
    for answer, says in answers:
        assert says in the_problem(answer, 422, "unsafe_policy")["detail"]
    assert Policy.objects.count() == 1


@pytest.mark.parametrize("probe", [5, "yes", [1], True])
def test_a_probe_that_is_no_object_is_refused(probe: object, alma: Caller, pay: Tool) -> None:
    answer = alma.put("/policies/pay", POLICY | {"policy": {"probe": probe}})

    the_problem(answer, 422, "unsafe_policy")


@pytest.mark.parametrize(
    "template",
    ["{", "}", "{}", "{0}", "{path!x}", "{path.x}", "{path.__class__}", "{path[0]}", "{path:>99}"],
)
def test_a_key_template_takes_arguments_by_name_and_nothing_else(
    template: str, alma: Caller, pay: Tool
) -> None:
    """Saved, it would fail every submit of the tool, or reach into the values."""
    policy = {"recovery_class": "idempotent_write", "key_template": template}

    the_problem(alma.put("/policies/pay", POLICY | {"policy": policy}), 422, "unsafe_policy")


def test_a_switched_off_tool_says_why_and_can_be_switched_on(alma: Caller, pay: Tool) -> None:
    off = alma.put("/tools/pay/switch", {"on": False, "grounds": "It misbehaves."}).json()
    on = alma.put("/tools/pay/switch", {"on": True, "grounds": "Mended."}).json()

    assert off["switched_off_at"]
    assert off["switched_off_grounds"] == "It misbehaves."
    assert (on["switched_off_at"], on["switched_off_grounds"]) == (None, None)


def test_tools_of_another_workspace_read_as_absent(
    mallory: Caller, globex: cast.Globex, person: Callable[..., Caller], pay: Tool
) -> None:
    before = versions()
    herself = person("mallory")

    for answer in (
        mallory.get("/tools/pay"),
        mallory.get("/policies/pay"),
        herself.put("/tools/pay/switch", {"on": False, "grounds": "Mischief."}),
        herself.put("/policies/pay", POLICY),
    ):
        the_problem(answer, 404, "not_found")
    assert mallory.get("/tools").json()["items"] == []
    assert versions() == before


def test_a_trial_under_a_key_is_one(alma: Caller, pay: Tool) -> None:
    wish = {"policy": {"recovery_class": "read_only"}}
    key = {"Idempotency-Key": "t-1"}
    first, again = (alma.post("/policies/pay/trials", wish, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert Trial.objects.count() == 1
    alma.post("/policies/pay/trials", wish)
    assert Trial.objects.count() == 2


def test_a_policy_is_tried_on_history_before_it_is_saved(
    alma: Caller, acme: cast.Acme, pay: Tool
) -> None:
    call = builders.a_call(acme, "ambiguous", tool=pay)
    deciding.found(call, "happened", cast.as_decider(acme.olga))
    wish = {"policy": {"recovery_class": "idempotent_write", "key_template": "path:{path}"}}

    tried = alma.post("/policies/pay/trials", wish).json()
    refused = alma.put("/policies/pay", POLICY | wish | {"version": 1})
    saved = alma.put(
        "/policies/pay", POLICY | wish | {"version": 1, "confirm": tried["confirm"]}
    ).json()

    assert (tried["counts"]["repeated"], tried["confirm"]) == (1, "pay 1")
    assert [row["call"] for row in tried["rows"]] == [f"call_{call.id.hex}"]
    assert alma.get(f"/policies/pay/trials/{tried['id']}").json() == tried
    the_problem(refused, 422, "confirmation_required")
    assert (saved["version"], saved["trial"]) == (2, saved["trial"])
    kept = alma.get(f"/policies/pay/trials/{saved['trial']}").json()
    assert (kept["based_on"], kept["counts"]) == (1, tried["counts"])
