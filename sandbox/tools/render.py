"""`sandbox.render`: long work that outlives its worker and is found again by its handle."""

from typing import Any
from urllib.parse import quote

from executors.contract import Context, Handle, Outcome, ProbeAnswer
from executors.python import NotBegun, ToolFailed, Vanished, tool
from executors.python.results import result_of
from ledger.vocabulary import ProbeFinding
from sandbox.outside import Answer, Outside, expected
from sandbox.pauses import PAUSE_SCHEMA, pause

FINDINGS = {
    "running": ProbeFinding.IN_PROGRESS,
    "done": ProbeFinding.HAPPENED,
    "failed": ProbeFinding.HAPPENED,
    "died": ProbeFinding.UNKNOWN,
}


@tool(
    "sandbox.render",
    recovery_class="long_running",
    effect_kinds=("media", "subprocess"),
    boundary="marked",
    description="Renders a small drawing, frame by frame, and takes its time.",
    schema={
        "type": "object",
        "properties": {
            "frames": {"type": "integer", "minimum": 1, "maximum": 1000},
            "seconds": {"type": "number", "minimum": 0, "maximum": 600},
            "fails": {"type": "boolean", "description": "For drills: end with an error."},
            "forget_after_s": {
                "type": "number",
                "minimum": 0,
                "maximum": 600,
                "description": "For drills: the renderer forgets the handle after this time.",
            },
            "pause_before_handle_s": {
                **PAUSE_SCHEMA,
                "description": "For drills: wait after the start, before the handle is stored.",
            },
        },
        "additionalProperties": False,
    },
    policy={
        # A render may be forgotten while it goes on, so not knowing it proves nothing (R76).
        "probe": {"authoritative": False},
        "repeat_start": True,  # one key is one render, so a repeated start finds the first
    },
)
def render(
    context: Context,
    *,
    frames: int = 10,
    seconds: float = 5,
    fails: bool = False,
    forget_after_s: float | None = None,
    pause_before_handle_s: float = 0,
) -> Outcome:
    """Start a render, or find the one with this key, and park with its handle."""
    wanted: dict[str, Any] = {"frames": frames, "seconds": seconds, "fails": fails}
    wanted |= {"forget_after_s": forget_after_s, **_names(context)}
    with Outside(context) as outside:
        context.cross()
        started = expected(outside.send("POST", "/renders", wanted), 202)
    pause(context, pause_before_handle_s, phase="before_handle", begun=True)
    handle = Handle(value=started["handle"], poll_after_s=started["poll_after_s"])
    context.store_handle(handle)
    return Outcome.parked(handle)


@render.poll
def ask_after(context: Context, handle: Handle) -> Any:
    """Report progress and, at the end, the result. Unknown handle: vanished, which proves nothing.

    A renderer that cannot be reached is asked again later: its work goes on without it.
    """
    try:
        answer = _asked(context, "GET", handle)
    except (NotBegun, ConnectionError, TimeoutError):
        return Outcome.parked(handle)
    found = _known(answer)
    _tell_progress(context, found)
    return _outcome(found)


@render.cancel
def end(context: Context, handle: Handle) -> None:
    """Ask the renderer to end it; the next poll says what became of it."""
    _known(_asked(context, "DELETE", handle), code=202)


@render.probe
def render_exists(context: Context, **arguments: Any) -> ProbeAnswer:
    """Ask the renderer for this call's marker; the handle, if there is one, is evidence."""
    marker = quote(context.assignment.marker, safe="")
    with Outside(context) as outside:
        found = expected(outside.send("GET", f"/renders?marker={marker}"), 200)
    if not found:
        return ProbeAnswer(
            finding=ProbeFinding.DID_NOT_HAPPEN,
            message="The renderer knows no render with this call's marker.",
        )
    return ProbeAnswer(
        finding=FINDINGS[found[0]["state"]],
        message=f"The renderer knows this call's render; it is {found[0]['state']}.",
        result=result_of(_facts(found[0])) if found[0]["state"] == "done" else None,
        handle=Handle(value=found[0]["handle"], poll_after_s=1.0),
        evidence={"renders": found},
    )


def _names(context: Context) -> dict[str, str]:
    """A key is a workspace's own, so its name outside has the workspace in it."""
    assignment = context.assignment
    key = f"{assignment.workspace_id}/{assignment.idempotency_key or assignment.marker}"
    return {"key": key, "marker": assignment.marker}


def _asked(context: Context, method: str, handle: Handle) -> Answer:
    with Outside(context) as outside:
        return outside.send(method, f"/renders/{quote(handle.value, safe='')}")


def _known(answer: Answer, *, code: int = 200) -> Any:
    if answer.code == 404:
        raise Vanished(
            "The renderer does not know this handle any more. Whether the render went on is "
            "unknown. Look for its output, or start another one."
        )
    return expected(answer, code)


def _tell_progress(context: Context, found: dict[str, Any]) -> None:
    """Append the lines since the last poll; the cursor counts those already told."""
    cursor = context.assignment.cursor
    told = cursor.get("lines_told", 0) if isinstance(cursor, dict) else 0
    lines = found["progress"].splitlines(keepends=True)
    new = "".join(lines[told:]).encode()
    if new:
        context.heartbeat(cursor={"lines_told": len(lines)}, partial=new)


def _outcome(found: dict[str, Any]) -> Any:
    match found["state"]:
        case "running":
            return None
        case "done":
            return _facts(found)
        case "failed":
            raise ToolFailed(found["error"], _facts(found))
    raise ToolFailed(
        "The render ended without a result: its own operating-system process is gone.",
        {"handle": found["handle"], "progress": found["progress"]},
    )


def _facts(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("state", "progress")}
