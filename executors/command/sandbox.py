"""Where a command runs: what it sees, what it may write, and by which limits it is held.

With `bwrap`: a root made of the system's folders, read-only, and of nothing else of the host; its
own processes, network and users; one writable folder; a filter on system calls. A worker that is
root runs it under a uid of its own, so that files of root stay closed and NPROC counts.
Without: a process group and limits, which is level `none` and is said aloud.

The sandbox is built whole and then waits, so that the crossing is committed between the two: what
fails before `release` has not begun. Never: a shell, a pre-exec hook, or the worker's environment.
Source: security, section 4.
"""

import contextlib
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import IO

from executors import tree
from executors.command import seccomp
from executors.command.config import MIB, CommandConfig, Limits

SANDBOX_ID = 64_990
"""The uid and gid of commands where the worker is root; no account of the host has it."""

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
SCRATCH = "/scratch"
_GO = b"!"
_START_LIMIT_S = 10.0
_END_LIMIT_S = 2.0
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_SETTINGS = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "mime.types",
    "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "fonts", "nsswitch.conf",
)  # fmt: skip
_NETWORK_SETTINGS = ("resolv.conf", "hosts", "services")


class NotStarted(Exception):
    """The command could not be started: proof that nothing has begun."""


@dataclass(frozen=True, slots=True)
class SandboxLevel:
    """How well commands are held on this host, and in sentences what is missing."""

    level: str
    gaps: list[str] = field(default_factory=list)

    _ORDER = ("none", "partial", "full")

    def satisfies(self, required: str) -> bool:
        """Say whether this level is at least the one required."""
        return self._ORDER.index(self.level) >= self._ORDER.index(required)

    @property
    def sentence(self) -> str:
        """Say the level and its gaps aloud."""
        return " ".join([f"Commands run at sandbox level {self.level}.", *self.gaps])


_NO_CGROUP = (
    "No cgroup is used: memory is limited for each process of a command, not for all together."
)
_NO_SECCOMP = "No filter on system calls: this processor is not in its tables."
_NO_QUOTA = "No quota on a writable folder of the host: many files can fill its disk."


@cache
def level() -> SandboxLevel:
    """Find out once, by running a command in it, which sandbox this host gives.

    A holder asks before its first launch: what it knows its tool children inherit.
    """
    if (refusal := _refusal()) is not None:
        return SandboxLevel("none", [f"No namespaces: {refusal} Commands see the worker's files."])
    gaps = [_NO_CGROUP, _NO_QUOTA]
    return SandboxLevel("partial", gaps if seccomp.supported() else [_NO_SECCOMP, *gaps])


def _refusal() -> str | None:
    if shutil.which("bwrap", path=SEARCH_PATH) is None:
        return "bwrap is not installed. Install the package bubblewrap."
    try:
        cage = _start_caged(["/usr/bin/env"], CommandConfig(argv=["env"]), env={})
    except NotStarted as error:
        return f"bwrap does not work here ({error})."
    try:
        cage.release()
        code = cage.process.wait(_START_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not work here ({error})."
    finally:
        cage.close()
    return None if code == 0 else f"bwrap ended with code {code}."


@dataclass(slots=True)
class Cage:
    """A started command: waiting at its gate in a sandbox, or already running without one."""

    process: subprocess.Popen[bytes]
    group: int
    gate: int | None = None
    init: int | None = None

    def release(self) -> None:
        """Let the command begin."""
        if self.gate is not None:
            os.write(self.gate, _GO)

    @property
    def never_began(self) -> bool:
        """Whether the ended sandbox left its gate's byte unread: it reads before it execs."""
        return self.gate is not None and _unread_bytes(self.gate) > 0

    def terminate(self) -> None:
        """Ask the command's group to end."""
        self._signal_group(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the command; in a sandbox everything in it dies with its init."""
        if self.init is not None:
            # While it waits at its gate bwrap's init is not yet bound to die with its parent.
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.init, signal.SIGKILL)
        else:
            self._signal_group(signal.SIGKILL)
        self.process.kill()

    def _signal_group(self, number: int) -> None:
        # Once its leader has been waited for, a group's number may come to mean another.
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, number)

    def _await_init(self) -> None:
        """Return when the sandbox's processes are gone; reap its init if it was left to us."""
        if self.init is None:
            return
        select.select([self.init], [], [], _END_LIMIT_S)
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self.init, os.WEXITED | os.WNOHANG)

    def close(self) -> None:
        """End what still runs and close our ends of its pipes."""
        self.kill()
        self.process.wait()
        self._await_init()
        for end in (self.process.stdin, self.process.stdout, self.process.stderr):
            if end is not None:
                with contextlib.suppress(BrokenPipeError):
                    end.close()
        for descriptor in (self.gate, self.init):
            if descriptor is not None:
                os.close(descriptor)
        self.gate = self.init = None


def find_program(name: str, config: CommandConfig) -> str:
    """Give the program's absolute path. Raises NotStarted if nothing executable is there."""
    found = shutil.which(name, path=SEARCH_PATH)
    if found is None:
        raise NotStarted(
            f"The program {name!r} is not installed or may not be executed. Nothing has begun. "
            f"Install it on the worker, in {SEARCH_PATH} or by its full path."
        )
    seen = ("/usr", *_SYSTEM, *config.readable)
    if level().level != "none" and not any(found.startswith(f"{folder}/") for folder in seen):
        raise NotStarted(
            f"The program {found} lies outside what the sandbox shows. Nothing has begun. "
            "Add its folder to `readable`."
        )
    return found


def start(argv: Sequence[str], config: CommandConfig, *, env: Mapping[str, str]) -> Cage:
    """Build the sandbox around `argv`; the command begins at `release`.

    Without a sandbox the command begins at once. Raises NotStarted when nothing has begun.
    """
    _check_folders(config)
    if level().level == "none":
        return _start_bare(argv, config, env=env)
    return _start_caged(argv, config, env=env)


def _check_folders(config: CommandConfig) -> None:
    for folder in (config.cwd, config.writable):
        if folder not in (None, SCRATCH) and not os.path.isdir(str(folder)):
            raise NotStarted(f"The folder {folder} does not exist. Nothing has begun. Create it.")
    if config.writable is None or level().level == "none" or os.geteuid() != 0:
        return
    if (owner := os.stat(config.writable).st_uid) != SANDBOX_ID:
        raise NotStarted(
            f"The writable folder {config.writable} belongs to uid {owner}, but commands of a "
            f"worker that is root run as uid {SANDBOX_ID}. Nothing has begun. "
            "Give the folder to that uid."
        )


def _start_bare(argv: Sequence[str], config: CommandConfig, *, env: Mapping[str, str]) -> Cage:
    folder = config.cwd or config.writable
    try:
        process = _popen(argv, env=env, cwd=folder, start_new_session=True)
    except OSError as error:
        raise NotStarted(
            f"The command could not be executed: {error}. Nothing has begun."
        ) from error
    # NPROC would count the worker's own processes too, and refuse the command its first.
    _limit(process.pid, config.limits, count_processes=False)
    return Cage(process, group=process.pid)


def _start_caged(argv: Sequence[str], config: CommandConfig, *, env: Mapping[str, str]) -> Cage:
    told, teller = os.pipe()
    gate = _gate()
    with _filter() as filter_fd:
        inherited = [teller, gate] + ([] if filter_fd is None else [filter_fd])
        command = [*_bwrap(config, teller, gate, filter_fd), "--", *argv]
        try:
            process = _popen(command, env=env, pass_fds=inherited, **_identity())
        except OSError as error:
            os.close(told)
            os.close(gate)
            raise NotStarted(f"bwrap could not be executed: {error}. Nothing has begun.") from error
        finally:
            os.close(teller)
    return _built(process, told, gate, config.limits)


def _gate() -> int:
    """Make the pipe at which a sandbox waits for one byte before it becomes the command.

    bwrap takes the end of the pipe for a byte as well, and its writer may be killed. So both
    sides hold the pipe for reading *and* writing: it has no end, and no byte means no command.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gate")
        os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)


def _unread_bytes(pipe: int) -> int:
    count = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return int.from_bytes(count, sys.byteorder)


def _built(process: subprocess.Popen[bytes], told: int, gate: int, limits: Limits) -> Cage:
    """Wait until the sandbox has its processes, and put its limits on it before it is released."""
    cage = Cage(process, group=process.pid, gate=gate)
    with open(told, "rb") as line:
        child = _child_pid(line)
    if child is None:
        reason = last_words(cage)
        cage.close()
        raise NotStarted(f"The sandbox could not be built: {reason}. Nothing has begun.")
    cage.group = child  # it will lead its own session
    try:
        cage.init = os.pidfd_open(child)
        _limit_caged(child, limits)
    except OSError as error:
        # Its init may have ended over what it could not set up before we could hold it.
        reason = last_words(cage)
        cage.close()
        raise NotStarted(
            f"The sandbox was not released: {reason} ({error}). Nothing has begun."
        ) from error
    return cage


def _child_pid(line: IO[bytes]) -> int | None:
    until, text = time.monotonic() + _START_LIMIT_S, b""
    while not text.rstrip().endswith(b"}"):
        if not select.select([line], [], [], max(0.0, until - time.monotonic()))[0]:
            return None
        chunk = os.read(line.fileno(), 4096)
        if not chunk:
            return None
        text += chunk
    return int(json.loads(text)["child-pid"])


def last_words(cage: Cage) -> str:
    """What a sandbox that never became its command said of the reason; ends it first."""
    cage.kill()
    errors = cage.process.stderr
    words = None
    if errors is not None and not errors.closed:
        os.set_blocking(errors.fileno(), False)  # an init whose pid we never learnt may hold it
        words = errors.read(4096)
    return (words or b"").decode("utf-8", "replace").strip() or "bwrap gave no reason"


def _popen(argv: Sequence[str], **settings: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]  # noqa: S603 - no shell
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        **settings,
    )


def _limit(pid: int, limits: Limits, *, count_processes: bool) -> None:
    bounds = {
        resource.RLIMIT_AS: limits.memory_mb * MIB,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_FSIZE: limits.file_mb * MIB,
        resource.RLIMIT_NOFILE: limits.nofile,
        resource.RLIMIT_CORE: 0,
    }
    if count_processes:
        bounds[resource.RLIMIT_NPROC] = limits.nproc
    with contextlib.suppress(ProcessLookupError):
        for kind, bound in bounds.items():
            ceiling = resource.prlimit(pid, kind)[1]
            bound = bound if ceiling == resource.RLIM_INFINITY else min(bound, ceiling)
            resource.prlimit(pid, kind, (bound, bound))


def _limit_caged(pid: int, limits: Limits) -> None:
    """Limit a process under the sandbox's uid. Raises OSError if that cannot be done."""
    if os.geteuid() != 0:
        return _limit(pid, limits, count_processes=True)

    def as_its_owner() -> None:
        # A root without CAP_SYS_RESOURCE, as in containers, may not limit another uid's process.
        os.setresgid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID)
        os.setresuid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID)
        _limit(pid, limits, count_processes=True)

    if os.waitpid(tree.fork(as_its_owner), 0)[1] != 0:
        raise OSError("the limits of the command could not be set")


def _identity() -> dict[str, object]:
    if os.geteuid() != 0:
        return {}
    return {"user": SANDBOX_ID, "group": SANDBOX_ID, "extra_groups": []}


@contextlib.contextmanager
def _filter() -> Iterator[int | None]:
    if not seccomp.supported():
        yield None
        return
    with tempfile.TemporaryFile() as file:
        file.write(seccomp.program())
        file.seek(0)
        yield file.fileno()


def _bwrap(config: CommandConfig, teller: int, gate: int, filter_fd: int | None) -> list[str]:
    bwrap = shutil.which("bwrap", path=SEARCH_PATH) or "bwrap"
    made = [
        bwrap, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session",
        "--cap-drop", "ALL", "--hostname", "clearhouse",
        "--info-fd", str(teller), "--block-fd", str(gate),
    ]  # fmt: skip
    if filter_fd is not None:
        made += ["--seccomp", str(filter_fd)]
    if config.network:
        made += ["--share-net"]
    return made + _folders(config)


def _folders(config: CommandConfig) -> list[str]:
    """The root the command sees. What is not named here does not exist for it."""
    scratch_bytes = str(config.limits.file_mb * MIB)
    made = ["--ro-bind", "/usr", "/usr"]
    for folder in _SYSTEM:
        made += _system_folder(folder)
    settings = (*_SETTINGS, *(_NETWORK_SETTINGS if config.network else ()))
    for name in settings:
        made += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    made += ["--proc", "/proc", "--dev", "/dev", "--dir", "/home", "--dir", "/run"]
    for folder in ("/tmp", "/dev/shm", SCRATCH):  # noqa: S108 - the sandbox's own
        made += ["--size", scratch_bytes, "--tmpfs", folder]
    for folder in config.readable:
        made += ["--ro-bind", folder, folder]
    if config.writable:
        made += ["--bind", config.writable, config.writable]
    # Both are unbounded memory until they are made read-only, once everything is in its place.
    made += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*made, "--chdir", config.cwd or config.writable or SCRATCH]


def _system_folder(folder: str) -> list[str]:
    if os.path.islink(folder):
        return ["--symlink", os.readlink(folder), folder]
    return ["--ro-bind-try", folder, folder]
