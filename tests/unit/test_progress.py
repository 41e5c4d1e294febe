"""Progress messages of commands, shown only on a terminal."""

from __future__ import annotations

import io
import time

import pytest

from farlink.cli import progress


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
