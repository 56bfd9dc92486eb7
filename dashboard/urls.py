"""The console's addresses: nouns; fragments live under /parts/."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.views import bindings, home, logins, problems, session_acts, sessions

urlpatterns = [
    path("", home.index, name="home"),
    path("login", logins.SignIn.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("problems/<slug:code>", problems.detail, name="problem"),
    # Sessions
    path("sessions", sessions.index, name="sessions"),
    path("sessions/<slug:session_id>", sessions.detail, name="sessions-detail"),
    path("sessions/<slug:session_id>/rendering", sessions.rendering, name="sessions-rendering"),
    path("sessions/<slug:session_id>/cuts", sessions.cut_places, name="sessions-cuts"),
    path("sessions/<slug:session_id>/binding", bindings.binding, name="sessions-binding"),
    *(
        path(
            f"sessions/<slug:session_id>/{name}",
            session_acts.act,
            {"name": name},
            name=f"sessions-{name}",
        )
        for name in session_acts.ACTS
    ),
    path("parts/sessions/<slug:session_id>", sessions.standing, name="sessions-standing"),
]
