"""Who executes, over the API: the same rows as the page of workers."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from dashboard import workers
from dashboard.workers import Listed
from ledger import clock, ids
from ledger.api.auth import Login
from ledger.api.schemas import PageOut
from ledger.api.shapes import instant

router = Router(tags=["workers"])


@router.get("", auth=Login(), response=PageOut)
def index(request: HttpRequest) -> dict[str, Any]:
    """List the workers that run, then those that stopped in the last 24 hours, at most 100.

    It takes a login of any role, as the page does: workers are of the installation, and no agent
    needs their hosts. `has_lock` proves that one lives; `self_fence` is `kernel` where an attempt
    is ended before its lease, else `none`; `fences_lost_24h` counts the attempts it lost.
    """
    found = workers.read(clock.now()).workers
    return {"items": [_worker(each) for each in found], "next_cursor": None}


def _worker(worker: Listed) -> dict[str, Any]:
    return {
        "id": ids.shown("worker", worker.id),
        "name": worker.name,
        "host": worker.host,
        "pid": worker.pid,
        "state": worker.state,
        "has_lock": worker.is_locked,
        "queues": worker.queues,
        "slots": worker.slots,
        "attempts_held": worker.held,
        "fences_lost_24h": worker.lost,
        "self_fence": worker.fence,
        "started_at": instant(worker.started_at),
        "seen_at": instant(worker.seen_at),
        "stopped_at": instant(worker.stopped_at),
    }
