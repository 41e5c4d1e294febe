"""The summary of a trace that `farlink trace` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink.cli.messages import labelled

if TYPE_CHECKING:
    from farlink.channels.receiver import Receiver
    from farlink.channels.trace import Trace


def summary_lines(trace: Trace, receiver: Receiver | None = None) -> str:
    """Summary of a trace; for a received power also with the bit error rate of a receiver."""
    from farlink.channels.describe import describe

    lines = [("Title", trace.title), *describe(trace, receiver)]
    return labelled(lines)
