"""People and keys: what admins do, what they never can, and what the audit keeps of it."""

import pytest
from django.contrib.auth.models import User

from dashboard import members
from dashboard.models import Profile, WorkspaceChange
from ledger import keys
from ledger.errors import Invalid, NotFound, PermissionMissing
from ledger.models import ApiKey, Membership
from ledger.permissions import Person
from tests import cast

pytestmark = pytest.mark.django_db
WHY = {"grounds": "She starts on Monday."}


@pytest.fixture
def anna(acme: cast.Acme) -> Person:
    """The admin of Acme."""
    return cast.as_decider(cast.a_person("anna", acme.workspace, "admin"))


def roles_of(person: User) -> set[str]:
    return set(Membership.objects.filter(person=person).values_list("role", flat=True))


def test_an_invited_person_has_a_password_for_one_use(anna: Person) -> None:
    made = members.invite(name="nina", roles=["viewer", "witness"], by=anna, **WHY)
    nina = User.objects.get(username="nina")
    assert nina.check_password(made.password)
    assert roles_of(nina) == {"viewer", "witness"}
    assert Profile.objects.get(person=nina).one_time_until is not None


def test_the_audit_keeps_who_what_and_why_and_never_the_password(anna: Person) -> None:
    made = members.invite(name="nina", roles=["viewer"], by=anna, **WHY)
    row = WorkspaceChange.objects.get()
    assert (row.what, row.about, row.after, row.by_name) == ("invited", "nina", "viewer", "anna")
    assert row.grounds == WHY["grounds"]
    assert made.password not in str(WorkspaceChange.objects.values())


def test_only_an_admin_invites(acme: cast.Acme) -> None:
    with pytest.raises(PermissionMissing):
        members.invite(name="nina", roles=["viewer"], by=cast.as_decider(acme.olga), **WHY)
    assert not User.objects.filter(username="nina").exists()


def test_a_name_is_taken_in_the_whole_installation(anna: Person, globex: cast.Globex) -> None:
    with pytest.raises(members.NameTaken, match="mallory"):
        members.invite(name="mallory", roles=["viewer"], by=anna, **WHY)


@pytest.mark.parametrize("roles", [[], ["owner"]], ids=["none", "unknown"])
def test_a_person_holds_known_roles(anna: Person, roles: list[str]) -> None:
    with pytest.raises(Invalid):
        members.invite(name="nina", roles=roles, by=anna, **WHY)


def test_roles_change_and_logins_end(anna: Person, acme: cast.Acme) -> None:
    members.change_roles(person_id=acme.vera.pk, roles=["operator"], by=anna, **WHY)
    assert roles_of(acme.vera) == {"operator"}
    assert Profile.objects.get(person=acme.vera).logins_from is not None
    row = WorkspaceChange.objects.get()
    assert (row.before, row.after) == ("viewer", "operator")


def test_the_same_roles_are_no_change(anna: Person, acme: cast.Acme) -> None:
    with pytest.raises(Invalid):
        members.change_roles(person_id=acme.vera.pk, roles=["viewer"], by=anna, **WHY)
    assert not WorkspaceChange.objects.exists()


@pytest.mark.parametrize("how", ["change_roles", "deactivate"])
def test_the_last_admin_stays(anna: Person, how: str) -> None:
    more = {"roles": ["viewer"]} if how == "change_roles" else {}
    with pytest.raises(members.LastAdmin, match="anna"):
        getattr(members, how)(person_id=anna.id, by=anna, **more, **WHY)
    assert roles_of(User.objects.get(pk=anna.id)) == {"admin"}


def test_an_admin_who_cannot_sign_in_is_no_other_admin(anna: Person, acme: cast.Acme) -> None:
    second = cast.a_person("bert", acme.workspace, "admin")
    members.deactivate(person_id=second.pk, by=anna, **WHY)
    with pytest.raises(members.LastAdmin):
        members.deactivate(person_id=anna.id, by=anna, **WHY)


def test_somebody_deactivated_can_be_activated_with_the_same_roles(
    anna: Person, acme: cast.Acme
) -> None:
    members.deactivate(person_id=acme.vera.pk, by=anna, **WHY)
    acme.vera.refresh_from_db()
    assert not acme.vera.is_active
    members.activate(person_id=acme.vera.pk, by=anna, **WHY)
    acme.vera.refresh_from_db()
    assert acme.vera.is_active
    assert roles_of(acme.vera) == {"viewer"}


@pytest.mark.parametrize("how", ["deactivate", "renew_password"])
def test_a_login_of_two_workspaces_is_not_one_admins(
    anna: Person, acme: cast.Acme, globex: cast.Globex, how: str
) -> None:
    Membership.objects.create(workspace=globex.workspace, person=acme.vera, role="viewer")
    with pytest.raises(members.BelongsElsewhere):
        getattr(members, how)(person_id=acme.vera.pk, by=anna, **WHY)
    acme.vera.refresh_from_db()
    assert acme.vera.check_password(cast.PASSWORD)


@pytest.mark.parametrize("how", ["deactivate", "renew_password", "change_roles"])
def test_a_stranger_is_not_there(anna: Person, globex: cast.Globex, how: str) -> None:
    more = {"roles": ["viewer"]} if how == "change_roles" else {}
    with pytest.raises(NotFound):
        getattr(members, how)(person_id=globex.mallory_herself.pk, by=anna, **more, **WHY)


def test_a_made_key_works_until_it_is_revoked(anna: Person) -> None:
    key = members.make_key(agent="cora", scopes=["calls:read"], by=anna, **WHY)
    principal = keys.principal_of(key)
    assert principal.scopes == {"calls:read"}
    members.revoke_key(key_id=principal.key_id, by=anna, **WHY)
    keys.forget()
    with pytest.raises(keys.KeyRefused):
        keys.principal_of(key)
    changed = list(WorkspaceChange.objects.order_by("id").values_list("what", "about"))
    assert changed == [("key_made", principal.key_id), ("key_revoked", principal.key_id)]


def test_a_key_is_nowhere_in_the_audit(anna: Person) -> None:
    key = members.make_key(agent="cora", scopes=["calls:read"], by=anna, **WHY)
    assert key.split("_")[3] not in str(WorkspaceChange.objects.values())


@pytest.mark.parametrize("scopes", [[], ["everything"]], ids=["none", "unknown"])
def test_a_key_has_known_scopes(anna: Person, scopes: list[str]) -> None:
    with pytest.raises(Invalid):
        members.make_key(agent="cora", scopes=scopes, by=anna, **WHY)


def test_a_neighbours_key_is_not_there(anna: Person, globex: cast.Globex) -> None:
    keys.issue(agent=globex.mallory)
    with pytest.raises(NotFound):
        members.revoke_key(key_id=ApiKey.objects.get().id, by=anna, **WHY)
    assert ApiKey.objects.get().revoked_at is None
