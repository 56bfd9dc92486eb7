"""Addresses. The API under /api/v1/, the console under /, health for whoever watches."""

from django.urls import URLPattern, URLResolver, include, path

from config import health
from config.api import api

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", api.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("", include("dashboard.urls")),
]

handler400 = "config.problems.bad_request"
handler403 = "config.problems.permission_denied"
handler404 = "config.problems.not_found"
handler500 = "config.problems.server_error"
