"""Conversations from elsewhere: read, planned, and written as a session that goes on.

`receiving` reads bytes, `plans` says which turns, messages and calls a transcript becomes (pure),
`tools` under which version and policy each call is kept, `writing` makes the rows, `keeping` finds,
reverts and discards them. What opens incidents is above this layer: `recovery/imports.py`.

Nothing here invents a result, repeats a tool or stores a result without its call: orphans and
duplicates stay in the report (R81, R92). The bytes as received are kept, whatever was made of them.
"""
