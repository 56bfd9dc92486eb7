"""The console's addresses: nouns; fragments live under /parts/."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.views import home, logins, members, problems, settings

urlpatterns = [
    path("", home.index, name="home"),
    path("login", logins.SignIn.as_view(), name="login"),
    path("login/again", logins.again, name="login-again"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("problems/<slug:code>", problems.detail, name="problem"),
    # settings
    path("settings", settings.index, name="settings"),
    path("settings/workspace", settings.workspace, name="settings-workspace"),
    path("settings/password", settings.password, name="settings-password"),
    path("settings/logins/end", settings.ends, name="settings-logins-end"),
    path("settings/people", members.people, name="settings-people"),
    path("settings/people/<int:person_id>", members.person, name="settings-person"),
    path(
        "settings/people/<int:person_id>/deactivation",
        members.deactivation,
        name="settings-person-deactivation",
    ),
    path(
        "settings/people/<int:person_id>/activation",
        members.activation,
        name="settings-person-activation",
    ),
    path(
        "settings/people/<int:person_id>/password", members.renewal, name="settings-person-password"
    ),
    path("settings/keys", members.keys, name="settings-keys"),
    path("settings/keys/<str:key_id>", members.key, name="settings-key"),
]
