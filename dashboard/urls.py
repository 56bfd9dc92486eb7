"""The console's addresses: nouns; fragments live under /parts/."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.views import budgets, home, logins, problems, tools

urlpatterns = [
    path("", home.index, name="home"),
    path("login", logins.SignIn.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("problems/<slug:code>", problems.detail, name="problem"),
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
]
