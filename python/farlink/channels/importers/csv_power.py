"""Received power as text with any separators, header and times: see `csv_text`."""

from __future__ import annotations

from farlink.channels.importers import csv_series, csv_text
from farlink.channels.importers.power_series import Table, is_power, series_trace
from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace

NAME = "csv-power"
KINDS = ("power",)
DESCRIPTION = "received power as text: a header such as time_s,power_dbm; or --unit, --column and --sample-rate-hz"


def recognises(recording: Recording) -> bool:
    """Whether its header names a power, or the user says what it contains."""
    head = recording.data[:2000]
    if b"\0" in head or not head.strip():
        return False
    if recording.hints.given():
        return True
    if csv_series.recognises(recording):
        return False  # a file with a power and a delay is not a measurement of power
    return any(is_power(name) for name in csv_text.names_in(head, is_power))


def trace(recording: Recording) -> Trace:
    """The power trace in a recording.

    Raises
    ------
    TraceError
        If a cell is not a number, naming its line; and for what `series_trace` refuses.
    """
    text = csv_text.read(recording, is_power)
    return series_trace(recording, Table(dict.fromkeys(text.names), lambda name: csv_text.column(recording, text, name)))
