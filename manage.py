#!/usr/bin/env python3
"""The one command: makes its own environment from `requirements.lock`, then hands over.

Until that environment exists only the standard library is used, in syntax that any Python 3
can parse, so that the first complaint is a sentence and not a traceback. The environment is
good when its stamp names this lock, this kind of Python and this platform; the stamp is
written last, by rename, so a bootstrap that was cut short is done again. Nothing outside
the checkout is written, and `CLEARHOUSE_BOOTSTRAP=0` (containers, children) skips all of it.
"""
# ruff: noqa: UP030, UP031, UP032, UP036 - an old Python must be able to read this file

import sys

if sys.version_info < (3, 11):
    sys.exit(
        "Clearhouse needs Python 3.11 or newer; this is %d.%d (%s). Install a newer one, for "
        "example `apt install python3.11 python3.11-venv`, and run it with `python3.11 manage.py`."
        % (sys.version_info[0], sys.version_info[1], sys.executable)
    )

import hashlib
import importlib.util
import json
import os
import subprocess
import sysconfig
import time

try:
    import fcntl
except ImportError:
    sys.exit(
        "Clearhouse runs on Linux; this system has no file locks of that kind. "
        "On Windows use WSL, or `docker compose up`."
    )

ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
LOCK = os.path.join(ROOT, "requirements.lock")
STAMP = os.path.join(VENV, "clearhouse.stamp")
UV_LIMIT_S = 900  # a stalled index must end in pip, not in silence


def main() -> None:
    """Bootstrap where that is due, then run the command."""
    if os.environ.get("CLEARHOUSE_BOOTSTRAP") != "0" and not inside_our_environment():
        make_environment()
        os.execv(PYTHON, [PYTHON, os.path.join(ROOT, "manage.py")] + sys.argv[1:])  # noqa: S606
    sys.path.insert(0, ROOT)
    run_command()


def run_command() -> None:
    """Run a command of the embedded default without Django, every other one with it."""
    from standalone import entry

    if entry.knows(sys.argv[1:]):
        sys.exit(entry.run(sys.argv[1:]))
    entry.attach(os.environ)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


def inside_our_environment() -> bool:
    return os.path.realpath(sys.prefix) == os.path.realpath(VENV)


def make_environment() -> None:
    """Bring `.venv` in step with the lock, one bootstrap at a time; raises SystemExit."""
    with open(os.path.join(ROOT, ".venv.lock"), "w") as lock:
        take(lock.fileno())
        if stamp_on_disk() == stamp_due() and os.access(PYTHON, os.X_OK):
            return
        began = time.monotonic()
        create()
        if not sync_with_uv():
            sync_with_pip()
        write_stamp()
        say("environment ready in {:.1f} s".format(time.monotonic() - began))


def take(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        say("waiting for another bootstrap of this checkout")
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def stamp_due() -> dict:  # type: ignore[type-arg]
    """What the environment is made from: the lock's digest, the kind of Python, the platform.

    The kind is the binary interface, not the patch release: 3.11.2 and 3.11.7 share wheels.
    """
    with open(LOCK, "rb") as lock:
        digest = hashlib.sha256(lock.read()).hexdigest()
    return {"lock": digest, "python": python_kind(), "platform": sysconfig.get_platform()}


def python_kind() -> str:
    return sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag or sys.version


def stamp_on_disk() -> "dict | None":  # type: ignore[type-arg]
    try:
        with open(STAMP) as stamp:
            return json.load(stamp)  # type: ignore[no-any-return]
    except (OSError, ValueError):
        return None


def write_stamp() -> None:
    with open(STAMP + ".new", "w") as stamp:
        json.dump(stamp_due(), stamp)
        stamp.flush()
        os.fsync(stamp.fileno())
    os.replace(STAMP + ".new", STAMP)


def create() -> None:
    """Make `.venv`, or keep the one that this kind of Python can use."""
    if usable():
        return
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            "This Python ({0}) has no ensurepip, so it cannot make a virtual environment. "
            "On Debian or Ubuntu: `apt install python{1}.{2}-venv`, then run this again.".format(
                sys.executable, sys.version_info[0], sys.version_info[1]
            )
        )
    say("making .venv with Python " + sys.version.split()[0])
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], capture_output=True)  # noqa: S603
    if made.returncode:
        sys.exit(
            "`{0} -m venv {1}` failed, so nothing is installed. It said:\n{2}".format(
                sys.executable, VENV, tail(made.stdout + made.stderr)
            )
        )


def usable() -> bool:
    """Whether `.venv` answers and is of our kind; asked of it, never guessed from files."""
    question = "import sys, sysconfig, pip; print(sysconfig.get_config_var('SOABI'))"
    try:
        asked = subprocess.run([PYTHON, "-c", question], capture_output=True, timeout=30)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0 and asked.stdout.decode().strip() == python_kind()


def sync_with_uv() -> bool:
    """Install the lock with uv; False for any failure, which pip then makes good."""
    say("installing the packages of requirements.lock")
    environ = dict(os.environ, UV_PYTHON_DOWNLOADS="never")
    uv = [os.path.join(VENV, "bin", "uv"), "pip", "sync", "--quiet", "--require-hashes"]
    try:
        install_uv()
        subprocess.run(  # noqa: S603
            uv + ["--python", PYTHON, LOCK],
            check=True, env=environ, cwd=ROOT, timeout=UV_LIMIT_S, capture_output=True,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        say("uv failed, pip takes over (slower): " + tail(error.stderr or b"", lines=1))
        return False
    except (OSError, subprocess.TimeoutExpired) as error:
        say("uv failed, pip takes over (slower): {}".format(error))
        return False
    return True


def install_uv() -> None:
    """Install uv itself at the version and hashes that the lock records."""
    wanted = os.path.join(VENV, "uv.requirements")
    with open(wanted, "w") as file:
        file.write(pinned()["uv"])
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(  # noqa: S603
        pip + ["--no-deps", "--require-hashes", "-r", wanted],
        check=True, cwd=ROOT, timeout=UV_LIMIT_S, capture_output=True,
    )  # fmt: skip


def sync_with_pip() -> None:
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--require-hashes", "-r", LOCK]
    installed = subprocess.run(pip, cwd=ROOT, stderr=subprocess.PIPE)  # noqa: S603
    if installed.returncode:
        sys.exit(
            "The packages of requirements.lock could not be installed, neither by uv nor by "
            "pip. Check the network and pip's index settings (`pip config list`), then run "
            "this again: it continues where it stopped. pip said:\n" + tail(installed.stderr)
        )


def pinned() -> "dict[str, str]":
    """The lock's requirements by name, each with its hashes, as text."""
    found = {}  # type: dict[str, str]
    name = ""
    with open(LOCK) as lock:
        for line in lock:
            if not line.startswith((" ", "#", "\n")):
                name = line.split("==")[0].split("[")[0].strip()
                found[name] = ""
            if name and not line.strip().startswith("#"):
                found[name] += line
    return found


def tail(output: bytes, lines: int = 12) -> str:
    return "\n".join(output.decode("utf-8", "replace").strip().splitlines()[-lines:])


def say(text: str) -> None:
    print("clearhouse: " + text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
