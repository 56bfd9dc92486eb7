"""`sandbox.lookup`: read an entry of the sandbox's files. It changes nothing."""

import json
from typing import Any

from executors.contract import Context
from executors.python import Refused, tool
from ledger.vocabulary import Cause
from sandbox import paths
from sandbox.folder import SandboxFolder
from sandbox.pauses import PAUSE_SCHEMA, pause


@tool(
    "sandbox.lookup",
    recovery_class="read_only",
    description="Looks a name up, such as 'opening-hours', and returns what is written there.",
    schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 255},
            "slow_s": {**PAUSE_SCHEMA, "description": "For drills: wait before reading."},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
)
def lookup(context: Context, *, name: str, slow_s: float = 0) -> dict[str, Any]:
    """Return `{"name", "entry"}`. A name that leads out of the folder is refused."""
    pause(context, slow_s, phase="before_reading", begun=False)
    try:
        body = paths.read(SandboxFolder.of_environment().files, f"{name}.json")
    except FileNotFoundError as error:
        raise Refused(
            Cause.NOT_FOUND,
            f"There is no entry named {name!r} in the sandbox. Nothing was changed. Try "
            "'opening-hours'.",
        ) from error
    return {"name": name, "entry": json.loads(body)}
