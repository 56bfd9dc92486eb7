"""The page that a problem document's `type` points to: what the code means and what to do."""

from http import HTTPStatus

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import reference
from ledger.vocabulary import spoken

READ_DETAIL = "Read the detail of the answer: it names the next step."
NEXT_STEPS = {
    400: "Repair the request, then send it again. Sent unchanged, it is refused again.",
    401: "Send a valid key in the Authorization header, or sign in.",
    403: "Use a key or a login that has the right named in the answer.",
    404: "Check the id, and that the key belongs to the workspace of what you look for.",
    405: "Look up the address in the API reference and use a method that it lists.",
    408: "Send the same request again, faster or in smaller parts.",
    409: "Read the call or session again, and decide anew from what holds now.",
    412: "Read the newest version, and decide anew from what holds now.",
    413: "Send less, or store the large part elsewhere and send its address.",
    415: "Send Content-Type: application/json, in UTF-8 and not compressed.",
    422: "Repair the members that the answer lists under errors, then send it again.",
    428: "Read the newest version and name it in If-Match.",
    429: "Wait as many seconds as Retry-After says, then send the same request again.",
    431: "Send only the headers that the API names, and each of them once.",
    500: "Send the same request with the same Idempotency-Key again, or read the call. "
    "If it stays, give an admin the request_id.",
    503: "Wait as many seconds as Retry-After says, then send the same request again.",
}


@require_safe
def detail(request: HttpRequest, code: str) -> HttpResponse:
    """One error code: meaning, HTTP status, what to do next, and the codes beside it."""
    entries = reference.errors()
    if code not in entries:
        raise Http404
    entry = entries[code]
    page = {
        "entry": entry,
        "title": spoken(code).capitalize(),
        "phrase": HTTPStatus(entry.status).phrase,
        "next_step": NEXT_STEPS.get(entry.status, READ_DETAIL),
        "codes": sorted(entries),
    }
    return render(request, "dashboard/problem.html", page)
