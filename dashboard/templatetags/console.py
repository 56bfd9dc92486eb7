"""Small parts of every page: the key of a form, a button that says why it is off, an address."""

import re
from typing import Any
from uuid import uuid4

from django import template
from django.conf import settings
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from dashboard.deeds import KEY
from dashboard.people import holders
from ledger import ids
from ledger.models import ToolCall
from ledger.permissions import Right

register = template.Library()

AFTER_A_MARK = re.compile(r"(?<=[._])")


@register.simple_tag
def once() -> SafeString:
    """The hidden key of a form: however often it is pressed, its deed is done once."""
    return format_html('<input type="hidden" name="{}" value="{}">', KEY, uuid4().hex)


@register.filter
def shown(id_: Any, noun: str) -> str:
    """An id as the API shows it: `call_0199…`."""
    return ids.shown(noun, id_)


@register.filter
def tail(id_: Any) -> str:
    """The last eight digits of an id, for lists."""
    return str(id_.hex[-8:])


@register.filter
def breakable(name: str) -> SafeString:
    """A long name, escaped, that may break after its dots and underscores."""
    pieces = ((each,) for each in AFTER_A_MARK.split(name))
    return format_html_join(SafeString("<wbr>"), "{}", pieces)


@register.filter
def of(named: dict[str, Any], name: str) -> Any:
    """What stands under a name, or nothing: `{{ given|of:name }}`."""
    return named.get(name, "")


@register.inclusion_tag("dashboard/parts/_trace.html")
def trace(call: ToolCall) -> dict[str, Any]:
    """The trace of a call, a link to it where `CLEARHOUSE_TRACE_URL` says where; or nothing."""
    address = settings.ENVIRONMENT.trace_url.replace("{trace_id}", call.trace_id)
    return {"trace_id": call.trace_id, "address": address}


@register.inclusion_tag("dashboard/_act.html", takes_context=True)
def act(context: Any, text: str, right: str, *, why_not: str = "", **more: Any) -> dict[str, Any]:
    """A submit button; off, and saying why and whom to ask, where it may not be pressed.

    `why_not` is a sentence of the verb's own ruling: a page never decides that itself.
    """
    person = context["person"]
    wanted = Right(right)
    if not person.may(wanted):
        able = holders(person, wanted)
        whom = f" Ask {', '.join(able)}." if able else " Nobody here has it: ask an admin."
        why_not = f"Your roles do not include the right to {right.replace('_', ' ')}.{whom}"
    return {"text": text, "why_not": why_not, "id": f"why-{uuid4().hex[:8]}"} | more
