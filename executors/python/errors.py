"""What a tool raises when it knows more than "something broke".

Each class is one meaning of semantics, section 5. Anything else that a tool raises proves
nothing: after the boundary its effect stays possible.
"""

from executors.contract import JSON
from ledger.vocabulary import Cause


class BadTool(ValueError):
    """A declaration that cannot work. The message names the module and says what to change."""


class NotBegun(Exception):
    """The tool knows that its effect did not begin (meaning B): not one byte was handed over.

    `cause` is `connect_failed` where a connection could not be made.
    """

    def __init__(self, message: str, *, cause: Cause = Cause.NOT_BEGUN_REPORTED) -> None:
        super().__init__(message)
        self.cause = cause


class Refused(Exception):
    """The outside said no, so the effect did not happen (meaning R).

    `retry_after_s` is the wait in seconds that the outside asked for, if it named one.
    """

    def __init__(self, cause: Cause, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.retry_after_s = retry_after_s


class ToolFailed(Exception):
    """The tool ran and answers with an error of its own (meaning K).

    `result` is a JSON value, bytes or a `Result`: what the tool has to say about it. What the
    error means for the effect is the policy's `tool_error_means`.
    """

    def __init__(self, message: str, result: JSON = None) -> None:
        super().__init__(message)
        self.result = result


class Unproven(Exception):
    """The tool knows what broke, and that this proves nothing of the effect (meaning U)."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause = cause


class Vanished(Unproven):
    """The outside does not know the handle any more, which proves nothing (semantics, 11.3)."""

    def __init__(self, message: str) -> None:
        super().__init__(Cause.VANISHED, message)
