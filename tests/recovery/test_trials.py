"""A policy tried on history: real calls whose counts are known, call by call."""

from collections import Counter
from typing import Any

import pytest
from django.db import connection

from ledger import clock, ids, registry
from ledger.conditions import Seen
from ledger.errors import NotFound, UnsafePolicy, VersionConflict
from ledger.models import Policy, Tool, ToolCall
from ledger.policies import policy_for
from ledger.vocabulary import Cause, Deadline, Meaning, ProbeFinding
from recovery import histories, rehearsals, trials
from recovery.models import Trial
from recovery.refusals import PolicyUnconfirmed
from recovery.trials import Column, Compared
from tests import builders, cast
from tests.cast import Acme, Globex, as_decider
from tests.recovery import deciding

pytestmark = pytest.mark.django_db

WRITE: dict[str, Any] = {"recovery_class": "idempotent_write", "key_template": "path:{path}"}
PROBED: dict[str, Any] = {"probe": {"authoritative": True}, "in_flight_grace_s": 0}


def tried(tool: Tool, document: dict[str, Any]) -> dict[str, int]:
    """How many calls came into each column, the empty ones left out."""
    return dict(Counter(str(each.column) for each in compared(tool, document)))


def compared(tool: Tool, document: dict[str, Any]) -> list[Compared]:
    candidate = policy_for(document)
    return [trials.compare(each, candidate) for each in histories.of(tool)]


def took(call: ToolCall, seconds: float) -> None:
    """Let the last attempt of a call have been claimed so much earlier."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_attempt SET claimed_at = claimed_at - make_interval(secs => %s) "
            "WHERE call_id = %s AND fence = (SELECT max(fence) FROM ledger_attempt "
            "WHERE call_id = %s)",
            [seconds, call.id, call.id],
        )


@pytest.fixture
def mail(acme: Acme) -> Tool:
    """A side effect without a probe, with a history: two sent, two in doubt, one refused."""
    tool = builders.a_tool(acme, "send_invoice", "side_effect")
    for number, state in enumerate(["succeeded", "succeeded", "failed", "ambiguous", "ambiguous"]):
        builders.a_call(acme, state, tool=tool, arguments={"path": f"{number}.pdf"})
    return tool


@pytest.fixture
def sent(acme: Acme, mail: Tool) -> ToolCall:
    """One of the two in doubt: a person found its effect outside."""
    call = ToolCall.objects.filter(tool=mail.name, state="ambiguous").latest("id")
    deciding.found(call, "happened", as_decider(acme.olga))
    return call


# The candidate decides by the code that decides


def test_the_same_policy_decides_the_same_about_every_call(mail: Tool) -> None:
    assert tried(mail, {"recovery_class": "side_effect"}) == {"same": 5}


def test_a_repeat_of_an_effect_that_had_happened_is_told_from_other_repeats(
    mail: Tool, sent: ToolCall
) -> None:
    assert tried(mail, WRITE) == {"same": 3, "repeated": 1, "retries": 1}

    [found] = [each for each in compared(mail, WRITE) if each.column is Column.REPEATED]
    assert found.call_id == sent.id
    assert "Now: waits for a person. Then: repeats by itself." in found.sentence


def test_an_effect_that_a_probe_disproved_is_not_repeated_twice(acme: Acme) -> None:
    tool = builders.a_tool(acme, "pay", "side_effect", **PROBED, recovery_window_s=3600)
    call = builders.a_call(acme, "interrupted", tool=tool)
    builders.unlock_denial(call)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    builders.probe(call, ProbeFinding.DID_NOT_HAPPEN, effects=0)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    assert builders.fresh(call).state == "backing_off"

    assert tried(tool, {"recovery_class": "side_effect", **PROBED}) == {"same": 1}
    assert tried(tool, {"recovery_class": "side_effect"}) == {"asks_person": 1}


def test_where_the_outside_was_never_asked_the_trial_cannot_say(
    acme: Acme, mail: Tool, sent: ToolCall
) -> None:
    probing = builders.a_tool(acme, "pay", "side_effect", **PROBED)
    builders.a_call(acme, "interrupted", tool=probing)
    without = {"recovery_class": "side_effect"}
    registry.put_policy(
        workspace_id=acme.workspace.id,
        tool_name="pay",
        document=without,
        by=builders.AUTHOR,
        seen=Seen(version=1),
    )
    builders.a_call(acme, "ambiguous", tool=probing, arguments={"path": "2"})

    assert tried(probing, without | PROBED) == {"same": 1, "cannot_say": 1}


def test_a_call_that_was_repeated_would_wait_for_a_person(acme: Acme) -> None:
    tool = builders.a_tool(acme, "put", "idempotent_write")
    call = builders.a_call(acme, "interrupted", tool=tool)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    assert builders.fresh(call).state == "backing_off"

    assert tried(tool, {"recovery_class": "side_effect"}) == {"asks_person": 1}


def test_a_repeat_that_was_made_would_have_found_its_attempts_spent(acme: Acme) -> None:
    tool = builders.a_tool(acme, "put", "idempotent_write")
    builders.a_call(acme, "backing_off", tool=tool)

    assert tried(tool, WRITE | {"retry": {"attempts": 1}}) == {"spent": 1}
    assert tried(tool, WRITE | {"retry": {"attempts": 2}}) == {"same": 1}


def test_a_tools_error_that_proves_no_effect_would_settle_without_a_person(acme: Acme) -> None:
    tool = builders.a_tool(acme, "book", "side_effect")
    call = builders.a_call(acme, "running", tool=tool, crossed=True)
    builders.report(call, Cause.TOOL_ERROR, Meaning.KNOWN, message="It did not work.")
    assert builders.fresh(call).state == "interrupted"

    document = {"recovery_class": "side_effect", "tool_error_means": "no_effect"}
    assert tried(tool, document) == {"settles": 1}


def test_a_read_has_no_boundary_so_nobody_can_say_what_another_class_would_do(
    acme: Acme,
) -> None:
    tool = builders.a_tool(acme, "lookup", "read_only")
    builders.a_call(acme, "succeeded", tool=tool)
    builders.a_call(acme, "backing_off", tool=tool, arguments={"path": "2"})

    assert tried(tool, {"recovery_class": "side_effect"}) == {"same": 1, "cannot_say": 1}


def test_another_boundary_is_not_guessed(acme: Acme, mail: Tool) -> None:
    document = {"recovery_class": "side_effect", "boundary": "transport"}
    assert tried(mail, document) == {"same": 2, "cannot_say": 3}


# Time-outs against measured lengths


def test_an_attempt_longer_than_the_candidate_allows_would_be_cut_off_earlier(
    acme: Acme,
) -> None:
    tool = builders.a_tool(acme, "render", "side_effect")
    call = builders.a_call(acme, "succeeded", tool=tool)
    took(call, 52)

    document = {"recovery_class": "side_effect", "timeouts": {"start_to_close_s": 45}}
    [found] = compared(tool, document)

    assert found.column is Column.CUT_EARLIER
    assert found.measured_s == pytest.approx(52, abs=5)
    assert "start-to-close would be 45 s" in found.sentence
    assert tried(tool, {"recovery_class": "side_effect"}) == {"same": 1}


def test_a_hung_attempt_would_be_left_longer(acme: Acme) -> None:
    tool = builders.a_tool(acme, "render", "side_effect")
    call = builders.a_call(acme, "running", tool=tool, crossed=True)
    took(call, 61)
    builders.past(call, Deadline.START_TO_CLOSE)
    builders.fire()

    document = {"recovery_class": "side_effect", "timeouts": {"start_to_close_s": 90}}
    assert tried(tool, document) == {"cut_later": 1}


def test_a_call_that_nobody_took_would_have_been_waited_for(acme: Acme) -> None:
    tool = builders.a_tool(acme, "render", "side_effect")
    builders.a_call(acme, "expired", tool=tool)

    document = {"recovery_class": "side_effect", "timeouts": {"schedule_to_start_s": 120}}
    assert tried(tool, document) == {"cut_later": 1}


def test_a_running_attempt_is_measured_as_far_as_it_has_come(acme: Acme) -> None:
    tool = builders.a_tool(acme, "render", "side_effect")
    took(builders.a_call(acme, "running", tool=tool), 40)

    document = {"recovery_class": "side_effect", "timeouts": {"start_to_close_s": 30}}
    assert tried(tool, document) == {"cut_earlier": 1}


# Bounds


@pytest.mark.parametrize("size", [2, 8])
def test_a_trial_costs_the_same_queries_whatever_the_history(
    acme: Acme, size: int, django_assert_max_num_queries: Any
) -> None:
    tool = builders.a_tool(acme, "send", "side_effect")
    for number in range(size):
        builders.a_call(acme, "interrupted", tool=tool, arguments={"path": str(number)})

    with django_assert_max_num_queries(9):
        assert len(histories.of(tool)) == size


def test_only_the_newest_calls_of_this_tool_in_this_workspace_are_tried(
    acme: Acme, globex: Globex, mail: Tool
) -> None:
    builders.a_call(acme, "succeeded")
    builders.a_call(globex, "succeeded", tool=builders.a_tool(globex, mail.name))

    newest = histories.of(mail, calls=2)
    every = ToolCall.objects.filter(workspace=acme.workspace, tool=mail.name).order_by("-id")

    assert [each.call_id for each in newest] == [each.id for each in every[:2]]
    assert len(histories.of(mail)) == 5


def test_the_days_are_counted_by_the_ids_of_the_calls() -> None:
    now = clock.now()
    before, after = ids.new(), histories.earliest_id(now)
    assert after.int >> 80 == int(now.timestamp() * 1000)
    assert (before.int >> 80) - (after.int >> 80) < 60_000


# Kept, and saved after it


def alma(acme: Acme) -> Any:
    return as_decider(cast.a_person("alma", acme.workspace, "admin"))


def test_a_trial_is_kept_with_its_counts_and_the_calls_that_differ(
    acme: Acme, mail: Tool, sent: ToolCall
) -> None:
    kept = rehearsals.attempt(person=alma(acme), tool_name=mail.name, document=WRITE)

    assert (kept.calls, kept.based_on, kept.person_name) == (5, 1, "alma")
    assert kept.counts["repeated"] == 1
    assert sum(kept.counts.values()) == 5
    assert [row[:2] for row in kept.rows if row[0] == "repeated"] == [["repeated", sent.id.hex]]


def test_a_policy_that_would_have_repeated_an_effect_is_saved_only_by_name_and_number(
    acme: Acme, mail: Tool, sent: ToolCall
) -> None:
    wish: dict[str, Any] = {"person": alma(acme), "tool_name": mail.name, "document": WRITE,
                            "grounds": "Keys are kept.", "seen": Seen(version=1)}  # fmt: skip
    with pytest.raises(PolicyUnconfirmed, match="send_invoice 1"):
        rehearsals.save(**wish)
    with pytest.raises(PolicyUnconfirmed):
        rehearsals.save(**wish, confirm="send_invoice 2")
    assert Policy.objects.filter(tool=mail).count() == 1

    saved, trial = rehearsals.save(**wish, confirm="send_invoice 1")

    assert (saved.number, saved.recovery_class) == (2, "idempotent_write")
    assert rehearsals.of_versions(list(Policy.objects.filter(tool=mail))) == {2: trial}


def test_a_policy_that_loosens_is_saved_only_by_name_and_number_though_it_repeats_nothing(
    acme: Acme,
) -> None:
    tool = builders.a_tool(acme, "pay", "side_effect", second_person="always")
    wish: dict[str, Any] = {"person": alma(acme), "tool_name": tool.name, "seen": Seen(version=1),
                            "grounds": "Nobody is there at night.",
                            "document": {"recovery_class": "side_effect"}}  # fmt: skip
    with pytest.raises(PolicyUnconfirmed, match="loosens second_person") as refusal:
        rehearsals.save(**wish)
    assert refusal.value.facts["confirm"] == "pay 0"
    assert Policy.objects.filter(tool=tool).count() == 1

    saved, _ = rehearsals.save(**wish, confirm="pay 0")
    assert saved.number == 2


def test_a_policy_that_is_as_careful_as_before_is_saved_without_typing(
    acme: Acme, mail: Tool
) -> None:
    tighter = {"recovery_class": "side_effect", "second_person": "always", "delivery_delay_s": 60}
    saved, trial = rehearsals.save(
        person=alma(acme), tool_name=mail.name, document=tighter, seen=Seen(version=1),
        grounds="Two people from now on.",
    )  # fmt: skip
    assert (saved.number, rehearsals.confirmation(trial)) == (2, "")


def test_a_stale_version_or_an_unsafe_policy_is_refused_and_nothing_is_kept(
    acme: Acme, mail: Tool
) -> None:
    wish: dict[str, Any] = {"person": alma(acme), "tool_name": mail.name, "grounds": "Why not."}
    with pytest.raises(VersionConflict):
        rehearsals.save(**wish, document={"recovery_class": "side_effect"}, seen=Seen(version=7))
    with pytest.raises(UnsafePolicy, match="key_template"):
        rehearsals.save(
            **wish, document={"recovery_class": "idempotent_write"}, seen=Seen(version=1)
        )
    assert not Trial.objects.exists()


def test_a_tool_of_another_workspace_reads_as_absent(acme: Acme, globex: Globex) -> None:
    builders.a_tool(globex, "theirs")
    with pytest.raises(NotFound):
        rehearsals.attempt(person=alma(acme), tool_name="theirs", document={})
