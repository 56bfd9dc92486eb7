"""Makes the secret files that compose.yaml names: `python3 -m standalone.compose_secrets`.

The folder is closed to others (0700); the files in it are readable (0444), because a
container's user is another one than ours and sees only what is mounted for it. Files that
exist are kept. Standard library only: no environment is needed to run it.
"""

import secrets
import sys
from pathlib import Path

FOLDER = Path(".secrets")
RANDOM = ("postgres-password", "valkey-password", "secret-key", "key-pepper", "operator-password")
VALKEY = (
    "bind 0.0.0.0\n"
    "requirepass {password}\n"
    "appendonly yes\n"
    "appendfsync everysec\n"
    "maxmemory-policy noeviction\n"
    "dir /data\n"
)


def make(folder: Path) -> list[str]:
    """Make what is missing in `folder`; returns the names of the files it made."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    made = [name for name in RANDOM if keep(folder / name, secrets.token_urlsafe(32))]
    password = (folder / "valkey-password").read_text()
    if keep(folder / "valkey.conf", VALKEY.format(password=password)):
        made.append("valkey.conf")
    return made


def keep(path: Path, text: str) -> bool:
    """Write `text` unless the file exists; whether it was written."""
    if path.exists():
        return False
    path.write_text(text)
    path.chmod(0o444)
    return True


if __name__ == "__main__":
    made = make(FOLDER)
    print(f"Made in {FOLDER}/: {', '.join(made) or 'nothing, all files exist'}.", file=sys.stderr)
