"""People and keys of the workspace: lists for everybody in it, deeds for its admins."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard import deeds, members
from dashboard import settings as presenters
from dashboard.forms import Grounds, Invitation, NewKey, Roles
from dashboard.people import Visit, page
from ledger import clock
from ledger.errors import LedgerError, NotFound


@page
def people(request: Visit) -> HttpResponse:
    """Everybody here; a POST invites somebody."""
    if request.method != "POST":
        return _people(request, Invitation(initial={"roles": ["viewer"]}))
    form = Invitation(request.POST)
    if not form.is_valid():
        return _people(request, form, status=422)
    secret: list[str] = []

    def deed() -> dict[str, Any]:
        made = members.invite(**form.cleaned_data, by=request.person)
        secret.append(made.password)
        return {"person": made.person_id}

    try:
        deeds.pressed(request, deed)
    except LedgerError as refusal:
        form.add_error(None, str(refusal))
        return _people(request, form, status=refusal.http)
    return _once(request, form.cleaned_data["name"], secret, "settings-people")


def _people(request: Visit, form: Invitation, *, status: int = 200) -> HttpResponse:
    workspace_id = request.person.workspace_id
    shown = {
        "people": presenters.people_of(workspace_id),
        "changes": presenters.changes_of(workspace_id),
        "form": form,
        "tabs": presenters.TABS,
    }
    return render(request, "dashboard/settings/people.html", shown, status=status)


def _once(request: HttpRequest, name: str, secret: list[str], back: str) -> HttpResponse:
    """The page that shows a secret; a second press finds none, because none is kept."""
    shown = {"name": name, "secret": secret[0] if secret else "", "back": reverse(back),
             "is_key": back == "settings-keys", "tabs": presenters.TABS}  # fmt: skip
    return render(request, "dashboard/settings/once.html", shown, status=201)


@page
def person(request: Visit, person_id: int) -> HttpResponse:
    """One person; a POST changes the roles held here."""
    if request.method != "POST":
        return _person(request, person_id)
    form = Roles(request.POST)

    def deed() -> dict[str, Any]:
        return {"name": members.change_roles(
            person_id=person_id, by=request.person, **form.cleaned_data)}  # fmt: skip

    return _done(request, person_id, form, deed,
                 "The roles are changed. The person signs in again to use them.")  # fmt: skip


@page
@require_POST
def deactivation(request: Visit, person_id: int) -> HttpResponse:
    """Let a person sign in no more."""
    return _switched(request, person_id, members.deactivate, "Deactivated. No login is open.")


@page
@require_POST
def activation(request: Visit, person_id: int) -> HttpResponse:
    """Let a person sign in again."""
    return _switched(request, person_id, members.activate, "Activated, with the same roles.")


def _switched(request: Visit, person_id: int, verb: Callable[..., str], said: str) -> HttpResponse:
    form = Grounds(request.POST)
    deed = lambda: {"name": verb(person_id=person_id, by=request.person, **form.cleaned_data)}  # noqa: E731
    return _done(request, person_id, form, deed, said)


def _done(
    request: Visit, person_id: int, form: Any, deed: Callable[[], dict[str, Any]], said: str
) -> HttpResponse:
    to = reverse("settings-person", args=[person_id])
    return deeds.refused(
        request, form, deed, lambda status: _person(request, person_id, form, status=status)
    ) or deeds.told(request, said, to)


@page
@require_POST
def renewal(request: Visit, person_id: int) -> HttpResponse:
    """Give a person a new password for one use, shown once."""
    form, secret = Grounds(request.POST), list[str]()
    if not form.is_valid():
        return _person(request, person_id, form, status=422)

    def deed() -> dict[str, Any]:
        made = members.renew_password(person_id=person_id, by=request.person, **form.cleaned_data)
        secret.append(made.password)
        return {"person": made.person_id}

    try:
        deeds.pressed(request, deed)
    except members.BelongsElsewhere as refusal:
        form.add_error(None, str(refusal))
        return _person(request, person_id, form, status=refusal.http)
    return _once(request, members.one_of(request.person.workspace_id, person_id).username,
                 secret, "settings-people")  # fmt: skip


def _person(request: Visit, person_id: int, form: Any = None, *, status: int = 200) -> HttpResponse:
    workspace_id = request.person.workspace_id
    found = presenters.member_of(workspace_id, person_id)
    if found is None:
        raise NotFound(noun="person")
    roles = form if isinstance(form, Roles) else Roles(initial={"roles": list(found.roles)})
    shown = {
        "member": found,
        "form": roles,
        "refused": form if form is not None and form is not roles else None,
        "typed": request.POST.get("grounds", "") if form is not roles else "",
        "changes": presenters.changes_of(workspace_id, about=found.name),
        "tabs": presenters.TABS,
    }
    return render(request, "dashboard/settings/person.html", shown, status=status)


@page
def keys(request: Visit) -> HttpResponse:
    """The keys of the agents; a POST makes one, shown once."""
    if request.method != "POST":
        return _keys(request, NewKey())
    form = NewKey(request.POST)
    if not form.is_valid():
        return _keys(request, form, status=422)
    secret: list[str] = []

    def deed() -> dict[str, Any]:
        secret.append(members.make_key(**form.cleaned_data, by=request.person))
        return {"agent": form.cleaned_data["agent"]}

    try:
        deeds.pressed(request, deed)
    except LedgerError as refusal:
        form.add_error(None, str(refusal))
        return _keys(request, form, status=refusal.http)
    return _once(request, form.cleaned_data["agent"], secret, "settings-keys")


def _keys(request: Visit, form: NewKey, *, status: int = 200) -> HttpResponse:
    workspace_id = request.person.workspace_id
    shown = {
        "keys": presenters.keys_of(workspace_id, clock.now()),
        "changes": presenters.changes_of(workspace_id, keys=True),
        "form": form,
        "tabs": presenters.TABS,
    }
    return render(request, "dashboard/settings/keys.html", shown, status=status)


@page
def key(request: Visit, key_id: str) -> HttpResponse:
    """One key and its revocation."""
    form = Grounds(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            deeds.pressed(request, lambda: _revoked(request, key_id, form))
        except NotFound:
            raise
        except LedgerError as refusal:
            form.add_error(None, str(refusal))
        else:
            said = f"Key {key_id} is revoked: it is refused everywhere within five seconds."
            return deeds.told(request, said, reverse("settings-keys"))
    return _key(request, key_id, form)


def _revoked(request: Visit, key_id: str, form: Grounds) -> dict[str, Any]:
    members.revoke_key(key_id=key_id, by=request.person, **form.cleaned_data)
    return {"key": key_id}


def _key(request: Visit, key_id: str, form: Grounds) -> HttpResponse:
    found = presenters.key_of(request.person.workspace_id, key_id, clock.now())
    if found is None:
        raise NotFound(noun="key")
    shown = {"key": found, "form": form, "tabs": presenters.TABS}
    status = 422 if form.errors else 200
    return render(request, "dashboard/settings/key.html", shown, status=status)
