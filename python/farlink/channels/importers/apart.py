"""Formats read by C libraries: a separate process reads them within bounds of memory and time, so that only it can crash.

SciPy's and HDF5's readers crash on some damaged files or never end, and trust the size that a file states.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import asdict
from importlib import import_module

import numpy as np

from farlink.channels.importers.recording import Hints, Recording
from farlink.channels.trace import Trace
from farlink.errors import FarlinkError, TraceError

_MOST_BYTES = 4 << 30
_MOST_CPU_S = 120
_DAMAGED = "fetch it again; it may be truncated, or larger than what is read"


def trace_apart(recording: Recording, module: str, what: str) -> Trace:
    """The trace that an importer reads in another process.

    Parameters
    ----------
    recording
        The measured file.
    module
        Of the importer; its function ``trace_here`` reads.
    what
        What such a file is called, for messages.

    Raises
    ------
    TraceError
        What the importer raised; or that the file is damaged, if the process was lost.
    """
    command = [sys.executable, "-c", f"from {__name__} import _serve; _serve()"]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "OPENBLAS_NUM_THREADS": "1"}
    said = {"module": module, "name": recording.name, "where": recording.where, "hints": asdict(recording.hints)}
    sent = json.dumps(said).encode() + b"\n" + recording.data
    child = subprocess.run(command, input=sent, capture_output=True, env=paths, check=False)
    head, _, rest = child.stdout.partition(b"\n")
    try:
        found = json.loads(head) if child.returncode == 0 else None
    except ValueError:
        found = None
    if found is None:
        raise TraceError(f"{recording.where}: not a complete {what} file", _DAMAGED)
    if "error" in found:
        raise TraceError(*found["error"])
    stream = io.BytesIO(rest)
    arrays = {name: np.lib.format.read_array(stream, allow_pickle=False) for name in found["arrays"]}
    return Trace(found["kind"], arrays, found["meta"])


def _serve() -> None:
    """Read a recording from standard input and write its trace, or why there is none, to standard output."""
    _bound()
    head, _, data = sys.stdin.buffer.read().partition(b"\n")
    said = json.loads(head)
    recording = Recording(said["name"], said["where"], data, Hints(**said["hints"]))
    try:
        found: Trace = import_module(said["module"]).trace_here(recording)
    except FarlinkError as error:
        _answer({"error": [error.message, error.remedy]})
        return
    except MemoryError:
        _answer({"error": [f"{recording.where}: it takes more memory than the {_MOST_BYTES:,} bytes allowed", _DAMAGED]})
        return
    _answer({"kind": found.kind, "meta": found.meta, "arrays": list(found.arrays)})
    for values in found.arrays.values():
        np.lib.format.write_array(sys.stdout.buffer, values, allow_pickle=False)


def _answer(said: dict[str, object]) -> None:
    sys.stdout.buffer.write(json.dumps(said).encode() + b"\n")


def _bound() -> None:
    try:
        import resource
    except ImportError:  # not on this system
        return
    for what, most in ((resource.RLIMIT_AS, _MOST_BYTES), (resource.RLIMIT_CPU, _MOST_CPU_S), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(what)
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (soft, hard))
