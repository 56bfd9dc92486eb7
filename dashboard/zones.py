"""Zones of people: which there are, and how one is written beside a time (console, section 13)."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from zoneinfo import available_timezones

from django.utils import timezone

LEFT_OUT = ("Etc", "SystemV", "posix", "right")
UTC = "UTC"
BROWSER = "browser"
"""What a profile holds that asks for the zone which the browser names in its cookie."""
COOKIE = "zone"


@dataclass(frozen=True, slots=True)
class Zone:
    """The active zone for the bar: `Berlin +01:00`; its offset in seconds for the page's clock."""

    text: str
    offset: str
    offset_s: int


@cache
def names() -> tuple[str, ...]:
    """All zones with a region, by name."""
    known = (name for name in available_timezones() if "/" in name)
    return tuple(sorted(name for name in known if name.split("/")[0] not in LEFT_OUT))


def grouped() -> list[tuple[str, list[tuple[str, str]]]]:
    """The zones by region, as choices of a form."""
    regions: dict[str, list[tuple[str, str]]] = {}
    for name in names():
        region, _, place = name.partition("/")
        regions.setdefault(region, []).append((name, place.replace("_", " ")))
    return list(regions.items())


def known(name: str) -> str:
    """The zone where this installation knows it, else UTC: no profile may break its pages."""
    return name if name in names() else UTC


def chosen(wanted: str, of_browser: str) -> str:
    """The zone that a profile asks for; UTC while the browser has named none that is known."""
    return known(of_browser if wanted == BROWSER else wanted)


def offset(local: datetime) -> str:
    """`+01:00`, or `UTC` where the zone is UTC itself."""
    return UTC if local.tzname() == UTC else f"{local:%z}"[:3] + ":" + f"{local:%z}"[3:5]


def written(moment: datetime, *, ms: bool = False) -> str:
    """An instant of a history in the active zone: `2027-03-02 09:41:20 +01:00`."""
    local = timezone.localtime(moment)
    fine = f".{local.microsecond // 1000:03}" if ms else ""
    return f"{local:%Y-%m-%d %H:%M:%S}{fine} {offset(local)}"


def shown(now: datetime) -> Zone:
    """The zone that is active while this page is made."""
    local = timezone.localtime(now)
    name = timezone.get_current_timezone_name()
    place = name.rpartition("/")[2].replace("_", " ")
    text = UTC if name == UTC else f"{place} {offset(local)}"
    length = local.utcoffset()
    return Zone(text, offset(local), int(length.total_seconds()) if length else 0)
