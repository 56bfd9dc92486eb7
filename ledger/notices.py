"""What a model is told of a call that has no result: templates as data, and which one holds.

Source: semantics, section 14. A text says no more than the ledger knows and never guesses;
placeholders are ledger values, never the present time, never a handle's value. Quoted text is
untrusted: it stands in one line, escaped, cut at 2 KiB. A real result has no text around it.
Changing a text means a new version; what was kept with an older one stays as it is. No query.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

from ledger.vocabulary import CallState, Cause, Effect, HoldReason, RecoveryClass, spoken

VERSION = 1
QUOTED_BYTES_MAX = 2048
OPERATOR_STATED = ("happened_stated", "denied_stated", "responded", "replaced", "correction")
PARTIAL = ("partial",)

TEMPLATES: dict[str, str] = {
    "unrecorded": "No result of this call was recorded. It is not known whether it ran. Do not "
    "repeat it before its effect has been checked.",
    "not_started": "This call did not start: no worker took it within {limit}. Nothing was "
    "changed. It is closed and will not start later.",
    "not_begun": "This call stopped before the point where it could change anything. Nothing was "
    "changed. It is closed.",
    "no_answer": "The tool gave no answer within its time in {attempts} attempts. {effect}",
    "not_run_error": "The tool could not be run: {cause}. {attempts} attempts were made. {effect}",
    "failed_after_effect": "The tool ended with an error after at least part of its effect "
    "happened: {error} Do not repeat it before checking what is there.",
    "interrupted": "This call was interrupted while it ran. Whether its effect happened is being "
    "checked. Do not repeat it.",
    "ambiguous": "This call was interrupted while it ran. Whether its effect happened is not "
    "known; a person has been asked. Do not repeat it, and count on neither outcome.",
    "abandoned": "A person closed this call because its outcome cannot be found out. Its effect "
    "may or may not have happened. Do not repeat it unless the user, knowing this, asks for it.",
    "happened_stated": "A person checked this call: its effect happened. {result}",
    "happened_probe": "This call was interrupted. A later check with the provider shows that its "
    "effect happened. The tool's own result was not received. The check returned: {evidence}",
    "denied_stated": "A person checked this call: its effect did not happen. It is closed.",
    "denied_probe": "This call was interrupted. A later check with the provider shows: its effect "
    "did not happen. It is closed.",
    "under_way": "This call is still under way and has no result yet. Its outcome will follow. Do "
    "not repeat it.",
    "partial": "This call has not finished. Recorded so far, incomplete: {partial}",
    "parked": "This work was started elsewhere and has no result yet. Its outcome will follow. Do "
    "not start it again.",
    "incomplete": "This work was started elsewhere and can no longer be followed. Whether it went "
    "on is not known. Recorded so far, incomplete: {partial} Do not start it again.",
    "paused_before": "This call waits for a person's approval. It has not run.",
    "paused_in": "This call waits for a person's answer and goes on when it arrives: {reason}",
    "paused_after": "The tool ran. Its result waits for a person's review. Do not repeat the call.",
    "waiting_for_call": "This call waits for the outcome of an earlier call, {call}, which is not "
    "known yet. It has not run.",
    "rejected_person": "A person said no to this call before it ran. Nothing was changed. Reason "
    "given: {reason}",
    "rejected_policy": "The policy of this workspace does not allow this call. It was not run. "
    "Rule: {rule}",
    "approval_expired": "Nobody answered the request for approval in time. Nobody said no. The "
    "call was not run. Nothing was changed.",
    "edited": "A person changed the arguments before this call ran. It ran with: {arguments} "
    "Result: {result} Do not issue the original call again.",
    "responded": "A person answered in place of the tool. The tool did not run. Answer: {answer}",
    "replaced": "The tool ran. A person replaced its result after review. Replacement: {result}",
    "withheld": "The tool ran. {effect} A person withheld its result after review: {reason} Do "
    "not repeat the call.",
    "cancelled": "The turn was stopped before this call could change anything. Nothing was "
    "changed.",
    "outlives_turn": "The turn was stopped while this call ran. The call was left to finish. Its "
    "outcome will follow. Do not repeat it.",
    "handed_over": "This call was handed over to another session, {session}, and goes on there. "
    "Its outcome will follow there. Do not repeat it.",
    "twin_open": "The same call is already under way as {call}. It was not started again. Its "
    "outcome will follow.",
    "twin_unresolved": "The same call was made before as {call} and its outcome is not known. It "
    "was not run again.",
    "twin_done": "The same call was already done as {call}. It was not run again. Its recorded "
    "result: {result}",
    "held": "This call was not run: the outcome of an earlier call, {call}, is not known. Nothing "
    "was changed.",
    "binding_drift": "This call was not run: the session came back with another {field} than it "
    "is bound to. Nothing was changed.",
    "switched_off": "This call was not run: the tool is switched off at present. Nothing was "
    "changed.",
    "breaker_open": "This call was not run: too many calls like it broke off lately, and none is "
    "made for a while. Nothing was changed.",
    "stopped": "This call was not run: a person stopped the session. Nothing was changed.",
    "cut_off": "This call was not run: its arguments arrived cut off. Nothing was changed.",
    "reply_broke_off": "This call was not run: the reply that holds it broke off. Nothing was "
    "changed.",
    "tool_unknown": "This call was not run: there is no tool of this name. Nothing was changed.",
    "arguments_unfit": "This call was not run: its arguments do not fit what the tool takes. "
    "{why} Nothing was changed.",
    "auth_time_over": "The sign-in with {provider} was not completed within {limit}. Whether "
    "credentials were issued or changed is not known. A new sign-in can be started.",
    "budget_spent": "No further attempt was made: the retry budget of this {scope} is spent. Last "
    "cause: {cause}. {effect}",
    "correction": "Correction about call {call}. Earlier text: {earlier} Now known: {now}",
}
"""Version 1 of every text."""

EFFECTS: dict[Effect, str] = {
    Effect.NONE: "It only reads; nothing was changed.",
    Effect.NOT_BEGUN: "Nothing was changed.",
    Effect.DID_NOT_HAPPEN: "Its effect did not happen.",
    Effect.HAPPENED: "Its effect happened.",
    Effect.POSSIBLE: "Whether its effect happened is not known.",
}
"""What `{effect}` becomes."""

NO_RESULT = "The tool's own result was not received."


@dataclass(frozen=True, slots=True)
class Told:
    """One text as it is given to a model: its template, the version, the words."""

    template: str
    version: int
    text: str

    @property
    def kind(self) -> str:
        """The kind of delivery that shows it (semantics, section 15)."""
        if self.template in OPERATOR_STATED:
            return "operator-stated"
        return "partial" if self.template in PARTIAL else "notice"

    @property
    def sha256(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The text as the API gives it."""
        return {
            "kind": self.kind,
            "template": self.template,
            "version": self.version,
            "text": self.text,
            "sha256": self.sha256,
        }


class Row(Protocol):
    """What a text is chosen from; a ToolCall has the same attributes."""

    @property
    def state(self) -> CallState: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def recovery_class(self) -> RecoveryClass: ...
    @property
    def cause(self) -> Cause: ...
    @property
    def reason(self) -> str: ...
    @property
    def error(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def attempts_used(self) -> int: ...
    @property
    def published_at(self) -> Any: ...
    @property
    def recorded_at(self) -> Any: ...
    @property
    def settled_at(self) -> Any: ...


def render(template: str, **values: str) -> Told:
    """A template with its values filled in; values are never read as templates themselves."""
    return Told(template, VERSION, TEMPLATES[template].format_map(values))


_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def visible(line: str) -> str:
    """A line of JSON with controls and marks of direction written as escapes."""
    return _UNSEEN.sub(lambda m: f"\\u{ord(m[0]):04x}", line)


def quoted(text: str, size_bytes: int | None = None, *, most_bytes: int = QUOTED_BYTES_MAX) -> str:
    """Untrusted text as one JSON string of at most 2 KiB; what was cut is counted after it.

    `size_bytes` is that of the whole, where `text` is only its beginning.

    Controls and marks of direction are written as escapes, so that nothing hides or breaks out.
    """
    raw = text.encode("utf-8", "replace")
    kept = raw[:most_bytes].decode("utf-8", "ignore")
    line = visible(json.dumps(kept, ensure_ascii=False))
    whole = max(len(raw), size_bytes or 0)
    return f"{line} ({most_bytes} of {whole} bytes)" if whole > most_bytes else line


def happened_stated(result: str | None, size_bytes: int | None = None) -> Told:
    """A person's statement that the effect happened, with the recorded result if there is one."""
    if result is None:
        return render("happened_stated", result=NO_RESULT)
    return render("happened_stated", result=f"The recorded result: {quoted(result, size_bytes)}")


def correction(*, call: str, earlier: str, now: str, size_bytes: int | None = None) -> Told:
    """The text for a model that has read something else before."""
    return render("correction", call=call, earlier=quoted(earlier, size_bytes), now=now)


def for_call(call: Row, more: Mapping[str, str] | None = None) -> Told | None:
    """The text that holds for a call without a result, from its row alone.

    None for a call that is under way and for one that succeeded: the first has nothing to tell
    yet, the second has its result or a text that was kept with it. `more` are values that the
    row does not have: `call`, `partial` (given for work that can no longer be followed), `reason`,
    `rule`, `scope`.
    """
    choose = _BY_STATE.get(call.state)
    return choose(call, more or {}) if choose else None


def _as(template: str) -> Callable[[Row, Mapping[str, str]], Told]:
    return lambda call, more: render(template)


def _parked(call: Row, more: Mapping[str, str]) -> Told:
    # A handle that a person pasted proves nothing before the outside has known it.
    return render("interrupted" if call.reason == "handle_unverified" else "parked")


def _interrupted(call: Row, more: Mapping[str, str]) -> Told:
    # Nothing says that an imported call was interrupted, or that it ran at all.
    return render("unrecorded" if call.cause is Cause.UNRECORDED else "interrupted")


def _ambiguous(call: Row, more: Mapping[str, str]) -> Told:
    if call.cause is Cause.UNRECORDED:
        return render("unrecorded")
    if "partial" in more or call.reason == "handle_lost":
        return render("incomplete", partial=_partial(more))
    return render("ambiguous")


def _partial(more: Mapping[str, str]) -> str:
    return quoted(more["partial"]) + "." if more.get("partial") else "nothing."


HELD: dict[str, str] = {
    HoldReason.TWIN_OPEN: "twin_open",
    HoldReason.TWIN_UNRESOLVED: "twin_unresolved",
    HoldReason.TWIN_ABANDONED: "twin_unresolved",
    HoldReason.REPEAT_INTENDED: "paused_before",
}
"""What a call in a hold is told; every other one that waits, for whom it waits."""


def _paused(call: Row, more: Mapping[str, str]) -> Told:
    if "call" in more:
        return render(HELD.get(call.reason, "waiting_for_call"), call=more["call"])
    if call.effect is Effect.HAPPENED:
        return render("paused_after")
    return render("paused_before")


NOT_RUN = ("switched_off", "breaker_open", "stopped", "cut_off")


def _rejected(call: Row, more: Mapping[str, str]) -> Told:
    if call.reason in NOT_RUN:
        return render(call.reason)
    if call.reason == "rejected_person":
        return render("rejected_person", reason=quoted(more.get("reason", "none was kept")) + ".")
    return render("rejected_policy", rule=quoted(more.get("rule") or call.reason))


def _failed(call: Row, more: Mapping[str, str]) -> Told | None:
    if call.effect is Effect.HAPPENED:
        return render("failed_after_effect", error=quoted(call.error or str(call.cause)) + ".")
    if call.cause is Cause.TOOL_ERROR:
        return None  # the tool's own error is its answer, and has no text around it
    return _spent(call, more)


def _cancelled(call: Row, more: Mapping[str, str]) -> Told:
    never_ran = call.attempts_used == 0
    return render("stopped" if call.reason == "stopped" and never_ran else "cancelled")


def _expired(call: Row, more: Mapping[str, str]) -> Told:
    if call.effect is Effect.POSSIBLE:
        return render("auth_time_over", provider=call.tool, limit=_seconds(call.recorded_at, call))
    if call.reason == "held" and "call" in more:
        return render("held", call=more["call"])
    if call.reason in ("interrupt_expiry", "held"):
        return render("approval_expired")
    if call.attempts_used == 0:
        since = call.published_at or call.recorded_at
        return render("not_started", limit=_seconds(since, call))
    return _spent(call, more)


SILENCE = (Cause.HANG, Cause.WORKER_LOST, Cause.RESOURCE_KILLED, Cause.GATEWAY_TIMEOUT)


def _spent(call: Row, more: Mapping[str, str]) -> Told:
    effect, attempts = EFFECTS[call.effect], str(call.attempts_used)
    cause = spoken(call.cause or "no cause was recorded")
    if "scope" in more:
        return render("budget_spent", scope=more["scope"], cause=cause, effect=effect)
    if call.cause in SILENCE:
        return render("no_answer", attempts=attempts, effect=effect)
    if not call.cause and call.effect is Effect.NOT_BEGUN:
        return render("not_begun")
    return render("not_run_error", cause=cause, attempts=attempts, effect=effect)


def _seconds(since: Any, call: Row) -> str:
    return f"{max(0, round((call.settled_at - since).total_seconds()))} s"


_BY_STATE: dict[CallState, Callable[[Row, Mapping[str, str]], Told | None]] = {
    CallState.INTERRUPTED: _interrupted,
    CallState.AMBIGUOUS: _ambiguous,
    CallState.PARKED: _parked,
    CallState.PAUSED: _paused,
    CallState.REJECTED: _rejected,
    CallState.CANCELLED: _cancelled,
    CallState.ABANDONED: _as("abandoned"),
    CallState.FAILED: _failed,
    CallState.EXPIRED: _expired,
}
