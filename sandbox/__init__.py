"""A small outside world for drills: real files, real mail, real long work, real sign-ins.

`tools/` holds tools with real effects, `servers/` the other side they act on. Everything is
on loopback and below one folder, so a rehearsed failure can harm nothing else.
"""
