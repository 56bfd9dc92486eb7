"""Asks the outside judges, which live in a Python of their own (`panel.py`)."""

import json
import subprocess
from pathlib import Path
from typing import Any

PANEL = Path(__file__).with_name("panel.py")

CHAT = ("langgraph", "pydantic_ai")
JUDGES_OF = {
    "anthropic": ("anthropic",),
    "bedrock": ("bedrock",),
    "deepseek": ("openai_chat_and_more", *CHAT),
    "gemini": ("gemini",),
    "kimi": ("openai_chat_and_more", *CHAT),
    "minimax": ("openai_chat_and_more", *CHAT),
    "minimax-messages": ("anthropic",),
    "mistral": ("mistral", *CHAT),
    "openai-chat": ("openai_chat", *CHAT),
    "openai-compatible": ("openai_chat", *CHAT),
    "openai-responses": ("openai_responses",),
}
"""Who judges what is rendered for a provider. The neutral form is ours alone: nobody."""


class Court:
    """A running panel; `ask` is a line to it and a line back."""

    def __init__(self, python: Path) -> None:
        self._panel = subprocess.Popen(
            [python, PANEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def ask(self, judge: str, body: Any) -> str | None:
        """Why this judge refuses the body, None where it takes it."""
        assert self._panel.stdin is not None
        assert self._panel.stdout is not None
        self._panel.stdin.write(json.dumps({"judge": judge, "body": body}) + "\n")
        self._panel.stdin.flush()
        answer = json.loads(self._panel.stdout.readline())
        refusal: str | None = answer["refusal"]
        return refusal

    def refusals(self, profile: str, body: Any) -> dict[str, str]:
        """What the judges of a provider refuse, by judge; empty where all take the body."""
        asked = {judge: self.ask(judge, body) for judge in JUDGES_OF[profile]}
        return {judge: refusal for judge, refusal in asked.items() if refusal is not None}

    def close(self) -> None:
        assert self._panel.stdin is not None
        self._panel.stdin.close()
        self._panel.kill()  # it has nothing to tidy up, and large packages to leave
        self._panel.wait()
