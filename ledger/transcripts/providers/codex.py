"""Rollouts of Codex CLI: a format without a provider. Source: requirements, R93."""

from ledger.transcripts.shapes.codex import Codex

FORMAT = Codex()
