"""The pages of `docs/reference/` that are folded from the code: one module for each page.

Each module has one function that returns the whole page as Markdown. A page says nothing that
its module does not read from the data that runs; prose around it is kept to what a reader
needs to understand the tables. Nothing here reads a row, a clock or an environment variable,
so that the same code gives the same page everywhere.
"""

from collections.abc import Callable

from dashboard.manual import (
    api,
    errors,
    invariants,
    machine,
    matrix,
    network,
    policies,
    providers,
    variables,
)

PAGES: dict[str, Callable[[], str]] = {
    "api.md": api.page,
    "errors.md": errors.page,
    "settings.md": variables.page,
    "state-machine.md": machine.page,
    "matrix.md": matrix.page,
    "policies.md": policies.page,
    "invariants.md": invariants.page,
    "network.md": network.page,
    "providers.md": providers.page,
}
"""Every generated page by its file name below `docs/reference/`."""

NOTE = "<!-- Generated from the code by `manage.py docs`. Change the code, run it again. -->\n\n"


def pages() -> dict[str, str]:
    """The text of every generated page, by file name."""
    return {name: NOTE + page().rstrip() + "\n" for name, page in PAGES.items()}
