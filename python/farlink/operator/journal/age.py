"""How old transitions are by clocks that nobody sets: the time of day may be wrong by years, and is set right again."""

from __future__ import annotations

import sqlite3

# So many transitions are looked at: more of them tell the time around a start of the machine better, and take longer.
_SAMPLES = 5000
_BEFORE = "SELECT number, boot_id, monotonic_s FROM transition WHERE number <= ? ORDER BY number DESC LIMIT 1"


def first_younger(database: sqlite3.Connection, keep_s: float, *, boot_id: str, monotonic_s: float) -> int:
    """The number of the oldest transition that is younger than some time of running.

    Parameters
    ----------
    database
        The journal.
    keep_s
        Age in s of running. How long the machine was off nobody knows, so it does not count, and neither does the time around a
        start of it, between two transitions that are looked at. So no age is overestimated.
    boot_id, monotonic_s
        Of now.

    Returns
    -------
    int
        The number, or that of an older one between two that are looked at; 0 if all are younger.
    """
    last, lowest = database.execute("SELECT max(number), min(number) FROM transition").fetchone()
    if last is None:
        return 0
    step = max(1, (last - lowest) // _SAMPLES)
    # Time that has passed since this start of the machine, and since later ones.
    of_boot_s = later_s = 0.0
    while last >= lowest:
        number, boot, at_s = database.execute(_BEFORE, (last,)).fetchone()
        if boot != boot_id:
            later_s, of_boot_s = later_s + of_boot_s, 0.0
            boot_id, monotonic_s = boot, at_s
        of_boot_s = max(of_boot_s, monotonic_s - at_s)
        if later_s + of_boot_s >= keep_s:
            return int(number) + 1
        last = number - step
    return 0
