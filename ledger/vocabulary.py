"""The words of the ledger, each with the paragraph that defines it.

No Django import: executors, recovery and the clients' documentation share this file.
Source: docs/reference/glossary.md; the rules behind the words: docs/design/semantics.md.
"""

from enum import StrEnum


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


class IncidentState(StrEnum):
    """How far the file on one call has come (semantics, section 7)."""

    DETECTED = "detected"
    SCHEDULED = "scheduled"
    ATTEMPTING = "attempting"
    COMPLETED = "completed"
    SKIPPED = "skipped"
    EXHAUSTED = "exhausted"
    RESOLVED = "resolved"


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


class ExhaustionReason(StrEnum):
    """Why the machine is done and the operator's turn begins."""

    NO_PROGRESS_TIMEOUT = "no_progress_timeout"
    MAX_ATTEMPTS_EXCEEDED = "max_attempts_exceeded"
    WORK_BUDGET_EXCEEDED = "work_budget_exceeded"
    RECOVERY_ABORTED = "recovery_aborted"
    STABLE_TIMEOUT = "stable_timeout"
    OUT_OF_MEMORY = "out_of_memory"
    NO_PROOF = "no_proof"
    HANDLE_LOST = "handle_lost"
    RECOVERY_ERROR = "recovery_error"


class ProbeFinding(StrEnum):
    """What asking the outside brought."""

    HAPPENED = "happened"
    IN_PROGRESS = "in_progress"
    DID_NOT_HAPPEN = "did_not_happen"
    UNKNOWN = "unknown"
