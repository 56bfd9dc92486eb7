"""Recording calls: intent before action (R1, R7; semantics, section 10).

`record(submits)` is the one way in. It takes a list, in one transaction, and answers each
submit by itself: a call, new or replayed, or the refusal of that one. Nothing is published
before the commit; what a submit may say of timeouts, retries or recovery is nothing (R17).

Locks: sessions, turns (shared), keys of templates, then nothing, since new rows are locked by
being new. What the session's lock is for: `ledger/repeats.py`.
"""

import difflib
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import jsonschema_rs
import orjson
from django.db import DatabaseError, IntegrityError, transaction

from ledger import clock, dispatch, gates, held, ids, journal, pressure, strictjson
from ledger.effect_keys import effect_key
from ledger.errors import (
    BindingDrift,
    Invalid,
    KeyReused,
    LedgerError,
    NotFound,
    StaleEpoch,
    ToolUnknown,
    TurnClosed,
)
from ledger.gates import Closed
from ledger.held import Held
from ledger.journal import Move, Position
from ledger.models import Session, Tool, ToolCall, Turn
from ledger.pipelines import pipelined
from ledger.policies import CallPolicy
from ledger.repeats import Before
from ledger.vocabulary import Actor, CallState, Deadline, Effect, GateReason, RecoveryClass
from ledger.wishes import (
    Ahead,
    Known,
    held_for,
    is_asked_again,
    key_again,
    known_as,
    wishes_of,
    written,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """One wish of a model to use a tool, as the API took it."""

    workspace_id: UUID
    agent_id: UUID
    tool: str
    arguments: dict[str, Any]
    session_id: UUID | None = None
    turn_id: UUID | None = None
    tool_call_id: str = ""
    model_step: int = 0
    position: int = 0
    idempotency_key: str | None = None
    epoch: int | None = None
    working_directory: str | None = None
    host: str | None = None
    model: str | None = None
    api_key_id: str = ""
    repeat_intended: bool = False
    prompt_tokens: int | None = None
    call_id: UUID = field(default_factory=ids.new)

    @property
    def name(self) -> tuple[Any, ...] | None:
        """What makes two submits the same intent: the key, or the place in the model's reply."""
        if self.idempotency_key is not None:
            return ("key", self.agent_id, self.idempotency_key)
        if self.session_id is not None and self.tool_call_id:
            return self.place
        return None

    @property
    def place(self) -> tuple[Any, ...]:
        """Where in the model's reply it stands."""
        place = (self.session_id, self.turn_id, self.model_step, self.position)
        return ("place", self.agent_id, *place, self.tool_call_id)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The call of a submit. `replayed` when an equal submit had recorded it before."""

    call_id: UUID
    replayed: bool
    state: CallState


@dataclass(frozen=True, slots=True)
class Registered:
    """A tool as it holds now: its version, its policy, and the validator of its arguments."""

    name: str
    version_id: UUID
    version: int
    policy_id: UUID
    policy_version: int
    policy: CallPolicy
    validator: Any
    provider: str = ""
    effect_kinds: frozenset[str] = frozenset()
    gates: tuple[Closed, ...] = ()

    @property
    def reads(self) -> bool:
        return self.policy.recovery_class is RecoveryClass.READ_ONLY

    @property
    def names_intents(self) -> bool:
        """Whether its policy's template finds the same intent in any session."""
        return bool(self.policy.key_template)

    @property
    def queue(self) -> str:
        """Reads run many at a time; all else one attempt per process, under the self-fence."""
        return "reads" if self.reads else "effects"


def record(submits: Sequence[Submit]) -> list[Recorded | LedgerError]:
    """Record the calls, or find the ones that equal submits have recorded.

    Each answer is a Recorded or the refusal of that submit; a refused one leaves no row.
    """
    try:
        with transaction.atomic():
            return _record(submits, _known(submits))
    except DatabaseError as error:
        if not _is_there_already(error):
            raise
    # An equal submit of another process won between our look and our insert, or this very one
    # was committed and its answer lost: look again, by the ids too.
    with transaction.atomic():
        return _record(submits, _known(submits) | _recorded(submits))


def record_within(submits: Sequence[Submit]) -> list[Recorded | LedgerError]:
    """As `record`, in the caller's transaction, which goes on and commits it with its own rows.

    The caller holds the lock of the session that all of them belong to, so that no equal submit
    can come between the look and the insert.
    """
    return _record(submits, _known(submits), commit=False)


CALL_HAS_EVENTS = "CH002"
"""What the guard of events says when a call is recorded a second time."""


def _is_there_already(error: DatabaseError) -> bool:
    sqlstate = getattr(error.__cause__, "sqlstate", "")
    return isinstance(error, IntegrityError) or sqlstate == CALL_HAS_EVENTS


def _recorded(submits: Sequence[Submit]) -> Known:
    """The calls that these very submits have recorded, by their ids."""
    found = ToolCall.objects.filter(id__in=[submit.call_id for submit in submits])
    columns = found.values_list("id", "arguments_sha256", "state", "tool", "tool_call_id")
    return {
        ("id", id_): (id_, sha256, CallState(state), tool, tool_call_id)
        for id_, sha256, state, tool, tool_call_id in columns
    }


def _record(
    submits: Sequence[Submit], known: Known, *, commit: bool = True
) -> list[Recorded | LedgerError]:
    tools = _tools_of(submits)
    sessions, turns = _places_of(submits)
    digests = [_digest(submit) for submit in submits]
    wishes = wishes_of(submits, tools, digests, known)
    before = Before.read(wishes)
    answers: list[Recorded | LedgerError] = []
    rows: list[dict[str, Any]] = []
    moves: list[Move] = []
    holding: list[held.Written] = []
    for n, submit in enumerate(submits):
        try:
            ahead = Ahead(before, n, wishes.get(n))
            answer, row, row_moves, why = _one(
                submit, digests[n], tools, sessions, turns, known, ahead
            )
        except LedgerError as refusal:
            answers.append(refusal)
            continue
        answers.append(answer)
        if row is not None:
            rows.append(row)
            moves.extend(row_moves)
            if why is not None:
                tool = tools[submit.workspace_id, submit.tool]
                holding.append(written(submit, tool, why))
            if submit.name is not None:
                name = submit.name if submit.name not in known else submit.place
                known[name] = (
                    answer.call_id,
                    row["arguments_sha256"],
                    answer.state,
                    submit.tool,
                    submit.tool_call_id,
                )
    if rows:
        # Two batches with the same names must come to each unique key in the same order.
        rows.sort(key=_order_of)
        dispatch.ring_after_commit(
            {row["queue"] for row in rows if "ring_at" in row}, rows[0]["id"]
        )
        taken_at = clock.now() if holding else None
        with pipelined(commit=commit):
            journal.record(rows, moves)
            if taken_at is not None:
                held.write(holding, taken_at=taken_at)
    return answers


def _order_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    name = ("idempotency_key", "session_id", "turn_id", "model_step", "position", "tool_call_id")
    return tuple(str(row[each] or "") for each in name)


def _one(
    submit: Submit,
    digest: tuple[str, str],
    tools: Mapping[tuple[UUID, str], Registered],
    sessions: Mapping[UUID, Session],
    turns: Mapping[UUID, Turn],
    known: Known,
    ahead: Ahead,
) -> tuple[Recorded, dict[str, Any] | None, list[Move], Held | None]:
    canonical, sha256 = digest
    if ("id", submit.call_id) in known:
        state = CallState(known["id", submit.call_id][2])
        return Recorded(submit.call_id, False, state), None, [], None
    same = known_as(submit, known)
    if same is not None:
        call_id, known_sha256, state, tool_name, tool_call_id = same
        if known_sha256 != sha256 or tool_name != submit.tool:
            raise KeyReused(
                earlier=f"a call of {tool_name} with arguments of digest {known_sha256}"
            )
        if not is_asked_again(submit, tool_call_id):
            return Recorded(call_id, True, state), None, [], None
        if submit.place in known:
            return Recorded(known[submit.place][0], True, known[submit.place][2]), None, [], None
    tool = _registered(submit, tools)
    epoch = _check_place(submit, sessions, turns)
    _check_arguments(tool, submit.arguments)
    call_id = submit.call_id
    row = _row(submit, tool, call_id, canonical, sha256, epoch)
    if same is not None:
        # One key names one call; what the model asks again under it has a name of its own.
        row["idempotency_key"] = key_again(submit)
    rejected = _why_rejected(submit, tool, sessions)
    why = None if rejected else held_for(submit, tool, row, same, ahead)
    if not rejected and why is None:
        # What is answered from the ledger, or waits, takes no trial and presses on no queue.
        rejected = gates.refusal(tool.gates, call_id, reads=tool.reads) if tool.gates else ""
    if not rejected and why is None:
        pressure.refuse_if_full(submit.workspace_id, tool.name, tool.policy)
    moves = _moves(submit, tool, call_id, sha256, epoch, rejected, why)
    state = CallState.REJECTED if rejected else why.state if why else CallState.SCHEDULED
    if state is CallState.SCHEDULED:
        row["ring_at"] = dispatch.RING_AGAIN_S[0]
    return Recorded(call_id, False, state), row, moves, why


def _digest(submit: Submit) -> tuple[str, str]:
    """The canonical arguments and their hash."""
    canonical = strictjson.canonical(submit.arguments)
    return canonical.decode(), hashlib.sha256(canonical).hexdigest()


def _why_rejected(submit: Submit, tool: Registered, sessions: Mapping[UUID, Session]) -> str:
    if gates.is_switched_off(tool.gates):
        return str(GateReason.SWITCHED_OFF)
    session = sessions.get(submit.session_id) if submit.session_id is not None else None
    return "stopped" if session is not None and session.stopped_at is not None else ""


def _tools_of(submits: Sequence[Submit]) -> dict[tuple[UUID, str], Registered]:
    now = time.monotonic()
    wanted = {(submit.workspace_id, submit.tool) for submit in submits}
    unread = [key for key in wanted if key not in _tools or _tools[key][0] < now]
    if unread:
        found = Tool.objects.filter(
            workspace__in={workspace_id for workspace_id, _ in unread},
            name__in={name for _, name in unread},
        )
        standing = gates.standing(workspace_id for workspace_id, _ in unread)
        for tool in found:
            key = (tool.workspace_id, tool.name)
            _tools[key] = (now + REMEMBERED_S, _as_registered(tool, standing))
    return {key: _tools[key][1] for key in wanted if key in _tools}


REMEMBERED_S = 1.0
_tools: dict[tuple[UUID, str], tuple[float, "Registered"]] = {}


def forget_tools() -> None:
    """Read the tools again at the next submit."""
    _tools.clear()


_versions: dict[tuple[UUID, int, int], Registered] = {}


def _as_registered(tool: Tool, standing: Mapping[gates.Place, list[Closed]]) -> Registered:
    key = (tool.id, tool.version, tool.policy_version)
    registered = _versions.get(key)
    if registered is None:
        # Versions and policies are immutable, so what is read once holds for ever.
        registered = _versions[key] = _load(tool)
    closed = gates.before(standing, tool.workspace_id, tool.name, registered.provider)
    return replace(registered, gates=closed) if closed else registered


def _load(tool: Tool) -> Registered:
    version = tool.versions.get(number=tool.version)
    policy = tool.policies.get(number=tool.policy_version)
    return Registered(
        name=tool.name,
        version_id=version.id,
        version=version.number,
        policy_id=policy.id,
        policy_version=policy.number,
        policy=policy.call_policy,
        validator=_validator(version.input_schema),
        provider=version.provider,
        effect_kinds=frozenset(version.effect_kinds),
    )


def _validator(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.validator_for(schema, offline=True) if schema else None


def _registered(submit: Submit, tools: Mapping[tuple[UUID, str], Registered]) -> Registered:
    tool = tools.get((submit.workspace_id, submit.tool))
    if tool is None:
        names = Tool.objects.filter(workspace=submit.workspace_id).values_list("name", flat=True)
        near = difflib.get_close_matches(submit.tool, names, n=1)
        raise ToolUnknown(
            tool=submit.tool[:128], suggestion=f" Did you mean {near[0]!r}?" if near else ""
        )
    return tool


def _places_of(submits: Sequence[Submit]) -> tuple[dict[UUID, Session], dict[UUID, Turn]]:
    session_ids = sorted({s.session_id for s in submits if s.session_id is not None})
    turn_ids = sorted({s.turn_id for s in submits if s.turn_id is not None})
    # Two equal submits at once must see one another, and a stopped session takes no call: the
    # session's row lets its submits come one after the other, whichever process they came to.
    sessions = (
        {s.id: s for s in Session.objects.raw(
            "SELECT * FROM ledger_session WHERE id = ANY(%s) AND agent_id = ANY(%s) "
            "ORDER BY id FOR NO KEY UPDATE", [session_ids, [s.agent_id for s in submits]])}
        if session_ids else {}
    )  # fmt: skip
    # Shared locks: the turn cannot be closed between this look and the commit.
    turns = (
        {t.id: t for t in Turn.objects.raw(
            "SELECT * FROM ledger_turn WHERE id = ANY(%s) ORDER BY id FOR SHARE", [turn_ids])}
        if turn_ids else {}
    )  # fmt: skip
    return sessions, turns


def _check_place(
    submit: Submit, sessions: Mapping[UUID, Session], turns: Mapping[UUID, Turn]
) -> int:
    if submit.session_id is None:
        if submit.turn_id is not None:
            raise Invalid(detail="A turn belongs to a session: give the session too.")
        return 1
    session = sessions.get(submit.session_id)
    if (
        session is None
        or session.workspace_id != submit.workspace_id
        or session.agent_id != submit.agent_id
    ):
        raise NotFound(noun="session")
    if submit.epoch is not None and submit.epoch != session.epoch:
        raise StaleEpoch(epoch=session.epoch)
    for name in ("working_directory", "host"):
        given = getattr(submit, name)
        if given is not None and given != getattr(session, name):
            raise BindingDrift(field=name.replace("_", " "))
    if submit.turn_id is not None:
        turn = turns.get(submit.turn_id)
        if turn is None or turn.session_id != session.id:
            raise NotFound(noun="turn")
        if not turn.takes_calls:
            raise TurnClosed()
    return session.epoch


def _check_arguments(tool: Registered, arguments: dict[str, Any]) -> None:
    if tool.validator is None or tool.validator.is_valid(arguments):
        return
    errors = [
        {
            "pointer": "/arguments" + "".join(f"/{part}" for part in error.instance_path),
            "detail": _why(error),
        }
        for error in list(tool.validator.iter_errors(arguments))[:20]
    ]
    raise Invalid(
        detail=f"The arguments do not fit the input schema of {tool.name}: "
        f"{errors[0]['pointer']} {errors[0]['detail']}.",
        errors=errors,
    )


NAMES_ONLY = frozenset({"required", "additionalProperties"})
"""Rules whose message names members and repeats no value of the caller's."""


def _why(error: Any) -> str:
    path = [str(part) for part in error.schema_path]
    if path and path[-1] in NAMES_ONLY:
        return str(error.message)[:300]
    return f"does not satisfy {'/'.join(path)}"


def _row(
    submit: Submit, tool: Registered, call_id: UUID, arguments: str, sha256: str, epoch: int
) -> dict[str, Any]:
    received = orjson.dumps(submit.arguments).decode()
    return {
        "id": call_id,
        "workspace_id": submit.workspace_id,
        "agent_id": submit.agent_id,
        "session_id": submit.session_id,
        "turn_id": submit.turn_id,
        "tool_version_id": tool.version_id,
        "policy_id": tool.policy_id,
        "tool": tool.name,
        "tool_call_id": submit.tool_call_id,
        "model_step": submit.model_step,
        "position": submit.position,
        "binding_epoch": epoch,
        "arguments": arguments,
        "arguments_received": received if received != arguments else None,
        "arguments_sha256": sha256,
        "idempotency_key": submit.idempotency_key,
        "api_key_id": submit.api_key_id,
        "effect_key": (key := effect_key(tool.policy, call_id, submit.arguments)),
        "template_key": key if tool.policy.key_template else None,
        "prompt_tokens": submit.prompt_tokens,
        "recovery_class": str(tool.policy.recovery_class),
        "queue": tool.queue,
        "attempts_allowed": tool.policy.retry.attempts,
    }


def _moves(
    submit: Submit,
    tool: Registered,
    call_id: UUID,
    sha256: str,
    epoch: int,
    rejected: str,
    why: Held | None,
) -> list[Move]:
    policy, times = tool.policy, tool.policy.timeouts
    effect = Effect.NONE if policy.recovery_class is RecoveryClass.READ_ONLY else Effect.NOT_BEGUN
    start = Position(call_id, submit.workspace_id, None, effect, 0)
    after = Position(call_id, submit.workspace_id, CallState.RECORDED, effect, 1)
    recorded = Move(
        call=start,
        kind="recorded",
        by=Actor.AGENT,
        by_id=submit.agent_id.hex,
        facts={
            "arguments_sha256": sha256,
            "tool": tool.name,
            "tool_version": tool.version,
            "policy_version": tool.policy_version,
            "epoch": epoch,
        },
    )
    if rejected:
        reason = {"reason": rejected}
        return [recorded, Move(call=after, kind="rejected", by=Actor.POLICY, facts=reason,
                               columns=reason)]  # fmt: skip
    if why is not None:
        return [recorded, *held.moves(why, after)]
    return [
        recorded,
        Move(
            call=after,
            kind="scheduled",
            by=Actor.LEDGER,
            facts={"attempt": 1},
            arm={
                Deadline.SCHEDULE_TO_START: times.schedule_to_start_s,
                Deadline.SCHEDULE_TO_CLOSE: times.schedule_to_close_s,
            },
        ),
    ]


def _known(submits: Sequence[Submit]) -> Known:
    """The calls that equal submits have recorded before, by what names the intent."""
    known: Known = {}
    keys = [s for s in submits if s.idempotency_key is not None]
    columns = ("id", "arguments_sha256", "state", "tool", "tool_call_id")
    if keys:
        found = ToolCall.objects.filter(
            agent__in={s.agent_id for s in keys},
            idempotency_key__in={s.idempotency_key for s in keys},
        )
        for agent_id, key, *rest in found.values_list("agent_id", "idempotency_key", *columns):
            known["key", agent_id, key] = tuple(rest)
        known |= _asked_again(keys, known)
    places = [s for s in submits if s.name is not None and s.idempotency_key is None]
    if places:
        found = ToolCall.objects.filter(
            session__in={s.session_id for s in places},
            tool_call_id__in={s.tool_call_id for s in places},
            idempotency_key__isnull=True,
        )
        place = ("agent_id", "session_id", "turn_id", "model_step", "position", "tool_call_id")
        for *where, id_, sha256, state, tool, _ in found.values_list(*place, *columns):
            known["place", *where] = (id_, sha256, state, tool, where[-1])
    return known


def _asked_again(submits: Sequence[Submit], known: Known) -> Known:
    """Calls that repeats under known keys have recorded, by their places in the model's reply."""
    pairs = [(submit, known_as(submit, known)) for submit in submits]
    names = {key_again(s): s for s, same in pairs if same and is_asked_again(s, same[4])}
    if not names:
        return {}
    found = ToolCall.objects.filter(
        agent__in={s.agent_id for s in names.values()}, idempotency_key__in=names
    )
    columns = ("idempotency_key", "id", "arguments_sha256", "state", "tool", "tool_call_id")
    return {names[key or ""].place: tuple(rest) for key, *rest in found.values_list(*columns)}
