"""The console's addresses: nouns; fragments live under /parts/."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.session_acts import ACTS
from dashboard.views import (
    approvals,
    audit,
    bell,
    bindings,
    budgets,
    bulk_runs,
    calls,
    channels,
    deadlines,
    drills,
    home,
    imports,
    inbox,
    incidents,
    interrupts,
    logins,
    members,
    problems,
    readiness,
    repairs,
    reveals,
    saved_views,
    session_acts,
    sessions,
    settings,
    tools,
    workers,
)

urlpatterns = [
    path("", home.index, name="home"),
    path("login", logins.SignIn.as_view(), name="login"),
    path("login/again", logins.again, name="login-again"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("problems/<slug:code>", problems.detail, name="problem"),
    # The bell of open pages, and notifications
    path("parts/bell", bell.stream, name="bell"),
    path("parts/alerts", bell.alerts, name="bell-alerts"),
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
    path("parts/sessions/<slug:session_id>/pairing", sessions.pairing, name="sessions-pairing"),
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
    path("calls/<slug:call_id>/reveal", reveals.reveal, name="calls-reveal"),
    path("calls/<slug:call_id>/arguments", calls.arguments, name="calls-arguments"),
    path("calls/<slug:call_id>/result", calls.result, name="calls-result"),
    path("parts/calls/newer", calls.newer, name="calls-newer"),
    path("parts/calls/<slug:call_id>", calls.part, name="calls-part"),
    path("parts/calls/<slug:call_id>/peek", calls.peek, name="calls-peek"),
    path("parts/calls/<slug:call_id>/events", calls.events, name="calls-events"),
    path("go", calls.go, name="go"),
    path("parts/places", calls.places, name="part-places"),
    path("go/<path:wanted>", calls.go, name="go-to"),
    # The inbox, and what is found through it: incidents, resolutions, holds
    path("inbox", inbox.index, name="inbox"),
    path("inbox/next", inbox.next_one, name="inbox-next"),
    path("inbox/previous", inbox.previous_one, name="inbox-previous"),
    path("inbox/selection", inbox.selection, name="inbox-selection"),
    path("parts/inbox", inbox.rows, name="part-inbox"),
    path("saved-views", saved_views.index, name="saved_views"),
    path("saved-views/<int:view_id>", saved_views.detail, name="saved_views-detail"),
    path("saved-views/<int:view_id>/deletion", saved_views.deletion, name="saved_views-deletion"),
    path("interrupts/<str:interrupt_id>", interrupts.detail, name="inbox-hold"),
    path("incidents/<str:incident_id>", incidents.detail, name="inbox-incident"),
    path("incidents/<str:incident_id>/resolution", incidents.resolution, name="inbox-resolution"),
    path("incidents/<str:incident_id>/correction", incidents.correction, name="inbox-correction"),
    path("incidents/<str:incident_id>/taking", incidents.taking, name="inbox-taking"),
    path("incidents/<str:incident_id>/release", incidents.release, name="inbox-release"),
    path("incidents/<str:incident_id>/aside", incidents.aside, name="inbox-aside"),
    path("incidents/<str:incident_id>/aside/end", incidents.aside_end, name="inbox-aside-end"),
    path("incidents/<str:incident_id>/assignment", incidents.assignment, name="inbox-assignment"),
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
    path("resolutions/<str:resolution_id>/dispute", incidents.dispute, name="inbox-dispute"),
    path("resolutions/<str:resolution_id>/approval", incidents.approval, name="inbox-approval"),
    path("parts/incidents/<str:incident_id>", incidents.standing, name="part-incident"),
    path("parts/incidents/<str:incident_id>/peek", incidents.peek, name="inbox-peek"),
    path("parts/incidents/<str:incident_id>/news", incidents.news, name="part-incident-news"),
    # Bulk runs
    path("bulk-runs", bulk_runs.index, name="bulk_runs"),
    path("bulk-runs/new", bulk_runs.new, name="bulk_runs-new"),
    path("bulk-runs/<str:run_id>", bulk_runs.detail, name="bulk_runs-detail"),
    path("bulk-runs/<str:run_id>/run", bulk_runs.run, name="bulk_runs-run"),
    path("bulk-runs/<str:run_id>/stop", bulk_runs.stop, name="bulk_runs-stop"),
    path("bulk-runs/<str:run_id>/again", bulk_runs.again, name="bulk_runs-again"),
    path("bulk-runs/<str:run_id>/export", bulk_runs.export, name="bulk_runs-export"),
    path("bulk-runs/<str:run_id>/taking-back", bulk_runs.taking_back, name="bulk_runs-taking-back"),
    path("parts/bulk-runs/<str:run_id>", bulk_runs.rows, name="part-bulk-run"),
    # tools
    path("tools", tools.index, name="tools"),
    path("tools/<str:name>", tools.detail, name="tools-detail"),
    path("tools/<str:name>/switch", tools.switch, name="tools-switch"),
    path("tools/<str:name>/policy", tools.policy, name="tools-policy"),
    path("parts/tools/<str:name>/policy", tools.policy_check, name="tools-check"),
    path("breakers/<str:breaker_id>", tools.breaker, name="tools-breaker"),
    # budgets
    path("budgets", budgets.index, name="budgets"),
    path("budgets/grants", budgets.grant, name="budgets-grants"),
    path("parts/budgets", budgets.part, name="budgets-part"),
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
    path("settings/notifications", channels.index, name="settings-channels"),
    path("settings/notifications/<str:channel_id>", channels.detail, name="settings-channel"),
    path(
        "settings/notifications/<str:channel_id>/switch",
        channels.switch,
        name="settings-channel-switch",
    ),
    path(
        "settings/notifications/<str:channel_id>/secret",
        channels.secret,
        name="settings-channel-secret",
    ),
    path(
        "settings/notifications/<str:channel_id>/test", channels.test, name="settings-channel-test"
    ),
    path(
        "settings/messages/<str:message_id>/resending",
        channels.resending,
        name="settings-channel-resending",
    ),
]
