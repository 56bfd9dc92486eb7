"""Session files of Claude Code: a format without a provider. Source: requirements, R93."""

from ledger.transcripts.shapes.claude_code import ClaudeCode

FORMAT = ClaudeCode()
