"""Policies: what cannot work is not saved, and says in a sentence why."""

from typing import Any

import pytest

from ledger import policies, registry
from ledger.conditions import Seen
from ledger.errors import Invalid, NotFound, PolicyLoosened, UnsafePolicy, VersionConflict
from ledger.models import Policy
from ledger.policies import BOUNDS, PRESETS, CallPolicy, RetryPolicy, lint, loosened, policy_for
from ledger.vocabulary import Cause, FailurePoint, RecoveryClass
from tests import builders
from tests.cast import Acme, Globex

KEYED = {"key_template": "path:{path}"}


def refused(document: dict[str, Any]) -> str:
    with pytest.raises(UnsafePolicy) as caught:
        policy_for(document)
    return str(caught.value)


def codes(document: dict[str, Any]) -> set[str]:
    return {finding.code for finding in lint(policy_for(document))}


@pytest.mark.parametrize("recovery_class", list(RecoveryClass))
def test_every_preset_can_be_saved(recovery_class: RecoveryClass) -> None:
    document: dict[str, Any] = {"recovery_class": str(recovery_class)}
    if recovery_class is RecoveryClass.IDEMPOTENT_WRITE:
        document |= KEYED
    assert policy_for(document).timeouts == PRESETS[recovery_class].timeouts


@pytest.mark.parametrize("recovery_class", [c for c in RecoveryClass if c != "idempotent_write"])
def test_a_policy_reads_back_what_it_wrote(recovery_class: str) -> None:
    policy = policy_for({"recovery_class": recovery_class, "probe": {"authoritative": True}})
    assert CallPolicy.from_json(policy.to_json()) == policy


def test_without_a_class_a_tool_counts_as_a_side_effect() -> None:
    assert policy_for({}).recovery_class is RecoveryClass.SIDE_EFFECT


# The arithmetic of the linter (R26)

FIVE_TIMES_THIRTY = {
    "recovery_class": "read_only",
    "timeouts": {"start_to_close_s": 30, "schedule_to_close_s": 120},
}


def test_attempts_that_cannot_happen_are_refused_with_their_sum() -> None:
    sentence = refused(FIVE_TIMES_THIRTY)
    assert "5 attempts x 30 s + 15 s of backoff = 165 s, schedule-to-close is 120 s" in sentence
    assert "the last attempt cannot happen" in sentence


def test_attempts_that_fit_only_without_a_queue_are_warned_of() -> None:
    document = {**FIVE_TIMES_THIRTY, "timeouts": {"schedule_to_close_s": 170}}
    assert codes(document) == {"attempts_barely_fit"}


def test_attempts_that_fit_are_not_spoken_of() -> None:
    assert codes({"recovery_class": "read_only"}) == set()


def test_a_heartbeat_that_can_never_fire_is_refused() -> None:
    sentence = refused({"timeouts": {"start_to_close_s": 15, "heartbeat_s": 15}})
    assert "could never fire" in sentence


@pytest.mark.parametrize("start_s", [300, 301])
def test_a_time_in_the_queue_that_can_never_end_first_is_refused(start_s: int) -> None:
    sentence = refused({"timeouts": {"schedule_to_start_s": start_s, "schedule_to_close_s": 300}})
    assert f"schedule-to-start ({start_s} s) is not shorter than schedule-to-close" in sentence
    assert policy_for({"timeouts": {"schedule_to_start_s": 299, "schedule_to_close_s": 300}})


@pytest.mark.parametrize("recovery_class", list(RecoveryClass))
def test_only_a_read_needs_no_time_in_which_a_decision_is_taken_back(recovery_class: str) -> None:
    found = codes({"recovery_class": recovery_class, "delivery_delay_s": 0} | KEYED)
    assert found == (set() if recovery_class == "read_only" else {"no_time_to_undo"})


# What cannot be written


@pytest.mark.parametrize("unlimited", [0, -1, 21, 10**9, float("inf"), float("nan"), None, "many"])
def test_unlimited_attempts_cannot_be_written(unlimited: Any) -> None:
    assert refused({"recovery_class": "read_only", "retry": {"attempts": unlimited}})


@pytest.mark.parametrize(
    "timeout", ["schedule_to_start_s", "start_to_close_s", "schedule_to_close_s", "heartbeat_s"]
)
@pytest.mark.parametrize("unlimited", [0, float("inf"), float("nan"), None, "never"])
def test_an_unlimited_timeout_cannot_be_written(timeout: str, unlimited: Any) -> None:
    assert refused({"recovery_class": "long_running", "timeouts": {timeout: unlimited}})


BOUNDED = sorted(BOUNDS)


@pytest.mark.parametrize("path", BOUNDED)
@pytest.mark.parametrize("beyond", ["below", "above"])
def test_a_knob_beyond_its_bounds_is_refused(path: str, beyond: str) -> None:
    bound = BOUNDS[path]
    value = bound.low - 1 if beyond == "below" else bound.high + 1
    document: dict[str, Any] = {"recovery_class": "long_running"}
    *outer, name = path.split(".")
    where = document.setdefault(outer[0], {}) if outer else document
    where[name] = value
    assert f"{path} is" in refused(document)


@pytest.mark.parametrize(
    ("knob", "value"),
    [("attempts", {"retry": {"attempts": 4}}),
     ("start_to_close_s", {"timeouts": {"start_to_close_s": 61, "schedule_to_close_s": 600}}),
     ("schedule_to_close_s", {"timeouts": {"schedule_to_close_s": 901}})],
)  # fmt: skip
def test_sign_ins_have_narrower_bounds(knob: str, value: dict[str, Any]) -> None:
    assert knob in refused({"recovery_class": "provider_auth", **value})


@pytest.mark.parametrize("taken_off", ["auth", "permission"])
def test_refusals_of_rights_are_never_retried(taken_off: str) -> None:
    rest = sorted({"auth", "permission"} - {taken_off})
    sentence = refused({"retry": {"not_retried": [*rest, "validation"]}})
    assert "a refusal of rights does not pass by waiting" in sentence


@pytest.mark.parametrize("recovery_class", ["idempotent_write"])
def test_an_idempotent_write_needs_a_key_template(recovery_class: str) -> None:
    assert "needs key_template" in refused({"recovery_class": recovery_class})
    assert policy_for({"recovery_class": recovery_class, **KEYED}).key_template


def test_a_side_effect_repeats_no_more_than_once_without_a_probe() -> None:
    assert "without a probe" in refused({"retry": {"attempts": 3}})
    assert policy_for({"retry": {"attempts": 3}, "probe": {}}).retry.attempts == 3


@pytest.mark.parametrize(
    ("document", "said"),
    [({"retries": {}}, "no knob retries"), ({"retry": {"max": 1}}, "no knob retry.max"),
     ({"recovery_class": "careful"}, "is no recovery class"), ({"retry": 3}, "must be an object"),
     ({"retry": {"jitter": 1}}, "true or false"), ({"review_s": True}, "a number"),
     ({"boundary": "later"}, "boundary cannot be"), ({"tool_error_means": "none"}, "tool_error"),
     ({"second_person": "sometimes"}, "second_person is"),
     ({"runbook": "x" * 501}, "Keep the text elsewhere"),
     ({"runbooks": {"after_lunch": "https://wiki"}}, "no knob runbooks.after_lunch"),
     ({"runbooks": "https://wiki"}, "must be an object"),
     ({"retry": {"not_retried": ["auth", "permission", "bad_luck"]}}, "not_retried cannot be")],
)  # fmt: skip
def test_a_document_that_cannot_be_read_says_where(document: dict[str, Any], said: str) -> None:
    assert said in refused(document)


# Runbooks


def test_a_failure_point_has_its_own_runbook_or_that_of_the_tool() -> None:
    own = {"runbook": "Ask Olga.", "runbooks": {"during_execution": "https://wiki.example/sent"}}
    policy = policy_for(own)
    assert policy.runbook_at(FailurePoint.DURING_EXECUTION) == "https://wiki.example/sent"
    assert policy.runbook_at(FailurePoint.BEFORE_START) == "Ask Olga."
    assert policy.runbook_at("") == "Ask Olga."


@pytest.mark.parametrize(
    "runbook",
    ["javascript:alert(1)", "ftp://wiki.example/", "//wiki.example", "Ask Olga.", " https://a.b",
     "https://wiki.example@evil.example/", "https://wiki.example/" + 480 * "x"],
)  # fmt: skip
def test_the_runbook_of_a_failure_point_is_a_web_address_or_refused(runbook: str) -> None:
    sentence = refused({"runbooks": {"before_start": runbook}})
    assert "runbooks.before_start is no web address" in sentence
    assert "Begin it with https:// or http://" in sentence


def test_a_version_older_than_a_knob_is_the_same_policy(acme: Acme) -> None:
    tool = builders.a_tool(acme, "mail.send")
    young = Policy.objects.get(tool=tool)
    old = {name: value for name, value in young.document.items() if name != "runbooks"}
    assert Policy(document=old).whole == young.document


# Waits (semantics, section 4)


def test_waits_double_up_to_the_cap() -> None:
    waits = [RetryPolicy().longest_wait_s(n) for n in range(1, 8)]
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_jitter_stays_between_half_the_wait_and_all_of_it() -> None:
    waits = [RetryPolicy().wait_s(3) for _ in range(200)]
    assert min(waits) >= 2
    assert max(waits) <= 4
    assert len(set(waits)) > 100


@pytest.mark.parametrize("n", [50, 5000])
def test_a_late_attempt_waits_no_longer_than_the_cap(n: int) -> None:
    assert RetryPolicy(factor=10.0).longest_wait_s(n) == 30


def test_retry_after_lengthens_the_wait_and_never_shortens_it() -> None:
    retry = RetryPolicy(jitter=False)
    assert 20 <= retry.wait_s(1, retry_after_s=20) <= 22
    assert 8 <= retry.wait_s(4, retry_after_s=1) <= 8.8


@pytest.mark.parametrize("nonsense", [-5.0, None])
def test_a_nonsensical_retry_after_is_ignored(nonsense: float | None) -> None:
    assert RetryPolicy(jitter=False).wait_s(1, retry_after_s=nonsense) == 1


def test_the_defaults_are_the_published_six_knobs() -> None:
    retry = RetryPolicy()
    assert (retry.attempts, retry.initial_interval_s, retry.factor) == (5, 1.0, 2.0)
    assert (retry.interval_cap_s, retry.jitter) == (30.0, True)
    assert retry.not_retried >= policies.CANNOT_BE_RETRIED >= {Cause.AUTH, Cause.PERMISSION}


# What loosening is

ONE_PERSON: dict[str, Any] = {}
TWO_PEOPLE = {"second_person": "always"}
PROBED = {"probe": {}, "retry": {"attempts": 2}}
THRICE = {"probe": {}, "retry": {"attempts": 3}}


@pytest.mark.parametrize(
    ("careful", "loose", "knob"),
    [
        ({}, {"recovery_class": "idempotent_write"}, "recovery_class"),
        ({"recovery_class": "idempotent_write"}, {"recovery_class": "read_only"}, "recovery_class"),
        ({}, {"recovery_class": "long_running", "retry": {"attempts": 2}}, "recovery_class"),
        (TWO_PEOPLE, ONE_PERSON, "second_person"),
        ({"delivery_delay_s": 60}, {"delivery_delay_s": 59}, "delivery_delay_s"),
        (PROBED, THRICE, "retry.attempts"),
    ],
)
def test_a_less_careful_policy_loosens_and_the_way_back_does_not(
    careful: dict[str, Any], loose: dict[str, Any], knob: str
) -> None:
    before, after = policy_for(KEYED | careful), policy_for(KEYED | loose)
    assert loosened(before, after) == [knob]
    assert loosened(after, before) == loosened(before, before) == []


def test_more_attempts_of_a_read_loosen_nothing() -> None:
    few, many = ({"recovery_class": "read_only", "retry": {"attempts": n}} for n in (2, 5))
    assert loosened(policy_for(few), policy_for(many)) == []


def test_declaring_a_tool_anew_loosens_its_policy_only_where_it_may(acme: Acme) -> None:
    tool = builders.a_tool(acme, "mail.send", **TWO_PEOPLE)
    again: dict[str, Any] = {
        "workspace": acme.workspace, "by": builders.AUTHOR, "policy": {"review_s": 600},
        "declaration": registry.Declaration(name="mail.send", executor="python"),
    }  # fmt: skip
    with pytest.raises(PolicyLoosened, match="loosen second_person in the policy of mail.send"):
        registry.put(**again, may_loosen=False)
    assert tool.policies.count() == 1
    assert registry.put(**again).policy_version == 2


# Handles


def test_a_long_job_whose_tool_gives_no_handle_is_refused(acme: Acme) -> None:
    builders.a_tool(acme, "clip.render")
    with pytest.raises(UnsafePolicy, match="resumed by its handle, and this one gives none"):
        registry.put_policy(workspace_id=acme.workspace.id, tool_name="clip.render",
                            document={"recovery_class": "long_running"}, by=builders.AUTHOR,
                            seen=Seen(version=1))  # fmt: skip


def test_a_tool_of_long_jobs_does_not_give_up_its_handles(acme: Acme) -> None:
    tool = builders.a_tool(acme, "clip.render", "long_running")
    with pytest.raises(UnsafePolicy, match="resumed by its handle"):
        registry.put(
            workspace=acme.workspace, policy={}, by=builders.AUTHOR,
            declaration=registry.Declaration(name="clip.render", executor="python"),
        )  # fmt: skip
    assert tool.versions.count() == 1


# Versions


def test_a_version_of_earlier_rules_is_read_for_as_long_as_calls_keep_it() -> None:
    never_fires = {"timeouts": {"schedule_to_start_s": 400, "schedule_to_close_s": 300}}
    refused(never_fires)
    assert Policy(document=never_fires).call_policy.timeouts.schedule_to_start_s == 400


def test_every_change_makes_a_version_with_author_and_grounds(acme: Acme) -> None:
    builders.a_tool(acme, "mail.send")
    policy, _ = registry.put_policy(
        workspace_id=acme.workspace.id, tool_name="mail.send", by=builders.AUTHOR,
        document={"review_s": 600}, seen=Seen(version=1),
    )  # fmt: skip
    assert (policy.number, policy.author_name, policy.grounds) == (
        2, builders.AUTHOR.name, builders.AUTHOR.grounds,
    )  # fmt: skip


def test_the_same_policy_twice_is_one_version(acme: Acme) -> None:
    for _ in range(2):
        builders.a_tool(acme, "mail.send")
    assert Policy.objects.count() == 1


def test_a_change_without_grounds_is_refused(acme: Acme) -> None:
    builders.a_tool(acme, "mail.send")
    with pytest.raises(Invalid, match="grounds"):
        registry.switch(workspace_id=acme.workspace.id, tool_name="mail.send", on=False,
                        by=registry.Author(name="olga", grounds=" "))  # fmt: skip


def test_a_change_of_what_was_not_looked_at_is_refused(acme: Acme) -> None:
    builders.a_tool(acme, "mail.send")
    with pytest.raises(VersionConflict):
        registry.put_policy(workspace_id=acme.workspace.id, tool_name="mail.send",
                            document={}, by=builders.AUTHOR, seen=Seen(version=7))  # fmt: skip


def test_an_unsafe_policy_leaves_the_present_one(acme: Acme) -> None:
    tool = builders.a_tool(acme, "mail.send")
    with pytest.raises(UnsafePolicy):
        registry.put_policy(workspace_id=acme.workspace.id, tool_name="mail.send",
                            document={"retry": {"attempts": 9}}, by=builders.AUTHOR,
                            seen=Seen(version=1))  # fmt: skip
    tool.refresh_from_db()
    assert tool.policy_version == 1


def test_a_neighbours_tool_has_no_policy_here(acme: Acme, globex: Globex) -> None:
    builders.a_tool(acme, "mail.send")
    with pytest.raises(NotFound):
        registry.put_policy(workspace_id=globex.workspace.id, tool_name="mail.send",
                            document={}, by=builders.AUTHOR, seen=Seen(version=1))  # fmt: skip
