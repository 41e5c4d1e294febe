"""Replay of a log: when each link was down, and scenario tables that take the link down at those times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from farlink.arguments import checked_arguments
from farlink.channels.calls.handovers import interrupted
from farlink.channels.calls.journal import time_text
from farlink.channels.calls.links import Link
from farlink.channels.calls.samples import bundle_span_s
from farlink.channels.calls.words import duration
from farlink.errors import JournalError

# Logs have millisecond resolution at best; shorter gaps between calls are not outages.
_SHORTEST_S = 1e-3
_DIGITS = 3
# The last time that a scenario takes.
_LONGEST_S = 1e7


@dataclass(frozen=True)
class DownTimes:
    """When a link was down.

    Attributes
    ----------
    link
        Its name.
    origin_s
        Where time 0 is, in s since 1970.
    span_s
        From there to the end of the log, in s.
    outages
        Begin and end of each time that the link was down, in s from the origin, in order, without overlap.
    """

    link: str
    origin_s: float
    span_s: float
    outages: list[tuple[float, float]]

    @property
    def down_s(self) -> float:
        """Total time that the link was down, in s."""
        return math.fsum(end - begin for begin, end in self.outages)


@checked_arguments
def down_times(links: Sequence[Link], *, handover_s: float | None = None) -> list[DownTimes]:
    """When each link was down: whenever it was not connected, for any reason.

    Parameters
    ----------
    links
        Links of a log. If their logs overlap in time, all times count from the first event of any link to the last event of any
        link; otherwise each link counts from its own first event to its own last one.
    handover_s
        Assumed outage after each handover, in s, as no log records it; none by default.

    Returns
    -------
    list of DownTimes
        One for each link, in their order.

    Raises
    ------
    JournalError
        If the log has no time at which a call ended; with `handover_s`, if no link has a handover, and as `interrupted`.

    Examples
    --------
    >>> from farlink.channels.calls.links import Call
    >>> link = Link("m1", [Call(1e9 + 20, 1e9 + 80, "dropped"), Call(1e9 + 90, 1e9 + 100, "open")])
    >>> link.first_s, link.last_s = 1e9, 1e9 + 100
    >>> down_times([link])[0].outages
    [(0.0, 20.0), (80.0, 90.0)]
    """
    if handover_s is not None:
        if not any(link.handovers_s for link in links):
            raise JournalError("the log has no handovers", "leave their length out: there is nothing that it would change")
        links = [interrupted(link, handover_s) for link in links]
    first_s, last_s = min(link.first_s for link in links), max(link.last_s for link in links)
    return [_down(link, first_s, last_s) if _is_common(links) else _down(link, link.first_s, link.last_s) for link in links]


def scenario_text(links: Sequence[Link], *, table: str = "link", measured_on: str = "", handover_s: float | None = None) -> str:
    """Tables of a scenario that take a link down when the log says that it was down, in both directions.

    Parameters
    ----------
    links
        Links of a log.
    table
        The table of the hop that takes the outages.
    measured_on
        Source of the times, named in a comment.
    handover_s
        As of `down_times`.

    Returns
    -------
    str
        TOML. For one link, a channel ``outage``; for several links whose logs overlap in time, the calls of a bundle with a
        line for each link; for several that do not overlap, the tables of the first link, then the others as comments.

    Raises
    ------
    JournalError
        As `down_times`, and if the log is longer than a scenario may be.
    """
    all_times = down_times(links, handover_s=handover_s)
    headings = [_heading(times, measured_on, _assumed(link, handover_s)) for times, link in zip(all_times, links, strict=True)]
    for times in all_times:
        _check_length(times)
    if _is_common(links):
        return "\n".join([*headings, *_bundle(all_times, table), ""])
    blocks = []
    for number, times in enumerate(all_times):
        lines = [headings[number], *_tables(times, table)]
        is_first = number == 0
        if number == 1:
            blocks.append("# The other links: take the # away in place of the tables above.\n")
        blocks.append("".join(f"{line if is_first or line.startswith('# ') else f'# {line}'}\n" for line in lines))
    return "\n".join(blocks)


@checked_arguments
def bundle_text(all_times: Sequence[DownTimes], *, table: str = "link", source: str = "") -> str:
    """Tables of a scenario that take each line of a bundle down at given times.

    Parameters
    ----------
    all_times
        When each line is down, all from the same time 0.
    table
        The table of the hop that has the bundle.
    source
        Of the times, named in a comment.

    Returns
    -------
    str
        TOML, with a line of the bundle for each.

    Raises
    ------
    JournalError
        If the times go on for longer than a scenario may.

    Examples
    --------
    >>> print(bundle_text([DownTimes("m1", 0.0, 100.0, [(0.0, 20.0), (80.0, 90.5)])], source="a test"))
    # Link m1 of a test: down 2 times, 30.5 % of 0.02778 h. Time 0 is 1970-01-01T00:00:00Z.
    [link.bundle]
    lines = 1
    [link.bundle.calls]
    schedule = [
      [ # m1
        [0, 20], [80, 90.5],
      ],
    ]
    <BLANKLINE>
    """
    for times in all_times:
        _check_length(times)
    return "\n".join([*(_heading(times, source, "") for times in all_times), *_bundle(all_times, table), ""])


def _check_length(times: DownTimes) -> None:
    if times.outages and times.outages[-1][1] > _LONGEST_S:
        message = f"{times.link}: the log is {duration(times.span_s)} long, and the times of a scenario end at {_LONGEST_S:g} s"
        raise JournalError(message, f"play at most {duration(_LONGEST_S)} of it: cut the log into parts")


def _is_common(links: Sequence[Link]) -> bool:
    return len(links) > 1 and bundle_span_s(links) is not None


def _down(link: Link, first_s: float, last_s: float) -> DownTimes:
    if any(math.isnan(call.end_s) for call in link.calls) and not any(call.up_s > 0 for call in link.calls):
        message = f"{link.name}: the log has no time at which a call ended, so there is nothing to play again"
        raise JournalError(message, "use the fitted process: -o FILE")
    outages: list[tuple[float, float]] = []
    # A link that was up when its log began counts as up since the first event of the other links.
    down_s = link.calls[0].start_s if link.calls and link.calls[0].is_begun_before else first_s
    for call in link.calls:
        if call.start_s - down_s >= _SHORTEST_S:
            outages.append((down_s, call.start_s))
        # A call lost at an unknown time counts as down from its start.
        down_s = max(down_s, call.drop_s)
    if last_s - down_s >= _SHORTEST_S and not (link.calls and link.calls[-1].outcome == "open"):
        outages.append((down_s, last_s))
    shifted = [(round(begin - first_s, _DIGITS), round(end - first_s, _DIGITS)) for begin, end in outages]
    return DownTimes(link.name, first_s, last_s - first_s, shifted)


def _assumed(link: Link, handover_s: float | None) -> str:
    return "" if handover_s is None else f" {handover_s:g} s after each of {len(link.handovers_s)} handovers are assumed."


def _heading(times: DownTimes, measured_on: str, assumed: str) -> str:
    source = f" of {measured_on}" if measured_on else ""
    share = 100 * times.down_s / times.span_s if times.span_s else 0.0
    return (
        f"# Link {times.link}{source}: down {len(times.outages)} times, {share:.3g} % of {times.span_s / 3600:.4g} h. "
        f"Time 0 is {time_text(times.origin_s)}.{assumed}"
    )


def _bundle(all_times: Sequence[DownTimes], table: str) -> list[str]:
    lines = [f"[{table}.bundle]", f"lines = {len(all_times)}", f"[{table}.bundle.calls]", "schedule = ["]
    for times in all_times:
        lines += [f"  [ # {times.link}", *_rows(times, indent="    "), "  ],"]
    return [*lines, "]"]


def _rows(times: DownTimes, *, indent: str = "  ") -> list[str]:
    outages = [f"[{_number(begin)}, {_number(end)}]," for begin, end in times.outages]
    return [f"{indent}{' '.join(outages[at : at + 6])}" for at in range(0, len(outages), 6)]


def _tables(times: DownTimes, table: str) -> list[str]:
    lines = [f"[{table}.channel]", 'kind = "outage"', "schedule = ["]
    lines += [*_rows(times), "]"]
    # An outage affects both directions.
    return [*lines, f"[{table}.return.channel]", *lines[1:]]


def _number(seconds: float) -> str:
    return f"{seconds:.{_DIGITS}f}".rstrip("0").rstrip(".")
