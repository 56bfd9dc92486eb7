"""The escape kit: what a hostile command tries, and that each attempt fails cleanly.

Source: security, section 4 (escape kit). The commands are small Python programs that print one
line per attempt: what they got, or the error the kernel gave them.
"""

import os
import socket
import subprocess
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from executors import fence, launcher
from executors.channel import Channel, Message
from executors.command import sandbox
from executors.command.executor import CommandExecutor
from ledger.vocabulary import Cause
from tests.executors.command.commands import (
    PYTHON,
    a_folder,
    context_of,
    require_python,
    require_sandbox,
    run,
    text_of,
)


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    require_sandbox()
    require_python()


PRELUDE = """
import ctypes, errno, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(act):
    try:
        print("got", act())
    except OSError as error:
        print(errno.errorcode.get(error.errno, type(error).__name__))
    except MemoryError:
        print("MemoryError")
def call(name, *arguments):
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)
    return name
"""


def script(text: str) -> list[str]:
    program = PRELUDE + textwrap.dedent(text)
    return [PYTHON, "-c", program.replace("{", "{{").replace("}", "}}")]


def escape(text: str, **config: Any) -> list[str]:
    """Run a program in the sandbox and give the lines it printed."""
    outcome, _ = run({"argv": script(text), **config}, remaining=10.0)
    return text_of(outcome).splitlines()


# --- reading what is not its own -------------------------------------------------------------


def test_it_cannot_read_another_process_environment():
    identity = {} if os.geteuid() else {"user": sandbox.SANDBOX_ID, "extra_groups": []}
    with subprocess.Popen(["/bin/sleep", "20"], env={"CANARY": "canary-7f3a"}, **identity) as other:
        lines = escape("""
            found = sorted(int(pid) for pid in os.listdir("/proc") if pid.isdigit())
            print(found)
            for pid in found:
                attempt(lambda: "canary" in open(f"/proc/{pid}/environ").read())
        """)
        other.kill()
    assert lines[0] == "[1, 2]"
    assert lines[1:] == ["got False", "got False"]


def test_the_workers_environment_is_not_in_its_own(monkeypatch):
    monkeypatch.setenv("CLEARHOUSE_CANARY", "canary-7f3a")
    assert escape("print([v for v in os.environ.values() if 'canary' in v])") == ["[]"]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow", "/etc/passwd-", "/root", "/root/.ssh", "/etc/ssh", "/etc/ssl/private",
        "/home", "/var/run/postgresql", "/run/postgresql", "/var/run/docker.sock", "/var/lib",
        "/proc/kcore", "/dev/mem", "/dev/kmsg", "/sys/fs/cgroup", "/proc/1/root/etc/shadow",
    ],
)  # fmt: skip
def test_it_cannot_read_what_belongs_to_others(path):
    lines = escape(
        "attempt(lambda: os.listdir(sys.argv[1]) if os.path.isdir(sys.argv[1]) "
        "else open(sys.argv[1], 'rb').read(10))".replace("sys.argv[1]", repr(path))
    )
    assert lines[0] in ("ENOENT", "EACCES", "EPERM", "got []")


def test_it_cannot_read_the_workers_own_files(tmp_path):
    secret = tmp_path / "key.pem"
    secret.write_text("private")
    assert escape(f"attempt(lambda: open({str(secret)!r}).read())") == ["ENOENT"]


def test_a_symlink_out_of_the_writable_folder_leads_nowhere(tmp_path):
    secret = tmp_path / "key.pem"
    secret.write_text("private")
    with a_folder() as folder:
        lines = escape(
            f"""
            os.symlink({str(secret)!r}, "link")
            attempt(lambda: open("link").read())
            os.symlink("/etc/shadow", "shadow")
            attempt(lambda: open("shadow").read())
            """,
            writable=str(folder),
        )
    assert lines == ["ENOENT", "ENOENT"]


def test_it_holds_no_descriptor_but_its_own_three():
    assert escape("print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])") == ["[0, 1, 2]"]


# --- exhausting the machine ------------------------------------------------------------------


def test_a_fork_bomb_stops_at_the_limit_of_processes():
    lines = escape(
        """
        count = 0
        try:
            while os.fork():
                count += 1
            signal.pause()
        except OSError as error:
            print(errno.errorcode[error.errno], count < 40)
        """,
        limits={"nproc": 40},
    )
    assert lines == ["EAGAIN True"]


def test_a_gigabyte_is_refused():
    limits = {"memory_mb": 256}
    assert escape("attempt(lambda: len(bytearray(1 << 30)))", limits=limits) == ["MemoryError"]


def test_a_file_over_the_limit_is_cut():
    with a_folder() as folder:
        text = """
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            file = open("big", "wb")
            attempt(lambda: [file.write(bytes(1 << 20)) for _ in range(10)])
        """
        lines = escape(text, writable=str(folder), limits={"file_mb": 4})
        assert lines == ["EFBIG"]
        assert (folder / "big").stat().st_size <= 4 << 20


@pytest.mark.parametrize("folder", ["/scratch", "/tmp", "/dev/shm"])
def test_the_scratch_folders_can_be_filled_and_no_more(folder):
    lines = escape(
        f"""
        os.chdir({folder!r})
        attempt(lambda: [open(f"f{{n}}", "wb").write(bytes(1 << 20)) for n in range(20)])
        """,
        limits={"file_mb": 8},
    )
    assert lines == ["ENOSPC"]


@pytest.mark.parametrize(
    "folder", ["/", "/usr", "/etc", "/dev", "/home", "/run", "/proc/sys/kernel"]
)
def test_nothing_else_can_be_written(folder):
    lines = escape(f"attempt(lambda: open({folder!r} + '/planted', 'w'))")
    assert lines[0] in ("EROFS", "EACCES", "ENOENT", "EPERM")


def test_an_endless_output_is_cut():
    outcome, _ = run({"argv": script("while True: os.write(1, bytes(65536))")}, remaining=2.5)
    assert outcome.cause is Cause.HANG


# --- reaching out ----------------------------------------------------------------------------


def test_it_reaches_neither_loopback_nor_the_metadata_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        lines = escape(f"""
            for target in [("127.0.0.1", {port}), ("127.0.0.1", 5432), ("127.0.0.1", 6379),
                           ("169.254.169.254", 80), ("1.1.1.1", 53)]:
                attempt(lambda: socket.create_connection(target, timeout=2))
        """)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert set(lines) <= {"ECONNREFUSED", "ENETUNREACH"}
    assert len(lines) == 5


def test_it_reaches_no_abstract_socket_of_the_host():
    name = f"\0clearhouse-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        lines = escape(f"attempt(lambda: socket.socket(socket.AF_UNIX).connect({name!r}))")
    assert lines == ["ECONNREFUSED"]


# --- gaining rights --------------------------------------------------------------------------


def test_it_cannot_trace_mount_or_make_namespaces():
    lines = escape("""
        attempt(lambda: call("ptrace", 16, 1, 0, 0))
        attempt(lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None))
        attempt(lambda: call("unshare", 0x10000000))
        attempt(lambda: call("setns", 0, 0))
        attempt(lambda: call("chroot", b"/tmp"))
        attempt(lambda: call("syscall", 248, b"user", b"k", b"v", 1, -3))
    """)
    assert lines == ["EPERM"] * 6


def test_it_cannot_make_a_set_uid_file():
    with a_folder() as folder:
        lines = escape(
            """
            open("plain", "w").close()
            attempt(lambda: os.chmod("plain", 0o4755))
            attempt(lambda: os.chmod("plain", 0o2755))
            attempt(lambda: os.open("made", os.O_CREAT | os.O_WRONLY, 0o4755))
            attempt(lambda: os.chmod("plain", 0o755))
            attempt(lambda: os.close(os.open("plain", os.O_RDONLY, 0o4755)))
            """,
            writable=str(folder),
        )
        assert lines == ["EPERM", "EPERM", "EPERM", "got None", "got None"]
        assert not any(path.stat().st_mode & 0o6000 for path in folder.iterdir())


def test_it_has_no_capability_and_can_gain_none():
    lines = escape("""
        text = open("/proc/self/status").read()
        print([line.split()[1] for line in text.splitlines() if line[:6] in ("CapEff", "CapBnd")])
        print([line.split()[1] for line in text.splitlines() if line.startswith("NoNewPrivs")])
        attempt(lambda: os.setuid(0))
    """)
    assert lines == ["['0000000000000000', '0000000000000000']", "['1']", "EINVAL"]


def test_it_does_not_run_as_root():
    assert escape("print(os.getuid() != 0, os.geteuid() != 0)") == ["True True"]


# --- outliving, or stopping, its attempt -----------------------------------------------------


def test_it_cannot_signal_the_launcher_nor_disarm_its_timer():
    def body(channel: Channel) -> None:
        context = context_of(
            {
                "argv": script("""
            for pid in (1, os.getppid(), 2, 3, *map(int, sys.argv[1:])):
                for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
                    if pid not in (os.getpid(), 0):
                        try: os.kill(pid, number)
                        except OSError: pass
            try: os.kill(-1, signal.SIGKILL)
            except OSError: pass
            for timer in range(10):
                libc.timer_delete(ctypes.c_void_p(timer))
                libc.syscall(226, timer)
            channel = [fd for fd in range(3, 100) if os.path.exists(f"/proc/self/fd/{fd}")]
            print("still here")
            signal.pause()
        """)
            }
        )
        context.on_call = lambda verb: _ask(channel, verb)
        CommandExecutor().run(context.assignment, context)

    running = launcher.launch(body, fence_at_s=fence.boottime_s() + 2.0)
    for _ in range(2):  # the crossing, and a heartbeat: the attempt lives on
        if isinstance(running.receive(1.5), Message):
            running.answer({"go": True})
    assert running.reap(0) is None
    death = running.reap(5)
    running.close()
    assert death is not None
    assert death.fenced


@pytest.mark.parametrize("holds", ["its output open", "nothing"])
def test_a_daemon_does_not_outlive_its_command(holds):
    quiet = "" if holds == "its output open" else "os.close(1); os.close(2)"
    with a_folder() as folder:
        text = f"""
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    {quiet or "pass"}
                    while True:
                        open("alive", "a").write("x")
                        import time; time.sleep(0.01)
                os._exit(0)
            import time
            while not os.path.exists("alive"): time.sleep(0.01)
            print("done", flush=True)
        """
        began = time.monotonic()
        assert escape(text, writable=str(folder)) == ["done"]
        assert time.monotonic() - began < 5
        size = (folder / "alive").stat().st_size
        assert _grows_no_more(folder / "alive", size)


def _grows_no_more(path: Path, size: int) -> bool:
    """A living daemon would have written thirty times by then."""
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        if path.stat().st_size > size + 1:
            return False
        time.sleep(0.02)
    return True


def _ask(channel: Channel, verb: str) -> None:
    channel.request({"verb": verb})
