"""The forms of the settings pages: what may be typed, with the sentence where it may not."""

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.validators import UnicodeUsernameValidator

from dashboard import zones
from dashboard.models import Profile
from dashboard.settings import ROLE_MEANINGS, SCOPE_MEANINGS
from ledger.keys import AGENT_SCOPES

THEMES = (("system", "As the system"), ("light", "Light"), ("dark", "Dark"))


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    """Zone, theme, letters and row height."""

    zone = forms.ChoiceField(
        required=False, label="Zone",
        help_text="Of all times on the pages. The API, exports and mails keep UTC.",
    )  # fmt: skip
    theme = forms.ChoiceField(choices=THEMES, widget=forms.RadioSelect, label="Theme")
    letters = forms.BooleanField(required=False, label="Single letters are keys (see ?)")
    tall_rows = forms.BooleanField(required=False, label="Tall rows, 44 px")

    class Meta:
        model = Profile
        fields = ("zone", "theme", "letters", "tall_rows")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["zone"].choices = [("", "UTC"), *zones.grouped()]  # type: ignore[attr-defined]


class Grounds(forms.Form):
    """Why: mandatory free text, kept in the audit."""

    grounds = forms.CharField(
        max_length=500, label="Grounds", help_text="Kept in the audit, with your name.",
        error_messages={"required": "Say why: the audit keeps it."},
    )  # fmt: skip


def _described(meanings: dict[str, str]) -> list[tuple[str, str]]:
    return [(word, f"{word}: {meaning}") for word, meaning in meanings.items()]


class Roles(Grounds):
    """The roles that a person holds here."""

    roles = forms.MultipleChoiceField(
        choices=_described(ROLE_MEANINGS), widget=forms.CheckboxSelectMultiple, label="Roles",
        error_messages={"required": "Choose at least one role."},
    )  # fmt: skip
    field_order = ("name", "roles", "grounds")


class Invitation(Roles):
    """A new login."""

    name = forms.CharField(
        max_length=150, label="Name", validators=[UnicodeUsernameValidator()],
        help_text="What the person types to sign in: letters, digits and @ . + - _",
        error_messages={"required": "The login needs a name."},
    )  # fmt: skip


class NewKey(Grounds):
    """A new key of an agent."""

    agent = forms.CharField(
        max_length=200, label="Agent", help_text="A new name makes a new agent.",
        error_messages={"required": "A key speaks for an agent: name it."},
    )  # fmt: skip
    scopes = forms.MultipleChoiceField(
        choices=_described(SCOPE_MEANINGS), widget=forms.CheckboxSelectMultiple, label="Scopes",
        initial=list(AGENT_SCOPES),
        error_messages={"required": "Choose at least one scope."},
    )  # fmt: skip
    field_order = ("agent", "scopes", "grounds")


class OwnPassword(PasswordChangeForm):
    """The present password, and the new one twice."""

    error_messages = {
        **PasswordChangeForm.error_messages,
        "password_incorrect": "This is not your present password. Nothing was changed.",
        "password_mismatch": "The two are not the same. Nothing was changed.",
    }
