"""Progress messages of commands, shown only on a terminal."""

from __future__ import annotations

import io
import os
import signal
import time

import pytest
from rich.console import Console

from farlink.cli import progress
from farlink.cli.interrupts import handler


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "is_told"), [(Terminal(), True), (io.StringIO(), False)])
def test_long_work_of_unknown_length_is_announced(stream, is_told, monkeypatch):
    monkeypatch.setattr(progress, "_QUIET_S", 0.05)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")

    with progress.busy("reading a.npz") as say:
        time.sleep(0.3)
        say("drawing")
        time.sleep(0.3)

    assert ("reading a.npz" in stream.getvalue()) is is_told
    assert ("drawing" in stream.getvalue()) is is_told


def test_short_work_prints_no_progress(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)

    with progress.busy("reading a.npz"):
        pass

    assert "reading" not in stream.getvalue()


def test_an_interrupt_while_a_bar_begins_waits_until_it_has_begun(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_QUIET_S", 0.0)
    shown = Console.show_cursor

    def interrupted(console: Console, show: bool = True) -> bool:
        if not show:  # the bar has begun in part
            os.kill(os.getpid(), signal.SIGINT)
        return shown(console, show)

    monkeypatch.setattr(Console, "show_cursor", interrupted)
    before = signal.signal(signal.SIGINT, handler)

    def work() -> None:
        with progress.progress_bar("work") as update:
            update(1, 10)
            time.sleep(5)

    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGINT, before)
    said = stream.getvalue()
    assert said.rfind("\x1b[?25h") > said.rfind("\x1b[?25l") >= 0, "the cursor is shown again"
