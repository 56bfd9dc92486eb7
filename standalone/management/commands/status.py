"""`manage.py status`, as Django lists it; the work is in `standalone/status.py`."""

from standalone.doorway import doorway

Command = doorway("status")
