"""The words of the ledger, each with the paragraph that defines it.

No Django import: executors, recovery and the clients' documentation share this file.
Source: docs/reference/glossary.md; the rules behind the words: docs/design/semantics.md.
"""

from enum import StrEnum


def spoken(word: object) -> str:
    """A word of ours as a sentence has it, with blanks: `stale_binding` is "stale binding"."""
    return str(word).replace("_", " ")


class CallState(StrEnum):
    """Where a call stands, which also says whose turn it is."""

    RECORDED = "recorded"
    """The intent is durable, nothing published. The ledger's turn, until schedule-to-close."""

    PAUSED = "paused"
    """An interrupt around the tool is unanswered. A person's turn; bounded by its expiry."""

    SCHEDULED = "scheduled"
    """An attempt is published and not claimed. A worker's turn; bounded by schedule-to-start."""

    RUNNING = "running"
    """A worker holds the fence. Bounded by start-to-close and the lease that heartbeats renew."""

    PARKED = "parked"
    """A job runs elsewhere, we hold its handle. Bounded by next poll and schedule-to-close."""

    BACKING_OFF = "backing_off"
    """A repeat is safe and dated. Bounded by the backoff."""

    INTERRUPTED = "interrupted"
    """A worker was expected and no result came. Recovery's turn; bounded by the recovery window."""

    AMBIGUOUS = "ambiguous"
    """The machine cannot determine the effect. An operator's turn; the review deadline reminds."""

    SUCCEEDED = "succeeded"
    """Settled with a result, or with a statement or proof in its place."""

    FAILED = "failed"
    """Settled with a known error; what is known of the effect is never `possible`."""

    REJECTED = "rejected"
    """Settled by a person's or a policy's no, before any effect."""

    CANCELLED = "cancelled"
    """Settled by request, on proof that no effect is possible."""

    EXPIRED = "expired"
    """Settled by a deadline. Never after an open crossing, `provider_auth` apart."""

    ABANDONED = "abandoned"
    """Closed by a person with the effect unknown: "cannot be known"."""

    @property
    def is_settled(self) -> bool:
        return self in SETTLED


SETTLED = frozenset(
    {
        CallState.SUCCEEDED,
        CallState.FAILED,
        CallState.REJECTED,
        CallState.CANCELLED,
        CallState.EXPIRED,
        CallState.ABANDONED,
    }
)
OPEN = frozenset(CallState) - SETTLED


class Effect(StrEnum):
    """What is known of the change outside our database: the second axis beside the state (R8)."""

    NONE = "none"
    """The tool only reads."""

    NOT_BEGUN = "not_begun"
    """The boundary was never crossed."""

    POSSIBLE = "possible"
    """The boundary was crossed and nothing proves what followed."""

    HAPPENED = "happened"
    """A result, a probe or a person proves it."""

    DID_NOT_HAPPEN = "did_not_happen"
    """A refusal, an authoritative probe or a person proves that it did not."""


class RecoveryClass(StrEnum):
    """How a tool may be recovered. Undeclared means `side_effect` (R18)."""

    READ_ONLY = "read_only"
    """Reads retry."""

    IDEMPOTENT_WRITE = "idempotent_write"
    """Idempotent writes reconcile: they repeat under one key or target."""

    SIDE_EFFECT = "side_effect"
    """Side effects require proof before a second attempt."""

    LONG_RUNNING = "long_running"
    """Long jobs resume by handle."""

    PROVIDER_AUTH = "provider_auth"
    """Auth requests cannot block for ever."""


class EffectKind(StrEnum):
    """What a tool can change outside, declared per tool and shown on the call (R12)."""

    FILE = "file"
    MESSAGE = "message"
    MEDIA = "media"
    CREDENTIALS = "credentials"
    SUBPROCESS = "subprocess"
    PURCHASE = "purchase"
    DELETE = "delete"
    EXTERNAL_WRITE = "external_write"
    PACKAGE_INSTALL = "package_install"


class Boundary(StrEnum):
    """Where a tool's effect can begin (semantics, section 1, rule 2)."""

    AT_START = "at_start"
    """Crossed when the tool's body is entered: the default."""

    MARKED = "marked"
    """The tool's own code crosses."""

    TRANSPORT = "transport"
    """Our client crosses before it hands over the first byte."""


class Actor(StrEnum):
    """Who made a transition."""

    AGENT = "agent"
    LEDGER = "ledger"
    POLICY = "policy"
    WORKER = "worker"
    WATCHDOG = "watchdog"
    RECOVERY = "recovery"
    OPERATOR = "operator"


class AttemptKind(StrEnum):
    """Why a worker holds a fence. Only `run` spends the attempts of the policy."""

    RUN = "run"
    RESUME = "resume"
    POLL = "poll"
    PROBE = "probe"


class FailurePoint(StrEnum):
    """Where the break fell (R55)."""

    BEFORE_START = "before_start"
    DURING_EXECUTION = "during_execution"
    AFTER_EXECUTION = "after_execution"
    DURING_HANDOFF = "during_handoff"


class Meaning(StrEnum):
    """What an error proves of the effect (semantics, section 5)."""

    NOT_BEGUN = "not_begun"
    """B: known not to have begun."""

    REFUSED = "refused"
    """R: the outside refused, so the effect did not happen."""

    KNOWN = "known"
    """K: a known result."""

    UNKNOWN = "unknown"
    """U: what was possible stays possible."""


class Cause(StrEnum):
    """Why an attempt did not bring a plain success: exactly one each (R44)."""

    CONNECT_FAILED = "connect_failed"
    NOT_BEGUN_REPORTED = "not_begun_reported"
    CONNECTION_LOST = "connection_lost"
    HANG = "hang"
    GATEWAY_TIMEOUT = "gateway_timeout"
    SERVER_ERROR = "server_error"
    RATE_LIMITED = "rate_limited"
    AUTH = "auth"
    PERMISSION = "permission"
    VALIDATION = "validation"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    TOOL_ERROR = "tool_error"
    RESULT_UNREADABLE = "result_unreadable"
    VANISHED = "vanished"
    WORKER_LOST = "worker_lost"
    RESOURCE_KILLED = "resource_killed"
    TOOL_UNKNOWN = "tool_unknown"
    INTERNAL = "internal"
    OVERTAKEN = "overtaken"
    """Its call was settled without it, so it was fenced: by the late result of an earlier attempt,
    or because the grace of its interrupted turn was over."""

    RESTORED = "restored"
    """The ledger came out of a backup, which may be older than what the call did outside."""

    REBOUND = "rebound"
    """A person bound the session anew, so this attempt of its old holder was fenced."""

    UNRECORDED = "unrecorded"
    """The transcript it was imported from holds no result of it; who ran it is not known."""


class ProofOfDeath(StrEnum):
    """Why a lost attempt cannot act any more (reliability, section 5)."""

    REAPED = "reaped"
    """Its process and everything below it has been waited for."""

    SELF_FENCE_ELAPSED = "self_fence_elapsed"
    """The kernel timer armed before its lease was granted has fired."""

    REPORTED = "reported"
    """The executor itself says that it stopped."""

    HOST_GONE = "host_gone"
    """A person states with grounds that the machine is off."""


class FenceKind(StrEnum):
    """Which fence an attempt declares at its claim; only `kernel` earns `self_fence_elapsed`."""

    KERNEL = "kernel"
    NONE = "none"


class Deadline(StrEnum):
    """The instants at which a wait ends; each is a column of the call, `<name>_at`."""

    SCHEDULE_TO_START = "schedule_to_start"
    START_TO_CLOSE = "start_to_close"
    SCHEDULE_TO_CLOSE = "schedule_to_close"
    HEARTBEAT = "heartbeat"
    BACKOFF = "backoff"
    NEXT_POLL = "next_poll"
    NEXT_STEP = "next_step"
    RECOVERY_WINDOW = "recovery_window"
    REVIEW = "review"
    INTERRUPT_EXPIRY = "interrupt_expiry"


class Instruction(StrEnum):
    """What a heartbeat is answered."""

    GO_ON = "go_on"
    CANCEL = "cancel"
    DRAIN = "drain"
    STOP = "stop"


class Phase(StrEnum):
    """Where an interrupt stands: around a tool or around a turn (semantics, 12.1)."""

    BEFORE_TURN = "before_turn"
    BEFORE_TOOL = "before_tool"
    IN_TOOL = "in_tool"
    AFTER_TOOL = "after_tool"
    AFTER_TURN = "after_turn"


class HoldReason(StrEnum):
    """Why the ledger holds a call instead of running it (semantics, 6.2 and 10)."""

    WAITING_FOR_CALL = "waiting_for_call"
    """A side effect earlier in its turn may have happened. Ends when that is known."""

    SAME_TARGET = "same_target"
    """A write under the same key, with other arguments, is not settled. Ends when it is."""

    TWIN_OPEN = "twin_open"
    """The same call is under way. Answered with that one's outcome."""

    TWIN_UNRESOLVED = "twin_unresolved"
    """The same call was interrupted. Answered with its outcome once that is known."""

    TWIN_DONE = "twin_done"
    """The same call was done before. Answered at once with the recorded outcome."""

    TWIN_ABANDONED = "twin_abandoned"
    """Nobody can know what became of the same call. A person lets it run, or nobody does."""

    REPEAT_INTENDED = "repeat_intended"
    """The agent wants a purchase or deletion once more. A person lets it run, or nobody does."""


ASKS_PERSON = frozenset({HoldReason.TWIN_ABANDONED, HoldReason.REPEAT_INTENDED})
"""Holds that no settlement ends."""


class InterruptEnd(StrEnum):
    """How an interrupt ended."""

    ANSWERED = "answered"
    """A person, the agent, or for a hold the ledger, answered it."""

    EXPIRED = "expired"
    """Nobody answered in time. That is not a no."""

    WITHDRAWN = "withdrawn"
    """Its call was cancelled, so there is nothing left to ask."""


class IncidentState(StrEnum):
    """How far the file on one call has come (semantics, section 7)."""

    DETECTED = "detected"
    """Cause and failure point are recorded."""

    SCHEDULED = "scheduled"
    """The next step has a date."""

    ATTEMPTING = "attempting"
    """A probe is under way."""

    COMPLETED = "completed"
    """Closed by the machine: repeated, resumed, proved or settled by a rule."""

    SKIPPED = "skipped"
    """Closed because the call settled by itself, or another incident covers it."""

    EXHAUSTED = "exhausted"
    """The machine is done and the call `ambiguous`: open, the operator's turn."""

    RESOLVED = "resolved"
    """Closed by a person's resolution."""


class IncidentKind(StrEnum):
    """What an incident is about."""

    RECOVERY = "recovery"
    STALE_BINDING = "stale_binding"
    COMPACTION_LOSS = "compaction_loss"
    TRANSCRIPT = "transcript"
    CONTRADICTION = "contradiction"
    REPEATED_SEND = "repeated_send"
    UNBOUNDED_WAIT = "unbounded_wait"
    MALFORMED_SNAPSHOT = "malformed_snapshot"
    RESTORED = "restored"
    HAND_OFF = "hand_off"
    TOOL_CHANGED = "tool_changed"


class ResolutionAnswer(StrEnum):
    """What an operator decides of a call whose effect is unknown (semantics, section 8)."""

    HAPPENED = "happened"
    """Its effect happened: with a result, with an error, or on the person's statement."""

    DID_NOT_HAPPEN = "did_not_happen"
    """Its effect did not happen: repeated exactly once, or closed. Locked until proven dead."""

    RETRY_SAME_KEY = "retry_same_key"
    """Exactly one attempt more under the same key, which makes a second effect impossible."""

    ATTACH_HANDLE = "attach_handle"
    """A person found the work outside; it is followed by this handle."""

    PROBE_AGAIN = "probe_again"
    """The outside is asked once more."""

    ABANDON = "abandon"
    """It cannot be known. Closed with its effect `possible`."""

    STANDS = "stands"
    """What was settled stands; a finding that contradicts it is explained. No text changes."""


class ResolutionStage(StrEnum):
    """How far a resolution has come: what its last event says."""

    REQUESTED = "requested"
    """It waits for a second person. It dies after 30 minutes, or when the file moves."""

    PENDING = "pending"
    """Its delivery delay runs; it can be taken back."""

    APPROVED = "approved"
    """A second person agreed; from then on its delivery delay runs. An event, never a stage."""

    DECLINED = "declined"
    """The second person said no. Nothing was carried out."""

    TAKEN_BACK = "taken_back"
    """Somebody took it back in time. Nothing was carried out."""

    LAPSED = "lapsed"
    """Nobody approved it in time, or the file moved meanwhile. Nothing was carried out."""

    OVERTAKEN = "overtaken"
    """When it was due, something else had moved the call. Nothing was carried out."""

    CARRIED_OUT = "carried_out"
    """It moved the call, or as a correction it stands on the file. Only a correction follows."""


CLOSED_INCIDENT = frozenset(
    {IncidentState.COMPLETED, IncidentState.SKIPPED, IncidentState.RESOLVED}
)


class LateMeaning(StrEnum):
    """What a late answer means for its settled call (semantics, section 8)."""

    ADOPTED = "adopted"
    """It is the call's result."""

    CONFIRMS = "confirms"
    """It says what the settlement says."""

    CONTRADICTS = "contradicts"
    """It says otherwise: an incident asks a person, and nothing is overwritten."""

    OTHER_ARGUMENTS = "other_arguments"
    """It is an answer to other arguments: marked, never adoptable."""

    SAYS_NOTHING = "says_nothing"
    """It proves neither that the effect happened nor that it did not."""


class ExhaustionReason(StrEnum):
    """Why the machine is done and the operator's turn begins (semantics, section 7)."""

    NO_PROGRESS_TIMEOUT = "no_progress_timeout"
    """The recovery window passed without new evidence."""

    MAX_ATTEMPTS_EXCEEDED = "max_attempts_exceeded"
    """Ten steps brought no new evidence, or the attempts of the policy are spent."""

    WORK_BUDGET_EXCEEDED = "work_budget_exceeded"
    """A retry budget, or the call's own time, is spent."""

    RECOVERY_ABORTED = "recovery_aborted"
    """A policy or a person stopped the machine."""

    STABLE_TIMEOUT = "stable_timeout"
    """The lost attempt was not proven dead within ten leases."""

    OUT_OF_MEMORY = "out_of_memory"
    """Three attempts killed their worker."""

    NO_PROOF = "no_proof"
    """The ladder is at its end: the ordinary way to the operator."""

    HANDLE_LOST = "handle_lost"
    """The outside does not know the handle any more."""

    RECOVERY_ERROR = "recovery_error"
    """The step itself broke three times."""


class ProbeFinding(StrEnum):
    """What asking the outside brought."""

    HAPPENED = "happened"
    IN_PROGRESS = "in_progress"
    DID_NOT_HAPPEN = "did_not_happen"
    UNKNOWN = "unknown"


class BudgetScope(StrEnum):
    """Within what repeats are counted, from narrow to wide (semantics, section 9)."""

    CALL = "call"
    """The attempts of its policy, and what people granted."""

    TURN = "turn"
    """All calls of one user request."""

    SESSION = "session"
    """All calls of one conversation, over rolling hours."""

    TOOL = "tool"
    """All calls of one tool in a workspace, over rolling minutes."""


class GateKind(StrEnum):
    """What a gate closes: one tool, or every tool of one provider."""

    TOOL = "tool"
    PROVIDER = "provider"


class GateReason(StrEnum):
    """Why no new attempt begins behind a gate."""

    SWITCHED_OFF = "switched_off"
    """A person switched the tool off; it stays so until a person switches it on."""

    BREAKER_OPEN = "breaker_open"
    """The breaker is open; after a while one call passes as the trial."""


class BreakerState(StrEnum):
    """Where a circuit breaker stands."""

    CLOSED = "closed"
    """Attempts begin."""

    OPEN = "open"
    """None begins until the trial is due."""

    TRIAL = "trial"
    """One call passes; its end closes or opens again."""


class DeliveryKind(StrEnum):
    """What a turn was shown for a call (semantics, section 15)."""

    REAL = "real"
    """The result as stored, for the first time; a tool's own error too."""

    REPLAYED = "replayed"
    """The same bytes again, or for a twin."""

    PARTIAL = "partial"
    """Partial output inside its notice."""

    NOTICE = "notice"
    """One of our fixed texts."""

    OPERATOR_STATED = "operator-stated"
    """What a person stated in place of the tool's result."""


class DeliveryMode(StrEnum):
    """What a consumer takes of a call (semantics, 13.5)."""

    APPEND_BOTH = "append_both"
    """Call and result: its history does not hold the call yet."""

    APPEND_OUTPUT = "append_output"
    """The result alone: its history holds the call."""


class HandOffEnd(StrEnum):
    """How the offer of a hand-off ended."""

    ACCEPTED = "accepted"
    """The receiver took the calls, and owns them from then on."""

    DECLINED = "declined"
    """The receiver said no; the sender kept them."""

    EXPIRED = "expired"
    """Nobody answered in time; the sender kept them."""


class TurnEventKind(StrEnum):
    """What happened to a turn, beside the events of its calls."""

    INTERRUPTED = "turn.interrupted"
    """The user spoke while it was under way; its calls are stopped, kept or left to end."""

    CLOSED = "turn.closed"
    """It takes nothing more."""

    PRESERVED = "result.preserved"
    """Calls that were settled when it was interrupted, or in its grace: kept for the next turn."""

    IGNORED = "result.ignored"
    """An agent sent a result for a call of the ledger, whose results come from its attempts."""

    REPEATED = "prompt.repeated"
    """The same words of the user came again, under no key."""
