"""farlink's own journal: JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator

from farlink.channels.calls.clock import Clock
from farlink.channels.calls.journal import Event, parse_line

NAME = "journal"
DESCRIPTION = "farlink's, a JSON object a line"


def recognises(name: str, head: list[str]) -> bool:
    """A file whose first line begins an object, or that is named so."""
    return head[0].lstrip().startswith("{") or name.removesuffix(".gz").endswith(".jsonl")


def events(lines: list[str], name: str, clock: Clock | None = None) -> Iterator[Event]:
    """Its events, a line each."""
    for number, line in enumerate(lines, start=1):
        event = parse_line(line, f"{name}, line {number}", clock)
        if event is not None:
            yield event
