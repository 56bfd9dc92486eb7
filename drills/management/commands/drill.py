"""`manage.py drill`, as Django lists it; the work is in `drills/command.py`."""

from standalone.doorway import doorway

Command = doorway("drill")
