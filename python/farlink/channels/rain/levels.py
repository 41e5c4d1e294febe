"""Files of measured attenuation, or of the levels of microwave links: HDF5 as pycomlink writes it, or text."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels.importers import csv_text, hdf5
from farlink.channels.importers.recording import Recording
from farlink.channels.rain.measured import attenuation_of_levels
from farlink.channels.rain.scaling import distance_m
from farlink.errors import FarlinkError, TraceError
from farlink.extras import require

Series = NDArray[np.float64]

ATTENUATION = ("attenuation_db", "attenuation", "a_db")
RECEIVED = ("rsl", "rx", "rsl_dbm", "rx_dbm")
SENT = ("tsl", "tx", "tsl_dbm", "tx_dbm")

# Placeholders of loggers for a missing value (pycomlink's examples).
_NO_RECEIVED_DBM, _NO_SENT_DBM = -99.9, 255.0


@dataclass(frozen=True)
class Measured:
    """A measured attenuation, and the parameters of its link given in the file.

    Attributes
    ----------
    time_s, attenuation_db
        Times in s, and attenuation by rain in dB, NaN where missing. Shape ``(n,)``.
    source
        Its source.
    frequency_hz, length_m, tilt_deg
        Of the link; None if the file does not have it.
    """

    time_s: Series
    attenuation_db: Series
    source: str
    frequency_hz: float | None = None
    length_m: float | None = None
    tilt_deg: float | None = None


def read_measured(recording: Recording) -> Measured:
    """The attenuation in a recording.

    Parameters
    ----------
    recording
        HDF5 with ``time``, ``rx`` and perhaps ``tx`` in a group for each channel (``hints.column`` names the channel); or text
        with times and a column of attenuation (`ATTENUATION`), or of levels received (`RECEIVED`) and perhaps sent (`SENT`).

    Raises
    ------
    TraceError
        If it is neither, a channel or column is not known, times do not ascend, or an attenuation is negative.
    """
    found = _from_hdf5(recording) if hdf5.recognises(recording) else _from_text(recording)
    back = np.flatnonzero(~(np.diff(found.time_s) > 0))
    if back.size:
        raise TraceError(
            f"{recording.where}: times do not ascend at row {back[0] + 2}, {found.time_s[back[0] + 1]:.9g} s", "sort the rows"
        )
    negative = np.flatnonzero(found.attenuation_db < 0)
    if negative.size:
        raise TraceError(
            f"{recording.where}: an attenuation of {found.attenuation_db[negative[0]]:g} dB "
            f"at {found.time_s[negative[0]] - found.time_s[0]:.9g} s",
            "it is at least 0 dB: take the level of the clear sky off before, or give levels",
        )
    return found


def _from_text(recording: Recording) -> Measured:
    def is_value(name: str) -> bool:
        return name.lower() in (*ATTENUATION, *RECEIVED, *SENT)

    names = csv_text.read(recording, is_value).names
    columns = [name for known in (ATTENUATION, RECEIVED, SENT) for name in names if name.lower() in known]
    wanted = recording.hints.column or next(iter(columns), None)
    if wanted is None:
        raise TraceError(
            f"{recording.where}: columns {', '.join(names[:8])}",
            f"needed: times, and {ATTENUATION[0]} or {RECEIVED[0]} and perhaps {SENT[0]}",
        )
    name, time_s, values = csv_text.series(recording, lambda name: name == wanted)
    source = f"{recording.name}, {name}"
    if name.lower() not in (*RECEIVED, *SENT):
        return Measured(time_s, values, source)
    text = csv_text.read(recording, is_value)
    levels = {kind: [one for one in names if one.lower() in known] for kind, known in (("rx", RECEIVED), ("tx", SENT))}
    if not levels["rx"]:
        raise TraceError(f"{recording.where}: {name} is a level sent, and none is received", f"add a column {RECEIVED[0]}")
    received = csv_text.column(recording, text, levels["rx"][0])
    sent = csv_text.column(recording, text, levels["tx"][0]) if levels["tx"] else np.zeros_like(received)
    return Measured(time_s, _attenuation(time_s, received, sent, recording.where), source)


def _from_hdf5(recording: Recording) -> Measured:
    h5py = require("h5py", "an HDF5 file")
    try:
        with h5py.File(io.BytesIO(recording.data), "r") as file:
            return _channel(recording, file)
    except FarlinkError:
        raise
    except Exception as error:  # h5py may raise any error on a damaged file
        raise TraceError(f"{recording.where}: not a complete HDF5 file", "fetch it again; it may be truncated") from error


def _channel(recording: Recording, file: Any) -> Measured:
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if "rx" in getattr(item, "keys", list)() else None)
    wanted = recording.hints.column or (names[0] if len(names) == 1 else None)
    if wanted not in names:
        what = f"no channel {wanted}" if wanted else f"{len(names)} channels with rx"
        listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        raise TraceError(f"{recording.where}: {what}", f"--column is one of: {listed or 'none; this is no microwave link'}")
    group = file[wanted]
    if "time" not in group:
        raise TraceError(f"{recording.where}: {wanted} has no data set time", "give text with times instead")
    time_s = group["time"][()].astype(np.float64)
    received = group["rx"][()].astype(np.float64)
    sent = group["tx"][()].astype(np.float64) if "tx" in group else np.zeros_like(received)
    ends = [group.parent.attrs.get(f"site_{site}_{axis}") for site in "ab" for axis in ("latitude", "longitude")]
    frequency_hz = group.attrs.get("frequency")
    polarisation = hdf5.text_of(group.attrs.get("polarization"))
    return Measured(
        time_s,
        _attenuation(time_s, received, sent, recording.where),
        f"{recording.name}, {wanted}",
        None if frequency_hz is None else float(frequency_hz),
        None if None in ends else distance_m(*(float(end) for end in ends if end is not None)),
        {"V": 90.0, "H": 0.0}.get(polarisation or ""),
    )


def _attenuation(time_s: Series, received_dbm: Series, sent_dbm: Series, where: str) -> Series:
    missing = (received_dbm <= _NO_RECEIVED_DBM) | (sent_dbm >= _NO_SENT_DBM)
    loss_db = np.where(missing, np.nan, sent_dbm - received_dbm)
    if np.count_nonzero(np.isfinite(loss_db)) < 2:
        raise TraceError(f"{where}: no level is a number", "check the columns")
    return attenuation_of_levels(time_s, loss_db)
