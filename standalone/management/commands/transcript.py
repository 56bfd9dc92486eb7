"""`manage.py transcript`, as Django lists it; the work is in `standalone/transcript_acts.py`."""

from standalone.doorway import doorway

Command = doorway("transcript")
