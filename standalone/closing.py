"""What `up` says when everything runs: where, who, and a line to paste. Pure."""

import json
from dataclasses import dataclass
from typing import Any

EXAMPLE = {"tool": "sandbox.lookup", "arguments": {"name": "opening-hours"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The facts of a finished start. `api_key` is None when it was made elsewhere."""

    address: str
    username: str
    password: str
    workspace: str
    api_key: str | None
    data: str
    seconds: float
    ready: bool

    @property
    def curl(self) -> str:
        """A command that submits one call and waits for its result; pasted twice it replays."""
        return (
            f"curl -sS '{self.address}/api/v1/calls?wait=25' "
            f"-H 'Authorization: Bearer {self.api_key or '<API key>'}' "
            "-H 'Content-Type: application/json' -H 'Idempotency-Key: first-call' "
            f"-d '{json.dumps(EXAMPLE, separators=(',', ':'))}'"
        )

    def as_json(self) -> str:
        """One line for programs."""
        facts: dict[str, Any] = {
            "address": self.address,
            "operator": {"username": self.username, "password": self.password},
            "workspace": self.workspace,
            "api_key": self.api_key,
            "curl": self.curl,
            "data": self.data,
            "seconds": round(self.seconds, 1),
            "ready": self.ready,
        }
        return json.dumps(facts)

    def as_text(self) -> str:
        """A few lines for the person at the terminal."""
        key = self.api_key or "(made for another database; `manage.py provision` makes one)"
        return (
            f"\nClearhouse is up ({self.seconds:.1f} s).\n\n"
            f"  Console    {self.address}/\n"
            f"  Login      {self.username}  password {self.password}\n"
            f"  API key    {key}\n"
            f"  Data       {self.data}\n\n"
            f"Submit a first call:\n\n  {self.curl}\n\n"
            "Next: paste that line into another terminal, then open the console and look the "
            "call up. Ctrl-C here stops everything and keeps all data.\n"
        )
