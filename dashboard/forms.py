"""The forms of the settings pages: what may be typed, with the sentence where it may not."""

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.validators import UnicodeUsernameValidator

from dashboard import zones
from dashboard.channels import CLASSES, EVENTS, KINDS
from dashboard.models import Profile
from dashboard.settings import ROLE_MEANINGS, SCOPE_MEANINGS
from ledger.keys import AGENT_SCOPES
from notifications.channels import Wanted
from notifications.vocabulary import ChannelKind

THEMES = (("system", "Same as the system"), ("light", "Light"), ("dark", "Dark"))


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    """Zone, theme, letters and row height."""

    zone = forms.ChoiceField(
        required=False, label="Time zone",
        help_text="Of all times on the pages. The API, exports and mails keep UTC.",
    )  # fmt: skip
    theme = forms.ChoiceField(choices=THEMES, widget=forms.RadioSelect, label="Theme")
    letters = forms.BooleanField(
        required=False, label="Single-letter shortcuts (press ? for the list)"
    )
    tall_rows = forms.BooleanField(required=False, label="Taller rows")

    class Meta:
        model = Profile
        fields = ("zone", "theme", "letters", "tall_rows")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["zone"].choices = [  # type: ignore[attr-defined]
            ("", "UTC"), (zones.BROWSER, "Same as the browser"), *zones.grouped(),
        ]  # fmt: skip


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


class ChannelForm(Grounds):
    """What a channel tells, where to and when; an empty target stays as it is."""

    name = forms.CharField(
        max_length=100, label="Name", error_messages={"required": "The channel needs a name."}
    )
    target = forms.CharField(
        max_length=4000, required=False, label="New target",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="Empty: it stays. It lies encrypted and is never shown again.",
    )  # fmt: skip
    may_be_local = forms.BooleanField(
        required=False, label="The target is in our own network (http and private addresses)"
    )
    events = forms.MultipleChoiceField(
        choices=list(EVENTS.items()), widget=forms.CheckboxSelectMultiple, label="Tell when",
        initial=list(EVENTS), error_messages={"required": "Choose at least one event."},
    )  # fmt: skip
    classes = forms.MultipleChoiceField(
        choices=CLASSES, required=False, widget=forms.CheckboxSelectMultiple,
        label="Only of these classes (none: all)",
    )  # fmt: skip
    tools = forms.CharField(
        max_length=2000, required=False, label="Only of these tools",
        help_text="Names with commas. Empty: all.",
    )  # fmt: skip
    least_age_min = forms.IntegerField(
        min_value=0, max_value=7 * 24 * 60, initial=0, label="Minimum age, minutes",
        help_text="What ends sooner is not told.",
    )  # fmt: skip
    quiet_from = forms.TimeField(
        required=False,
        label="Quiet from",
        widget=forms.TimeInput(format="%H:%M", attrs={"placeholder": "22:00"}),
    )
    quiet_to = forms.TimeField(
        required=False, label="Quiet to",
        widget=forms.TimeInput(format="%H:%M", attrs={"placeholder": "07:00"}),
        help_text="What comes meanwhile is one digest at their end. Both empty: never quiet.",
    )  # fmt: skip
    zone = forms.ChoiceField(required=False, label="Zone of the quiet hours")
    field_order = ("kind", "name", "target", "may_be_local", "events", "classes", "tools",
                   "least_age_min", "quiet_from", "quiet_to", "zone", "grounds")  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["zone"].choices = [("", "UTC"), *zones.grouped()]  # type: ignore[attr-defined]

    def asked(self) -> dict[str, Any]:
        """The typed as `notifications.channels` takes it."""
        typed = self.cleaned_data
        tools = tuple(each.strip() for each in typed["tools"].split(",") if each.strip())
        wanted = Wanted(
            name=typed["name"], events=tuple(typed["events"]), tools=tools,
            classes=tuple(typed["classes"]), least_age_s=typed["least_age_min"] * 60.0,
            quiet_from=typed["quiet_from"], quiet_to=typed["quiet_to"],
            zone=typed["zone"] or "UTC", may_be_local=typed["may_be_local"],
        )  # fmt: skip
        return {"target": typed["target"], "wanted": wanted, "grounds": typed["grounds"]}


class NewChannel(ChannelForm):
    """A new channel."""

    kind = forms.ChoiceField(
        choices=[(str(kind), said) for kind, said in KINDS.items()], widget=forms.RadioSelect,
        label="Kind", initial="webhook",
    )  # fmt: skip
    target = forms.CharField(
        max_length=4000, label="Target",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="An https address, or mail addresses with commas. Never shown again.",
        error_messages={"required": "Say where to: an address, or mail addresses."},
    )  # fmt: skip

    def asked(self) -> dict[str, Any]:
        """The typed, with the kind."""
        return super().asked() | {"kind": ChannelKind(self.cleaned_data["kind"])}
