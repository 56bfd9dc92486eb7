"""Forks one program as the supervisor does, says its pid, then its exit code.

Arguments: a log file, and the program's Python command line.
"""

import os
import signal
import sys
import time

from standalone.forks import fork

signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
held = open(sys.argv[1] + ".held", "w")
print("said once", end=" ")
child = fork(
    sys.argv[2:],
    title="clearhouse stand-in",
    environ={"TOLD": "this alone"},
    log=os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
    begin=lambda: print("begun", os.environ["TOLD"]),
)
print(child.pid, flush=True)
while (code := child.poll()) is None:
    time.sleep(0.01)
print(code, flush=True)
