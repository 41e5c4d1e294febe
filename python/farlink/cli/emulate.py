"""`farlink emulate`: the path of a scenario in real time, for real packets."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farlink.cli.emulate_shown import final_table, live
from farlink.cli.messages import data, note, user_errors
from farlink.cli.progress import progress_bar
from farlink.errors import ArgumentError

if TYPE_CHECKING:
    from farlink.namespaces import Namespaces
    from farlink.net.emulated import Emulated
    from farlink.net.emulation import Emulation

EXAMPLES = """
[bold]Examples[/bold]

farlink emulate scenarios/geo-tcp.toml --point 0 --listen 127.0.0.1:5000 --to 127.0.0.1:6000

sudo farlink emulate scenarios/two-hop.toml --point 0 -- ping -c 3 198.18.0.2

sudo farlink emulate scenarios/two-hop.toml --point 0 --far "iperf3 -s" -- iperf3 -c 198.18.0.2

sudo farlink emulate scenarios/two-hop.toml --point 0 --netns
"""

_LOOK_S = 0.25
# A command that was asked to end may take so long.
_PATIENCE_S = 5.0
# As the shell's `timeout` does.
_TIMED_OUT = 124


def emulate(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML). Its hops are played.", show_default=False)
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]", help="Run this at the near end, and stop with it.", show_default=False),
    ] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="ADDRESS:PORT", help="Relay UDP, without root: where clients send to.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="With --listen: the server.")] = None,
    netns: Annotated[
        bool, typer.Option("--netns", help="Make two network namespaces with a device each; COMMAND does so by itself.")
    ] = False,
    tun: Annotated[str | None, typer.Option(metavar="NEAR,FAR", help="Play between these two TUN devices.")] = None,
    far: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Run this at the far end of the namespaces meanwhile, such as a server."),
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Set a key, as of farlink run.")] = None,
    point: Annotated[
        int | None, typer.Option(min=0, max=1 << 60, help="Grid point, counted from 0.", show_default="the only one")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of every random stream.", show_default="the scenario's")] = None,
    run: Annotated[
        int, typer.Option(min=0, max=1 << 60, help="The run of the packet engine whose random numbers are used.")
    ] = 0,
    duration: Annotated[
        float | None,
        typer.Option(metavar="S", help="How long it is played.", show_default="until Ctrl-C, or the end of COMMAND"),
    ] = None,
    class_: Annotated[
        list[str] | None,
        typer.Option(
            "--class", metavar="DSCP=CLASS", help="Class of service of a DSCP, such as ef=0. Default: CSn is class n."
        ),
    ] = None,
    deliver_damaged: Annotated[
        bool,
        typer.Option("--deliver-damaged", help="With --listen: deliver payloads with wrong bits, as without UDP's checksum."),
    ] = False,
    memory: Annotated[
        int, typer.Option(metavar="BYTES", min=1, max=1 << 60, help="Most bytes of packets that each way holds.")
    ] = 1 << 30,
    json: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the result as JSON; - is standard output.")] = None,
) -> None:
    """Play the path of SCENARIO in real time: packets are delayed, lost and damaged as its hops say.

    The exit status is that of COMMAND; without one it is 1 if the emulator could not keep its time.
    """
    with user_errors():
        from farlink.destinations import check_outputs
        from farlink.net.emulation import Emulation

        check_outputs([("--json", json, "JSON")], {"the scenario": scenario})
        _check(command, listen, to, netns or bool(far), tun, deliver_damaged, class_)
        if duration is not None and not 0 < duration <= 1e6:
            raise ArgumentError(
                f"--duration {duration}: a play lasts above 0 s and at most 1e6 s", "give seconds, for example 60"
            )
        for words in (command, _words(far)):
            if words and shutil.which(words[0]) is None:
                raise ArgumentError(f"there is no program {words[0]!r}", "give one that is installed, with its path")
        with progress_bar(scenario.name) as progress:
            emulation = Emulation(
                scenario,
                set=set_ or [],
                seed=seed,
                point=point,
                run=run,
                duration_s=duration,
                most_bytes=memory,
                progress=progress,
            )
        for text in emulation.notes:
            note(f"note: {text}")
        with ExitStack() as stack:
            namespaces = None
            if listen is not None and to is not None:
                address = emulation.relay(listen, to, deliver_damaged=deliver_damaged)
                note(f"relaying UDP from {address} to {to}")
            else:
                namespaces = _tunnel(emulation, stack, tun, class_ or [])
            emulation.start()
            if far is not None and namespaces is not None:
                stack.enter_context(_running(namespaces.far, _words(far)))
            if command and namespaces is not None:
                status, is_cut = _run(emulation, command, namespaces, duration), False
            else:
                status, is_cut = 0, _is_cut(emulation)
            result = emulation.finish(namespaces.unread() if namespaces else (0, 0))
        _print(result, json, is_data=not command)
        if command:
            raise typer.Exit(status)
        if is_cut and duration is not None:
            raise typer.Exit(130)
        raise typer.Exit(0 if result.valid else 1)


def _check(
    command: list[str] | None,
    listen: str | None,
    to: str | None,
    netns: bool,
    tun: str | None,
    deliver_damaged: bool,
    classes: list[str] | None,
) -> None:
    lines = [bool(listen or to), netns or bool(command), tun is not None]
    if sum(lines) != 1:
        what = "there is no line to play on" if not any(lines) else "more than one line is given"
        remedy = "give --listen and --to (UDP, no root), or --netns, or a command behind --, or --tun NEAR,FAR"
        raise ArgumentError(what, remedy)
    if lines[0] and not (listen and to):
        raise ArgumentError("--listen and --to belong together", "give both: --listen 127.0.0.1:5000 --to 127.0.0.1:6000")
    if deliver_damaged and not lines[0]:
        raise ArgumentError(
            "--deliver-damaged is for the relay of UDP", "leave it out: devices deliver wrong bits, and kernels check them"
        )
    if classes and lines[0]:
        raise ArgumentError("--class is for devices", "leave it out: all datagrams of the relay are of class 0")


def _tunnel(emulation: Emulation, stack: ExitStack, tun: str | None, classes: list[str]) -> Namespaces | None:
    from farlink.namespaces import FAR, NEAR, Namespaces

    of_dscp = dict(_class(text) for text in classes)
    if tun is not None:
        near, comma, far = tun.partition(",")
        if not (near and comma and far):
            raise ArgumentError(f"--tun {tun!r} is no pair of devices", "give two names: --tun near,far")
        emulation.tunnel((near, far), of_dscp)
        note(f"playing between the devices {near} and {far}")
        return None
    namespaces = stack.enter_context(Namespaces())
    namespaces.move(emulation.tunnel(None, of_dscp))
    note(f"near end: {NEAR}, inside with: ip netns exec {namespaces.near} COMMAND")
    note(f"far end:  {FAR}, inside with: ip netns exec {namespaces.far} COMMAND")
    return namespaces


def _words(far: str | None) -> list[str]:
    try:
        return shlex.split(far or "")
    except ValueError as error:
        raise ArgumentError(f"--far {far}: {error}", "close what is quoted") from error


def _class(text: str) -> tuple[int, int]:
    from farlink.net.emulation import dscp

    name, _, number = text.partition("=")
    if not (number.isascii() and number.isdecimal() and int(number) < 8):
        raise ArgumentError(f"--class {text!r} names no class", "give DSCP=CLASS, for example ef=0; classes are 0 to 7")
    return dscp(name), int(number)


def _is_cut(emulation: Emulation) -> bool:
    """Wait for the end; whether Ctrl-C came before."""
    with live(emulation) as show:
        try:
            while not emulation.wait(_LOOK_S):
                show()
        except KeyboardInterrupt:
            return True
    return False


def _run(emulation: Emulation, command: list[str], namespaces: Namespaces, duration: float | None) -> int:
    """Run the command at the near end; its status."""
    child = _popen(namespaces.near, command)
    # As shells do: the terminal tells the command of Ctrl-C, and what it does then is its affair.
    kept = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        while not emulation.wait(0.0):
            try:
                return _status(child.wait(_LOOK_S))
            except subprocess.TimeoutExpired:
                pass
    finally:
        for number, handler in kept:
            signal.signal(number, handler)
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:  # as interactive shells, which take no SIGTERM
                child.kill()
                child.wait()
    if duration is not None:
        note(f"the command was ended after {duration} s")
    return _TIMED_OUT


def _status(returncode: int) -> int:
    return returncode if returncode >= 0 else 128 - returncode


def _popen(name: str, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    from farlink.namespaces import FAR, NEAR, inside

    environment = {**os.environ, "FARLINK_NEAR": NEAR, "FARLINK_FAR": FAR}
    return subprocess.Popen(inside(name, command), env=environment, **options)


@contextmanager
def _running(name: str, command: list[str]) -> Iterator[None]:
    """Run a command meanwhile; what it prints goes to standard error."""
    child = _popen(name, command, stdout=sys.stderr, stdin=subprocess.DEVNULL)
    # A server needs a moment before it listens.
    time.sleep(0.3)
    try:
        yield
    finally:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _print(result: Emulated, json: str | None, *, is_data: bool) -> None:
    text = final_table(result)
    if json == "-":
        data(result.to_json())
        note(text.rstrip())
    else:
        (data if is_data else sys.stderr.write)(text)
    if json is not None and json != "-":
        result.to_json(json)
        note(f"json: {json}")
    for fault in result.faults:
        note(f"invalid: {fault}")
