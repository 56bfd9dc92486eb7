"""What a message says, in the bytes of its channel's kind: what, how many, how old, class, link.

Never arguments, results or evidence: a line has only what `sources.py` put into its facts. The
text is drawn once, when the message is made, so that every try sends the same bytes. Names come
from outside: what is no plain character is replaced, and Slack's three are escaped.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID

from django.conf import settings

from ledger import clock, ids
from notifications.models import Channel, Message, Occurrence
from notifications.vocabulary import ChannelKind, Event

DIGEST = "digest"
ITEMS_MAX = 50
"""Lines that a digest carries; the rest is counted."""
SLACK_CHARACTERS_MAX = 2900
"""Below the 3,000 that a section block takes."""

WHAT: dict[Event, str] = {
    Event.INCIDENT_OPENED: "An incident waits for a person",
    Event.REVIEW_NEAR: "The review time of an incident is nearly over",
    Event.REVIEW_PAST: "The review time of an incident is over; a wider circle is asked",
    Event.INCIDENT_DISPUTED: "Two people say two things of one call: a third one decides",
    Event.INCIDENT_RESOLVED: "All clear: the incident is closed",
    Event.APPROVAL_WANTED: "A decision waits for a second person",
    Event.INTERRUPT_RAISED: "A paused call waits for an answer",
    Event.INTERRUPT_EXPIRING: "The time for an answer is nearly over",
    Event.INTERRUPT_ENDED: "All clear: the question is answered or over",
    Event.RESULT_LATE: "A late result came for a call that a person looks at",
    Event.SESSION_DRIFTED: "A session came back with another binding and was refused",
    Event.BUDGET_SPENT: "A budget is spent: nothing more is repeated there",
    Event.BULK_RUN_FINISHED: "A bulk run has finished",
    Event.CHANNEL_DISABLED: "A notification channel was switched off: nobody answered there",
    Event.SWEEP_SILENT: "No watchdog sweeps: no deadline fires",
    Event.SWEEP_BACK: "All clear: a watchdog sweeps again",
    Event.TEST: "This is a test. Nobody has to do anything",
}

PAGES = {
    "incident": "/incidents/{}",
    "interrupt": "/interrupts/{}",
    "bulk": "/bulk-runs/{}",
    "budget": "/budgets",
    "sweep": "/readiness",
    "channel": "/settings/notifications",
    "test": "/settings/notifications",
}
"""The page of a thread, by the word it begins with. A page asks for a login; opening decides
nothing."""

SHOWN_AS = {"incident": "incident", "bulk": "bulk_run"}
"""Threads whose subject is an id of ours."""


@dataclass(frozen=True, slots=True)
class Told:
    """One line of a message, ready for any kind."""

    event: Event
    at: datetime
    since: datetime
    told_at: datetime
    thread: str
    link: str
    tool: str
    recovery_class: str
    facts: dict[str, Any]

    @property
    def sentence(self) -> str:
        """What it is, of which tool, since when: one line of plain text."""
        about = [each for each in (self.tool, self.recovery_class) if each]
        parts = [WHAT[self.event] + (f": {', '.join(about)}" if about else "")]
        parts += [f"{word} {_plain(self.facts[word])}" for word in SAID if self.facts.get(word)]
        parts.append(f"since {_instant(self.since)} ({_age(self.told_at - self.since)})")
        return "; ".join(parts) + "."

    def as_json(self) -> dict[str, Any]:
        return {
            "type": str(self.event), "timestamp": _iso(self.at), "thread": self.thread,
            "tool": self.tool, "recovery_class": self.recovery_class, "since": _iso(self.since),
            "link": self.link, **self.facts,
        }  # fmt: skip


SAID = ("state", "effect", "cause", "scope", "rows", "done", "not_done", "channel")


def line_of(row: Occurrence, told_at: datetime) -> Told:
    """A noticed thing as it is told at an instant."""
    return Told(
        event=row.event,
        at=row.at,
        since=row.since,
        told_at=told_at,
        thread=row.thread,
        link=_link(row.thread, row.subject),
        tool=_plain(row.tool),
        recovery_class=row.recovery_class,
        facts={key: value for key, value in row.facts.items() if value not in ("", None)},
    )


def message_of(channel: Channel, rows: Sequence[Occurrence]) -> Message:
    """An unsaved message of one line, of the steps of one thread, or of many: a digest."""
    now = clock.now()
    told = [line_of(row, now) for row in sorted(rows, key=lambda each: each.id)]
    return _drawn(channel, told)


def a_test(channel: Channel) -> Message:
    """An unsaved message that an admin asks for."""
    now = clock.now()
    told = Told(Event.TEST, now, now, now, f"test:{ids.new().hex}", _link("test", ""), "", "", {})
    return _drawn(channel, [told])


def _drawn(channel: Channel, told: Sequence[Told]) -> Message:
    threads = {each.thread for each in told}
    thread = told[0].thread if len(threads) == 1 else DIGEST
    title = told[-1].sentence if len(threads) == 1 else _heading(told, len(threads))
    message = Message(
        id=ids.new(), workspace_id=channel.workspace_id, channel=channel, thread=thread,
        event=DIGEST if thread == DIGEST else str(told[-1].event), title=title[:300],
        lines_count=len(told),
    )  # fmt: skip
    message.body = BODIES[channel.kind](message, told)
    return message


def _heading(told: Sequence[Told], threads: int) -> str:
    critical = sum(1 for each in told if each.event is Event.REVIEW_PAST)
    past = f", {critical} of them past their review time" if critical else ""
    return f"{len(told)} notifications about {threads} things{past}"


def _webhook(message: Message, told: Sequence[Told]) -> str:
    last = told[-1]
    if message.event == DIGEST:
        items = [each.as_json() for each in told[:ITEMS_MAX]]
        data: dict[str, Any] = {"count": len(told), "items": items}
    else:
        steps = [{"type": str(each.event), "timestamp": _iso(each.at)} for each in told]
        data = last.as_json() | {"steps": steps}
        del data["type"], data["timestamp"]
    whole = {"type": message.event, "timestamp": _iso(last.at), "data": data}
    return json.dumps(whole, separators=(",", ":"))


def _slack(message: Message, told: Sequence[Told]) -> str:
    lines = [f"• {_mrkdwn(each.sentence)} <{each.link}|Open>" for each in told[:ITEMS_MAX]]
    text = _mrkdwn(message.title)
    if message.event == DIGEST:
        lines.insert(0, f"*{text}*")
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": each}} for each in _cut(lines)]
    return json.dumps({"text": text, "blocks": blocks}, separators=(",", ":"))


def _cut(lines: Sequence[str]) -> list[str]:
    """Lines joined to sections, none above Slack's limit and none broken within an escape."""
    sections: list[str] = [""]
    for line in lines:
        if len(sections[-1]) + len(line) > SLACK_CHARACTERS_MAX:
            sections.append("")
        sections[-1] = f"{sections[-1]}\n{line}".strip()
    return sections


def _mail(message: Message, told: Sequence[Told]) -> str:
    """Subject, text and the id of the thread's root, by which mail programs join the thread."""
    lines = [f"{each.sentence}\n{each.link}" for each in told[:ITEMS_MAX]]
    more = len(told) - ITEMS_MAX
    lines += [f"and {more} more: {_link('incident', '')}"] if more > 0 else []
    text = "\n\n".join([*lines, FOOT])
    subject = _subject(message, told)
    root = "" if message.event == DIGEST else _mail_id(message.thread)
    return json.dumps({"subject": f"[Clearhouse] {subject}", "text": text, "root": root})


FOOT = (
    "-- \nTimes are UTC. The pages ask for a login; opening a link decides nothing.\n"
    "Arguments and results are never in a notification."
)


def _subject(message: Message, told: Sequence[Told]) -> str:
    """The same for every mail of a thread, as mail programs want it."""
    if message.event == DIGEST:
        return message.title
    first = told[0]
    named = first.facts.get("incident") or first.facts.get("bulk_run") or ""
    about = ", ".join(each for each in (first.tool, first.recovery_class) if each)
    return " ".join(each for each in (named, about) if each) or WHAT[first.event]


BODIES = {ChannelKind.WEBHOOK: _webhook, ChannelKind.SLACK: _slack, ChannelKind.MAIL: _mail}


def message_id(message: Message) -> str:
    """The Message-ID of a mail: the same in every try."""
    return f"<{message}@{_host()}>"


def _mail_id(thread: str) -> str:
    return f"<{quote(thread, safe='')}@{_host()}>"


def _host() -> str:
    return urlsplit(settings.ENVIRONMENT.public_url).hostname or "localhost"


def _link(thread: str, subject: str) -> str:
    word = thread.partition(":")[0]
    if word == "incident" and not subject:
        return f"{settings.ENVIRONMENT.public_url}/inbox"
    own = SHOWN_AS.get(word)
    shown = ids.shown(own, UUID(subject)) if own else quote(subject, safe="")
    return f"{settings.ENVIRONMENT.public_url}{PAGES[word].format(shown)}"


def _mrkdwn(text: str) -> str:
    """Slack's three control characters, as its documentation escapes them."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(value: Any) -> str:
    """A word from outside on one line: what cannot be seen, or turns text around, is replaced."""
    return "".join(each if each.isprintable() else "\ufffd" for each in str(value))[:128]


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _instant(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _age(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
