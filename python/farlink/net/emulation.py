"""The path of a scenario in real time, between UDP sockets or TUN devices."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from farlink import engines
from farlink.errors import ArgumentError, core_errors
from farlink.net.addresses import resolved
from farlink.net.emulated import Emulated, Way, way_of
from farlink.real_time import prioritise
from farlink.scenario import Scenario

MOST_BYTES = 1 << 30
"""Bytes of packets that each way holds unless another number is given."""

DSCP_NAMES = {
    "default": 0,
    "le": 1,
    "ef": 46,
    "va": 44,
    **{f"cs{n}": 8 * n for n in range(8)},
    **{f"af{n}{drop}": 8 * n + 2 * drop for n in (1, 2, 3, 4) for drop in (1, 2, 3)},
}
"""Codepoints of differentiated services by name (RFC 2474, 2597, 3246, 5865, 8622)."""


class Emulation:
    """A path that is ready to be played: open a line, `start` it, look at it, and `finish` it.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a mapping, or a loaded `Scenario`. Its hops are played; its flows are not.
    set, seed
        As of `farlink.run`.
    point
        Number of the grid point, if the scenario has a grid.
    run
        The run of the packet engine whose random numbers are used.
    duration_s
        How long it is played, in seconds; None: until it is stopped.
    most_bytes
        Most bytes of packets that each way holds.
    spin_s
        For so long before a packet is due the emulator looks at the clock instead of sleeping, in seconds.
    progress
        Called while error events of a coding are collected, with the work done and planned.

    Raises
    ------
    ScenarioError
        If the scenario is refused, or real packets cannot play its path.
    """

    def __init__(
        self,
        scenario: str | Path | Mapping[str, Any] | Scenario,
        *,
        set: Mapping[str, Any] | Sequence[str] = (),
        seed: int | None = None,
        point: int | None = None,
        run: int = 0,
        duration_s: float | None = None,
        most_bytes: int = MOST_BYTES,
        spin_s: float = 50e-6,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        from farlink import _core

        prepared = engines.prepare(scenario, set=set, seed=seed)
        points = prepared.points()
        if point is None and len(points) > 1:
            raise ArgumentError(
                f"the scenario has {len(points)} grid points, and one path can be played",
                "choose one: --point 0, or set the keys of the grid: --set link.delay_s=0.25",
            )
        self.scenario = prepared
        self.seed = int(prepared.normalised()["seed"])
        self.run = run
        self.is_real_time = False
        self._failure: BaseException | None = None
        self._report: dict[str, Any] | None = None
        # CPython 3.11 takes a thread for ended if Ctrl-C comes while it is joined.
        self._ended = threading.Event()
        with core_errors(prepared.in_its_words):
            self._core = _core.prepare_emulation(
                prepared.to_json(),
                point or 0,
                run,
                duration_s=duration_s,
                most_bytes=most_bytes,
                spin_s=spin_s,
                progress=progress,
            )
        self.notes = [prepared.in_its_words(note) for note in self._core.notes]

    def relay(self, listen: str, to: str, *, deliver_damaged: bool = False) -> str:
        """Relay UDP: clients send to `listen`, and the server at `to` sees each of them at a port of its own.

        Parameters
        ----------
        listen, to
            Addresses with ports.
        deliver_damaged
            Deliver datagrams whose payload has wrong bits. Else they are dropped, as hosts with UDP's checksum do.

        Returns
        -------
        str
            The address for clients.
        """
        with core_errors():
            return self._core.relay(resolved(listen), resolved(to), deliver_damaged)

    def tunnel(self, devices: tuple[str, str] | None = None, classes: Mapping[int, int] | None = None) -> tuple[str, str]:
        """Play between two TUN devices, the near one and the far one.

        Parameters
        ----------
        devices
            Their names; new ones, which vanish with the emulation, by default.
        classes
            DSCP -> class of service. By default class selector n is class n, up to the last class of the path.

        Returns
        -------
        tuple of str
            Their names.
        """
        if not hasattr(self._core, "tunnel"):
            raise ArgumentError("this system has no TUN devices that farlink knows", "use Linux, or relay UDP")
        with core_errors():
            return self._core.tunnel(devices, list((classes or {}).items()))

    def start(self) -> None:
        """Begin to play, on a thread of its own with a real-time priority if the system permits one."""
        threading.Thread(target=self._play, name="farlink-emulator", daemon=True).start()

    def _play(self) -> None:
        try:
            self.is_real_time = prioritise()
            with core_errors():
                self._report = json.loads(self._core.run())
        except BaseException as error:
            self._failure = error
        finally:
            self._ended.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for so long at most; whether the play has ended."""
        return self._ended.wait(timeout_s)

    def latest(self) -> dict[str, Any]:
        """The report so far."""
        report: dict[str, Any] = json.loads(self._core.latest())
        return report

    def finish(self, unread: tuple[int, int] = (0, 0)) -> Emulated:
        """End the play and return its result.

        Parameters
        ----------
        unread
            Packets that the system dropped at the near and at the far end before they could be read.
        """
        from farlink import __version__

        self._core.stop()
        self._ended.wait()
        if self._failure is not None:
            raise self._failure
        assert self._report is not None, "it has ended"
        faults = list(self._report["faults"])
        for name, count in zip(("near", "far"), unread, strict=True):
            if count:
                faults.append(f"{count} packets found the queue at the {name} end full, as they were not read in time")
        return Emulated(
            scenario=self.scenario,
            version=__version__,
            seed=self.seed,
            run=self.run,
            forward=self._way("forward", unread[0]),
            back=self._way("return", unread[1]),
            started_unix_s=self._report["started_unix_s"],
            elapsed_s=self._report["elapsed_s"],
            is_real_time=self.is_real_time,
            clients=self._report["clients"],
            faults=faults,
            notes=self.notes,
        )

    def _way(self, name: str, unread: int) -> Way:
        assert self._report is not None
        return way_of(self._report[name], unread)


def dscp(name: str) -> int:
    """The codepoint of a name or a number.

    Examples
    --------
    >>> dscp("ef"), dscp("af41"), dscp("12")
    (46, 34, 12)
    """
    known = DSCP_NAMES.get(name.lower())
    if known is None and name.isascii() and name.isdecimal() and int(name) < 64:
        known = int(name)
    if known is None:
        from farlink.near_names import instead

        raise ArgumentError(f"{name!r} is no DSCP", f"{instead(name, DSCP_NAMES)}, or a number from 0 to 63")
    return known
