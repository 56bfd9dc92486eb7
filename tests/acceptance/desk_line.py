"""The admin's desk: one process with the product's own verbs, asked by lines of JSON."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from standalone.places import ROOT

PROGRAM = Path(__file__).with_name("desk.py")


class Desk:
    """The test's end of the line."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )

    def ask(self, verb: str, **said: Any) -> Any:
        """Return the desk's answer to one verb; fails with its error where it has one."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps({"verb": verb, **said}) + "\n")
        self._child.stdin.flush()
        answer = json.loads(self._child.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["answer"]

    def close(self) -> None:
        """End the desk and wait for it."""
        self._child.kill()
        self._child.communicate()
