"""Tools written as Python functions: `@tool` declares one, the registry finds it, the executor
runs it inside the attempt's own tool child.

A tool function is given a `Context` and its arguments as keywords. What it returns or raises
becomes exactly one `Outcome`; it never decides to repeat. No Django import below this folder.
"""

from executors.python.declaration import PythonTool, tool
from executors.python.errors import NotBegun, Refused, ToolFailed, Unproven, Vanished
from executors.python.executor import PythonExecutor

__all__ = [
    "NotBegun",
    "PythonExecutor",
    "PythonTool",
    "Refused",
    "ToolFailed",
    "Unproven",
    "Vanished",
    "tool",
]
