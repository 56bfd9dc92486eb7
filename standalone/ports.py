"""Free ports on the loopback interface."""

import socket

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now; another may still be faster."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port that nobody listens on now. Whoever uses it must survive losing the race."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def keep_or_choose(port: int | None) -> int:
    """The port of the last run where it is still free, so that addresses stay; else another."""
    return port if port and is_free(port) else free_port()
