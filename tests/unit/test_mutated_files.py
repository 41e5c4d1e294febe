"""Valid files with a few bytes changed, removed or inserted: each is read, or refused with a farlink error."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farlink import _core
from farlink.capture import connections
from farlink.capture import files as captures
from farlink.channels import cache
from farlink.channels.calls import logs
from farlink.channels.kept_rates import KEPT
from farlink.channels.trace import KINDS, Trace
from farlink.errors import FarlinkError
from farlink.kept_results import digest
from farlink.tune import files as tables

ADDRESSES = 4 << 30
NUMBERS = [b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0", b"9999", b"\n\n\n\n"]

rarely = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
often = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def _bounded():
    """Limit the address space to 4 GB more than now, so that a reader that trusts a forged size fails."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ADDRESSES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@st.composite
def changed(draw, data: bytes) -> bytes:
    """Bytes with a few of them changed."""
    found = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(found) - 1, 0)))
        how = draw(st.sampled_from(["set", "cut", "put", "end", "many"]))
        if how == "set" and found:
            found[at] = draw(st.integers(0, 255))
        elif how == "cut":
            del found[at : at + draw(st.integers(1, 8))]
        elif how == "put":
            found[at:at] = draw(st.binary(min_size=1, max_size=8))
        elif how == "end":
            del found[at:]
        else:
            found[at : at + 4] = draw(st.sampled_from(NUMBERS))
    return bytes(found)


def traces():
    power = {"power_w": np.linspace(1e-9, 2e-9, 50), "blocked": np.arange(50) % 7 == 0}
    yield Trace("power", {name: np.asarray(values, float) for name, values in power.items()}, {"duration_s": 0.5})
    yield Trace("rate", {"time_s": [0.0, 1.0], "rate_bps": [1e6, 2e6]}, {"duration_s": 3})
    yield Trace("packet-loss", {"lost": [0, 1, 1, 0], "segment_start": [0, 2]}, {"title": "t"})
    yield Trace("bit-errors", {"position": [1, 5], "bits": np.array(9)}, {})


def archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("a.down")
        info.size = 8
        tar.addfile(info, io.BytesIO(b"0\n5\n900\n"))
    return buffer.getvalue()


TEXTS = {
    "a.down": b"0\n5\n5\n900\n",
    "delay_1.txt": b"10\n12.5\n11\n",
    "sdec1-2": b"0 10\n2 128\n299 11\n",
    "r.csv": b"time_s,rate_bps\n0,1e6\n1,2e6\n2,1e6\n",
    "lost.csv": b"lost\n0\n1\n",
    "p.csv": b"time_s;power_dbm\n0;-30,5\n0,1;-31\n0,2;-32,25\n",
    "dates.csv": b"# rx\ntime,Power [nW]\n2024-01-01T00:00:00Z,1\n2024-01-01T00:00:01Z,2\n2024-01-01T00:00:02Z,2\n",
    "c.csv": b"time_s,cn0_dbhz\n0,60\n1,-inf\n2,61.5\n",
    "a.csv.gz": gzip.compress(b"time_s,delay_s\n0,0.1\n1,0.2\n", mtime=0),
    "a.tar.gz": archive(),
}


def read_or_refused(read) -> None:
    refusal = None
    try:
        read()
    except FarlinkError as error:
        refusal = error

    assert refusal is None or (refusal.message and refusal.remedy)


@pytest.mark.parametrize("name", TEXTS)
@often
@given(data=st.data())
def test_mutated_text_is_imported_or_refused(tmp_path, name, data):
    (tmp_path / name).write_bytes(data.draw(changed(TEXTS[name])))
    read_or_refused(lambda: cache.import_file(tmp_path / name))


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
@often
@given(data=st.data(), trace=st.sampled_from(list(traces())))
def test_mutated_trace_is_read_or_refused(tmp_path, suffix, data, trace):
    from farlink.channels import parquet

    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    whole = trace.to_bytes() if suffix == ".npz" else parquet.to_bytes(trace)
    (tmp_path / f"a{suffix}").write_bytes(data.draw(changed(whole)))
    read_or_refused(lambda: cache.import_file(tmp_path / f"a{suffix}"))


@pytest.mark.parametrize("name", ["a.mat", "a.h5", "a.nc"])
@rarely
@given(data=st.data())
def test_mutated_numbers_are_read_or_refused(tmp_path, name, data):
    (tmp_path / name).write_bytes(data.draw(changed(measured(name))))
    read_or_refused(lambda: cache.import_file(tmp_path / name))


def measured(name: str) -> bytes:
    buffer = io.BytesIO()
    if name == "a.h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(buffer, "w") as file:
            file.attrs["fs"] = 10.0
            file.create_dataset("power_w", data=np.ones(50), chunks=(25,), compression="gzip")
        return buffer.getvalue()
    sio = pytest.importorskip("scipy.io")
    if name == "a.mat":
        sio.savemat(buffer, {"power_w": np.ones(50), "fs": 10.0}, do_compression=True)
        return buffer.getvalue()
    with sio.netcdf_file(buffer, "w") as file:
        file.sample_rate_hz = 10.0
        file.createDimension("time", 50)
        file.createVariable("power_w", "f8", ("time",))[:] = 1.0
        file.flush()
        return buffer.getvalue()


def pcap() -> bytes:
    ip = bytes.fromhex("4500002c0000000040060000010203040506070800500051000000010000000050100000000000007071727374")[:44]
    packets = b"".join(struct.pack("<IIII", at, at, len(ip), len(ip)) + ip for at in range(3))
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + packets


def pcapng() -> bytes:
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    interface = struct.pack("<IIHHIHHB3xI", 1, 28, 101, 0, 0, 9, 1, 6, 28)
    ip = pcap()[40:84]
    return section + interface + struct.pack("<IIIIIII", 6, 76, 0, 0, 5, 44, 44) + ip + struct.pack("<I", 76)


@pytest.mark.parametrize("whole", [pcap(), pcapng()], ids=["pcap", "pcapng"])
@often
@given(data=st.data())
def test_mutated_capture_is_read_or_refused(tmp_path, whole, data):
    path = tmp_path / "a.pcap"
    path.write_bytes(data.draw(changed(whole)))

    def read():
        capture = captures.read(path)
        _ = connections.chosen(connections.connections(capture), capture).forward

    read_or_refused(read)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
@often
@given(data=st.data())
def test_mutated_log_is_read_or_refused(tmp_path, name, data):
    lines = [("2026-07-04T12:00:03Z", "m", "connected"), ("2026-07-04T12:10:03Z", "m", "dropped")]
    keys = ("time", "link", "event")
    if name == "a.csv":
        whole = "\n".join(",".join(line) for line in (keys, *lines)).encode()
    else:
        whole = "\n".join(json.dumps(dict(zip(keys, line, strict=True)) | {"bars": 3}) for line in lines).encode()
    (tmp_path / name).write_bytes(data.draw(changed(whole)))
    read_or_refused(lambda: logs.read(tmp_path / name))


@often
@given(data=st.data())
def test_mutated_table_is_read_or_refused(tmp_path, data):
    row = {"share": 1.0, "flows": 1, "cn0_dbhz": 60.0, "status": "ok", "step": 1}
    path = tmp_path / "t.json"
    path.write_bytes(data.draw(changed(json.dumps({"rows": [row]}).encode())))
    read_or_refused(lambda: tables.read_rows(path))


FOUND = {
    "bits": 1000, "wrong_bits": 10, "events": 5, "gave_up": 0, "packets": 10, "wrong_packets": 5, "packet_bits": 100,
    "bit_error_rate": [0.01, 0.005, 0.02], "event_rate": [0.005, 0.002, 0.01], "packet_error_rate": [0.5, 0.2, 0.8],
    "interrupted": False, "reached": True,
}  # fmt: skip


@often
@given(data=st.data())
def test_mutated_cached_rate_is_read_or_ignored(data):
    whole = json.dumps({"key": "k", "found": FOUND, "sha256": digest("k", FOUND)}).encode()
    assert KEPT.parse(whole, "k") == (FOUND, "")

    found, why = KEPT.parse(data.draw(changed(whole)), "k")

    assert found == FOUND or (found is None and why)


@often
@given(name=st.sampled_from(sorted(FOUND)), value=st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists))
def test_mutated_cached_rate_with_a_valid_checksum_is_read_or_ignored(name, value):
    lie = {**FOUND, name: value}
    try:
        content = json.dumps({"key": "k", "found": lie, "sha256": digest("k", lie)}).encode()
    except UnicodeEncodeError:
        return

    found, why = KEPT.parse(content, "k")

    if found is not None:
        assert isinstance(value, int)
        assert found["bit_error_rate"][0] == pytest.approx(found["wrong_bits"] / max(found["bits"], 1))
    else:
        assert why


@often
@given(trace=st.sampled_from(list(traces())), data=st.data())
def test_the_core_and_python_accept_the_same_traces(tmp_path, trace, data):
    """The engine replays every trace that Python accepts."""
    path = tmp_path / "a.npz"
    path.write_bytes(data.draw(changed(trace.to_bytes())))
    where = {"rate": "rate_bps", "power": "channel"}.get(trace.kind)
    try:
        found = cache.import_file(path)
    except FarlinkError:
        return
    assert found.kind in KINDS
    if where == "rate_bps":
        link = {"delay_s": 0.1, "rate_bps": {"kind": "rate-trace", "file": str(path)}}
        flow = {"t": {"transport": "t", "traffic": {"kind": "bulk"}}}
        scenario = {"duration_s": 0.1, "link": link, "transport": {"t": {"kind": "tcp"}}, "flow": flow}
        _core.run(json.dumps(scenario), threads=1)
