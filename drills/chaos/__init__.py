"""Seeded faults under load: what is asked for, what is broken, and what it all came to."""

from drills.chaos.running import run as run
