"""The words of notifications: what is told, through what, and how far a message has come."""

from enum import StrEnum


class Event(StrEnum):
    """What people are told of (console, section 18). The words travel as `type` in webhooks."""

    INCIDENT_OPENED = "incident.opened"
    """An incident waits for a person; or waits again after the machine had another turn."""

    REVIEW_NEAR = "review.near"
    """Nine tenths of the review time are over, and nobody has decided."""

    REVIEW_PAST = "review.past"
    """The review time is over: a wider circle is asked, and the time begins anew."""

    INCIDENT_DISPUTED = "incident.disputed"
    """Somebody disputes what another recorded: a third person or an admin decides."""

    INCIDENT_RESOLVED = "incident.resolved"
    """The all-clear: the incident is closed, by a person or by the machine."""

    APPROVAL_WANTED = "approval.requested"
    """A decision waits for a second person."""

    INTERRUPT_RAISED = "interrupt.raised"
    """A paused call waits for a person's answer."""

    INTERRUPT_EXPIRING = "interrupt.expiring"
    """A tenth of the time for that answer is left. The one event that no quiet hours hold back."""

    INTERRUPT_ENDED = "interrupt.ended"
    """The all-clear: it was answered, expired, or is needed no more."""

    RESULT_LATE = "result.late"
    """A result came from an attempt that had lost its fence, for a call that a person looks at."""

    SESSION_DRIFTED = "session.drifted"
    """A session came back with another binding than its own, and was refused."""

    BUDGET_SPENT = "budget.spent"
    """A turn, a session or a tool may repeat nothing more."""

    BULK_RUN_FINISHED = "bulk_run.finished"
    """Every row of a bulk run has its outcome, or it was stopped."""

    CHANNEL_DISABLED = "webhook.disabled"
    """A channel was switched off because nobody answered there; told through the others."""

    SWEEP_SILENT = "sweep.silent"
    """No watchdog has swept for a minute: no deadline fires."""

    SWEEP_BACK = "sweep.back"
    """The all-clear: a watchdog sweeps again."""

    TEST = "test"
    """An admin tries a channel."""


ALL_CLEAR = frozenset({Event.INCIDENT_RESOLVED, Event.INTERRUPT_ENDED, Event.SWEEP_BACK})
"""Told to whoever got the alarm, and to nobody else: no filter chooses them."""

CHOSEN = tuple(each for each in Event if each not in ALL_CLEAR and each is not Event.TEST)
"""The events that a channel can be asked to tell."""

CRITICAL = frozenset(
    {Event.REVIEW_PAST, Event.INTERRUPT_EXPIRING, Event.CHANNEL_DISABLED, Event.SWEEP_SILENT}
)
"""These pass the digest: each is a message at once."""

NEVER_QUIET = frozenset({Event.INTERRUPT_EXPIRING, Event.TEST})
"""These pass quiet hours."""


class ChannelKind(StrEnum):
    """How a channel tells."""

    WEBHOOK = "webhook"
    """A POST by Standard Webhooks 1.0.0, signed."""

    SLACK = "slack"
    """A POST of text and blocks, as Slack's incoming webhooks take it."""

    MAIL = "mail"
    """Plain text by SMTP, one thread for each incident."""


class MessageState(StrEnum):
    """How far a message has come."""

    WAITING = "waiting"
    """It has a next try."""

    SENT = "sent"
    """The receiver has answered that it took it."""

    DEAD = "dead"
    """Every try failed, or its channel was switched off. A person can send it again."""


class Dropped(StrEnum):
    """Why something noticed was not told."""

    OVER = "over"
    """It was over before anybody had been told: no alarm, so no all-clear."""

    OFF = "off"
    """The channel was switched off while it waited."""
