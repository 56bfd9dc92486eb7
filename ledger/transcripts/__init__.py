"""Transcripts: conversations as providers take them, read, paired, repaired and laid out.

Pure functions over the neutral form: no database, no clock, no network, equal input gives equal
bytes. The ledger, where there is one, is handed in as a read-only mapping. What is stored and who
was shown what is elsewhere: `ledger/messages.py`, `ledger/deliveries.py`.
"""
