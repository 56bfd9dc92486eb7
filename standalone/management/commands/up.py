"""`manage.py up`, as Django lists it; the work is in `standalone/up.py`."""

from standalone.doorway import doorway

Command = doorway("up")
