"""`providers.md`: what each provider takes and how it refuses, from the profiles."""

import inspect
import re

from dashboard.manual.markdown import DASH, code, codes, paragraphs, plain, table
from ledger.transcripts.profiles import Profile, Reasoning, ResultsIn, formats, profiles
from ledger.transcripts.rules import RULES

HEAD = """# Providers

How each provider wants calls and results to stand in a conversation, and what it answers where
they do not. A provider is data: a file in `ledger/transcripts/providers/` with its profile, read
by the layout and the validator; no code asks for a name. [Adding one](../how-to/add-a-provider.md)
is adding a file.

What every provider has in common, and `openai-compatible` holds to: each call sent has one result,
behind its reply, in the order of the calls; ids are unique and safe; arguments are objects; no
text is empty; the first message is the user's.
"""
CERTAINTY = """Certainty: **V** the vendor's documentation, validator or client library; **E** the
text was seen in several public reports; **S** one source only. Where sources disagree the strict
reading is the rule."""
PLACES = {"{at}": "N", "{next}": "N", "{previous}": "N", "{part}": "K"}
"""How placeholders of positions are shown; every other one is an ellipsis."""


def page() -> str:
    """The whole page."""
    return "\n".join([
        HEAD, "## The rules", "", "One code for the same fault at every provider.", "",
        table(("Code", "Broken where", "Rule of"), _rules()),
        "## What they take", "", _taken(),
        f"Read and never sent: {codes(sorted(set(formats()) - set(profiles())))}.", "",
        "### Where results stand", "", _words(ResultsIn),
        "### What is asked of reasoning", "", _words(Reasoning),
        "## How they refuse", "", CERTAINTY, "", *map(_refusals, profiles().values()),
    ])  # fmt: skip


def _rules() -> list[tuple[str, str, str]]:
    return [
        (code(name), plain(inspect.getdoc(rule) or ""), _names_with(name))
        for name, rule in RULES.items()
    ]


def _names_with(name: str) -> str:
    return ", ".join(each.name for each in profiles().values() if name in each.refusals)


def _taken() -> str:
    heads = ("Profile", "Form", "Results", "Ids", "Unique in", "Reasoning", "Further")
    return table(heads, [_row(profile) for profile in profiles().values()])


def _row(profile: Profile) -> tuple[str, ...]:
    return (
        f"[{code(profile.name)}](#{profile.name})",
        code(profile.shape.form),
        code(profile.results_in),
        code(profile.ids.pattern),
        profile.ids.scope,
        code(profile.reasoning),
        "; ".join(_further(profile)) or DASH,
    )


def _further(profile: Profile) -> list[str]:
    said = {
        "roles alternate": profile.roles_alternate,
        "no text beside results": not profile.text_beside_results,
        "a reply between results and the user": profile.reply_after_results,
        "the user begins": profile.first_is_user,
        "no reply at the end": profile.last_not_assistant,
        "system text apart": profile.system_apart,
        "system text leads": profile.system_leads and not profile.system_apart,
        "results in the order of calls": not profile.result_order_free,
    }
    return [words for words, holds in said.items() if holds]


def _words(kind: type[ResultsIn] | type[Reasoning]) -> str:
    said = paragraphs(kind)
    return table(("Word", "Says"), [(code(word), said[word]) for word in kind])


def _refusals(profile: Profile) -> str:
    rows = [
        (code(name), _shown(refusal.text), refusal.certainty)
        for name, refusal in profile.refusals.items()
    ]
    return f"### {profile.name}\n\n{table(('Code', 'Answer', ''), rows)}"


def _shown(text: str) -> str:
    shown = re.sub(r"\{\w+\}", lambda found: PLACES.get(found[0], "…"), text)
    return f"`` {shown} ``" if "`" in shown else code(shown)
