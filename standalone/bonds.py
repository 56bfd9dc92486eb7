"""A bond between a child and its parent: the kernel signals the child when the parent dies.

The signal follows the parent *thread*, so whoever starts bonded children does it from its
main thread. `setpriv` stands last before the program, because a change of credentials or of
user namespace clears the bond. Where `setpriv` is missing the next start finds the leftover.
"""

import ctypes
import os
import shutil
import signal

PR_SET_PDEATHSIG = 1  # prctl(2)


def bonded(command: list[str], number: signal.Signals) -> list[str]:
    """`command`, so that it receives `number` when the thread that starts it is gone."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return command
    return [setpriv, "--pdeathsig", number.name.removeprefix("SIG"), "--", *command]


def bond(number: signal.Signals, *, parent: int) -> None:
    """Bond this program, a fork of `parent`, in the same way; ends at once if that one is gone."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + number)
