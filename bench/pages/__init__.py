"""Every page of the console and every list of the API, read where there is a lot to read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.pages import addresses, installation
from bench.pages.reading import BYTES_MAX, MS_MAX, Read, Reader


def measure(
    *,
    folder: Path | None,
    calls: int,
    incidents: int,
    only: str,
    rounds: int,
    tell: Callable[[str], object],
) -> dict[str, Any]:
    """Fill, read, and say what is above the limits.

    `only` keeps addresses that hold this text; each is timed `rounds` times once it is warm.
    """
    with installation.filled(folder, calls, incidents) as filled:
        reader = Reader(filled, rounds)
        found: list[Read] = []
        for address in addresses.every(filled):
            read = reader.read(address) if only in address.path else None
            if read is not None:
                found.append(read)
                tell(_line(read))
        return {
            "calls": filled.calls,
            "incidents": filled.incidents,
            "fill_s": filled.fill_s,
            "limits": {"ms": MS_MAX, "bytes": BYTES_MAX},
            "pages": [each.to_json() for each in found],
            "above": [each.path for each in found if not each.is_within],
        }


def table(report: Mapping[str, Any]) -> str:
    """The report for a person, the slowest first."""
    pages = sorted(report["pages"], key=lambda each: -each["median_ms"])
    above = report["above"]
    return "\n".join([
        f"{report['calls']} settled calls, {report['incidents']} open incidents, "
        f"filled in {report['fill_s']} s",
        TITLES,
        *(_of(each) for each in pages),
        f"{len(pages)} addresses, {len(above)} above {MS_MAX:g} ms or {BYTES_MAX} bytes"
        + "".join(f"\n  {path}" for path in above),
    ])  # fmt: skip


TITLES = (
    f"{'median ms':>9} {'worst ms':>9} {'bytes':>8} {'queries':>7} {'rows':>8} {'code':>4}  address"
)


def _line(read: Read) -> str:
    return _of(read.to_json())


def _of(row: Mapping[str, Any]) -> str:
    return (
        f"{row['median_ms']:>9} {row['worst_ms']:>9} {row['bytes']:>8} {row['queries']:>7} "
        f"{row['rows']:>8} {row['status']:>4}  {row['path']}"
    )
