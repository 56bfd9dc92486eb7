"""An old worker falls silent and reports late: once in time, once against a decision."""

from uuid import UUID

from demo import office
from demo.breaks import OldDesk
from demo.house import House
from demo.stage import Scene
from demo.talks import Talk, settled, stands
from ledger.models import ToolCall
from recovery import statements

PARCEL = {"id": "pc-20417", "pick_up": "17:30", "door": 2}


def late_reports(house: House) -> Scene:
    """Two parcels: one report is adopted, the other contradicts what a person decided."""
    desk = OldDesk()
    talk = Talk(house, "cleo", "Ship today's parcels", working_directory="/srv/post",
                host="desk-9", model="house-model-4-mini")  # fmt: skip
    talk.asks("Order the pick-up of both parcels.")
    taken: list[UUID] = []
    yield lambda: _took(desk, talk, taken, "S. Kelly")
    yield lambda: _took(desk, talk, taken, "A. Doyle")
    adopted, denied = taken
    yield lambda: stands("ambiguous", adopted, denied)
    desk.reports(adopted, PARCEL)
    olga = house.person("olga")
    call = ToolCall.objects.get(id=denied)
    statements.state_death(call_id=denied, fence=call.fence, by=olga,
                           grounds="The old desk was switched off at noon.")  # fmt: skip
    yield lambda: office.denial_unlocked(denied)
    none = office.found(denied, "did_not_happen", "The carrier's list has no pick-up for it.",
                        reference="pick-ups of door 2, 17:45", by=olga)  # fmt: skip
    office.decide(denied, "did_not_happen", "The carrier knows nothing of it.", then="close",
                  by=olga, evidence=none)  # fmt: skip
    yield lambda: settled(adopted, denied)
    desk.reports(denied, {**PARCEL, "id": "pc-20418"})


def _took(desk: OldDesk, talk: Talk, taken: list[UUID], payee: str) -> bool:
    """Let the old desk take one more call; another worker may be faster, then it tries again."""
    won = desk.takes(talk, "warehouse.ship_order", f"A parcel for {payee}.", payee=payee)
    if won is not None:
        taken.append(won)
    return won is not None
