"""The ledger's part of the API: one router for each noun."""
