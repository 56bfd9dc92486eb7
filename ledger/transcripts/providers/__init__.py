"""One provider a file: its shape, its rules, the words of its refusals."""
