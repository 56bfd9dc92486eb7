"""Traces: a header is read as the W3C says, kept with the call, and a span to each attempt."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from ledger import ids, traces
from ledger.journal import events_of
from ledger.models import Attempt, ToolCall
from ledger.vocabulary import Cause, Deadline, Meaning
from tests import builders
from tests.builders import a_submit, answer_to, fresh
from tests.cast import Acme

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
SENT = f"00-{TRACE}-{PARENT}-01"

BAD = {
    "nothing": "",
    "no header": None,
    "a space": " ",
    "version ff": f"ff-{TRACE}-{PARENT}-01",
    "a version of one digit": f"0-{TRACE}-{PARENT}-01",
    "a version of three digits": f"000-{TRACE}-{PARENT}-01",
    "a version that is no number": f".0-{TRACE}-{PARENT}-01",
    "a trace of zeroes": f"00-{'0' * 32}-{PARENT}-01",
    "a parent of zeroes": f"00-{TRACE}-{'0' * 16}-01",
    "capitals": f"00-{TRACE.upper()}-{PARENT}-01",
    "a capital in the parent": f"00-{TRACE}-{PARENT.upper()}-01",
    "a trace too short": f"00-{TRACE[1:]}-{PARENT}-01",
    "a trace too long": f"00-{TRACE}0-{PARENT}-01",
    "a parent too short": f"00-{TRACE}-{PARENT[1:]}-01",
    "a parent too long": f"00-{TRACE}-{PARENT}0-01",
    "no flags": f"00-{TRACE}-{PARENT}",
    "flags of one digit": f"00-{TRACE}-{PARENT}-1",
    "flags of three digits": f"00-{TRACE}-{PARENT}-001",
    "flags that are no number": f"00-{TRACE}-{PARENT}-.0",
    "more than version 00 has": f"{SENT}-more",
    "a dash too many": f"{SENT}-",
    "a later version that goes on without a dash": f"cc-{TRACE}-{PARENT}-01.more",
    "a later version cut off": f"cc-{TRACE}-{PARENT}-0",
    "sent twice": f"{SENT},{SENT}",
    "a later version sent twice": ",".join([f"cc-{TRACE}-{PARENT}-01-more"] * 2),
    "a line end behind it": f"{SENT}\n",
    "digits of another script": f"00-{'٤' * 32}-{PARENT}-01",
    "full-width letters": f"00-{'ａ' * 32}-{PARENT}-01",
    "a NUL": f"00-{TRACE}-{PARENT}-0\x00",
    "markup": "<script>alert(1)</script>",
    "a megabyte": "0" * 1_000_000,
}


@pytest.mark.parametrize("flags", ["00", "01", "02", "03"])
def test_a_header_of_the_known_version_is_kept_as_it_came(flags: str) -> None:
    assert traces.read(f"00-{TRACE}-{PARENT}-{flags}") == f"00-{TRACE}-{PARENT}-{flags}"


@pytest.mark.parametrize("header", BAD.values(), ids=BAD)
def test_a_bad_header_is_ignored(header: str | None) -> None:
    assert traces.read(header) is None


@pytest.mark.parametrize(("sent", "kept"), [("04", "00"), ("09", "01"), ("ff", "03")])
def test_flags_that_nobody_has_defined_are_left_out(sent: str, kept: str) -> None:
    assert traces.read(f"00-{TRACE}-{PARENT}-{sent}") == f"00-{TRACE}-{PARENT}-{kept}"


@pytest.mark.parametrize("more", ["", "-", "-what-comes-then"])
def test_a_later_version_is_read_as_far_as_it_is_known(more: str) -> None:
    assert traces.read(f"cc-{TRACE}-{PARENT}-03{more}") == SENT


def test_an_attempt_sends_on_the_same_trace_with_a_span_of_its_own() -> None:
    first, second = ids.new(), ids.new()
    sent = [traces.of_attempt(SENT, each) for each in (first, second, first)]
    assert sent[0] == sent[2] == f"00-{TRACE}-{first.hex[16:]}-01"
    assert sent[0] != sent[1]
    assert traces.of_attempt(None, first) is None


@pytest.mark.django_db
def test_a_call_keeps_its_trace_and_no_event_has_it(acme: Acme) -> None:
    call = builders.a_call(acme, traceparent=SENT)
    assert (call.traceparent, call.trace_id) == (SENT, TRACE)
    assert not any(TRACE in event.facts for event in events_of(call.id))


@pytest.mark.django_db
def test_a_call_without_a_trace_gets_none_made_up(acme: Acme) -> None:
    call = builders.a_call(acme, "running")
    assert (call.traceparent, call.trace_id) == (None, "")
    assert builders.claim_of(call).traceparent is None
    assert Attempt.objects.get(call=call).traceparent is None


@pytest.mark.django_db
def test_a_replayed_submit_leaves_the_trace_of_the_first(acme: Acme) -> None:
    tool = builders.a_tool(acme, recovery_class="read_only")
    other = SENT.replace("4bf9", "5bf9")
    again = [
        answer_to(a_submit(acme, tool, idempotency_key="k", traceparent=each))
        for each in (SENT, other, None)
    ]
    assert [each.replayed for each in again] == [False, True, True]
    assert fresh(again[2].call_id).traceparent == SENT


@pytest.mark.django_db
def test_traced_and_untraced_calls_are_recorded_in_one_batch(acme: Acme) -> None:
    tool = builders.a_tool(acme, recovery_class="read_only")
    wanted = [SENT, None, SENT.replace("-01", "-00"), None]
    submits = [a_submit(acme, tool, traceparent=each) for each in wanted]
    answers = builders.submits.record(submits)
    assert [fresh(each.call_id).traceparent for each in answers] == wanted  # type: ignore[union-attr]


@pytest.mark.django_db
def test_each_attempt_of_a_call_is_told_apart_also_in_another_worker(acme: Acme) -> None:
    call = builders.a_call(acme, "running", "idempotent_write", crossed=True, traceparent=SENT)
    first = builders.claim_of(call)
    builders.lost(call)
    builders.unlock_denial(call)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    builders.past(call, Deadline.BACKOFF)
    builders.fire()
    second = builders.claimed(call, by=builders.a_worker("worker-2"))

    sent = [each.traceparent for each in Attempt.objects.filter(call=call).order_by("fence")]
    assert sent == [first.traceparent, second.traceparent]
    assert len(set(sent)) == 2
    assert {traces.id_of(each) for each in sent} == {TRACE}
    assert fresh(call).traceparent == SENT


@pytest.mark.django_db
def test_the_attempts_of_a_call_know_its_trace_without_a_query_each(
    acme: Acme, django_assert_num_queries: Any
) -> None:
    call = builders.a_call(acme, "running", traceparent=SENT)
    with django_assert_num_queries(1):
        assert [each.traceparent for each in call.attempts.all()] != [None]


@pytest.mark.django_db
def test_a_poll_has_a_span_of_its_own(acme: Acme) -> None:
    call = builders.a_call(acme, "parked", "long_running", traceparent=SENT)
    run, poll = builders.claim_of(call), builders.poll(call)
    assert run.traceparent != poll.traceparent
    assert traces.id_of(poll.traceparent) == TRACE
    builders.report(call, Cause.VANISHED, Meaning.UNKNOWN)


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["<script>", SENT.upper(), SENT.replace("-01", "-ff")])
def test_the_database_refuses_a_trace_that_was_not_read(acme: Acme, text: str) -> None:
    call = builders.a_call(acme)
    with pytest.raises(IntegrityError, match="traceparent_was_read"), transaction.atomic():
        ToolCall.objects.filter(id=call.id).update(traceparent=text)
