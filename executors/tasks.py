"""Celery's only task: answering the doorbell. The message says which queue was rung, no more."""

from celery import shared_task

from ledger import dispatch


@shared_task(name=dispatch.DOORBELL, ignore_result=True)  # type: ignore[untyped-decorator]
def answer_doorbell(queue: str, call_id: str = "") -> None:
    """Claim and run until nothing is left; a second ring finds nothing."""
    if queue == "effects":
        from executors import effects

        effects.run_due()
    else:
        from executors import threads

        threads.engine_of(queue).run_due()
