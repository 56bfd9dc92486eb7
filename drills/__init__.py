"""Rehearsed failure: a Clearhouse of its own, faults on purpose, and the world asked afterwards.

`stack` starts it, `nemesis` breaks it, `load` and `operator` use it, `world` is what the outside
saw, `checker` compares that with the ledger, `rows` are the operator tests, `planted` proves that
the drill sees known bugs. Everything acts on servers and processes that it started itself.
"""
