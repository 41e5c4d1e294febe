"""`farlink bundle up` and the commands to a running operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farlink.cli.messages import data, note, user_errors
from farlink.untrusted import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_TOLD = 1000

UP_EXAMPLES = """
[bold]Examples[/bold]

farlink bundle up bundle.toml

farlink bundle up bundle.toml 2> operator.log
"""
DOWN_EXAMPLES = """
[bold]Examples[/bold]

farlink bundle down bundle.toml
"""
STATUS_EXAMPLES = """
[bold]Examples[/bold]

farlink bundle status bundle.toml

farlink bundle status bundle.toml --once

farlink bundle status bundle.toml --json | jq '.lines[] | [.line, .state]'
"""
HOLD_EXAMPLES = """
[bold]Examples[/bold]

farlink bundle hold bundle.toml kansas --why "antenna is repaired"
"""
RELEASE_EXAMPLES = """
[bold]Examples[/bold]

farlink bundle release bundle.toml kansas
"""
REDIAL_EXAMPLES = """
[bold]Examples[/bold]

farlink bundle redial bundle.toml kansas

farlink bundle redial bundle.toml kansas --try-pin
"""
INJECT_EXAMPLES = """
[bold]Examples[/bold]

farlink bundle inject bundle.toml --rate 1/20min

farlink bundle inject bundle.toml --rate 3/h --line kansas --seed 7

farlink bundle inject bundle.toml --now --line kansas

farlink bundle inject bundle.toml --off
"""

File = Annotated[Path, typer.Argument(metavar="FILE", help="The bundle, a TOML file.")]
Lines = Annotated[list[str] | None, typer.Argument(metavar="LINE...", help="Its lines; all by default.", show_default=False)]


def up(config: File) -> None:
    """Dial the lines of FILE, keep them up and record what happens, until a signal, Ctrl-C or `farlink bundle down`.

    What happens is told on standard error. A port that is missing is waited for. At the end all calls are hung up.
    """
    with user_errors():
        import time

        from farlink.extras import require
        from farlink.operator.config import load
        from farlink.operator.config.kinds import KINDS
        from farlink.operator.core_dumps import forbid_core_dumps
        from farlink.operator.live import Teller, operate

        forbid_core_dumps()
        bundle, secrets = load(config, needs_ports=False)
        for module, purpose in {extra for line in bundle.lines if (extra := KINDS[line.kind].extra)}:
            require(module, purpose)
        if bundle.alerts.standby is not None:
            require("serialx", "a stand-by line")
        begin = time.monotonic()
        with Teller() as teller:

            def tell(said: str) -> None:
                # A modem's words may have anything in them.
                shown = printable(_without(said, secrets.texts()), _MOST_TOLD)
                teller(f"{time.monotonic() - begin:.1f} s: {shown}")

            operate(bundle, secrets, folder=config.parent, tell=tell)


def down(config: File) -> None:
    """Hang all lines of FILE up, and end its operator; returns when it has ended."""
    with user_errors():
        _ask(config, {"do": "down"})


def status(
    config: File,
    json: Annotated[bool, typer.Option("--json", help="Write it as JSON, once.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Write the table once, as is done where no terminal reads.")] = False,
) -> None:
    """Show what each line of FILE does, since when, why, and what ends it; on a terminal, until Ctrl-C."""
    with user_errors():
        import json as json_text
        import sys

        from farlink.operator.live import shown

        found = _ask(config, {"do": "status"})
        if json:
            from farlink import __version__

            data(json_text.dumps({"farlink": __version__, **found}, indent=1) + "\n")
        elif once or sys.stdout is None or not sys.stdout.isatty():
            data(shown(found))
        else:
            _watch(config, found)


def hold(
    config: File,
    lines: Lines = None,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="For the journal.", show_default=False)] = "",
) -> None:
    """Hang lines of FILE up, and dial them no more until `farlink bundle release`, after a restart neither."""
    _order(config, "hold", lines, cause=why)


def release(config: File, lines: Lines = None) -> None:
    """Use lines of FILE again that were held."""
    _order(config, "release", lines)


def redial(
    config: File,
    lines: Lines = None,
    try_pin: Annotated[
        bool, typer.Option("--try-pin", help="Try the PIN of these lines' SIMs once more. Three wrong ones lock a SIM.")
    ] = False,
) -> None:
    """Dial lines of FILE now, whatever pause or block they are in.

    A line that is up has its call ended first, which packets that are under way do not survive: name the lines that are meant.
    """
    _order(config, "redial", lines, try_pin=try_pin)


def inject(
    config: File,
    rate: Annotated[
        str | None, typer.Option(metavar="N/TIME", help="Drops of each line in a time: 1/20min.", show_default=False)
    ] = None,
    line: Annotated[
        list[str] | None,
        typer.Option("--line", metavar="LINE", help="Only this line; may be repeated.", show_default=False),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the drops.", show_default="another each time")] = None,
    now: Annotated[bool, typer.Option("--now", help="Drop once, now.")] = False,
    off: Annotated[bool, typer.Option("--off", help="Inject no more.")] = False,
) -> None:
    """Drop real calls of FILE as a test, by a Poisson process on top of the network's drops.

    The journal marks these drops, and `farlink bundle fit` leaves them out.
    """
    with user_errors():
        from farlink.errors import ArgumentError
        from farlink.operator.live.injector import rate_hz

        if (rate is not None) + now + off != 1:
            raise ArgumentError("inject needs one of --rate, --now and --off", "write for example --rate 1/20min")
        if rate is not None:
            rate_hz(rate)
        done = _ask(config, {"do": "inject", "rate": rate, "lines": line, "seed": seed, "now": now, "off": off})
        note("no more drops are injected" if off else f"drops are injected: {', '.join(done['lines'])}")
        _note_left(done)


def _order(config: Path, what: str, lines: list[str] | None, **more: object) -> None:
    with user_errors():
        done = _ask(config, {"do": what, "lines": lines, **more})
        note(f"{what}: {', '.join(done['lines'])}")
        _note_left(done)


def _note_left(done: Mapping[str, Any]) -> None:
    if done.get("left"):
        note(f"nothing is done to: {', '.join(f'{line}, which {why}' for line, why in done['left'].items())}")
    for line, why in done.get("waits", {}).items():
        note(f"{line} still waits ({why})")
    if done.get("warning"):
        note(f"warning: {done['warning']}")


def _ask(config: Path, request: dict[str, Any]) -> dict[str, Any]:
    from farlink.operator.config import load
    from farlink.operator.core_dumps import forbid_core_dumps
    from farlink.operator.live import ask

    forbid_core_dumps()
    bundle, _ = load(config, needs_ports=False)
    return ask(bundle.journal, request, bundle=bundle.name)


def _watch(config: Path, found: Mapping[str, Any]) -> None:
    import time

    from rich.live import Live

    from farlink.operator.live.status import live

    with Live(live(found), refresh_per_second=4) as shown:
        while True:
            time.sleep(1.0)
            found = _ask(config, {"do": "status"})
            shown.update(live(found))


def _without(said: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        said = said.replace(secret, "***")
    return said
