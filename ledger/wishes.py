"""What the submits of a batch are looked up by, and what is held for it.

The step between recording (`ledger/submits.py`) and the table of twins: which submits can have
anything before them at all, and what becomes of one that has. A submit without session, whose
tool's policy has no key template, is looked up by nobody and costs no statement.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from ledger import held, twins
from ledger.effect_keys import effect_key
from ledger.errors import Invalid
from ledger.held import Held
from ledger.known import Known, Same, is_asked_again, known_as
from ledger.policies import CallPolicy
from ledger.repeats import Before, Found
from ledger.twins import Earlier, Wish
from ledger.vocabulary import CallState, Effect

if TYPE_CHECKING:
    from ledger.registered import Registered
    from ledger.submits import Submit


class Ahead(NamedTuple):
    """What stands before one submit of the batch; no wish where nothing can."""

    before: Before
    n: int
    wish: Wish | None


class Judged(NamedTuple):
    """Why a call does not run, if it does not; whose twin it is; what later ones find it by."""

    why: Held | None = None
    twin_of: Earlier | None = None
    wish: Wish | None = None


def judged(
    submit: "Submit", tool: "Registered", row: dict[str, Any], same: Same | None, ahead: Ahead
) -> Judged:
    """Judge one submit by what stands before it, and name in its row whose twin it is."""
    wish = ahead.wish
    if same is not None:
        wish = _wish(submit, tool, row["arguments_sha256"], repeats=same[0])
    if wish is None:
        return Judged()
    found = ahead.before.of(ahead.n, wish)
    if same is not None and found.earlier is None:
        # Recorded a moment ago, in this very batch, and looked up by nobody.
        found = Found(_as_earlier(same), None)
    why = held.held(twins.ruling(wish, found.earlier, tool.policy), found,
                    tool.policy.recovery_class)  # fmt: skip
    if why is None or not why.is_twin:
        return Judged(why, None, wish)
    row["twin_of_id"] = why.waits_for
    return Judged(why, found.earlier, wish)


def _as_earlier(same: Same) -> Earlier:
    call_id, sha256, state, *_ = same
    return Earlier(call_id, CallState(state), Effect.NOT_BEGUN, None, None, sha256)


def wishes_of(
    submits: Sequence["Submit"],
    tools: Mapping[tuple[UUID, str], "Registered"],
    digests: Sequence[tuple[str, str]],
    known: Known,
) -> dict[int, Wish]:
    """What the submits are looked up by; those that nothing can stand before are not there."""
    wishes = {}
    for n, submit in enumerate(submits):
        tool = tools.get((submit.workspace_id, submit.tool))
        if tool is None:
            continue
        same = known_as(submit, known)
        again = same is not None and is_asked_again(submit, same[4])
        if again or same is None and (submit.session_id or tool.names_intents):
            wishes[n] = _wish(submit, tool, digests[n][1], repeats=same and same[0])
    return wishes


def _wish(submit: "Submit", tool: "Registered", sha256: str, *, repeats: UUID | None) -> Wish:
    return Wish(
        workspace_id=submit.workspace_id,
        session_id=submit.session_id,
        turn_id=submit.turn_id,
        tool=submit.tool,
        arguments_sha256=sha256,
        template_key=_template_key(tool.policy, submit),
        repeats=repeats,
        repeat_intended=submit.repeat_intended and submit.idempotency_key is not None,
        effect_kinds=tool.effect_kinds,
    )


def _template_key(policy: CallPolicy, submit: "Submit") -> str | None:
    """The key by the policy's template; None without one, or where the submit is refused anyway."""
    if not policy.key_template:
        return None
    try:
        return effect_key(policy, submit.call_id, submit.arguments)
    except Invalid:
        return None


def written(submit: "Submit", tool: "Registered", why: Held) -> held.Written:
    """What the rows beside a held call's own are made of."""
    return held.Written(
        call_id=submit.call_id,
        workspace_id=submit.workspace_id,
        why=why,
        tool=tool.name,
        tool_call_id=submit.tool_call_id,
        arguments=submit.arguments,
        policy_version=tool.policy_version,
        left_s=tool.policy.timeouts.schedule_to_close_s,
    )
