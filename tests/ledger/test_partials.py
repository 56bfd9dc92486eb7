"""Partial output: kept after the worker's death, quoted, and never a result (R11, R76)."""

import hashlib

import pytest

from ledger import attempts, calls, partials
from ledger.calls import Fetchable, Reader
from ledger.models import Chunk, ToolCall
from ledger.vocabulary import Cause, Meaning
from tests import builders
from tests.builders import a_call, fire, fresh, past
from tests.cast import Acme


def fetched(acme: Acme, call: ToolCall) -> Fetchable:
    (answer,) = calls.read_many([(Reader(acme.workspace.id), call.id)])
    assert isinstance(answer, Fetchable)
    return answer


def stored(call: ToolCall, *pieces: bytes) -> None:
    for piece in pieces:
        attempts.heartbeat(call_id=call.id, fence=fresh(call).fence, partial=piece)


def test_output_stored_before_the_worker_died_is_there_with_its_digest(acme: Acme) -> None:
    call = a_call(acme, "running", "side_effect", crossed=True)
    stored(call, b"one,", b"two")
    builders.lost(call)
    unfinished = fetched(acme, call).unfinished
    assert unfinished is not None
    assert unfinished.partial == partials.Partial(
        7, hashlib.sha256(b"one,two").hexdigest(), "one,two", truncated=False
    )


def test_what_is_quoted_is_capped_and_the_digest_is_of_all(acme: Acme) -> None:
    call = a_call(acme, "running", "side_effect", crossed=True)
    stored(call, b"x" * 3000)
    builders.lost(call)
    partial = fetched(acme, call).unfinished.partial  # type: ignore[union-attr]
    assert partial is not None
    assert (partial.size_bytes, len(partial.text), partial.truncated) == (3000, 2048, True)
    assert partial.sha256 == hashlib.sha256(b"x" * 3000).hexdigest()


def test_the_outputs_of_two_attempts_do_not_add_up(acme: Acme) -> None:
    call = a_call(acme, "running", "idempotent_write", crossed=True)
    stored(call, b"first")
    builders.lost(call)
    past(call, "next_step")
    fire()
    past(call, "backoff")
    fire()
    builders.claimed(call)
    builders.cross(call)
    stored(call, b"second")
    builders.lost(call)
    partial = fetched(acme, call).unfinished.partial  # type: ignore[union-attr]
    assert partial is not None
    assert partial.text == "second"
    assert Chunk.objects.count() == 2


@pytest.mark.parametrize("recovery_class", ["side_effect", "long_running"])
def test_a_handle_that_the_outside_lost_makes_it_incomplete(
    acme: Acme, recovery_class: str
) -> None:
    call = builders.a_job_whose_handle_was_lost(acme, recovery_class)
    found = fetched(acme, call)
    assert found.call.state == "ambiguous"
    assert partials.is_incomplete(found.call, found.unfinished)


def test_long_work_without_a_handle_is_incomplete_too(acme: Acme) -> None:
    found = fetched(acme, a_call(acme, "ambiguous", "long_running"))
    assert partials.is_incomplete(found.call, found.unfinished)


def test_an_ambiguous_send_is_unknown_and_not_incomplete(acme: Acme) -> None:
    found = fetched(acme, a_call(acme, "ambiguous", "side_effect"))
    assert not partials.is_incomplete(found.call, found.unfinished)


def test_a_known_end_is_not_incomplete(acme: Acme) -> None:
    call = a_call(acme, "running", "long_running", crossed=True)
    builders.report(call, Cause.VALIDATION, Meaning.REFUSED)
    found = fetched(acme, call)
    assert found.call.state == "failed"
    assert not partials.is_incomplete(found.call, found.unfinished)


@pytest.mark.parametrize("in_state", ["scheduled", "running", "succeeded"])
def test_the_ordinary_fetch_asks_for_none(acme: Acme, in_state: str) -> None:
    assert fetched(acme, a_call(acme, in_state)).unfinished is None
