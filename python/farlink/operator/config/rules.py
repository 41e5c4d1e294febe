"""Rules for values of a ``bundle.toml`` together, and what they need on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from farlink.operator.config.broken import Broken
from farlink.operator.config.bundle import Limits, Ppp
from farlink.operator.config.kinds import Kind, Row
from farlink.untrusted import printable

LEAST_IPV6_BYTES = 1280
"""Bytes that every link under IPv6 must carry in one piece (RFC 8200, section 5)."""


def of_ppp(ppp: Ppp, rows: Sequence[Mapping[str, Any]]) -> Iterator[Broken]:
    """Rules of PPP.

    Parameters
    ----------
    ppp
        What is set.
    rows
        The lines that it runs on.

    References
    ----------
    Measured at 2400 bit/s: echoes of 5 s, 3 of them, killed healthy calls under load, four runs of four. Of lines that held
    16 KB, 10 s, 3 of them, did so after a drop: an echo or its answer waits behind packets that have lost a piece. Adaptive
    echoes do not help then, as nothing else arrives at either end.
    """
    rate_bps = min((row.get("rate_bps", 2400.0) for row in rows), default=2400.0)
    full_s = ppp.line_packets * 8 * ppp.mru_bytes / rate_bps
    echo_s = ppp.echo_interval_s * ppp.echo_failures
    if echo_s <= full_s:
        queue = f"{ppp.line_packets} packets of {ppp.mru_bytes} bytes at {rate_bps:g} bit/s"
        yield Broken(
            ("ppp", "echo_interval_s"),
            f"ppp.echo_interval_s x echo_failures: {echo_s} s, and a full queue takes {full_s:g} s ({queue}): "
            "healthy calls would be killed",
            f"make the product of both more than {full_s:g} s, or line_packets or mru_bytes less",
            ("ppp", "echo_failures"),
        )
    if ppp.ipv6 and ppp.mrru_bytes < LEAST_IPV6_BYTES:
        yield Broken(
            ("ppp", "mrru_bytes"),
            f"ppp.mrru_bytes: {ppp.mrru_bytes} is less than the {LEAST_IPV6_BYTES} that IPv6 needs",
            f"give {LEAST_IPV6_BYTES} or more, or ipv6 = false",
        )
    if ppp.local and ppp.local == ppp.remote:
        yield Broken(("ppp", "remote"), f"ppp.remote: {ppp.remote} is that of the own end, too", "give the far end another")


def of_back_end(back_end: str, user: str, ppp: Ppp, rows: Sequence[Mapping[str, Any]]) -> Iterator[Broken]:
    """Options that farlink's own PPP lacks: compression, and both ends of authentication in one bundle.

    Parameters
    ----------
    back_end, user
        Those of the bundle.
    ppp
        Its PPP.
    rows
        Its lines that are dialled.
    """
    if back_end != "farlink":
        return
    if ppp.compression:
        message = 'ppp.compression: the back end "farlink" refuses it, as compressed packets that get lost damage later ones'
        yield Broken(("ppp", "compression"), message, 'leave it out, or give back_end = "pppd"')
    roles = {row.get("role", "dial") for row in rows}
    if user and len(roles) > 1:
        message = "user: some lines dial and prove who they are, others answer and ask for it, over one bundle of farlink's"
        yield Broken(("user",), message, 'give all lines one role, or leave user out, or give back_end = "pppd"')


def of_limits(limits: Limits, use: int | None, lines: int) -> Iterator[Broken]:
    """Limits that contradict."""
    if limits.failed_s > limits.longest_failed_s:
        message = f"limits.longest_failed_s: {limits.longest_failed_s:g} is less than failed_s, {limits.failed_s:g}"
        yield Broken(
            ("limits", "longest_failed_s"), message, "the pause grows from failed_s to longest_failed_s", ("limits", "failed_s")
        )
    if limits.longest_failed_s > limits.blocked_s:
        message = f"limits.blocked_s: {limits.blocked_s:g} is less than longest_failed_s, {limits.longest_failed_s:g}"
        yield Broken(
            ("limits", "blocked_s"),
            message,
            "a blocked line rests longer than one that has failed",
            ("limits", "longest_failed_s"),
        )
    if use is not None and use > lines:
        yield Broken(("use",), f"use: {use} of {lines} lines", f"give 1 to {lines}")


def of_primary(rule: str, use: int, rows: Sequence[Mapping[str, Any]]) -> Iterator[Broken]:
    """Ranks that decide nothing."""
    ranks = [row.get("rank", 0) for row in rows]
    if rule == "none" and use >= len(rows) and len(set(ranks)) > 1:
        at = next(at for at, row in enumerate(rows) if row.get("rank", 0) != 0)
        message = f"line[{at}].rank: {ranks[at]} decides nothing, as all lines are used and none is the primary one"
        yield Broken(("line", at, "rank"), message, "give use fewer lines, or another rule for primary, or leave the rank out")


def of_hook(hook: Path) -> Iterator[Broken]:
    """The program that is started with each change."""
    if not (hook.is_file() and os.access(hook, os.X_OK)):
        message = f"hook: {printable(str(hook), 80)} is no program"
        yield Broken(("hook",), message, f"give the path of one, and make it executable: chmod +x {printable(str(hook), 80)}")


def of_lines(rows: Sequence[tuple[Kind, Row]]) -> Iterator[Broken]:
    """Rules of the lines: of each kind its own, and what two lines may not share.

    Parameters
    ----------
    rows
        The lines, each with its kind.
    """
    yield from _used_twice(rows)
    for kind, row in rows:
        yield from kind.rules(row)
    for kind in {id(kind): kind for kind, _ in rows}.values():
        yield from kind.rules_together([row for of, row in rows if of is kind])


def _used_twice(rows: Sequence[tuple[Kind, Row]]) -> Iterator[Broken]:
    """Names, ports and SIMs that two lines have. A port may have several names."""
    unique = {"name": "give each line a name"}
    for kind, _ in rows:
        unique.update(kind.unique)
    for key, remedy in unique.items():
        first: dict[str, int] = {}
        for _, row in rows:
            if key not in row.valid:
                continue
            value = os.path.realpath(row.valid[key]) if key == "port" else row.valid[key]
            if value in first:
                # A SIM's number is the subscriber's, so it is not shown whole.
                shown = f"...{value[-4:]}" if key == "sim" else printable(row.valid[key], 60)
                yield row.broken(key, f"{shown} is that of line[{first[value]}], too", remedy)
            first.setdefault(value, row.at)
