"""Known bugs, switched on one by one: a drill that has not been shown to see them proves nothing.

The product has no switch for them: `bugged` replaces functions by name in a program that it is
about to start, and refuses outside a drill. Each bug has a scene that is green without it.
"""

from drills.planted.running import run as run
