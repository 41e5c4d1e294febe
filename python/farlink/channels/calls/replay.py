"""A log played again: when each link was down, and the tables of a scenario that take it down at those times."""

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

# Logs have milliseconds at best; what is shorter than this is no time at which a link was down.
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
    spells
        Begin and end of each time, in s from the origin, in order, without overlap.
    """

    link: str
    origin_s: float
    span_s: float
    spells: list[tuple[float, float]]

    @property
    def down_s(self) -> float:
        """How long it was down in all, in s."""
        return math.fsum(end - begin for begin, end in self.spells)


@checked_arguments
def down_times(links: Sequence[Link], *, handover_s: float | None = None) -> list[DownTimes]:
    """When each link was down, which is whenever it was not connected, for any reason.

    Parameters
    ----------
    links
        Links of a log. If their logs run at the same time, all times count from the first event of any of them and end with the
        last one; otherwise each link's own do.
    handover_s
        How long a link is down from each handover on, in s; not at all by default. No log says so.

    Returns
    -------
    list of DownTimes
        One for each link, in their order.

    Raises
    ------
    JournalError
        If the log has no time at which a call ended; of handovers, as `interrupted`, and if no link has any.

    Examples
    --------
    >>> from farlink.channels.calls.links import Call
    >>> link = Link("m1", [Call(1e9 + 20, 1e9 + 80, "dropped"), Call(1e9 + 90, 1e9 + 100, "open")])
    >>> link.first_s, link.last_s = 1e9, 1e9 + 100
    >>> down_times([link])[0].spells
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
        The hop that they represent.
    measured_on
        What the times are from, for a comment.
    handover_s
        As of `down_times`.

    Returns
    -------
    str
        TOML: a channel ``outage``; of several links whose logs run at the same time, the calls of a bundle with a line for
        each. Of several that do not, the tables of the first; those of the others are comments behind it.

    Raises
    ------
    JournalError
        As `down_times`, and if the log is longer than a scenario may be.
    """
    all_times = down_times(links, handover_s=handover_s)
    headings = [_heading(times, measured_on, _assumed(link, handover_s)) for times, link in zip(all_times, links, strict=True)]
    for times in all_times:
        if times.spells and times.spells[-1][1] > _LONGEST_S:
            message = (
                f"{times.link}: the log is {duration(times.span_s)} long, and the times of a scenario end at {_LONGEST_S:g} s"
            )
            raise JournalError(message, f"play at most {duration(_LONGEST_S)} of it: cut the log into parts")
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


def _is_common(links: Sequence[Link]) -> bool:
    return len(links) > 1 and bundle_span_s(links) is not None


def _down(link: Link, first_s: float, last_s: float) -> DownTimes:
    if any(math.isnan(call.end_s) for call in link.calls) and not any(call.up_s > 0 for call in link.calls):
        message = f"{link.name}: the log has no time at which a call ended, so there is nothing to play again"
        raise JournalError(message, "use the fitted process: -o FILE")
    spells: list[tuple[float, float]] = []
    # A link that was up before its log begins was so from the first event of the others on.
    down_s = link.calls[0].start_s if link.calls and link.calls[0].is_begun_before else first_s
    for call in link.calls:
        if call.start_s - down_s >= _SHORTEST_S:
            spells.append((down_s, call.start_s))
        # A call that was lost at an unknown time counts as down from its beginning.
        down_s = max(down_s, call.drop_s)
    if last_s - down_s >= _SHORTEST_S and not (link.calls and link.calls[-1].outcome == "open"):
        spells.append((down_s, last_s))
    shifted = [(round(begin - first_s, _DIGITS), round(end - first_s, _DIGITS)) for begin, end in spells]
    return DownTimes(link.name, first_s, last_s - first_s, shifted)


def _assumed(link: Link, handover_s: float | None) -> str:
    return "" if handover_s is None else f" {handover_s:g} s after each of {len(link.handovers_s)} handovers are assumed."


def _heading(times: DownTimes, measured_on: str, assumed: str) -> str:
    source = f" of {measured_on}" if measured_on else ""
    share = 100 * times.down_s / times.span_s if times.span_s else 0.0
    return (
        f"# Link {times.link}{source}: down {len(times.spells)} times, {share:.3g} % of {times.span_s / 3600:.4g} h. "
        f"Time 0 is {time_text(times.origin_s)}.{assumed}"
    )


def _bundle(all_times: Sequence[DownTimes], table: str) -> list[str]:
    lines = [f"[{table}.bundle]", f"lines = {len(all_times)}", f"[{table}.bundle.calls]", "schedule = ["]
    for times in all_times:
        lines += [f"  [ # {times.link}", *_rows(times, indent="    "), "  ],"]
    return [*lines, "]"]


def _rows(times: DownTimes, *, indent: str = "  ") -> list[str]:
    spells = [f"[{_number(begin)}, {_number(end)}]," for begin, end in times.spells]
    return [f"{indent}{' '.join(spells[at : at + 6])}" for at in range(0, len(spells), 6)]


def _tables(times: DownTimes, table: str) -> list[str]:
    lines = [f"[{table}.channel]", 'kind = "outage"', "schedule = ["]
    lines += [*_rows(times), "]"]
    # A call that is down is down both ways.
    return [*lines, f"[{table}.return.channel]", *lines[1:]]


def _number(seconds: float) -> str:
    return f"{seconds:.{_DIGITS}f}".rstrip("0").rstrip(".")
