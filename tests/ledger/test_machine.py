"""The machine: every edge it says exists, every other is refused, by Python and by PostgreSQL."""

from itertools import product

import pytest

from ledger import guards, machine
from ledger.errors import IllegalTransition
from ledger.machine import TRANSITIONS, Transition
from ledger.models import Pair, PublishedTransition
from ledger.vocabulary import OPEN, SETTLED, Actor, CallState, Deadline, Effect, RecoveryClass
from tests.cast import Acme
from tests.refusals import sql

EVERY = list(TRANSITIONS.values())
kinds = pytest.mark.parametrize("transition", EVERY, ids=[each.kind for each in EVERY])
SOURCES: list[CallState | None] = [None, *CallState]


@kinds
def test_every_edge_is_stepped_by_each_of_its_actors(transition: Transition) -> None:
    for (source, target), by in product(transition.edges(), sorted(transition.by)):
        found, reached = machine.step(
            transition.kind,
            source=CallState(source) if source else None,
            target=CallState(target),
            by=by,
        )
        assert (found, reached) == (transition, target)


@kinds
def test_every_other_edge_is_refused_with_a_sentence(transition: Transition) -> None:
    legal = set(transition.edges())
    for source, target, by in product(SOURCES, CallState, Actor):
        if (str(source or ""), str(target)) in legal and by in transition.by:
            continue
        with pytest.raises(IllegalTransition, match="Nothing was written"):
            machine.step(transition.kind, source=source, target=target, by=by)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(IllegalTransition):
        machine.step("teleported", source=CallState.RUNNING, target=None, by=Actor.WORKER)


def test_the_target_may_be_left_out_where_there_is_one() -> None:
    _, target = machine.step("started", source=CallState.SCHEDULED, target=None, by=Actor.WORKER)
    assert target is CallState.RUNNING


def test_the_target_must_be_named_where_there_are_several() -> None:
    with pytest.raises(IllegalTransition):
        machine.step("adopted", source=CallState.INTERRUPTED, target=None, by=Actor.RECOVERY)


@pytest.mark.parametrize("state", sorted(SETTLED))
def test_no_event_leads_out_of_a_settled_state(state: CallState) -> None:
    leaving = [e.kind for e in EVERY if state in e.source and e.target - {state}]
    assert leaving == []


@pytest.mark.parametrize("state", sorted(OPEN))
def test_every_open_state_can_end(state: CallState) -> None:
    reached, seen = {state}, set[CallState]()
    while reached - seen:
        seen |= reached
        reached = {t for e in EVERY if e.source & seen for t in e.target} | seen
    assert reached & SETTLED


@pytest.mark.parametrize("state", sorted(OPEN))
def test_every_open_state_has_a_timer(state: CallState) -> None:
    assert machine.TIMERS[state]


@pytest.mark.parametrize("state", sorted(SETTLED))
def test_a_settled_state_has_none(state: CallState) -> None:
    assert machine.TIMERS[state] == frozenset()


def test_every_deadline_is_armed_somewhere() -> None:
    assert set().union(*machine.TIMERS.values()) == set(Deadline)


def test_only_an_operator_abandons() -> None:
    assert TRANSITIONS["abandoned"].by == {Actor.OPERATOR}


# Pairs of state and effect (semantics, section 1)


@pytest.mark.parametrize("state", list(CallState))
def test_a_read_has_no_effect_in_any_state(state: CallState) -> None:
    allowed = {e for e in Effect if machine.pair_is_allowed(state, e, "read_only")}
    assert allowed <= {Effect.NONE}


@pytest.mark.parametrize("recovery_class", [c for c in RecoveryClass if c != "read_only"])
def test_failed_never_hides_a_possible_effect(recovery_class: str) -> None:
    for state in (CallState.FAILED, CallState.REJECTED, CallState.CANCELLED):
        assert not machine.pair_is_allowed(state, Effect.POSSIBLE, recovery_class)


@pytest.mark.parametrize("recovery_class", list(RecoveryClass))
def test_a_repeat_after_the_boundary_is_only_for_classes_whose_repeat_is_safe(
    recovery_class: RecoveryClass,
) -> None:
    may = recovery_class in ("idempotent_write", "provider_auth", "long_running")
    for state in (CallState.SCHEDULED, CallState.BACKING_OFF):
        assert machine.pair_is_allowed(state, Effect.POSSIBLE, recovery_class) is may


@pytest.mark.parametrize("recovery_class", list(RecoveryClass))
def test_only_auth_expires_with_an_open_crossing(recovery_class: RecoveryClass) -> None:
    may = machine.pair_is_allowed(CallState.EXPIRED, Effect.POSSIBLE, recovery_class)
    assert may is (recovery_class is RecoveryClass.PROVIDER_AUTH)


@pytest.mark.parametrize("state", [CallState.AMBIGUOUS, CallState.ABANDONED])
def test_ambiguous_and_abandoned_mean_possible_always(state: CallState) -> None:
    allowed = {e for e in Effect if machine.pair_is_allowed(state, e, "side_effect")}
    assert allowed == {Effect.POSSIBLE}


# The same in PostgreSQL


def _plain(row: PublishedTransition) -> tuple[object, ...]:
    effects = None if row.effects is None else tuple(map(str, row.effects))
    edge = (row.kind, str(row.source), str(row.target), str(row.actor))
    return (*edge, effects, row.settles)


@pytest.mark.django_db
def test_the_published_edges_equal_the_machine() -> None:
    published = {_plain(row) for row in PublishedTransition.objects.all()}
    said = {_plain(row) for row in guards.transition_rows()}
    edges = sum(len(list(each.edges())) * len(each.by) for each in EVERY)
    assert published == said
    assert len(published) == edges


@pytest.mark.django_db
def test_the_published_pairs_equal_the_machine() -> None:
    published = set(Pair.objects.values_list("state", "effect", "recovery_class"))
    assert published == {
        (str(s), str(e), str(c))
        for s, e, c in product(CallState, Effect, RecoveryClass)
        if machine.pair_is_allowed(s, e, c)
    }


TRY_EDGES = """
CREATE FUNCTION pg_temp.try_edges(
  legal boolean, ws uuid, kinds text[], states text[], actors text[])
RETURNS TABLE (said text, times bigint) LANGUAGE plpgsql AS $$
DECLARE edge record; answer text; counts jsonb := '{}';
BEGIN
  FOR edge IN
    SELECT k, f, t, a, p.effects FROM unnest(kinds) k, unnest(array_append(states, '')) f,
           unnest(states) t, unnest(actors) a
      LEFT JOIN ledger_publishedtransition p ON false
     WHERE legal = EXISTS (SELECT FROM ledger_publishedtransition x WHERE x.kind = k
                           AND x.source = f AND x.target = t AND x.actor = a)
  LOOP
    answer := 'accepted';
    BEGIN
      INSERT INTO ledger_event (workspace_id, call_id, seq, kind, from_state, to_state, effect,
        actor, actor_id, cause, facts, prev_hash, hash, settles)
      VALUES (ws, gen_random_uuid(), 0, edge.k, edge.f, edge.t, 'none', edge.a, '', '', '{}',
        '', '', false);
      RAISE EXCEPTION 'undo' USING ERRCODE = 'CHOK1';
    EXCEPTION WHEN OTHERS THEN
      IF SQLSTATE <> 'CHOK1' THEN answer := SQLSTATE; END IF;
    END;
    counts := jsonb_set(counts, ARRAY[answer],
                        to_jsonb(coalesce((counts->>answer)::bigint, 0) + 1));
  END LOOP;
  RETURN QUERY SELECT key, value::bigint FROM jsonb_each_text(counts);
END $$
"""


def _answers(acme: Acme, *, legal: bool) -> dict[str, int]:
    sql(TRY_EDGES)
    rows = sql(
        "SELECT * FROM pg_temp.try_edges(%s, %s, %s, %s, %s)",
        legal, acme.workspace.id, list(TRANSITIONS), [str(s) for s in CallState],
        [str(a) for a in Actor],
    )  # fmt: skip
    return dict(rows)  # type: ignore[arg-type]


def test_postgresql_refuses_each_edge_that_the_machine_does_not_have(acme: Acme) -> None:
    every = len(TRANSITIONS) * (len(CallState) + 1) * len(CallState) * len(Actor)
    assert _answers(acme, legal=False) == {"CH001": every - PublishedTransition.objects.count()}


def test_postgresql_refuses_no_first_event_and_every_other_out_of_its_place(acme: Acme) -> None:
    first = PublishedTransition.objects.filter(source="").count()
    answers = _answers(acme, legal=True)
    assert answers["accepted"] == first
    assert answers["CH002"] == PublishedTransition.objects.count() - first
