"""`manage.py up` with stand-in programs: real servers, real supervisor, real signals.

Arguments: state folder, port, and any of: a name out of `EXTRAS`, `no-web`, `unready`.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from standalone import up
from standalone.programs import Program
from standalone.state import State

HERE = Path(__file__).parent
IMAGE = "tests.standalone.stand_in_image"
STUBBORN = (
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True)\n"
    "while True: time.sleep(60)"
)


def stand_in(name: str, *words: str, stage: int, grace_s: float = 5, image: str = "") -> Program:
    command = (sys.executable, *words)
    return Program(name=name, command=command, stage=stage, grace_s=grace_s, image=image)


EXTRAS = {
    "stubborn": stand_in("stubborn", "-c", STUBBORN, stage=3, grace_s=0.3),
    "broken": stand_in("broken", "-c", "raise SystemExit('no such setting')", stage=3),
}


def web(port: str, readyz: int) -> Program:
    return stand_in("web", str(HERE / "stand_in_web.py"), port, str(readyz), stage=1)


def prepare(state: State, environ: Mapping[str, str]) -> dict[str, Any]:
    with psycopg.connect(environ["DATABASE_URL"], autocommit=True) as link:
        link.execute("create table if not exists ticks (said text not null)")
    return {
        "workspace": "acme",
        "operator": {"username": "olga", "password": "secret"},
        "api_key": "clh_test_key",
    }


def main() -> int:
    data, port, *extras = sys.argv[1:]
    run = up.Up(
        state=State(Path(data)),
        port=int(port),
        programs=[
            *([] if "no-web" in extras else [web(port, 503 if "unready" in extras else 200)]),
            stand_in("worker", str(HERE / "stand_in_worker.py"), stage=2, image=IMAGE),
            *(EXTRAS[name] for name in extras if name in EXTRAS),
        ],
        prepare=prepare,
        as_json=True,
        alive_limit_s=3 if "no-web" in extras else 30,
        ready_limit_s=1 if "unready" in extras else 30,
    )
    return up.guarded(run)


if __name__ == "__main__":
    sys.exit(main())
