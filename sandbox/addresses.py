"""Where the sandbox servers listen: loopback, on ports from the environment or `sandbox.json`.

The servers take the port from the environment, or a free one where it is unset or 0, and
write both to `sandbox.json` in the installation's folder. Tools read the environment first.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from sandbox import durable
from sandbox.folder import NoSandbox, data_folder

HOST = "127.0.0.1"
SMTP_PORT = "CLEARHOUSE_SANDBOX_SMTP_PORT"
HTTP_PORT = "CLEARHOUSE_SANDBOX_HTTP_PORT"


@dataclass(frozen=True, slots=True)
class Ports:
    """The two ports on which the sandbox listens; 0 asks for a free one."""

    smtp: int
    http: int

    @classmethod
    def of_environment(cls) -> "Ports":
        return cls(smtp=_asked(SMTP_PORT), http=_asked(HTTP_PORT))

    def announce(self, folder: Path) -> None:
        """Write the ports to `sandbox.json`, for tools that were started before they were known."""
        durable.write(folder / "sandbox.json", json.dumps(asdict(self)).encode())


def known() -> Ports:
    """Return the ports to connect to. Raises `NoSandbox` where neither source names them."""
    asked = Ports.of_environment()
    if asked.smtp and asked.http:
        return asked
    announced = _announced(data_folder() / "sandbox.json")
    return Ports(smtp=asked.smtp or announced.smtp, http=asked.http or announced.http)


def _asked(name: str) -> int:
    return int(os.environ.get(name) or 0)


def _announced(file: Path) -> Ports:
    try:
        return Ports(**json.loads(file.read_bytes()))
    except FileNotFoundError:
        raise NoSandbox(
            f"The sandbox has not announced its ports in {file.name}, so it cannot be reached. "
            "Nothing was sent. Start it with `manage.py sandbox`."
        ) from None
