"""Why a decision is refused. Checked in one order: permanent reasons first (semantics, 8.2)."""

from uuid import UUID

from ledger.errors import (
    ConfirmationRequired,
    Invalid,
    LedgerError,
    PermissionMissing,
    PreconditionRequired,
    VersionConflict,
)


class IdempotencyKeyMissing(LedgerError):
    """What records something needs the caller's name for the intent."""

    code = "idempotency_key_missing"
    http = 400
    sentence = (
        "This records something, so it needs the header Idempotency-Key. Nothing was recorded. "
        "Draw a key with the form and send it again with each repetition."
    )


class FilterEmpty(LedgerError):
    """A bulk run names incidents or filters; it never means all of them."""

    code = "filter_empty"
    http = 400
    sentence = (
        "Neither incidents nor a filter was given. Nothing was done. Name the incidents, or say "
        "by tool, cause, reason or session which are meant."
    )


class SecondPersonRequired(PermissionMissing):
    """The tool's policy asks for two people, and nobody is both (R151)."""

    code = "second_person_required"
    sentence = (
        "The policy of this tool asks for a second person, and {why}. Nothing was recorded. Ask "
        "somebody else who may approve."
    )


class ThirdPersonRequired(PermissionMissing):
    """Two people say different things of a call, and neither decides between them."""

    code = "third_person_required"
    sentence = (
        "This call is in dispute between {one} and {other}, and you are one of them. Nothing was "
        "recorded. Ask a third person, or an admin, to decide."
    )


class NotEligible(LedgerError):
    """This answer does not exist for such a call."""

    code = "not_eligible"
    sentence = "{why} Nothing was recorded. Read the incident: 'can' lists what is possible."


class AlreadyDecided(LedgerError):
    """Another decision on this call is recorded and not yet carried out."""

    code = "already_decided"
    sentence = (
        "{by} recorded '{answer}' at {at}; it {what}. Nothing was recorded. Read it, and take it "
        "back if it is wrong."
    )


class NotPending(LedgerError):
    """The resolution is not waiting any more."""

    code = "not_pending"
    sentence = "This resolution is {stage} already. Nothing was changed. {instead}"


class DenialLocked(LedgerError):
    """The effect cannot be denied before its attempt is proven dead and its grace is over (I2)."""

    code = "locked"
    sentence = "{awaits} Until then its effect cannot be denied. Nothing was recorded. {instead}"


class DecisionStale(VersionConflict):
    """The file moved since it was read: the decision may rest on too little."""

    sentence = (
        "Version {given} was looked at, version {present} holds now: {changes}. Nothing was "
        "recorded. Read the incident again and decide anew."
    )


class DecisionStaleMatch(DecisionStale):
    """The same, where the version came in If-Match (RFC 9110)."""

    http = 412


class DecisionVersionMissing(PreconditionRequired):
    """A decision names the version of the file that was looked at."""

    sentence = (
        "The decision version that was looked at is missing. Nothing was recorded. Send it in "
        "If-Match, or as decision_version; the incident's ETag has it."
    )


class EvidenceRequired(LedgerError):
    """To say that an effect happened, or did not, takes evidence of it."""

    code = "evidence_required"
    http = 422
    sentence = (
        "This needs evidence whose finding is '{finding}'. Nothing was recorded. Look outside, "
        "put what was found on the incident, and name it here."
    )


class EvidenceIncomplete(Invalid):
    """What was found is not said in full: no sentence, no finding, or nothing to look it up by."""

    code = "evidence_incomplete"


class PolicyUnconfirmed(ConfirmationRequired):
    """A policy that would have repeated effects, or is less careful than before, is typed for."""

    sentence = (
        "On the last calls this policy would have repeated {count} effect(s) that had happened; "
        "it loosens {loosens}. Nothing was saved. Look at these calls and knobs; to save it all "
        "the same, send '{confirm}' in 'confirm' and say why in the grounds."
    )


class GrantUnconfirmed(ConfirmationRequired):
    """More for a budget that is spent already is confirmed by typing to what and how much."""

    sentence = (
        "{spent} Nothing was granted. See where it went; to grant more all the same, send "
        "'{confirm}' in 'confirm'."
    )


class NoCall(LedgerError):
    """The incident is about a session: there is no call to decide on."""

    code = "no_call"
    sentence = (
        "This incident is about a session, not about one call. Nothing was recorded. Read what its "
        "timeline says, then confirm that you have looked, or bind the session anew."
    )


def call_or_refuse(call_id: UUID | None) -> UUID:
    """The call of an incident. Raises NoCall for one on a session."""
    if call_id is None:
        raise NoCall()
    return call_id
