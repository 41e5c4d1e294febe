"""Handovers as interruptions: links are down for a given time after each."""

from __future__ import annotations

from dataclasses import replace

from farlink.arguments import checked_arguments
from farlink.channels.calls.links import Call, Link
from farlink.errors import JournalError

# Schedules have a resolution of milliseconds; an interruption of more than a minute is a drop, not a handover.
SHORTEST_S, LONGEST_S = 1e-3, 60.0
CAUSE = "handover"


@checked_arguments
def interrupted(link: Link, handover_s: float) -> Link:
    """A link that is interrupted by each of its handovers.

    Parameters
    ----------
    link
        The link. Its handovers are where the log has them: for readings once a second, up to a second late.
    handover_s
        Duration of each interruption, in s, from 0.001 to 60. It is an assumption, because no log has it.

    Returns
    -------
    Link
        The same with its calls cut at the handovers. One that comes during the interruption by another begins it anew; one that
        lasts beyond the end of a call leaves nothing of the rest of it.

    Raises
    ------
    JournalError
        If the time is out of range.

    Examples
    --------
    >>> link = Link("m1", [Call(0, 100, "open")], handovers_s=[40, 40.5, 90], first_s=0, last_s=100)
    >>> [(call.start_s, call.end_s, call.outcome) for call in interrupted(link, 0.75).calls]
    [(0, 40, 'dropped'), (41.25, 90, 'dropped'), (90.75, 100, 'open')]
    """
    if not SHORTEST_S <= handover_s <= LONGEST_S:
        message = f"a handover of {handover_s:g} s is out of range"
        raise JournalError(message, f"give {SHORTEST_S:g} to {LONGEST_S:g} s; what takes longer is a drop")
    calls: list[Call] = []
    for call in link.calls:
        calls += _cut(call, [time_s for time_s in link.handovers_s if call.start_s <= time_s <= call.end_s], handover_s)
    return replace(link, calls=calls)


def _cut(call: Call, handovers_s: list[float], handover_s: float) -> list[Call]:
    """The remaining parts of a call."""
    parts = []
    for time_s in handovers_s:
        if time_s > call.start_s:
            parts.append(replace(call, end_s=time_s, outcome="dropped", cause=CAUSE))
        call = replace(call, start_s=time_s + handover_s, is_begun_before=False)
    # The end is NaN if its time is unknown; then the call is kept.
    return parts if call.start_s >= call.end_s else [*parts, call]
