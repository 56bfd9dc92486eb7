"""The console's addresses: nouns; fragments live under /parts/."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.session_acts import ACTS
from dashboard.views import (
    bindings,
    calls,
    home,
    imports,
    logins,
    problems,
    repairs,
    session_acts,
    sessions,
)

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
        for name in ACTS
    ),
    path("sessions/<slug:session_id>/repair", repairs.of_session, name="sessions-repair"),
    path("parts/sessions/<slug:session_id>", sessions.standing, name="sessions-standing"),
    path("transcripts/repair", repairs.transcript, name="sessions-transcript-repair"),
    path("imports/new", imports.new, name="sessions-import-new"),
    path("imports/<slug:import_id>", imports.detail, name="sessions-import"),
    path("imports/<slug:import_id>/original", imports.original, name="sessions-import-original"),
    path("imports/<slug:import_id>/copy", imports.copy, name="sessions-import-copy"),
    *(
        path(
            f"imports/<slug:import_id>/{name}",
            imports.deed,
            {"name": name},
            name=f"sessions-import-{name}",
        )
        for name in imports.DEEDS
    ),
    # Calls
    path("calls", calls.index, name="calls"),
    path("calls/<slug:call_id>", calls.detail, name="calls-detail"),
    path("calls/<slug:call_id>/attempts/<int:number>", calls.attempt, name="calls-attempt"),
    path("calls/<slug:call_id>/cancellation", calls.cancellation, name="calls-cancellation"),
    path("calls/<slug:call_id>/arguments", calls.arguments, name="calls-arguments"),
    path("calls/<slug:call_id>/result", calls.result, name="calls-result"),
    path("parts/calls/newer", calls.newer, name="calls-newer"),
    path("parts/calls/<slug:call_id>", calls.part, name="calls-part"),
    path("go", calls.go, name="go"),
    path("go/<path:wanted>", calls.go, name="go-to"),
]
