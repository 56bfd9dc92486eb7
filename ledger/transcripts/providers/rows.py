"""Rows of an agent's own table: a format without a provider. Source: requirements, R88."""

from ledger.transcripts.shapes.rows import Rows

FORMAT = Rows()
