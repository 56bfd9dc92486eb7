"""The admin's desk: one process with the product's own verbs, asked by lines of JSON."""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from standalone.places import ROOT


class DeskBroke(RuntimeError):
    """The desk met an error; the text is its traceback."""


class Desk:
    """The drill's end of the line. Threads ask in turn."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._turn = threading.Lock()
        self._child = subprocess.Popen(
            [sys.executable, "-m", "drills.desk"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )

    def ask(self, verb: str, **said: Any) -> Any:
        """Return the desk's answer to one verb. Raises DeskBroke with its error, or its end."""
        line_in, line_out = self._child.stdin, self._child.stdout
        if line_in is None or line_out is None:
            raise DeskBroke("The desk was started without its lines.")
        with self._turn:
            line_in.write(json.dumps({"verb": verb, **said}) + "\n")
            line_in.flush()
            heard = line_out.readline()
        if not heard:
            raise DeskBroke(f"The desk ended before it answered {verb!r}.")
        answer = json.loads(heard)
        if "error" in answer:
            raise DeskBroke(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        """End the desk and wait for it."""
        self._child.kill()
        self._child.communicate()
