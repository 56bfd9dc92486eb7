"""Which Python tools this installation knows, by name.

Loading imports the named modules and everything below them that is a package, and takes the
tools declared there. Two tools of one name are refused: which of them ran would depend on
the order of imports.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType

from executors.python import declaration
from executors.python.declaration import PythonTool
from executors.python.errors import BadTool

_loaded: dict[str, PythonTool] = {}


def load(modules: Iterable[str]) -> dict[str, PythonTool]:
    """Import `modules` and know their tools from now on; return all known tools by name.

    Safe to call again. Raises `BadTool` for a duplicate name, and for a module that cannot be
    imported, naming it.
    """
    for name in modules:
        for module in _imported(name):
            for found in _declared_in(module):
                _add(found)
    return dict(_loaded)


def get(name: str) -> PythonTool | None:
    """Return the loaded tool of that name, or None."""
    return _loaded.get(name)


def nearest(name: str) -> str:
    """Return the loaded name that looks most like `name`, or an empty string."""
    return next(iter(difflib.get_close_matches(name, _loaded, n=1)), "")


def forget() -> None:
    """Know no tools any more, as in a new interpreter."""
    _loaded.clear()


def _imported(name: str) -> Iterator[ModuleType]:
    try:
        module = importlib.import_module(name)
    except BadTool:
        raise
    except Exception as error:
        raise BadTool(
            f"Module {name} could not be imported: {type(error).__name__}: {error}. Its tools "
            "are unknown. Correct the module, or take it off the list of tool modules."
        ) from error
    yield module
    for below in pkgutil.iter_modules(getattr(module, "__path__", ())):
        yield from _imported(f"{name}.{below.name}")


def _declared_in(module: ModuleType) -> list[PythonTool]:
    # A copy: a module imported meanwhile in another thread may append.
    return [found for found in list(declaration.declared) if found.module == module.__name__]


def _add(found: PythonTool) -> None:
    known = _loaded.setdefault(found.name, found)
    if known is not found:
        raise BadTool(
            f"Module {found.module} declares a tool named {found.name!r}, which module "
            f"{known.module} has already declared. Rename one of them."
        )
