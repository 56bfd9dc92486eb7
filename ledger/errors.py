"""The ledger's refusals. Each class is an entry of the error reference: its docstring explains it.

`code` is stable and machine readable, `http` the answer of the API (RFC 9457), `sentence` says
what happened, what it means and what to do next.
"""

from typing import Any


class LedgerError(Exception):
    """A refusal by the ledger: nothing was written."""

    code = "refused"
    http = 409
    sentence = "The ledger refused this. Nothing was written."

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        super().__init__(self.sentence.format(**facts))


class IllegalTransition(LedgerError):
    """The state machine has no such edge, or this actor may not make it."""

    code = "illegal_transition"
    sentence = (
        "A call cannot go from {source} to {target} by the event {kind} of {by}. Nothing was "
        "written. Read the call again: somebody else may have moved it."
    )


class FenceLost(LedgerError):
    """Another attempt holds the call, or this lease has ended. Nothing may be sent."""

    code = "fence_lost"
    sentence = (
        "Attempt {fence} no longer holds this call. Stop the tool, send nothing, and report "
        "what you have: it will be kept as evidence."
    )


class CancelRequested(LedgerError):
    """The call's agent asked for its end before the boundary was crossed."""

    code = "cancel_requested"
    sentence = (
        "A cancellation was asked for before the boundary was crossed. Nothing may be sent: "
        "report that nothing was begun."
    )


class NotFound(LedgerError):
    """There is no such thing in this workspace; what is another workspace's reads the same."""

    code = "not_found"
    http = 404
    sentence = "There is no {noun} with this id in this workspace. Check the id and the key used."


class ResultWithoutCall(NotFound):
    """A result was sent for a call that the session does not know (R81)."""

    sentence = (
        "The result for {tool_call_id!r} answers no call of this session. Nothing was stored: a "
        "result belongs to a recorded call. Record the model's reply with its calls first."
    )


class KeyReused(LedgerError):
    """The idempotency key names another intent already."""

    code = "key_reused"
    sentence = (
        "This idempotency key names another intent already: {earlier}. Nothing was recorded. "
        "Take a new key for a new intent."
    )


class TurnClosed(LedgerError):
    """The turn was closed or interrupted; it takes nothing more."""

    code = "turn_closed"
    sentence = (
        "This turn was closed, or interrupted by its user. Nothing was recorded. Open a new turn."
    )


class StepTaken(LedgerError):
    """This step of the turn has another reply already, or a call stands where its call would."""

    code = "step_taken"
    sentence = (
        "Step {step} of this turn has another {what} already. Nothing was recorded. Read the "
        "turn's messages, and send the next reply under the next step."
    )


class TurnOpen(LedgerError):
    """A session has at most one open turn, of one model (R90)."""

    code = "turn_open"
    sentence = (
        "Turn {turn} of this session is still open.{same} Nothing was recorded. Wait for its "
        "calls and close it as answered, interrupt it, or repeat its key to get it back."
    )


class TurnUnsettled(LedgerError):
    """A turn is answered only when every call of it is settled."""

    code = "turn_unsettled"
    sentence = (
        "{calls} of this turn's calls are open, first {first}, which is {state}. The turn stays "
        "open. Wait until they are settled, or close it as interrupted or stopped."
    )


class NotHeld(LedgerError):
    """The call waits in no hold that a person may answer."""

    code = "not_held"
    sentence = (
        "This call is {state} and waits in no hold that a person may answer. Nothing was "
        "changed. Read the call: it may have gone on, or be the repeat of one still under way."
    )


class InterruptAnswered(LedgerError):
    """Somebody answered this interrupt otherwise."""

    code = "interrupt_answered"
    sentence = (
        "This interrupt was answered by {by} already: {answer}. Nothing was changed. Read the "
        "call before you decide anything further."
    )


class InterruptExpired(LedgerError):
    """Nobody answered the interrupt in time; that was not a no."""

    code = "interrupt_expired"
    sentence = (
        "This interrupt expired before it was answered, and its call is settled. Nothing was "
        "changed. Have the agent submit the call anew if it is still wanted."
    )


class StaleEpoch(LedgerError):
    """The session was bound anew; its earlier holder is fenced."""

    code = "stale_epoch"
    sentence = (
        "The session is at epoch {epoch} now, and this came from epoch {stated}. Nothing was "
        "recorded. Stop: a person gave the session to somebody else, or its calls were handed "
        "over. Only who goes on in this place reads the session and states its epoch, in the "
        "header Clearhouse-Epoch."
    )


class BindingDrift(LedgerError):
    """The session came back with another binding than it is bound to."""

    code = "binding_drift"
    sentence = (
        "This session is bound to another {field}. Nothing was recorded. Use the session from "
        "where it is bound, open a new one, or have a person bind it anew."
    )


class AlreadySettled(LedgerError):
    """A settled call has no way out."""

    code = "already_settled"
    sentence = "This call is settled as {state}. Read its verdict: nothing can be changed."


class StaleTranscript(LedgerError):
    """The session's transcript went on since its cuts were read (R106)."""

    code = "stale_transcript"
    sentence = (
        "The transcript is at version {present}, and version {given} was looked at. Nothing was "
        "changed. Read the cuts again, and summarise what came since."
    )


class CutExpired(LedgerError):
    """The token of a prepared compaction is good for 120 seconds."""

    code = "cut_expired"
    sentence = (
        "This token ended at {until}. Nothing was changed. Read the cuts again and commit with "
        "the token that comes with them."
    )


class CutRefused(LedgerError):
    """A compaction may cut behind a whole model step only (R106)."""

    code = "cut_refused"
    http = 422
    sentence = (
        "Nothing may be cut behind position {position} of turn {turn}: it would part a call from "
        "its result, split a batch, or lie before an earlier compaction. Nothing was changed. "
        "{nearest}"
    )


class HandOffOpen(LedgerError):
    """A session offers its calls to one receiver at a time."""

    code = "hand_off_open"
    sentence = (
        "The hand-off {hand_off} of this session is still open. Nothing was offered. Wait until "
        "it is accepted, declined or expired."
    )


class HandOffEnded(LedgerError):
    """The offer of a hand-off ended otherwise; its calls stayed where they were."""

    code = "hand_off_ended"
    sentence = (
        "This hand-off was {ended} already. Nothing was changed. Read it again; if the calls "
        "should still change hands, have their session offer them anew."
    )


class HandOffRefused(LedgerError):
    """The receiver may not take these calls (semantics, 16.7)."""

    code = "hand_off_refused"
    sentence = "{why} Nothing was handed over: the sender keeps its calls. {remedy}"


class ToolUnknown(LedgerError):
    """No such tool is registered in the workspace."""

    code = "tool_unknown"
    http = 422
    sentence = (
        "There is no tool named {tool!r} in this workspace.{suggestion} Nothing was recorded."
    )


class Invalid(LedgerError):
    """What was sent does not have the shape it must have."""

    code = "validation"
    http = 422
    sentence = "{detail} Nothing was recorded."


class UnsafePolicy(Invalid):
    """A policy that cannot work, or that would repeat what must not be repeated."""

    code = "unsafe_policy"
    sentence = "{detail} The policy was not saved."


class PolicyLoosened(LedgerError):
    """The declaration of a tool would make the policy in force less careful."""

    code = "policy_loosened"
    sentence = (
        "This would loosen {loosens} in the policy of {tool}. Nothing was saved. Declare the tool "
        "without a policy, then change its policy by itself: there it is tried on history and "
        "confirmed."
    )


class PermissionMissing(LedgerError):
    """The key or the person may not do this."""

    code = "permission_missing"
    http = 403
    sentence = "This needs {needed}. Use a key or a login that has it."


class LoginStale(PermissionMissing):
    """Deciding a side effect, or seeing a masked field, takes a login of the last minutes (S7)."""

    code = "fresh_login_required"
    sentence = (
        "This takes a login of the last {minutes} minutes, as deciding a side effect does. "
        "Nothing was recorded. Log in again and repeat it."
    )


class ConfirmationRequired(LedgerError):
    """The gravest decisions are confirmed by typing the tool and how many calls are meant."""

    code = "confirmation_required"
    http = 422
    sentence = (
        "This decision is confirmed by the text '{confirm}'. Nothing was recorded. Read what it "
        "would do, then send the text in 'confirm'."
    )


def refuse_unconfirmed(
    wanted: str,
    confirm: str,
    refusal: type[ConfirmationRequired] = ConfirmationRequired,
    **facts: str | int,
) -> None:
    """Raise the refusal where level 4 was not typed; an empty `wanted` needs no typing."""
    if wanted and confirm != wanted:
        raise refusal(confirm=wanted, current={"confirm": wanted}, **facts)


class QueueFull(LedgerError):
    """The queue cannot start a call in time (semantics, section 3, rule 5)."""

    code = "rate_limited"
    http = 429
    sentence = (
        "The oldest call of this tool has waited {waited_s} s, more than half its "
        "schedule-to-start. Nothing was recorded. Try again in {retry_after_s} s."
    )


class VersionConflict(LedgerError):
    """Somebody changed it since it was read."""

    code = "version_conflict"
    sentence = (
        "Version {given} was sent, version {present} holds now. Nothing was changed. Read it "
        "again and decide anew."
    )


class VersionConflictMatch(VersionConflict):
    """The same, where the version came in If-Match (RFC 9110)."""

    http = 412


class PreconditionRequired(LedgerError):
    """A change names the version of what was looked at; it may rest on something older."""

    code = "precondition_required"
    http = 428
    sentence = (
        "The version of the {noun} that was looked at is missing. Nothing was changed. Read the "
        "{noun}, and send its ETag in If-Match, or its version as '{member}'."
    )


class BudgetSpent(LedgerError):
    """A wider retry budget is spent, so what is granted below it could not be used (R48)."""

    code = "budget_spent"
    sentence = (
        "{sentence} A grant to this {granted} could not be used, and was not made. Grant to the "
        "{scope} first, or wait until it has room again."
    )


class Unrenderable(LedgerError):
    """A session could not be told as this provider takes it; what would be refused is not sent."""

    code = "unrenderable"
    http = 500
    sentence = (
        "This session was rendered for {profile}, and the result breaks its rules: {codes}. That "
        "is a fault of Clearhouse, so nothing was given out and nothing was changed. Render it for "
        "another profile, and report the request id."
    )
