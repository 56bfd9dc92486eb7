"""The console's addresses: nouns; fragments live under /parts/."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.views import home, logins, problems

urlpatterns = [
    path("", home.index, name="home"),
    path("login", logins.SignIn.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("problems/<slug:code>", problems.detail, name="problem"),
    # Overview
    path("parts/overview/<slug:name>", home.part, name="home-part"),
    path("overview/<slug:name>.csv", home.table, name="home-table"),
]
