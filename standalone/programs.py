"""The programs of one Clearhouse, as data: what runs, in which order it ends, how patiently."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from standalone.places import MANAGE
from standalone.ports import LOOPBACK
from standalone.state import State

# Without these three a broker account limited to its own keys cannot run a worker
# (reliability C17); liveness is the ledger's business, not the broker's.
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "warning")
# A pool has threads, and a worker forks: only the web, which does not, may have one.
NO_POOL = {"CLEARHOUSE_DATABASE_POOL": "0"}
IMAGE = "config.image"
SOFT_SHUTDOWN_S = 20  # `worker_soft_shutdown_timeout`, spent whole whenever anything runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program to keep running.

    `stage` orders the stop: all of one stage are asked together, lower stages first.
    `grace_s` is what lies between SIGTERM and SIGKILL. `image` names the module that holds what
    the program imports; without one it gets an interpreter of its own.
    """

    name: str
    command: tuple[str, ...]
    stage: int
    grace_s: float
    environ: Mapping[str, str] = field(default_factory=dict)
    image: str = ""


def programs(port: int) -> list[Program]:
    """Web, two workers, watchdog, notifier and sandbox; web listens on the loopback `port`."""
    return [web(port), effects(), reads(), watchdog(), notifier(), sandbox()]


def web(port: int) -> Program:
    # Open event streams would hold a shutdown for ever: hence the server's own limit.
    options = ("--timeout-graceful-shutdown", "2", "--no-access-log")
    server = ("uvicorn", "config.asgi:application", "--host", LOOPBACK, "--port", str(port))
    command = (*module(*server), *options)
    return Program(name="web", command=command, stage=1, grace_s=6, image=IMAGE)


def effects() -> Program:
    # A doorbell must not wait behind a long attempt in a busy child.
    pool = ("-Q", "effects", "-P", "prefork", "-c", str(max(2, os.cpu_count() or 2)),
            "--disable-prefetch")  # fmt: skip
    return worker("effects", pool)


def reads() -> Program:
    return worker("reads", ("-Q", "reads,control", "-P", "threads", "-c", "2"))


def worker(name: str, pool: tuple[str, ...]) -> Program:
    celery = module("celery", "-A", "config.celery", "worker", *pool, "-n", f"{name}@%h", *QUIET)
    return Program(
        name=name,
        command=celery,
        stage=2,
        grace_s=SOFT_SHUTDOWN_S + 10,
        # SIGTERM then begins the soft shutdown: what runs may end, nothing new is claimed.
        environ={"REMAP_SIGTERM": "SIGQUIT", **NO_POOL},
        image=IMAGE,
    )


def watchdog() -> Program:
    return Program(
        name="watchdog",
        command=managed("watchdog"),
        stage=3,
        grace_s=5,
        environ=NO_POOL,
        image=IMAGE,
    )


def notifier() -> Program:
    # A try may take ten seconds; one that is cut off is made again with the same id.
    return Program(
        name="notifier",
        command=managed("notifier"),
        stage=3,
        grace_s=5,
        environ=NO_POOL,
        image=IMAGE,
    )


def sandbox() -> Program:
    return Program(name="sandbox", command=module("sandbox"), stage=4, grace_s=5)


def module(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *words)


def managed(*words: str) -> tuple[str, ...]:
    return (sys.executable, str(MANAGE), *words)


def environment(
    state: State, *, database_url: str, redis_url: str, public_url: str, ports: Mapping[str, int]
) -> dict[str, str]:
    """What every program of this state folder is told; secrets go as files, not as values."""
    return {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "CLEARHOUSE_DATA": str(state.root),
        "CLEARHOUSE_PUBLIC_URL": public_url,
        "CLEARHOUSE_SECRET_KEY_FILE": str(state.secret_file("secret-key")),
        "CLEARHOUSE_KEY_PEPPER_FILE": str(state.secret_file("key-pepper")),
        "CLEARHOUSE_SANDBOX_SMTP_PORT": str(ports["sandbox_smtp"]),
        "CLEARHOUSE_SANDBOX_HTTP_PORT": str(ports["sandbox_http"]),
        "CLEARHOUSE_BOOTSTRAP": "0",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONUNBUFFERED": "1",
    }
