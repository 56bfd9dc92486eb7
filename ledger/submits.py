"""Recording calls: intent before action (R1, R7; semantics, section 10).

`record(submits)` is the one way in. It takes a list, in one transaction, and answers each
submit by itself: a call, new or replayed, or the refusal of that one. Nothing is published
before the commit; what a submit may say of timeouts, retries or recovery is nothing (R17).

Locks: turns (shared), then nothing, since new rows are locked by being new.
"""

import difflib
import hashlib
import string
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import jsonschema_rs
import orjson
from django.db import DatabaseError, IntegrityError, transaction

from ledger import dispatch, ids, journal, pressure, strictjson
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
from ledger.journal import Move, Position
from ledger.models import Session, Tool, ToolCall, Turn
from ledger.pipelines import pipelined
from ledger.policies import CallPolicy
from ledger.vocabulary import Actor, CallState, Deadline, Effect, RecoveryClass

RING_AGAIN_S = (2.0, 5.0, 15.0, 60.0)


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
    call_id: UUID = field(default_factory=ids.new)

    @property
    def name(self) -> tuple[Any, ...] | None:
        """What makes two submits the same intent: the key, or the place in the model's reply."""
        if self.idempotency_key is not None:
            return ("key", self.agent_id, self.idempotency_key)
        if self.session_id is not None and self.tool_call_id:
            place = (self.session_id, self.turn_id, self.model_step, self.position)
            return ("place", self.agent_id, *place, self.tool_call_id)
        return None


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
    switched_off: bool

    @property
    def queue(self) -> str:
        """Reads run many at a time; all else one attempt per process, under the self-fence."""
        return "reads" if self.policy.recovery_class is RecoveryClass.READ_ONLY else "effects"


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


CALL_HAS_EVENTS = "CH002"
"""What the guard of events says when a call is recorded a second time."""


def _is_there_already(error: DatabaseError) -> bool:
    sqlstate = getattr(error.__cause__, "sqlstate", "")
    return isinstance(error, IntegrityError) or sqlstate == CALL_HAS_EVENTS


def _recorded(submits: Sequence[Submit]) -> "Known":
    """The calls that these very submits have recorded, by their ids."""
    found = ToolCall.objects.filter(id__in=[submit.call_id for submit in submits])
    columns = found.values_list("id", "arguments_sha256", "state", "tool")
    return {
        ("id", id_): (id_, sha256, CallState(state), tool) for id_, sha256, state, tool in columns
    }


def _record(submits: Sequence[Submit], known: "Known") -> list[Recorded | LedgerError]:
    tools = _tools_of(submits)
    sessions, turns = _places_of(submits)
    answers: list[Recorded | LedgerError] = []
    rows: list[dict[str, Any]] = []
    moves: list[Move] = []
    for submit in submits:
        try:
            answer, row, row_moves = _one(submit, tools, sessions, turns, known)
        except LedgerError as refusal:
            answers.append(refusal)
            continue
        answers.append(answer)
        if row is not None:
            rows.append(row)
            moves.extend(row_moves)
            if submit.name is not None:
                known[submit.name] = (
                    answer.call_id,
                    row["arguments_sha256"],
                    answer.state,
                    submit.tool,
                )
    if rows:
        # Two batches with the same names must come to each unique key in the same order.
        rows.sort(key=_order_of)
        with pipelined():
            journal.record(rows, moves)
        dispatch.ring_after_commit(
            {row["queue"] for row in rows if "ring_at" in row}, rows[0]["id"]
        )
    return answers


def _order_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    name = ("idempotency_key", "session_id", "turn_id", "model_step", "position", "tool_call_id")
    return tuple(str(row[each] or "") for each in name)


Known = dict[tuple[Any, ...], tuple[UUID, str, CallState, str]]


def _one(
    submit: Submit,
    tools: Mapping[tuple[UUID, str], Registered],
    sessions: Mapping[UUID, Session],
    turns: Mapping[UUID, Turn],
    known: Known,
) -> tuple[Recorded, dict[str, Any] | None, list[Move]]:
    canonical = strictjson.canonical(submit.arguments)
    sha256 = hashlib.sha256(canonical).hexdigest()
    if ("id", submit.call_id) in known:
        return Recorded(submit.call_id, False, known["id", submit.call_id][2]), None, []
    if submit.name is not None and submit.name in known:
        call_id, known_sha256, state, tool_name = known[submit.name]
        if known_sha256 != sha256 or tool_name != submit.tool:
            raise KeyReused(
                earlier=f"a call of {tool_name} with arguments of digest {known_sha256}"
            )
        return Recorded(call_id, True, state), None, []
    tool = _registered(submit, tools)
    epoch = _check_place(submit, sessions, turns)
    _check_arguments(tool, submit.arguments)
    pressure.refuse_if_full(submit.workspace_id, tool.name, tool.policy)
    call_id = submit.call_id
    row = _row(submit, tool, call_id, canonical.decode(), sha256, epoch)
    moves = _moves(submit, tool, call_id, sha256, epoch)
    state = CallState.REJECTED if tool.switched_off else CallState.SCHEDULED
    if not tool.switched_off:
        row["ring_at"] = RING_AGAIN_S[0]
    return Recorded(call_id, False, state), row, moves


def _tools_of(submits: Sequence[Submit]) -> dict[tuple[UUID, str], Registered]:
    now = time.monotonic()
    wanted = {(submit.workspace_id, submit.tool) for submit in submits}
    unread = [key for key in wanted if key not in _tools or _tools[key][0] < now]
    if unread:
        found = Tool.objects.filter(
            workspace__in={workspace_id for workspace_id, _ in unread},
            name__in={name for _, name in unread},
        )
        for tool in found:
            key = (tool.workspace_id, tool.name)
            _tools[key] = (now + REMEMBERED_S, _as_registered(tool))
    return {key: _tools[key][1] for key in wanted if key in _tools}


REMEMBERED_S = 1.0
_tools: dict[tuple[UUID, str], tuple[float, "Registered"]] = {}


def forget_tools() -> None:
    """Read the tools again at the next submit."""
    _tools.clear()


_versions: dict[tuple[UUID, int, int], Registered] = {}


def _as_registered(tool: Tool) -> Registered:
    key = (tool.id, tool.version, tool.policy_version)
    registered = _versions.get(key)
    if registered is None:
        # Versions and policies are immutable, so what is read once holds for ever.
        registered = _versions[key] = _load(tool)
    if tool.switched_off_at is None:
        return registered
    return replace(registered, switched_off=True)


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
        switched_off=False,
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
    session_ids = {s.session_id for s in submits if s.session_id is not None}
    turn_ids = sorted({s.turn_id for s in submits if s.turn_id is not None})
    sessions = Session.objects.in_bulk(list(session_ids)) if session_ids else {}
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
        if turn.closed_at is not None:
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
        "effect_key": effect_key(tool.policy, call_id, submit.arguments),
        "recovery_class": str(tool.policy.recovery_class),
        "queue": tool.queue,
        "attempts_allowed": tool.policy.retry.attempts,
    }


def effect_key(policy: CallPolicy, call_id: UUID, arguments: Mapping[str, Any]) -> str:
    """The key under which the outside tells a repeat from a new effect; one for all attempts (I9).

    The policy's template over the arguments (R21), else the call's own id.
    """
    if not policy.key_template:
        return call_id.hex
    try:
        return string.Formatter().vformat(policy.key_template, (), _Plain(arguments))[:300]
    except (KeyError, IndexError) as error:
        raise Invalid(
            detail=f"The policy's key template needs the argument {error}, which is not there."
        ) from error


class _Plain(dict[str, str]):
    """The arguments as plain text, so that a template can reach no attribute of anything."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__(
            {
                name: value if isinstance(value, str) else strictjson.canonical(value).decode()
                for name, value in arguments.items()
            }
        )


def _moves(submit: Submit, tool: Registered, call_id: UUID, sha256: str, epoch: int) -> list[Move]:
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
    if tool.switched_off:
        reason = {"reason": "switched_off"}
        return [recorded, Move(call=after, kind="rejected", by=Actor.POLICY, facts=reason,
                               columns=reason)]  # fmt: skip
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
    columns = ("id", "arguments_sha256", "state", "tool")
    if keys:
        found = ToolCall.objects.filter(
            agent__in={s.agent_id for s in keys},
            idempotency_key__in={s.idempotency_key for s in keys},
        )
        for agent_id, key, *rest in found.values_list("agent_id", "idempotency_key", *columns):
            known["key", agent_id, key] = tuple(rest)
    places = [s for s in submits if s.name is not None and s.idempotency_key is None]
    if places:
        found = ToolCall.objects.filter(
            session__in={s.session_id for s in places},
            tool_call_id__in={s.tool_call_id for s in places},
            idempotency_key__isnull=True,
        )
        place = ("agent_id", "session_id", "turn_id", "model_step", "position", "tool_call_id")
        for *where, id_, sha256, state, tool in found.values_list(*place, *columns):
            known["place", *where] = (id_, sha256, state, tool)
    return known
