"""The embedded default as a Django app, so that its commands stand in `manage.py help`."""

from django.apps import AppConfig


class StandaloneConfig(AppConfig):
    """Holds management commands only: no models, no templates, no signals."""

    name = "standalone"
