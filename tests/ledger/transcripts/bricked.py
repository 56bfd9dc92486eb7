"""A conversation that no provider takes any more: its numbers are those of a public report.

32 calls, 35 results. A prompt submitted twice lost the reply to it and kept its three results; in
an earlier turn the user spoke while a tool ran, so that its result stands behind the user's words.
"""

from typing import Any

from tests.ledger.transcripts.chat import asked, call, got, replied, said

PROMPT = "Build a single-page website for the harbour café."
ORPHANS = {"call_37ac": "read_document", "call_dc2b": "insertHtml", "call_a9df": "insertHtml"}
CALLS, RESULTS, REPEATED = 32, 35, 1


def bricked() -> list[dict[str, Any]]:
    """The messages: sixteen steps of two calls, the last part as it was found."""
    messages = [said("Build me a website.")]
    for step in range(16):
        messages += _spoken_between(step) if step == 7 else _step(step)
    messages += [replied("The page stands."), said(PROMPT), said(PROMPT)]
    messages += [got(label, f"{name}: ok") for label, name in ORPHANS.items()]
    return [*messages, said("you only did the hero section")]


def _labels(step: int) -> tuple[str, str]:
    return f"call_{step:02d}a0", f"call_{step:02d}b1"


def _step(step: int) -> list[dict[str, Any]]:
    first, second = _labels(step)
    results = [got(first, f"ok {step}a"), got(second, f"ok {step}b")]
    return [asked(_insert(first), _insert(second)), *results]


def _spoken_between(step: int) -> list[dict[str, Any]]:
    reply, first, second = _step(step)
    return [reply, first, said("Make it blue."), second]


def _insert(label: str) -> dict[str, Any]:
    return call(label, "insertHtml", '{"html":"<p>Harbour</p>"}')
