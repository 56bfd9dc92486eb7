from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        from dashboard import logins

        user_logged_in.connect(logins.begin)
