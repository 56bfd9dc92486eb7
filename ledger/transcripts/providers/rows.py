"""Rows of an agent's own table: a format without a provider."""

from ledger.transcripts.shapes.rows import Rows

FORMAT = Rows()
