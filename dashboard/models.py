"""What a person has chosen for the console. Nothing of the ledger is kept here."""

from django.conf import settings
from django.db import models


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
