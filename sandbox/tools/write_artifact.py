"""`sandbox.write_artifact`: write a text to a stable path, whole or not at all (R21).

The path is the key: two attempts with the same path and text leave one file. The drill
option `half` dies once, with half a temporary file on disk, which no reader ever sees.
"""

import hashlib
import os
import signal
from typing import Any

from executors.contract import Context, ProbeAnswer
from executors.python import tool
from executors.python.results import result_of
from ledger.vocabulary import ProbeFinding
from sandbox import durable, paths
from sandbox.folder import SandboxFolder
from sandbox.marks import digest
from sandbox.pauses import PAUSE_SCHEMA, pause

TEXT_BYTES_MAX = 256 * 1024


@tool(
    "sandbox.write_artifact",
    recovery_class="idempotent_write",
    effect_kinds=("file",),
    boundary="marked",
    description="Writes a text to a path below the sandbox's artifacts, replacing what is there.",
    schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "maxLength": paths.PATH_BYTES_MAX},
            "text": {"type": "string", "maxLength": TEXT_BYTES_MAX},
            "pause_before_s": {
                **PAUSE_SCHEMA,
                "description": "For drills: wait after the boundary, before the file appears.",
            },
            "pause_after_s": {
                **PAUSE_SCHEMA,
                "description": "For drills: wait after the file appeared, before the result.",
            },
            "half": {
                "type": "boolean",
                "description": "For drills: the first attempt dies with half its temporary file.",
            },
        },
        "required": ["path", "text"],
        "additionalProperties": False,
    },
    policy={
        "key_template": "path:{path}",
        "probe": {"authoritative": True},
    },
)
def write_artifact(
    context: Context,
    *,
    path: str,
    text: str,
    pause_before_s: float = 0,
    pause_after_s: float = 0,
    half: bool = False,
) -> dict[str, Any]:
    """Return `{"path", "sha256", "size_bytes"}` once the file is on disk under its name."""
    body = text.encode()
    root = SandboxFolder.of_environment().artifacts
    with paths.folder_below(root, path, make=True) as (folder, name):
        context.cross()
        temporary = _temporary(context)
        _write(folder, temporary, body, half=half and context.assignment.fence == 1)
        # The temporary file is complete; nothing is visible under the final name yet.
        pause(context, pause_before_s, phase="before_rename", begun=True)
        durable.publish(folder, temporary, name)
    pause(context, pause_after_s, phase="after_rename", begun=True)
    return {"path": path, "sha256": hashlib.sha256(body).hexdigest(), "size_bytes": len(body)}


@write_artifact.probe
def artifact_is_there(
    context: Context, *, path: str, text: str, **drill_options: Any
) -> ProbeAnswer:
    """Look whether the path holds exactly this text. A positive answer brings the result."""
    body = text.encode()
    expected = hashlib.sha256(body).hexdigest()
    found = _checksum(path)
    if not found:
        return ProbeAnswer(
            finding=ProbeFinding.DID_NOT_HAPPEN, message=f"At {path!r} there is no file."
        )
    if found != expected:
        # An older file, or a newer one that replaced this call's: the path alone cannot tell.
        return ProbeAnswer(
            finding=ProbeFinding.UNKNOWN,
            message=f"At {path!r} there is another text, with checksum {found}.",
        )
    return ProbeAnswer(
        finding=ProbeFinding.HAPPENED,
        message=f"The file at {path!r} has the checksum of this call's text.",
        result=result_of({"path": path, "sha256": found, "size_bytes": len(body)}),
    )


def _checksum(path: str) -> str:
    root = SandboxFolder.of_environment().artifacts
    try:
        # Four bytes a character at most, and one more, so a longer file never looks equal.
        body = paths.read(root, path, size_bytes_max=4 * TEXT_BYTES_MAX + 1)
    except FileNotFoundError:
        return ""
    return hashlib.sha256(body).hexdigest()


def _temporary(context: Context) -> str:
    """A name that no path may have, of this attempt alone: a fenced one cannot spoil ours."""
    return f".{digest(context.assignment.marker)}.{context.assignment.fence}.part"


def _write(folder: int, temporary: str, body: bytes, *, half: bool) -> None:
    with durable.opened(folder, temporary) as file:
        if half:
            file.write(body[: len(body) // 2])
            file.sync()
            os.kill(os.getpid(), signal.SIGKILL)
        file.write(body)
