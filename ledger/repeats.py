"""What stands before the submits of a batch: their twins, and what their turn waits for.

One statement for a whole batch, and none where nothing can stand before any of it. It must run
behind the locks of the sessions and of the template keys: two equal submits at once would both
find nothing. Each statement sees what was committed before it began, so the locks come first.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from ledger import pipelines
from ledger.holds import BLOCKS
from ledger.tables import table
from ledger.twins import Earlier, Wish
from ledger.vocabulary import SETTLED, CallState, Effect


class Found(NamedTuple):
    """What stands before a wish: a call it may be a twin of, and one its turn waits for."""

    earlier: Earlier | None
    blocked_by: UUID | None


NOTHING = Found(None, None)


WISH_COLUMNS = (
    ("n", "integer"),
    ("workspace_id", "uuid"),
    ("session_id", "uuid"),
    ("turn_id", "uuid"),
    ("tool", "text"),
    ("sha256", "text"),
    ("template_key", "text"),
    ("repeats", "uuid"),
)
# What settled without an effect stands in nobody's way; twins refer to the call that ran.
RELEVANT = (
    "c.twin_of_id IS NULL AND (c.settled_at IS NULL OR c.state = 'succeeded' "
    f"OR c.state = '{CallState.ABANDONED}' OR c.state = 'failed' AND c.effect = 'happened')"
)
# Kept after an interruption: nobody confirmed it, nor fetched it since. What was fetched before is
# no proof, since the reply that it was fetched for may be the one that was thrown away.
KEPT = (
    "c.state = 'succeeded' AND c.delivered_at IS NULL "
    "AND EXISTS (SELECT FROM ledger_turn t WHERE t.id = c.turn_id AND t.closed_as = 'interrupted' "
    "AND NOT EXISTS (SELECT FROM ledger_fetch f WHERE f.call_id = c.id AND f.state = c.state "
    "AND f.last_at > t.closed_at))"
)
# Served by the primary key, `call_same_arguments`, `call_handed_off`, `call_same_template_key`,
# `call_holds_turn`.
READ = (
    # Most submits find nothing, and what finds nothing comes back as no row.
    "SELECT q.* FROM (SELECT w.n, c.id, c.state, c.effect, c.session_id, c.turn_id, "  # noqa: S608 constants of this module
    "c.arguments_sha256, EXISTS (SELECT FROM ledger_result r WHERE r.call_id = c.id), "
    "extract(epoch FROM clock_timestamp() - c.settled_at)::float8, "
    f"coalesce({KEPT}, false), (SELECT b.id FROM ledger_toolcall b WHERE b.turn_id = w.turn_id "
    f"AND {BLOCKS} ORDER BY b.recorded_at LIMIT 1) AS blocked_by "
    "FROM (SELECT v.* FROM {}) w LEFT JOIN LATERAL (SELECT c.* FROM ("
    "SELECT c.* FROM ledger_toolcall k JOIN ledger_toolcall c ON c.id = "
    "coalesce(k.twin_of_id, k.id) WHERE k.id = w.repeats UNION ALL "
    "SELECT c.* FROM ledger_toolcall c WHERE w.repeats IS NULL AND w.template_key IS NULL "
    "AND c.session_id = w.session_id AND left(c.arguments_sha256, 8) = left(w.sha256, 8) "
    f"AND c.arguments_sha256 = w.sha256 AND c.tool = w.tool AND {RELEVANT} UNION ALL "
    # What the session took over in a hand-off stands before it like its own.
    "SELECT c.* FROM ledger_handoff h JOIN ledger_toolcall c ON c.handed_off_id = h.id "
    "WHERE w.repeats IS NULL AND w.template_key IS NULL AND h.to_session_id = w.session_id "
    f"AND c.arguments_sha256 = w.sha256 AND c.tool = w.tool AND {RELEVANT} UNION ALL "
    "SELECT c.* FROM ledger_toolcall c WHERE w.repeats IS NULL "
    "AND c.workspace_id = w.workspace_id AND c.tool = w.tool "
    f"AND c.template_key = w.template_key AND {RELEVANT}) c "
    "ORDER BY c.settled_at IS NULL DESC, c.recorded_at DESC LIMIT 1) c ON true) q "
    "WHERE q.id IS NOT NULL OR q.blocked_by IS NOT NULL"
)


class Before:
    """What stands before the wishes of one batch, those of the batch itself included."""

    def __init__(self) -> None:
        self._found: dict[int, Found] = {}
        self._here: dict[tuple[Any, ...], Earlier] = {}

    @classmethod
    def read(cls, wishes: Mapping[int, Wish]) -> "Before":
        """Read it, in one statement; in none where there are no wishes."""
        before = cls()
        if not wishes:
            return before
        _lock({wish.template_key for wish in wishes.values() if wish.template_key is not None})
        text, parameters = table(WISH_COLUMNS, [_columns(n, each) for n, each in wishes.items()])
        found = pipelines.rows(READ.format(text), parameters)
        for n, id_, state, effect, *rest, blocked_by in found:
            earlier = id_ and Earlier(id_, CallState(state), Effect(effect), *rest)
            before._found[n] = Found(earlier, blocked_by)
        return before

    def of(self, n: int, wish: Wish) -> Found:
        """What stands before wish `n`; a call of the same batch comes first."""
        found = self._found.get(n, NOTHING)
        name = ("call", wish.repeats) if wish.repeats is not None else _name(wish)
        here = self._here.get(name)
        return found if here is None else Found(here, found.blocked_by)

    def recorded(self, call_id: UUID, wish: Wish, state: CallState, other: Earlier | None) -> None:
        """Remember a call of this batch, by its id as what it is a twin of."""
        own = Earlier(
            call_id, state, Effect.NOT_BEGUN, wish.session_id, wish.turn_id, wish.arguments_sha256
        )
        self._here["call", call_id] = other or own
        if other is None and state not in SETTLED:
            self._here[_name(wish)] = own


def _name(wish: Wish) -> tuple[Any, ...]:
    if wish.template_key is not None:
        return ("template", wish.workspace_id, wish.tool, wish.template_key)
    return ("arguments", wish.session_id, wish.tool, wish.arguments_sha256)


def _columns(n: int, wish: Wish) -> tuple[Any, ...]:
    return (
        n,
        wish.workspace_id,
        wish.session_id,
        wish.turn_id,
        wish.tool,
        wish.arguments_sha256,
        wish.template_key,
        wish.repeats,
    )


def _lock(template_keys: set[str | None]) -> None:
    """Let equal keys come one after the other; a session's submits wait at its row already."""
    if not template_keys:
        return
    pipelines.write(
        "SELECT pg_advisory_xact_lock(k) FROM (SELECT DISTINCT hashtextextended(key, 10) k "
        "FROM unnest(%s::text[]) key ORDER BY 1) keys",
        [sorted(filter(None, template_keys))],
    )
