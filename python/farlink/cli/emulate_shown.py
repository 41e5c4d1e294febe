"""Display of `farlink emulate`: the packets of both ways, while they go and at the end."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from farlink.net.emulated import Emulated
    from farlink.net.emulation import Emulation

_COLUMNS = (
    "",
    "in",
    "out",
    "dropped",
    "lost",
    "damaged",
    "marked",
    "Mb/s out",
    "delay p50",
    "delay p99",
    "late p50",
    "late p99",
    "max",
)


def final_table(result: Emulated) -> str:
    """The packets of both ways, and whether the emulator kept its time."""
    from rich.console import Console

    page = io.StringIO()
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    console = Console(file=page, force_terminal=is_terminal, width=None if is_terminal else 160)
    console.print(result.scenario.title, style="bold", highlight=False)
    console.print(_table({"elapsed_s": result.elapsed_s, "forward": asdict(result.forward), "return": asdict(result.back)}))
    priority = "with" if result.is_real_time else "without"
    console.print(
        f"{'valid' if result.valid else 'invalid'}; {result.elapsed_s:.1f} s, {priority} a real-time priority; "
        f"seed {result.seed}, run {result.run}; farlink {result.version}",
        highlight=False,
    )
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())


@contextmanager
def live(emulation: Emulation) -> Iterator[Callable[[], None]]:
    """Yield a function that shows the packets so far; it draws on standard error, and only on a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as shown:

        def show() -> None:
            report = emulation.latest()
            table = _table(report)
            table.caption = f"{report['elapsed_s']:.0f} s, Ctrl-C ends it"
            shown.update(table, refresh=True)

        yield show


def _table(report: dict[str, Any]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for column in _COLUMNS:
        table.add_column(column, justify="right" if column else "left")
    for name in ("forward", "return"):
        table.add_row(*_row(name, report[name], report["elapsed_s"]))
    return table


def _row(name: str, way: dict[str, Any], elapsed_s: float) -> list[str]:
    counts = [way["in_packets"], way["out_packets"], way["dropped"] + way["refused"], way["lost"] + way["ruined"]]
    rate = way["out_bytes"] * 8 / elapsed_s / 1e6 if elapsed_s else 0.0
    times = [way[key] for key in ("delay_p50_s", "delay_p99_s", "late_p50_s", "late_p99_s", "late_max_s")]
    return [
        name if way["is_up"] else f"{name} (down)",
        *(f"{count:,}" for count in [*counts, way["damaged"], way["marked"]]),
        f"{rate:.3f}",
        *("" if seconds is None else f"{seconds * 1e3:.3f} ms" for seconds in times),
    ]
