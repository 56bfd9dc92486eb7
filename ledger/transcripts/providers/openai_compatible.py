"""Any gateway in the chat shape: the common core, so that whatever stands behind it accepts it.

Source: transcripts, part a, common core.
"""

from ledger.transcripts.profiles import Ids, Profile, Reasoning, Refusal
from ledger.transcripts.providers.common_core import REFUSALS
from ledger.transcripts.shapes.chat import ChatShape

PROFILE = Profile(
    name="openai-compatible",
    shape=ChatShape(name="openai-compatible"),
    refusals={**REFUSALS, "empty_calls": Refusal("[] is too short - 'messages.{at}.tool_calls'")},
    ids=Ids(),
    reasoning=Reasoning.NONE,
)
