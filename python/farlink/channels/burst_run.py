"""Bursts at a decoder's output, counted while it decodes: wrong bits go directly to a file and are not kept in memory."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from farlink.channels.bit_bursts import BitBursts, bursts_of
from farlink.channels.coding import Progress, error_trace_meta
from farlink.channels.trace import Trace, add_member, add_meta
from farlink.channels.trace_file import write
from farlink.errors import OutputError, core_errors
from farlink.limits import check_seed, check_threads
from farlink.output import whole_file
from farlink.untrusted import MOST_VALUES


@dataclass(frozen=True)
class BurstRun:
    """A finished decoder run, and its bursts.

    Attributes
    ----------
    title
        What was decoded.
    bits, wrong_bits
        How many.
    bursts
        Statistics of all bursts.
    trace_bits
        How many bits the trace is of that was written: fewer than `bits` if it would have had more wrong ones than a trace may.
    is_interrupted
        Whether Ctrl-C ended it.
    """

    title: str
    bits: int
    wrong_bits: int
    bursts: BitBursts
    trace_bits: int
    is_interrupted: bool


def run(
    coding: Mapping[str, Any],
    ebn0_db: float,
    bits: int,
    gap_bits: int,
    *,
    seed: int = 1,
    threads: int | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
) -> BurstRun:
    """Decode random data, count the bursts of wrong bits, and write the positions of the wrong bits.

    Memory does not grow with the bits. The bits are those of `error_trace`, and the statistics those of `burst_statistics`.

    Parameters
    ----------
    coding, ebn0_db, bits, seed, threads, progress
        As for `error_trace`.
    gap_bits
        Length of the run of correct bits that ends a burst; at least 1.
    output
        Trace to write, ``.npz`` or ``.parquet``: of the first 67 million wrong bits, which is what a trace may have.

    Raises
    ------
    ScenarioError
        If there is no such coding.
    OutputError
        If the trace cannot be written.
    """
    from farlink import _core

    check_threads(threads)
    check_seed(seed)
    options: dict[str, Any] = {"seed": seed, "threads": threads, "progress": progress}
    if output is None:
        with core_errors():
            return _told(coding, ebn0_db, _core.error_bursts(json.dumps(coding), ebn0_db, bits, gap_bits, **options))
    try:
        # In the folder of the output, because it is as large, and a folder for temporary files may be in memory.
        with tempfile.NamedTemporaryFile(prefix=".farlink.", dir=output.parent) as positions:
            options |= {"positions": positions.name, "most": MOST_VALUES}
            with core_errors():
                found = _core.error_bursts(json.dumps(coding), ebn0_db, bits, gap_bits, **options)
            told = _told(coding, ebn0_db, found)
            _write(output, Path(positions.name), found["written"], error_trace_meta(coding, ebn0_db, seed))
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}", "free some space, or choose another place") from error
    return told


def _told(coding: Mapping[str, Any], ebn0_db: float, found: Any) -> BurstRun:
    if found["interrupted"] and not found["bits"]:
        raise KeyboardInterrupt
    title = str(error_trace_meta(coding, ebn0_db, 0)["title"])
    trace_bits = found["written"][1]
    return BurstRun(title, found["bits"], found["wrong_bits"], bursts_of(found), trace_bits, found["interrupted"])


def _write(output: Path, positions: Path, written: tuple[int, int], meta: dict[str, Any]) -> None:
    count, bits = written
    if output.suffix == ".parquet":
        arrays = {"position": np.fromfile(positions, dtype="<u8"), "bits": np.array(bits)}
        write(Trace("bit-errors", arrays, meta), output)
        return
    head, length = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array(length, np.array(bits, dtype="<u8"), version=(1, 0))
    np.lib.format.write_array_header_1_0(head, {"descr": "<u8", "fortran_order": False, "shape": (count,)})
    head.seek(0)
    length.seek(0)
    with whole_file(output) as temporary, zipfile.ZipFile(temporary, "w") as archive, positions.open("rb") as content:
        add_member(archive, "bits", length)
        add_member(archive, "position", head, content)
        add_meta(archive, "bit-errors", ["bits", "position"], meta)
