"""The console's addresses: nouns; fragments live under /parts/."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.views import calls, home, logins, problems

urlpatterns = [
    path("", home.index, name="home"),
    path("login", logins.SignIn.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("problems/<slug:code>", problems.detail, name="problem"),
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
