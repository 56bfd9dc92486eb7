"""`policies.md`: presets, bounds and the linter, from `ledger/policies.py`."""

from dataclasses import fields

from dashboard.manual.markdown import code, codes, seconds, table
from ledger import policies
from ledger.policies import BOUNDS, PRESETS, CallPolicy, ProbePolicy, RetryPolicy, Runbooks
from ledger.vocabulary import Cause

HEAD = """# Policies

A policy says of one tool how its calls are executed and recovered. It is a versioned document; a
call refers to the version that held when it was recorded, so a change never touches an open call.
A document names only what differs from the preset of its recovery class. Without a class it is
`side_effect`, the most careful one.

How to change one: [change a policy](../how-to/change-a-policy.md). The four timeouts mean what they
mean in Temporal:

- schedule-to-start: longest time in the queue, from each publication to the claim;
- start-to-close: longest run of one attempt, from the claim to its outcome;
- schedule-to-close: everything together, from the recording on;
- heartbeat: longest silence of the executing side, which is the lease.
"""

KNOBS = {
    "recovery_class": "How the tool may be recovered.",
    "timeouts": "The four timeouts, in seconds; all finite.",
    "retry": "The retry policy, below.",
    "recovery_window_s": "How long recovery may ask for proof; then the ladder goes on.",
    "review_s": "When an operator is reminded of an ambiguous call, again and again.",
    "boundary": "Where an effect can begin: `at_start`, `marked` or `transport`.",
    "key_template": "The key for the outside, over the arguments, such as `path:{path}`.",
    "probe": "How the outside is asked, or null.",
    "in_flight_grace_s": "How long bytes that were sent may still act after the attempt's death.",
    "tool_error_means": "What the tool's own error says: `no_effect` or `effect_unknown`.",
    "retries_tool_errors": "Whether the tool's own errors are repeated.",
    "schedule_to_start_reschedules": "Whether an unclaimed call is published again.",
    "repeat_start": "For `long_running`: a second start under the key finds the first.",
    "delivery_delay_s": "How long a resolution can be taken back before it is carried out.",
    "second_person": "Whether a resolution needs a second person: `never` or `always`.",
    "hold_dependents": "Whether later calls of its turn wait while its effect is unknown.",
    "keep_running": "Whether it goes on when the user interrupts its turn before its boundary.",
    "cancel_parked": "Whether the outside is asked to end parked work of an interrupted turn.",
    "runbook": "What a person does first with an incident of this tool: a sentence, an address.",
    "runbooks": "The same for a failure point, below; each a web address.",
    "masked": "JSON pointers of secret fields: `/arguments/card/number`, `/result/rows/*/iban`.",
    "replay_reads_s": "How long a read's result answers the same read of the same turn.",
}


def page() -> str:
    """The whole page."""
    return "\n".join([
        HEAD, "## Presets", "", _presets(),
        "An `idempotent_write` has no default key: its document must name `key_template`.", "",
        "## Knobs", "", _knobs(), "### `retry`", "", _retry(), "### `probe`", "", _probe(),
        "### `runbooks`", "", _runbooks(),
        "## Bounds", "",
        "A value outside is refused with the code [`unsafe_policy`](errors.md#unsafe_policy).", "",
        _bounds(), "## What the linter says", "",
        "An error is not saved; a warning is saved and shown beside the policy.", "", _linter(),
    ])  # fmt: skip


def _presets() -> str:
    rows = [
        ("schedule-to-start", *(seconds(p.timeouts.schedule_to_start_s) for p in PRESETS.values())),
        ("start-to-close", *(seconds(p.timeouts.start_to_close_s) for p in PRESETS.values())),
        ("schedule-to-close", *(seconds(p.timeouts.schedule_to_close_s) for p in PRESETS.values())),
        ("heartbeat", *(seconds(p.timeouts.heartbeat_s) for p in PRESETS.values())),
        ("attempts", *(p.retry.attempts for p in PRESETS.values())),
        ("recovery window", *(seconds(p.recovery_window_s) for p in PRESETS.values())),
        ("review deadline", *(seconds(p.review_s) for p in PRESETS.values())),
        ("tool_error_means", *(code(p.tool_error_means) for p in PRESETS.values())),
    ]
    return table(("", *(code(each) for each in PRESETS)), rows)


def _knobs() -> str:
    example = PRESETS[policies.R.SIDE_EFFECT]
    rows = []
    for each in fields(CallPolicy):
        default = getattr(example, each.name)
        plain = isinstance(default, str | bool | int | float)
        shown = "by class" if each.name.endswith(("window_s", "review_s")) or not plain else default
        shown = "by class" if each.name in ("recovery_class", "tool_error_means") else shown
        shown = "none" if each.default in ((), Runbooks()) else shown
        shown = "none" if each.name == "probe" or shown == "" else _plain(shown)
        rows.append((code(each.name), shown, KNOBS[each.name]))
    return table(("Knob", "Default", "Meaning"), rows)


def _plain(value: object) -> str:
    """A default as JSON writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _retry() -> str:
    retry = RetryPolicy()
    waits = ", ".join(f"{retry.longest_wait_s(n):g}" for n in range(1, 5))
    rows = [
        (code("attempts"), "by class", "The first included; unlimited cannot be written."),
        (code("initial_interval_s"), f"{retry.initial_interval_s:g}", "The wait after the first."),
        (code("factor"), f"{retry.factor:g}", "What each wait is multiplied by."),
        (code("interval_cap_s"), f"{retry.interval_cap_s:g}", "The longest wait."),
        (code("jitter"), _plain(retry.jitter), "Each wait is drawn evenly from its upper half."),
        (code("not_retried"), codes(sorted(retry.not_retried)),
         "Causes that end the attempts; `auth` and `permission` cannot be taken off."),
    ]  # fmt: skip
    return (
        table(("Knob", "Default", "Meaning"), rows)
        + f"\nWaits without jitter: {waits} s. A `Retry-After` only lengthens a wait. "
        f"The causes are {codes(Cause)}.\n"
    )


def _probe() -> str:
    said = {
        "authoritative": "Whether its `did_not_happen` may be believed.",
        "timeout_s": "Longest time of one probe.",
        "interval_s": "Time between two probes.",
        "attempts": "How many probes at most before the ladder goes on.",
    }
    rows = [
        (code(each.name), _plain(each.default), said[each.name]) for each in fields(ProbePolicy)
    ]
    return table(("Knob", "Default", "Meaning"), rows)


def _runbooks() -> str:
    said = {
        "before_start": "No attempt had crossed the boundary.",
        "during_execution": "The boundary was crossed and no result came.",
        "after_execution": "It ended before its result was written.",
        "during_handoff": "During a compaction or hand-off.",
    }
    rows = [(code(each.name), "none", said[each.name]) for each in fields(Runbooks)]
    return (
        table(("Failure point", "Default", "Where the break fell"), rows)
        + "\nThe page of an incident or a broken call shows the one of its failure point; where "
        "none is named, `runbook`.\n"
    )


def _bounds() -> str:
    rows = [
        (code(path), f"{bound.low:g}", f"{bound.high:.0f}",
         "" if bound.auth is None else f"{bound.auth:g}")
        for path, bound in BOUNDS.items()
    ]  # fmt: skip
    return table(("Knob", "At least", "At most", "At most for `provider_auth`"), rows)


LINTER = (
    ("out_of_bounds", "error", "A value is outside its bounds."),
    ("attempts_do_not_fit", "error", "Attempts, start-to-close and waits together are longer than "
     "schedule-to-close, so the last attempt cannot happen. Not asked of `long_running`."),
    ("attempts_barely_fit", "warning", "With the time in the queue added, the last may not fit."),
    ("heartbeat_too_long", "error", "The heartbeat is not shorter than start-to-close."),
    ("start_too_long", "error", "Schedule-to-start is not shorter than schedule-to-close."),
    ("no_handles", "error", "A `long_running` tool that gives no handle to ask after it by."),
    ("repeats_without_probe", "error", "More than two attempts for a side effect without a probe."),
    ("no_key_template", "error", "An `idempotent_write` that names no key."),
    ("no_time_to_undo", "warning", "A `delivery_delay_s` of 0 of a class other than `read_only`."),
    ("key_template", "error", "A key template that is more than arguments by name."),
    ("auth_is_never_retried", "error", "`auth` or `permission` was taken off `not_retried`."),
    ("second_person", "error", "Neither `never` nor `always`."),
    ("runbook_too_long", "error", "More than 500 characters."),
    ("runbook_address", "error", "One of `runbooks` is no http or https address of at most 500 "
     "characters."),
    ("masked", "error", "A pointer that does not begin with `/arguments/` or `/result/`."),
    ("tool_error_means", "error", "Neither `no_effect` nor `effect_unknown`."),
)  # fmt: skip


def _linter() -> str:
    rows = [(code(name), level, text) for name, level, text in LINTER]
    return table(("Code", "Level", "Says"), rows)
