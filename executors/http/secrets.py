"""Secrets by reference, resolved for one attempt and cut out of what comes back.

The configuration of a tool names a secret, never its value. Values live in the memory of the
process that runs the attempt and are never logged, stored, or put into a message.
"""

import os
import re
from collections.abc import Iterator, Mapping

MIN_CUT = 8
"""Shorter values are not cut out of answers: they would cut ordinary words."""


class SecretMissing(LookupError):
    """The tool refers to a secret that this installation does not have."""


class EnvironmentSecrets(Mapping[str, str]):
    """Secrets from `CLEARHOUSE_SECRET_<NAME>`: upper case, anything but letters and digits `_`."""

    PREFIX = "CLEARHOUSE_SECRET_"

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    @classmethod
    def variable(cls, name: str) -> str:
        return cls.PREFIX + re.sub(r"[^A-Z0-9]", "_", name.upper(), flags=re.ASCII)

    def __getitem__(self, name: str) -> str:
        return self._environment[self.variable(name)]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._environment if name.startswith(self.PREFIX))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return "EnvironmentSecrets()"


class Revealed:
    """The secrets that one attempt has used."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets
        self._used: dict[str, str] = {}

    def reveal(self, name: str) -> str:
        """The value of a secret; raises SecretMissing if there is none."""
        try:
            value = self._secrets[name]
        except KeyError:
            raise SecretMissing(
                f"The secret {name!r} is not set here, so nothing was sent. Set it, for example "
                f"as {EnvironmentSecrets.variable(name)}, or correct the tool's configuration."
            ) from None
        self._used[name] = value
        return value

    def cut_from(self, body: bytes) -> bytes:
        """`body` with every used secret replaced by its name (S9)."""
        for name, value in self._used.items():
            if len(value) >= MIN_CUT:
                body = body.replace(value.encode(), f"[secret {name}]".encode())
        return body
