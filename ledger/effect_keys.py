"""The key of an effect: what the outside tells a repeat from a new effect by."""

import string
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from ledger import strictjson
from ledger.errors import Invalid
from ledger.policies import CallPolicy


def effect_key(policy: CallPolicy, call_id: UUID, arguments: Mapping[str, Any]) -> str:
    """The key under which the outside tells a repeat from a new effect; one for all attempts (I9).

    The policy's template over the arguments (R21), else the call's own id.
    """
    if not policy.key_template:
        return call_id.hex
    try:
        return string.Formatter().vformat(policy.key_template, (), _Plain(arguments))[:300]
    except (KeyError, IndexError) as error:
        raise Invalid(
            detail=f"The policy's key template needs the argument {error}, which is not there."
        ) from error


class _Plain(dict[str, str]):
    """The arguments as plain text, so that a template can reach no attribute of anything."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__(
            {
                name: value if isinstance(value, str) else strictjson.canonical(value).decode()
                for name, value in arguments.items()
            }
        )
