"""`sandbox.tally`: count that it ran, at almost no cost. For benchmarks and for counting runs."""

import os
from typing import Any

from executors.contract import Context
from executors.python import tool
from sandbox.folder import SandboxFolder

FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


@tool(
    "sandbox.tally",
    recovery_class="read_only",
    description="Appends a line to the sandbox's tally and returns nothing of interest.",
)
def tally(context: Context) -> dict[str, Any]:
    """Return `{}`. One short write with O_APPEND, so lines of many workers never mix."""
    line = f"{context.assignment.call_id} {context.assignment.fence}\n".encode()
    descriptor = os.open(SandboxFolder.of_environment().root / "tally.txt", FLAGS, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
    return {}
