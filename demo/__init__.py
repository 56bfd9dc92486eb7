"""A believable afternoon for the first look at the console, made by the verbs alone.

`stage.py` plays several scenes at once, `house.py` is who lives there, `talks.py` a conversation
of an agent, `office.py` what people decide, `tools.py` the tools beside the sandbox's own, and
`scenes/` the stories, one a file. Calls are executed by the workers that run; nothing here writes
a row of the ledger.
"""
