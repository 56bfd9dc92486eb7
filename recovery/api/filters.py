"""The filters that several lists take, by the names of the console (console, section 22)."""

from ninja import Schema
from pydantic import Field


class OfCalls(Schema):
    """What stands on a call, and on when and by whom: for calls and what is about one."""

    state: str = ""
    effect: str = ""
    class_: str = Field("", alias="class")
    tool: str = ""
    saw: str = ""
    read: str = ""
    basis: str = ""
    agent: str = ""
    session: str = ""
    policy: str = ""
    from_: str = Field("", alias="from")
    until: str = ""
    taken: str = ""
    overdue: bool = False


class OfTheInbox(OfCalls):
    """What can be asked of both that the inbox lists, incidents and holds."""

    needs_answer: bool = False
    kind: str = ""
    age_min: str = ""
    assigned: str = ""
    aside: str = ""
