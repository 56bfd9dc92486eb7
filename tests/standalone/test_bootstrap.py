"""The bootstrap in a checkout of its own: real venv, real pip, real uv, no network.

The checkout's lock names two wheels made here: `uv` with the real binary inside, and
`greeting`. pip and uv find them in a folder and check their hashes as they would anywhere.
"""

import ast
import base64
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from standalone.places import MANAGE
from standalone.waiting import until

UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
ENTRY = """
import sys
def knows(words): return True
def run(words):
    import greeting
    print(sys.prefix, greeting.TEXT, *words)
    return 7
"""


def wheel(folder: Path, name: str, files: dict[str, bytes], version: str = "1.0") -> str:
    """Write a wheel with `files`; returns its line for a lock."""
    about = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        **files,
        f"{about}/METADATA": metadata.encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={checksum(body)},{len(body)}" for path, body in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*rows, f"{about}/RECORD,,"]).encode()
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, body in files.items():
            entry = zipfile.ZipInfo(inside)
            entry.external_attr = (stat.S_IFREG | 0o755) << 16  # pip looks at both
            archive.writestr(entry, body)
    return (
        f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"
    )


def checksum(body: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()


class Checkout:
    """A folder with our `manage.py`, a lock and the wheels it names."""

    def __init__(self, root: Path) -> None:
        self.root, self.wheels = root, root.parent / "wheels"

    def make(self, uv: bytes) -> None:
        self.wheels.mkdir(exist_ok=True)
        (self.root / "standalone").mkdir(parents=True)
        (self.root / "standalone" / "__init__.py").write_text("")
        (self.root / "standalone" / "entry.py").write_text(ENTRY)
        shutil.copy(MANAGE, self.root)
        self.lock(
            wheel(self.wheels, "greeting", {"greeting.py": b"TEXT = 'hello'\n"}),
            wheel(self.wheels, "uv", {"uv-1.0.data/scripts/uv": uv}),
        )

    def lock(self, *lines: str) -> None:
        (self.root / "requirements.lock").write_text("# made by a test\n" + "".join(lines))

    def run(self, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, env=self.environ(**environ)
        )

    def command(self, *words: str) -> list[str]:
        # The Python of the machine, not that of the environment the tests run in.
        python = Path(sys.base_prefix) / "bin" / "python3"
        return [str(python), str(self.root / "manage.py"), *words]

    def environ(self, **more: str) -> dict[str, str]:
        hidden = ("CLEARHOUSE_BOOTSTRAP", "VIRTUAL_ENV", "PYTHONPATH", "PIP_INDEX_URL")
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        offline = {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "UV_NO_INDEX": "1",
            "UV_FIND_LINKS": str(self.wheels),
            "UV_CACHE_DIR": str(self.root.parent / "uv-cache"),
        }
        return {**kept, **offline, **more}

    @property
    def stamp(self) -> Path:
        return self.root / ".venv" / "clearhouse.stamp"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A checkout that was bootstrapped once, to be copied."""
    if UV is None:
        pytest.skip("uv is not installed beside this Python")
    checkout = Checkout(tmp_path_factory.mktemp("made") / "checkout")
    checkout.make(Path(UV).read_bytes())
    first = checkout.run("up", "--port", "1")
    assert first.returncode == 7, first.stderr
    assert "uv failed" not in first.stderr
    yield checkout
    shutil.rmtree(checkout.root.parent)


@pytest.fixture
def checkout(made: Checkout, tmp_path: Path) -> Checkout:
    shutil.copytree(made.root, tmp_path / "checkout", symlinks=True)
    shutil.copytree(made.wheels, tmp_path / "wheels")
    return Checkout(tmp_path / "checkout")


def test_a_made_environment_is_used_at_once_and_silently(checkout: Checkout) -> None:
    before = checkout.stamp.stat().st_mtime_ns

    again = checkout.run("up", "--data", "a b")

    assert again.stdout == f"{checkout.root}/.venv hello up --data a b\n"
    assert again.returncode == 7
    assert again.stderr == ""
    assert checkout.stamp.stat().st_mtime_ns == before


def test_a_changed_lock_is_installed(checkout: Checkout) -> None:
    files = {"greeting.py": b"TEXT = 'good morning'\n"}
    changed = wheel(checkout.wheels, "greeting", files, version="1.1")
    kept = (checkout.root / "requirements.lock").read_text().split("uv==")[1]
    checkout.lock(changed, "uv==" + kept)

    again = checkout.run("up")

    assert "good morning" in again.stdout, again.stderr


def test_a_bootstrap_that_was_cut_short_is_done_again(checkout: Checkout) -> None:
    checkout.stamp.unlink()

    again = checkout.run("up")

    assert again.returncode == 7
    assert "installing the packages" in again.stderr
    assert checkout.stamp.exists()


def test_two_at_once_make_one_environment(checkout: Checkout) -> None:
    checkout.stamp.unlink()
    both = [
        subprocess.Popen(
            checkout.command("up"),
            env=checkout.environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [child.communicate(timeout=60)[1] for child in both]

    assert [child.returncode for child in both] == [7, 7]
    assert sum("installing the packages" in words for words in said) == 1


def test_when_uv_fails_pip_installs_the_same_lock(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "checkout")
    checkout.make(b"#!/bin/sh\necho 'no such index' >&2\nexit 2\n")

    run = checkout.run("up")

    assert run.returncode == 7
    assert "uv failed, pip takes over (slower): no such index" in run.stderr
    assert checkout.stamp.exists()


def test_a_package_that_is_not_what_the_lock_recorded_is_refused(checkout: Checkout) -> None:
    wheel(checkout.wheels, "greeting", {"greeting.py": b"TEXT = 'tampered'\n"})
    checkout.stamp.unlink()
    shutil.rmtree(checkout.root / ".venv")
    shutil.rmtree(checkout.root.parent / "uv-cache", ignore_errors=True)

    run = checkout.run("up")

    assert run.returncode == 1
    assert "could not be installed, neither by uv nor by pip" in run.stderr
    assert "tampered" not in run.stdout
    assert not checkout.stamp.exists()


def test_a_python_without_ensurepip_names_the_debian_package(checkout: Checkout) -> None:
    shutil.rmtree(checkout.root / ".venv")
    hook = checkout.root.parent / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text("import sys; sys.modules['ensurepip'] = None\n")

    run = checkout.run("up", PYTHONPATH=str(hook))

    major, minor = sys.version_info[:2]
    assert run.returncode == 1
    assert f"apt install python{major}.{minor}-venv" in run.stderr


def test_containers_and_children_skip_it(checkout: Checkout) -> None:
    shutil.rmtree(checkout.root / ".venv")

    run = checkout.run("up", CLEARHOUSE_BOOTSTRAP="0")

    assert "No module named 'greeting'" in run.stderr
    assert not (checkout.root / ".venv").exists()


def test_an_old_python_can_read_the_file_and_is_told_what_to_do() -> None:
    source = MANAGE.read_text()
    ast.parse(source, feature_version=(3, 4))
    old = "import sys; sys.version_info = (3, 8, 10, 'final', 0); sys.argv = ['manage.py']\n"

    run = subprocess.run([sys.executable, "-c", old + source], capture_output=True, text=True)

    assert run.returncode == 1
    assert run.stderr.startswith("Clearhouse needs Python 3.11 or newer; this is 3.8")
    assert "Traceback" not in run.stderr


def test_a_bootstrap_under_way_is_waited_for_and_said_to_be(checkout: Checkout) -> None:
    import fcntl

    with open(checkout.root / ".venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(
            checkout.command("up"), env=checkout.environ(), stderr=subprocess.PIPE, text=True
        )
        assert second.stderr is not None
        assert "waiting for another bootstrap" in second.stderr.readline()
        assert second.poll() is None

    assert until(lambda: second.poll() == 7, limit_s=30)
    second.stderr.close()
