"""The console's addresses: nouns; fragments live under /parts/."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.views import home, inbox, incidents, logins, problems

urlpatterns = [
    path("", home.index, name="home"),
    path("login", logins.SignIn.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("login/again", logins.SignInAgain.as_view(), name="login-again"),
    path("problems/<slug:code>", problems.detail, name="problem"),
    path("inbox", inbox.index, name="inbox"),
    # Incidents: they are found through the inbox
    path("incidents/<str:incident_id>", incidents.detail, name="inbox-incident"),
    path("incidents/<str:incident_id>/resolution", incidents.resolution, name="inbox-resolution"),
    path("incidents/<str:incident_id>/correction", incidents.correction, name="inbox-correction"),
    path("incidents/<str:incident_id>/taking", incidents.taking, name="inbox-taking"),
    path("incidents/<str:incident_id>/release", incidents.release, name="inbox-release"),
    path(
        "incidents/<str:incident_id>/confirmation",
        incidents.confirmation,
        name="inbox-confirmation",
    ),
    path(
        "incidents/<str:incident_id>/recovery-stop",
        incidents.recovery_stop,
        name="inbox-recovery-stop",
    ),
    path(
        "incidents/<str:incident_id>/proof-of-death",
        incidents.proof_of_death,
        name="inbox-proof-of-death",
    ),
    path(
        "resolutions/<str:resolution_id>/taking-back",
        incidents.taking_back,
        name="inbox-taking-back",
    ),
    path("resolutions/<str:resolution_id>/approval", incidents.approval, name="inbox-approval"),
    path("parts/incidents/<str:incident_id>", incidents.standing, name="part-incident"),
    path("parts/incidents/<str:incident_id>/news", incidents.news, name="part-incident-news"),
]
