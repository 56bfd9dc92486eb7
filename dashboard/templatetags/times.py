"""Times on pages: the age or the countdown for people, the absolute instant beside it.

`now` is the page's own, from the database's clock, so that one page knows one present.
Forms: console, section 13. The zone is that of the profile, active while a page is made.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard import zones
from dashboard.zones import offset

register = template.Library()
register.filter("written", zones.written)

UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))


def span(length: timedelta) -> str:
    """A length of time in two units, never rounded up: `42 s`, `2 h 05 m`, `3 d 04 h`."""
    seconds = max(0, int(length.total_seconds()))
    for size, unit, smaller, smaller_unit in UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit} {seconds % size // smaller:02} {smaller_unit}"
    return f"{seconds} s"


@register.filter
def exactly(seconds: float) -> str:
    """A time-out in the largest unit that it fills: `90 s`, `4 m`, `1 d`."""
    for size, unit, *_ in UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def countdown(length: timedelta) -> str:
    """A length of time as a clock shows it: `0:42`, `2:05:00`; from one day on as a span."""
    seconds = max(0, int(length.total_seconds()))
    if seconds >= 86400:
        return span(length)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def due_text(moment: datetime, now: datetime, late_before: datetime) -> str:
    """A deadline in words: `in 0:42`, `now` while a sweep may still fire it, `overdue by 1:05`."""
    if moment < late_before:
        return f"overdue by {countdown(now - moment)}"
    return f"in {countdown(moment - now)}" if moment > now else "now"


def _time(
    moment: datetime, text: str, now: datetime | None, *, mark: SafeString | str = ""
) -> SafeString:
    """The text; behind it age, UTC and local time, but no age where no present is known."""
    utc, local = moment.astimezone(UTC), timezone.localtime(moment)
    said = [f"{utc:%Y-%m-%d %H:%M:%S} UTC"]
    if now is not None:
        said.insert(0, f"in {span(moment - now)}" if moment > now else f"{span(now - moment)} ago")
    if offset(local) != "UTC":
        said.append(zones.written(moment))
    instant = f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03}Z"
    title = ", ".join(said)
    return format_html('<time datetime="{}" title="{}"{}>{}</time>', instant, title, mark, text)


@register.simple_tag
def age(moment: datetime | None, now: datetime) -> str:
    """How long ago an instant was; a dash where there is none."""
    return _time(moment, span(now - moment), now) if moment else "–"


@register.simple_tag
def since(moment: datetime, now: datetime, text: str) -> SafeString:
    """A mark with its age and instant behind it, such as `cancel requested`."""
    return _time(moment, text, now)


@register.simple_tag
def due(moment: datetime | None, now: datetime, late_before: datetime) -> str:
    """When a deadline ends; a dash for a call that waits for nothing any more.

    The browser counts on by `data-due`: for how many seconds after the deadline it is `now`.
    """
    if moment is None:
        return "–"
    mark = format_html(' data-due="{}"', f"{(now - late_before).total_seconds():g}")
    return _time(moment, due_text(moment, now, late_before), now, mark=mark)


@register.simple_tag(takes_context=True)
def clock(context: Mapping[str, Any], moment: datetime, *, zoned: bool = True) -> SafeString:
    """The time of day, with seconds, in the zone of who looks, which is named behind it; with its
    date unless it is of the reader's today, which is the page's `now`."""
    local, now = timezone.localtime(moment), context.get("now")
    is_today = now is not None and local.date() == timezone.localtime(now).date()
    text = f"{local:%H:%M:%S}" if is_today else f"{local:%Y-%m-%d %H:%M:%S}"
    return _time(moment, f"{text} {offset(local)}" if zoned else text, now)


@register.simple_tag(takes_context=True)
def until(context: Mapping[str, Any], moment: datetime) -> SafeString:
    """When something ends: the time of day in the zone of who looks, counted down by scripts."""
    local = timezone.localtime(moment)
    text = f"at {local:%H:%M:%S} {offset(local)}"
    return _time(moment, text, context.get("now"), mark=SafeString(" data-due"))


@register.simple_tag(takes_context=True)
def instant(context: Mapping[str, Any], moment: datetime | None, *, ms: bool = False) -> str:
    """Date, seconds and offset in the zone of who looks, for histories; a dash for none.

    `ms` adds milliseconds: the events of a call follow each other within one second.
    """
    return _time(moment, zones.written(moment, ms=ms), context.get("now")) if moment else "–"
