"""Bursts counted while a decoder runs: the same statistics as of a stored trace, in constant memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest

from farlink.channels import burst_run, coding, trace_file
from farlink.channels.bit_bursts import burst_statistics
from farlink.errors import FarlinkError, OutputError

CODING = {"modulation": "bpsk", "decision": "hard", "code": {"kind": "convolutional", "generators": "7,5"}}

# Uncoded at -5 dB: 0.213 of all bits are wrong, 34 million of them, 270 MB as positions.
MANY = """
import json, resource, sys
from farlink.channels import burst_run
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
code = {"modulation": "bpsk", "decision": "hard", "code": {"kind": "uncoded"}}
burst_run.run(code, -5.0, 1000, 3, threads=1)
before = peak()
found = burst_run.run(code, -5.0, int(float(sys.argv[1])), 3, threads=1, output=None)
print(json.dumps([found.wrong_bits, found.bursts.bursts, peak() - before]))
"""


@pytest.mark.parametrize("ebn0_db", [1.0, 4.0, 9.0])
@pytest.mark.parametrize("gap_bits", [1, 3, 50])
def test_statistics_of_a_run_match_those_of_its_trace(ebn0_db, gap_bits):
    trace, _ = coding.error_trace(CODING, ebn0_db, 700_001, seed=5)
    expected = burst_statistics(trace, gap_bits)

    found = burst_run.run(CODING, ebn0_db, 700_001, gap_bits, seed=5)

    np.testing.assert_equal(asdict(found.bursts), asdict(expected))
    assert (found.bits, found.wrong_bits, found.title) == (700_001, trace["position"].size, trace.title)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_the_written_trace_belongs_to_the_same_run(tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    trace, _ = coding.error_trace(CODING, 2.0, 300_000, seed=2)
    output = tmp_path / f"a{suffix}"

    burst_run.run(CODING, 2.0, 300_000, 2, seed=2, output=output)

    assert trace_file.read(output).to_bytes() == trace.to_bytes()
    if suffix == ".npz":
        assert output.read_bytes() == trace.to_bytes()
    assert [file.name for file in tmp_path.iterdir()] == [output.name]


def test_a_trace_has_no_more_wrong_bits_than_a_reader_accepts(tmp_path, monkeypatch):
    monkeypatch.setattr(burst_run, "MOST_VALUES", 100)
    trace, _ = coding.error_trace(CODING, 2.0, 300_000, seed=2)

    found = burst_run.run(CODING, 2.0, 300_000, 2, seed=2, output=tmp_path / "a.npz")

    written = trace_file.read(tmp_path / "a.npz")
    assert found.wrong_bits == trace["position"].size > 101
    assert written["position"].tolist() == trace["position"][:100].tolist()
    assert found.trace_bits == int(written["bits"]) == trace["position"][100]


def test_an_unwritable_output_is_refused(tmp_path):
    with pytest.raises(OutputError):
        burst_run.run(CODING, 2.0, 1000, 2, output=tmp_path / "none" / "a.npz")
    with pytest.raises(FarlinkError):
        burst_run.run({"code": {"kind": "none"}}, 2.0, 1000, 2)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_bits():
    resource = pytest.importorskip("resource")
    assert resource
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", MANY, "1.6e8"], env=environment, capture_output=True, text=True, check=True)
    wrong_bits, bursts, grown_bytes = json.loads(done.stdout)

    assert wrong_bits > 3e7
    assert bursts > 1e6
    # Stored positions would take 270 MB twice; the memory of a decoder batch remains.
    assert grown_bytes < 100e6
