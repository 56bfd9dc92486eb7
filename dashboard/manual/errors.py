"""`errors.md`: every code that an answer may carry, from the classes that refuse."""

from collections.abc import Iterator
from importlib import import_module

from django.conf import settings

from dashboard import reference
from dashboard.manual.markdown import code, plain, table
from dashboard.reference import Entry
from dashboard.views.problems import NEXT_STEPS, READ_DETAIL
from ledger.errors import LedgerError
from ledger.strictjson.refusals import PROBLEMS, SENTENCES, VALIDATION

HEAD = """# Errors

Every refusal over HTTP is a problem document (RFC 9457), `application/problem+json`: `type` (an
address that explains the code, `/problems/<code>`), `title`, `status`, `detail` (a sentence that
says what happened, what it means and what to do), `instance`, `code`, `request_id`. Some carry
`errors`, a list of `pointer` and `detail`, or `current`, what holds now.

Codes are stable. Sentences are for people and may change; where a sentence puts a value, its name
stands in marks, like ‹this›. A refusal writes nothing.
"""

STRICT = """## What strict JSON refuses

Every body passes one reader. The problem's `errors` names one of these, with a pointer to the
place.
"""


def page() -> str:
    """The whole page."""
    # The classes of the outermost layer refuse too, and are known once it is imported.
    import_module(settings.ASGI_APPLICATION.rpartition(".")[0])
    codes = _codes()
    rows = [
        (f"[`{name}`](#{name})", codes[name][0].status, codes[name][0].meaning)
        for name in sorted(codes)
    ]
    entries = (_entry(codes[name]) for name in sorted(codes))
    return "\n".join(
        [HEAD, table(("Code", "Status", "Meaning"), rows), *entries, STRICT, _strict()]
    )


def _codes() -> dict[str, list[Entry]]:
    """What each code means: several refusals may share one, the general one comes first."""
    found = [each for each in _below(LedgerError) if not each.__module__.startswith("tests")]
    found.sort(key=lambda each: (len(each.__mro__), each.__module__, each.__name__))
    codes: dict[str, list[Entry]] = {}
    for each in found:
        meaning = plain(each.__doc__ or "")
        entry = Entry(each.code, each.http, meaning, reference._shown(each.sentence))
        codes.setdefault(each.code, []).append(entry)
    return {code: [Entry(code, *rest)] for code, rest in reference.EDGE.items()} | codes


def _below(base: type[LedgerError]) -> Iterator[type[LedgerError]]:
    yield base
    for each in base.__subclasses__():
        yield from _below(each)


def _entry(entries: list[Entry]) -> str:
    first = entries[0]
    said = "\n".join(
        f"{each.meaning}\n\n" + (f"> {each.sentence}\n" if each.sentence else "")
        for each in entries
    )
    next_step = NEXT_STEPS.get(first.status, READ_DETAIL)
    return f"## {first.code}\n\nStatus {first.status}. {said}\nNext: {next_step}\n"


def _strict() -> str:
    rows = [
        (
            code(each),
            PROBLEMS.get(each, VALIDATION)[1],
            SENTENCES[each].format(limit="‹limit›", at="‹at›"),
        )
        for each in SENTENCES
    ]
    return table(("Code", "Status", "Sentence"), rows)
