"""What a person has chosen for the console, and done with it. Nothing here is of the ledger."""

from django.conf import settings
from django.db import models

from ledger import ids
from ledger.models import Workspace
from ledger.models.fields import ClockTimestamp, append_only


class Profile(models.Model):
    """One person's zone, theme and keys. A person without a row has the defaults.

    `zone` is an IANA name, or empty for UTC; `letters` is whether single keys do anything.
    """

    THEMES = ("system", "light", "dark")

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="profile"
    )
    zone = models.CharField(max_length=64, blank=True)
    theme = models.CharField(max_length=10, default="system", choices=[(t, t) for t in THEMES])
    letters = models.BooleanField(default=True)
    tall_rows = models.BooleanField(default=False)

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
