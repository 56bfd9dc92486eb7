"""The first program of a container: completes the URLs from secret files, then becomes another.

`python -m standalone.container COMMAND...`. A password never stands in the container's
configuration, where every `inspect` shows it: $DATABASE_PASSWORD_FILE and
$REDIS_PASSWORD_FILE name files, and DATABASE_URL and REDIS_URL come without one.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

PAIRS = {"DATABASE_URL": "DATABASE_PASSWORD_FILE", "REDIS_URL": "REDIS_PASSWORD_FILE"}


def completed(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with the passwords of the named files in its URLs.

    Raises OSError, which names the file, when one cannot be read.
    """
    whole = dict(environ)
    for url, file in PAIRS.items():
        if url in environ and environ.get(file):
            whole[url] = with_password(environ[url], Path(environ[file]).read_text().strip())
    return whole


def with_password(url: str, password: str) -> str:
    """`url` with this password in place of any it has."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    return urlunsplit(parts._replace(netloc=f"{name}:{quote(password, safe='')}@{host}"))


def main() -> None:
    """Become the command that the arguments name."""
    if len(sys.argv) < 2:
        sys.exit("Name a command: python -m standalone.container COMMAND [ARGUMENT...]")
    os.execvpe(sys.argv[1], sys.argv[1:], completed(os.environ))  # noqa: S606


if __name__ == "__main__":
    main()
