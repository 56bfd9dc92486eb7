"""The console's addresses: nouns; fragments live under /parts/."""

from django.contrib.auth import views as auth
from django.urls import path

from dashboard.views import home, problems

urlpatterns = [
    path("", home.index, name="home"),
    path("login", auth.LoginView.as_view(template_name="dashboard/login.html"), name="login"),
    path("logout", auth.LogoutView.as_view(), name="logout"),
    path("problems/<slug:code>", problems.detail, name="problem"),
]
