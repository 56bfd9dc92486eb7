"""What the programs have in common, imported once in the supervisor and forked for each.

Django, Celery and the product cost an interpreter two seconds of a core, at every start and
after every death. Programs that name a module as their `image` begin as forks of it. Where
that cannot be, because the module does not load or an address has changed since, a program
gets an interpreter of its own, as every program could.
"""

import gc
import importlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

from standalone.forks import Fork, fork
from standalone.programs import Program
from standalone.steps import say


class Image:
    """The loaded modules, and the environment they were loaded for. In the main thread only."""

    def __init__(self) -> None:
        self._environ: dict[str, str] = {}
        self._modules: dict[str, ModuleType] = {}

    def load(self, programs: Iterable[Program], environ: Mapping[str, str]) -> None:
        """Import what `programs` name, as programs told `environ` would; a failure is said."""
        if sys.platform != "linux":
            return
        self._environ = dict(environ)
        mine = [program for program in programs if program.image]
        merged = {name: value for one in mine for name, value in one.environ.items()}
        with _environment({**environ, **merged}), _no_collection():
            for name in dict.fromkeys(program.image for program in mine):
                try:
                    self._modules[name] = importlib.import_module(name)
                except Exception as error:
                    say(f"{name} could not be loaded ({error!r}); each program tries on its own.")

    def holds(self, program: Program, environ: Mapping[str, str]) -> bool:
        """Whether `program`, told `environ`, can begin as a fork."""
        ready = program.image in self._modules and self._environ == dict(environ)
        return ready and threading.active_count() == 1

    def fork(self, program: Program, environ: Mapping[str, str], log: int) -> Fork:
        """Begin `program` with `environ`; its module's `begin` runs first."""
        begin = self._modules[program.image].begin
        title = f"clearhouse {program.name}"
        return fork(program.command, title=title, environ=environ, log=log, begin=begin)


@contextmanager
def _environment(environ: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Import without looking for garbage; what was imported is never looked at again.

    A collection in a fork would write to every object, and so copy every page.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
