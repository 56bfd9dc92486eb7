"""The `tool` decorator and what it declares.

A declaration is checked where it is written: a wrong class, kind, boundary or schema raises
`BadTool` at import, with a sentence that names the module. It never registers by name; the
registry does, when it is told which modules to load.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

import jsonschema_rs

from executors.python.errors import BadTool
from ledger.vocabulary import Boundary, EffectKind, RecoveryClass

ToolFunction = Callable[..., Any]
NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType(
    {"type": "object", "properties": {}, "additionalProperties": False}
)

declared: list["PythonTool"] = []
"""Every declaration of this interpreter, in order; `registry.load` picks by module."""


@dataclass(slots=True, kw_only=True, eq=False)
class PythonTool:
    """One declared tool. `recovery_class` is None when undeclared: treated as `side_effect`.

    `policy` holds overrides as plain JSON, durations in seconds; this folder does not read it.
    """

    name: str
    module: str
    function: ToolFunction
    schema: dict[str, Any]
    version: int = 1
    recovery_class: RecoveryClass | None = None
    effect_kinds: frozenset[EffectKind] = frozenset()
    boundary: Boundary = Boundary.AT_START
    description: str = ""
    provider: str = ""
    policy: Mapping[str, Any] = field(default_factory=dict)
    probe_function: ToolFunction | None = None
    poll_function: ToolFunction | None = None
    cancel_function: ToolFunction | None = None

    def __call__(self, context: Any, **arguments: Any) -> Any:
        """Run the function itself, so that a declared tool can be tried by hand."""
        return self.function(context, **arguments)

    def probe(self, function: ToolFunction) -> ToolFunction:
        """Declare how to ask whether the effect happened: `f(context, **arguments)`. A read."""
        self.probe_function = function
        return function

    def poll(self, function: ToolFunction) -> ToolFunction:
        """Declare how to ask after a parked job: `f(context, handle)`."""
        self.poll_function = function
        return function

    def cancel(self, function: ToolFunction) -> ToolFunction:
        """Declare how to ask the outside to end a job: `f(context, handle)`."""
        self.cancel_function = function
        return function

    @property
    def has_probe(self) -> bool:
        return self.probe_function is not None

    @property
    def has_poll(self) -> bool:
        return self.poll_function is not None

    @property
    def has_cancel(self) -> bool:
        return self.cancel_function is not None


def tool(
    name: str,
    *,
    recovery_class: str | None = None,
    effect_kinds: Iterable[str] = (),
    boundary: str = Boundary.AT_START.value,
    schema: Mapping[str, Any] = NO_ARGUMENTS,
    description: str = "",
    provider: str = "",
    policy: Mapping[str, Any] | None = None,
    version: int = 1,
) -> Callable[[ToolFunction], PythonTool]:
    """Declare the function below as a tool.

    `schema` is the JSON Schema of its arguments, an object; `provider` names who stands behind
    the tool, so that a breaker can hold for all tools of one. Raises `BadTool` for what cannot
    work: an unknown recovery class, effect kind or boundary, a schema that does not compile,
    a coroutine function.
    """

    def declare(function: ToolFunction) -> PythonTool:
        place = f"Tool {name!r} in module {function.__module__}"
        made = PythonTool(
            name=_checked_name(name, place),
            module=function.__module__,
            function=_checked_function(function, place),
            schema=_checked_schema(schema, place),
            version=version,
            recovery_class=_recovery_class(recovery_class, place),
            effect_kinds=frozenset(
                cast(EffectKind, _word(EffectKind, kind, "effect kind", place))
                for kind in effect_kinds
            ),
            boundary=_boundary(boundary, place),
            description=description or inspect.getdoc(function) or "",
            provider=provider,
            policy=MappingProxyType(dict(policy or {})),
        )
        declared.append(made)
        return made

    return declare


def _checked_name(name: str, place: str) -> str:
    allowed = all(c.isascii() and (c.isalnum() or c in "_.:-") for c in name)
    if not name or len(name) > 128 or not allowed:
        raise BadTool(
            f"{place} has a name that cannot be used. Names have 1 to 128 letters, digits, "
            "underscores, dots, colons and hyphens. Rename the tool."
        )
    return name


def _checked_function(function: ToolFunction, place: str) -> ToolFunction:
    if inspect.iscoroutinefunction(function):
        raise BadTool(
            f"{place} is a coroutine function, which the executor cannot run. Write a plain "
            "function; it may run its own event loop with asyncio.run()."
        )
    return function


def _checked_schema(schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    plain = dict(schema)
    try:
        jsonschema_rs.validator_for(plain, offline=True)
    except Exception as error:
        raise BadTool(
            f"{place} has a schema that does not compile: {error}. Correct the schema; "
            "references to other addresses are never fetched."
        ) from error
    if plain.get("type") != "object":
        raise BadTool(f'{place} has a schema without "type": "object". Arguments are an object.')
    return plain


def _recovery_class(word: str | None, place: str) -> RecoveryClass | None:
    if word is None:
        return None
    return cast(RecoveryClass, _word(RecoveryClass, word, "recovery class", place))


def _boundary(word: str, place: str) -> Boundary:
    chosen = cast(Boundary, _word(Boundary, word, "boundary", place))
    if chosen is Boundary.TRANSPORT:
        raise BadTool(
            f"{place} declares the boundary 'transport', which only our own HTTP client can "
            "keep. Use 'at_start', or 'marked' and call context.cross() before the effect."
        )
    return chosen


def _word(words: Any, word: str, what: str, place: str) -> Any:
    try:
        return words(word)
    except ValueError:
        known = ", ".join(member.value for member in words)
        raise BadTool(
            f"{place} declares the {what} {word!r}, which does not exist. Use one of: {known}."
        ) from None
