"""The ledger's nouns, one a file."""

from ledger.models.attempts import Attempt, Chunk, Worker
from ledger.models.audits import ForeignAsk
from ledger.models.calls import ToolCall
from ledger.models.compactions import Compaction, CompactionCheck
from ledger.models.deliveries import Delivery, Fetch, Offer
from ledger.models.drifts import Drift
from ledger.models.events import Event, Pair, PublishedTransition
from ledger.models.gates import Gate, Switch
from ledger.models.handoffs import HandOff
from ledger.models.imports import Import
from ledger.models.interrupts import Interrupt
from ledger.models.messages import Message
from ledger.models.notices import Notice
from ledger.models.payloads import Evidence, Examination, Handle, Result
from ledger.models.sessions import Session, SessionChange, Turn, TurnEvent
from ledger.models.tools import Policy, Tool, ToolVersion
from ledger.models.workspaces import Agent, ApiKey, Membership, Workspace

__all__ = [
    "Agent",
    "ApiKey",
    "Attempt",
    "Chunk",
    "Compaction",
    "CompactionCheck",
    "Delivery",
    "Drift",
    "Event",
    "Evidence",
    "Examination",
    "Fetch",
    "ForeignAsk",
    "Gate",
    "HandOff",
    "Handle",
    "Import",
    "Interrupt",
    "Membership",
    "Message",
    "Notice",
    "Offer",
    "Pair",
    "Policy",
    "PublishedTransition",
    "Result",
    "Session",
    "SessionChange",
    "Switch",
    "Tool",
    "ToolCall",
    "ToolVersion",
    "Turn",
    "TurnEvent",
    "Worker",
    "Workspace",
]
