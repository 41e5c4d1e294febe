"""The journal of the operator: every connection and every transition of a line, in SQLite, and its exports."""

from __future__ import annotations

from farlink.operator.journal.rows import STATES, AlertRow, Connection, History, Transition
from farlink.operator.journal.store import Journal, Loss, read

__all__ = ["STATES", "AlertRow", "Connection", "History", "Journal", "Loss", "Transition", "read"]
