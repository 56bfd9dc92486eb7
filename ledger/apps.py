from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in
from django.db.models.signals import post_migrate


class LedgerConfig(AppConfig):
    name = "ledger"

    def ready(self) -> None:
        from ledger import guards
        from ledger.api import auth

        post_migrate.connect(guards.publish, sender=self)
        user_logged_in.connect(auth.note_login)
