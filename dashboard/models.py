"""What people have chosen and done, the bounds of logins, what admins changed. No ledger."""

from django.conf import settings
from django.db import models

from ledger import ids
from ledger.models import Workspace
from ledger.models.fields import ClockTimestamp, append_only, moment


class Profile(models.Model):
    """One person's zone, theme and keys, and from when logins count. No row means the defaults.

    `zone` is an IANA name, `browser`, or empty for UTC; `letters` is whether single keys do
    anything. Logins begun before `logins_from` have ended. `one_time_until` is set while the
    password is one that an admin has seen: nothing but its change is possible, and after that
    instant not even that.
    """

    THEMES = ("system", "light", "dark")

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="profile"
    )
    zone = models.CharField(max_length=64, blank=True)
    theme = models.CharField(max_length=10, default="system", choices=[(t, t) for t in THEMES])
    letters = models.BooleanField(default=True)
    tall_rows = models.BooleanField(default=False)
    logins_from = moment()
    one_time_until = moment()

    def __str__(self) -> str:
        return f"profile of {self.person}"


class Deed(models.Model):
    """What a person did that changes no row of the ledger: an export, a drill. Only added.

    What changes the ledger stands in its own rows; the audit lists both.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    person_name = models.CharField(max_length=200)
    deed = models.CharField(max_length=60)
    target = models.CharField(max_length=200, blank=True)
    grounds = models.TextField(blank=True)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("deed_append_only")]

    def __str__(self) -> str:
        return f"{self.person_name}: {self.deed}"


class TryCounter(models.Model):
    """How often a sign-in was tried within a window, by name, by address or by both (S14).

    `key` is a keyed hash: people type passwords into the field for the name. `known` marks the
    pair of a name and an address that has signed in, which a limit on the name does not lock out.
    """

    kind = models.CharField(max_length=10)
    key = models.CharField(max_length=64)
    tries = models.IntegerField(default=0)
    since = models.DateTimeField(db_default=ClockTimestamp(), db_index=True)
    known = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "key"], name="try_counter_once")]

    def __str__(self) -> str:
        return f"{self.tries} tries by {self.kind}"


class WorkspaceChange(models.Model):
    """What an admin changed about people and keys, with the grounds; for the audit (R150).

    `what` is a word of `WHAT`, `about` the person's name or the key's public id. Never a secret.
    """

    WHAT = (
        "invited", "roles_changed", "password_renewed", "deactivated", "activated", "key_made",
        "key_revoked",
    )  # fmt: skip

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    what = models.CharField(max_length=20, choices=[(word, word) for word in WHAT])
    about = models.CharField(max_length=200)
    before = models.CharField(max_length=300, blank=True)
    after = models.CharField(max_length=300, blank=True)
    grounds = models.CharField(max_length=500)
    by_id = models.IntegerField()
    by_name = models.CharField(max_length=150)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("workspace_change_append_only")]
        indexes = [models.Index(fields=["workspace", "-id"], name="workspace_change_newest")]

    def __str__(self) -> str:
        return f"{self.by_name} {self.what} {self.about}"


class SavedView(models.Model):
    """A named address of a list: `page` is the name of the list's address, `query` its query.

    It is its maker's, and everybody's of the workspace to open where it is shared.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    person_name = models.CharField(max_length=150)
    page = models.CharField(max_length=20)
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=2000, blank=True)
    is_shared = models.BooleanField(default=False)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["person", "workspace", "page", "name"], name="saved_view_named_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.page}: {self.name}"
