"""Commands: programs started by an argument list, never by a shell, in a sandbox."""
