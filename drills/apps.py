"""The drills as a Django app: a management command, no tables."""

from django.apps import AppConfig


class DrillsConfig(AppConfig):
    name = "drills"
    verbose_name = "Drills"
