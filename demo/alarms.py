"""Who is notified in the demo: the night shift's pager, and one that was given back.

Both are the sandbox's, so nothing leaves this machine. The second one answers 410, so it is
switched off by itself.
"""

from demo.house import House
from notifications import channels
from notifications.channels import Wanted
from notifications.models import Channel
from notifications.vocabulary import CHOSEN, ChannelKind
from sandbox import addresses

GROUNDS = "For the demo: somebody who is called at night."
PAGERS = {"pager of the night shift": "/pager", "pager that was given back": "/pager/gone"}


def connect(house: House) -> None:
    """Make the channels; those that are there already stay as they are."""
    by = house.person("anna")
    port = addresses.known().http
    for name, path in PAGERS.items():
        if not Channel.objects.filter(workspace=house.workspace, name=name).exists():
            channels.make(
                kind=ChannelKind.WEBHOOK,
                target=f"http://127.0.0.1:{port}{path}",
                wanted=Wanted(name=name, events=tuple(map(str, CHOSEN)), may_be_local=True),
                grounds=GROUNDS,
                by=by,
            )
