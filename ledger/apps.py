from django.apps import AppConfig
from django.db.models.signals import post_migrate


class LedgerConfig(AppConfig):
    name = "ledger"

    def ready(self) -> None:
        from ledger import guards

        post_migrate.connect(guards.publish, sender=self)
