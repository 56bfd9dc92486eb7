"""`manage.py verify`, as Django lists it; the work is in `standalone/verify.py`."""

from standalone.doorway import doorway

Command = doorway("verify")
