"""The console's addresses: nouns; fragments live under /parts/."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.views import (
    approvals,
    audit,
    calls,
    deadlines,
    drills,
    home,
    logins,
    problems,
    readiness,
    workers,
)

urlpatterns = [
    path("", home.index, name="home"),
    path("login", logins.SignIn.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("problems/<slug:code>", problems.detail, name="problem"),
    # Overview
    path("parts/overview/<slug:name>", home.part, name="home-part"),
    path("overview/<slug:name>.csv", home.table, name="home-table"),
    # Workers, deadlines, audit
    path("workers", workers.index, name="workers"),
    path("parts/workers", workers.part, name="workers-part"),
    path("deadlines", deadlines.index, name="deadlines"),
    path("parts/deadlines", deadlines.part, name="deadlines-part"),
    path("audit", audit.index, name="audit"),
    path("audit/export", audit.export, name="audit-export"),
    # Approvals, drills, readiness
    path("approvals", approvals.index, name="approvals"),
    path("approvals/<str:resolution_id>", approvals.detail, name="approvals-detail"),
    path("parts/approvals", approvals.part, name="approvals-part"),
    path("drills", drills.index, name="drills"),
    path("drills/stop", drills.stop, name="drills-stop"),
    path("drills/reports/<str:name>", drills.report, name="drills-report"),
    path("parts/drills", drills.part, name="drills-part"),
    path("readiness", readiness.index, name="readiness"),
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
