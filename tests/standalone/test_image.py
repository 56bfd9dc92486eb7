"""What is loaded once and forked, and when a program gets an interpreter of its own instead."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from standalone.image import Image
from standalone.places import ROOT
from standalone.programs import Program, programs

IMAGE = "tests.standalone.stand_in_image"
# What a program of ours imports behind the image, the image's own doing aside.
LEFT_OVER = """
import json, os, sys, threading
def files(): return sorted(os.listdir("/proc/self/fd"))
before = files()
import config.image
opened, threads, had = files() != before, threading.active_count(), set(sys.modules)
import uvicorn.__main__, config.asgi, celery.__main__, celery.apps.worker
from executors import effects, threads as engines, tasks
from recovery.management.commands import watchdog
from notifications.management.commands import notifier
ours = ("config", "dashboard", "notifications", "recovery", "executors", "ledger", "django",
        "ninja", "pydantic")
late = [name for name in set(sys.modules) - had if name.partition(".")[0] in ours]
print(json.dumps({"opened": opened, "threads": threads, "late": sorted(late)}))
"""


# Asked in an interpreter with one thread, as the supervisor has.
HOLDS = f"""
import json, threading
from standalone.image import Image
from standalone.programs import Program
def program(image): return Program(name="x", command=(), stage=1, grace_s=1, image=image)
one, image = program("{IMAGE}"), Image()
image.load([one], {{"DATABASE_URL": "here"}})
told = {{
    "told the same": image.holds(one, {{"DATABASE_URL": "here"}}),
    "told another address": image.holds(one, {{"DATABASE_URL": "there"}}),
    "without an image": image.holds(program(""), {{"DATABASE_URL": "here"}}),
    "never loaded": Image().holds(one, {{}}),
}}
done = threading.Event()
threading.Thread(target=done.wait).start()
told["beside a second thread"] = image.holds(one, {{"DATABASE_URL": "here"}})
done.set()
print(json.dumps(told))
"""


def answered(text: str, **environ: str) -> Any:
    """The JSON that an interpreter of its own prints for this text."""
    said = subprocess.run(
        [sys.executable, "-c", text],
        cwd=ROOT, env={**os.environ, **environ}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(said.stdout)


def test_only_a_program_that_is_told_the_same_is_forked() -> None:
    assert answered(HOLDS) == {
        "told the same": True,
        "told another address": False,
        "without an image": False,
        "never loaded": False,
        "beside a second thread": False,
    }


def test_an_image_that_does_not_load_is_said_and_done_without(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "tests.standalone.no_such_image"
    broken = Program(name="worker", command=(), stage=1, grace_s=1, image=name)
    image = Image()

    image.load([broken], {})

    assert not image.holds(broken, {})
    assert f"{name} could not be loaded" in capsys.readouterr().err


def test_loading_leaves_the_environment_as_it_was() -> None:
    before = dict(os.environ)
    one = Program(name="worker", command=(), stage=1, grace_s=1, image=IMAGE)

    Image().load([one], {"DATABASE_URL": "here"})

    assert dict(os.environ) == before


def test_all_programs_of_the_product_that_know_django_are_forked() -> None:
    assert [one.name for one in programs(8000) if not one.image] == ["sandbox"]


def test_the_products_image_opens_nothing_and_leaves_nothing_to_import(folder: Path) -> None:
    nowhere = "postgresql://x@127.0.0.1:1/x"

    told = answered(LEFT_OVER, DATABASE_URL=nowhere, CLEARHOUSE_DATA=str(folder))

    assert told == {"opened": False, "threads": 1, "late": []}
