"""The sandbox as a Django app: it has a management command and no tables."""

from django.apps import AppConfig


class SandboxConfig(AppConfig):
    name = "sandbox"
    verbose_name = "Sandbox"
