"""What values of a ``bundle.toml`` may not be together, and what they need on this machine."""

from __future__ import annotations

import grp
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farlink.errors import OperatorError
from farlink.operator.at import profiles
from farlink.operator.config.bundle import Limits, Ppp
from farlink.operator.config.toml_places import Path as KeyPath
from farlink.untrusted import printable

LEAST_IPV6_BYTES = 1280
"""What every link under IPv6 must carry in one piece (RFC 8200, section 5)."""


@dataclass(frozen=True)
class Broken:
    """A rule that is broken, and the key that breaks it; if that has its default, `other` does."""

    path: KeyPath
    message: str
    remedy: str
    other: KeyPath = ()


def of_ppp(ppp: Ppp, rows: Sequence[Mapping[str, Any]]) -> Iterator[Broken]:
    """Rules of PPP.

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


def of_lines(
    rows: Sequence[Mapping[str, Any]], given: Sequence[Mapping[str, Any]], folder: Path, *, needs_ports: bool = True
) -> Iterator[Broken]:
    """Rules of the lines, and what they need on this machine.

    Parameters
    ----------
    rows
        The valid values of each line.
    given
        Its values, with those that are not.
    folder
        That of the file, for profiles that are files.
    needs_ports
        Whether ports must be there.
    """
    yield from _used_twice(rows)
    for at, row in enumerate(rows):
        yield from _role(row, given[at], at)
        if "profile" in row:
            yield from _profile(row, at, folder)
        if needs_ports and "port" in row:
            yield from _port(row["port"], at)


def _role(row: Mapping[str, Any], given: Mapping[str, Any], at: int) -> Iterator[Broken]:
    if row.get("role", "dial") == "dial":
        if "number" not in given:
            yield Broken(("line", at), f"line[{at}].number is missing", 'give what it dials, or role = "answer"')
        if row.get("callers"):
            yield Broken(
                ("line", at, "callers"), f"line[{at}].callers: a line that dials takes no calls", "leave the callers out"
            )
    elif row.get("number"):
        yield Broken(("line", at, "number"), f"line[{at}].number: an answering line dials nothing", "leave the number out")


def _profile(row: Mapping[str, Any], at: int, folder: Path) -> Iterator[Broken]:
    name = row["profile"]
    try:
        profile = profiles.load(str(folder / name) if name.endswith(".toml") else name)
    except OperatorError as error:
        yield Broken(("line", at, "profile"), f"line[{at}].profile: {error.message}", error.remedy)
        return
    if row.get("callers") and (profile.answer == "auto" or not profile.names_callers):
        why = "answers by itself" if profile.names_callers else "does not say who calls"
        message = f"line[{at}].callers: a {profile.title} {why}"
        remedy = 'leave the callers out, or give a profile with names_callers = true and answer = "ata"'
        yield Broken(("line", at, "callers"), message, remedy)
    most = profiles.SCALES[profile.signal]
    if row.get("least_signal", 0) > most:
        message = f"line[{at}].least_signal: {row['least_signal']}, and a {profile.title} says 0 to {most}"
        yield Broken(("line", at, "least_signal"), message, f"give 0 to {most}")


def _used_twice(rows: Sequence[Mapping[str, Any]]) -> Iterator[Broken]:
    """Names, ports and SIMs that two lines have. A port may have several names."""
    for key, remedy in (
        ("name", "give each line a name"),
        ("port", "give each line a port; names in /dev/serial/by-id tell modems apart"),
        ("sim", "a SIM carries one call: give each line a SIM"),
    ):
        first: dict[str, int] = {}
        for at, row in enumerate(rows):
            if key not in row:
                continue
            value = os.path.realpath(row[key]) if key == "port" else row[key]
            if value in first:
                # A SIM's number is the subscriber's, so it is not shown whole.
                shown = f"...{value[-4:]}" if key == "sim" else printable(row[key], 60)
                yield Broken(("line", at, key), f"line[{at}].{key}: {shown} is that of line[{first[value]}], too", remedy)
            first.setdefault(value, at)


def _port(port: str, at: int) -> Iterator[Broken]:
    shown = f"line[{at}].port: {printable(port, 80)}"
    where = ("line", at, "port")
    try:
        status = os.stat(port)  # noqa: PTH116 (so that tests put a device in its place)
    except OSError as error:
        remedy = "plug the modem in, and look into /dev/serial/by-id"
        yield Broken(where, f"{shown}: {(error.strerror or 'not there').lower()}", remedy)
        return
    if not stat.S_ISCHR(status.st_mode):
        yield Broken(where, f"{shown}: not a device", "name the tty of the modem")
    elif not os.access(port, os.R_OK | os.W_OK):
        group = _group(status.st_gid)
        yield Broken(
            where, f"{shown}: may not be read and written", f"join its group: sudo usermod -aG {group} $USER, then log in again"
        )


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return "dialout"
