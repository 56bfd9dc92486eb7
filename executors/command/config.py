"""What a `command` tool's configuration may say, and how arguments become an argument list.

The configuration is an admin's, the arguments are a model's. An argument fills a placeholder as
one piece: it is never split, expanded or read by a shell, and it cannot become an option unless
the configuration lets it. Every refusal here comes before anything has begun.
Source: security, section 4.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")

MIB = 1024 * 1024


class ConfigRefused(Exception):
    """The tool's configuration cannot work. An admin corrects it; nothing has begun."""


class ArgumentRefused(Exception):
    """The arguments do not fit this command. Nothing has begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one command; each process of it has its own memory, CPU and file bound."""

    memory_mb: int = 1024
    cpu_s: int = 300
    file_mb: int = 256
    nproc: int = 64
    nofile: int = 256
    output_bytes: int = 1 * MIB

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigRefused(f"limits.{each.name} is {value!r}; it must be 1 or more.")
        if self.output_bytes > 64 * MIB:
            raise ConfigRefused("limits.output_bytes is over 64 MiB, the cap of a stored result.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How to ask whether the effect happened: a command whose exit code says so.

    `exit_codes` maps a code, as text, to a ProbeFinding; any other code means `unknown`.
    """

    argv: Sequence[str]
    exit_codes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandConfig:
    """One command tool. `env` maps a name to its value, or to None to take the worker's own.

    `writable` is the one folder the command may write; None gives it a scratch folder in memory
    that goes with it. `readable` adds folders to the system's, read-only.
    """

    argv: Sequence[str]
    stdin: Literal["arguments", "none"] = "none"
    cwd: str | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)
    network: bool = False
    writable: str | None = None
    readable: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    success_codes: Sequence[int] = (0,)
    probe: Probe | None = None
    require_sandbox: Literal["full", "partial", "none"] | None = None
    allow_dash: bool = False
    media_type: str = "text/plain; charset=utf-8"

    def __post_init__(self) -> None:
        _check_argv(self.argv)
        if self.stdin not in ("arguments", "none"):
            raise ConfigRefused(f'stdin is {self.stdin!r}; it must be "arguments" or "none".')
        if self.require_sandbox not in ("full", "partial", "none", None):
            raise ConfigRefused(
                f"require_sandbox is {self.require_sandbox!r}; say full, partial or none."
            )
        for path in (self.cwd, self.writable, *self.readable):
            if path is not None and not path.startswith("/"):
                raise ConfigRefused(f"The path {path!r} is relative. Give it from the root.")


def parse(config: Mapping[str, Any]) -> CommandConfig:
    """Read a tool's configuration. Raises ConfigRefused with what is wrong and what is allowed."""
    values = dict(config)
    values["limits"] = _built(Limits, values.get("limits") or {}, "limits.")
    if values.get("probe") is not None:
        values["probe"] = _built(Probe, values["probe"], "probe.")
        _check_argv(values["probe"].argv)
    parsed: CommandConfig = _built(CommandConfig, values, "")
    return parsed


def _built(kind: Any, values: Mapping[str, Any], prefix: str) -> Any:
    known = {each.name for each in fields(kind)}
    if unknown := sorted(set(values) - known):
        raise ConfigRefused(
            f"{prefix}{unknown[0]} is not known here. Known: {', '.join(sorted(known))}."
        )
    try:
        return kind(**values)
    except TypeError as error:
        raise ConfigRefused(f"The configuration of this command is incomplete: {error}.") from error


def _check_argv(argv: Any) -> None:
    texts = isinstance(argv, list | tuple) and argv and all(isinstance(each, str) for each in argv)
    if not texts:
        raise ConfigRefused('argv must be a list of texts, such as ["convert", "{source}"].')
    if _PLACEHOLDER.search(argv[0]):
        raise ConfigRefused("argv[0] is a placeholder: a model may not choose the program.")


def fill(argv: Sequence[str], values: Mapping[str, Any], *, allow_dash: bool = False) -> list[str]:
    """Put arguments into their placeholders; each element stays one element.

    A placeholder is `{name}`; a brace itself is written twice, as in Python's format strings.

    Raises ArgumentRefused for a missing or structured value, a NUL, or a value that would be
    read as an option: it begins an element with "-" and no "--" stands before it.
    """
    filled, options_ended = [], allow_dash
    for element in argv:
        text = _PLACEHOLDER.sub(lambda match: _text(values, match[1], match[0]), element)
        if text.startswith("-") and not element.startswith("-") and not options_ended:
            raise ArgumentRefused(
                f"The argument for {element} begins with '-' and would be read as an option. "
                "Give another value, or have an admin put '--' before the placeholder."
            )
        options_ended = options_ended or element == "--"
        filled.append(text)
    return filled


def _text(values: Mapping[str, Any], name: str | None, written: str) -> str:
    if name is None:
        return written[0]  # "{{" or "}}": a brace that is meant as such
    if name not in values:
        raise ArgumentRefused(f"The command needs the argument {name!r}, which was not given.")
    value = values[name]
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ArgumentRefused(f"The argument {name!r} must be a text or a number for this command.")
    if "\0" in (text := str(value)):
        raise ArgumentRefused(f"The argument {name!r} contains a NUL, which no command can take.")
    return text
